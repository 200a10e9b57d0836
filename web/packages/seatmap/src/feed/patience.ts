const FIRST_MS = 1_000;
const MOST_MS = 30_000;
/** So many attempts in vain, and people are told that the server is down. */
const DOWN_AFTER = 3;

/** How long to wait before trying again: longer each time, and never all viewers at once. */
export class Patience {
  readonly #random: () => number;
  #failures = 0;
  #firstMs = FIRST_MS;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  set firstMs(ms: number) {
    this.#firstMs = Math.min(Math.max(ms, 100), MOST_MS);
  }

  get isOut(): boolean {
    return this.#failures >= DOWN_AFTER;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** Milliseconds to wait now. */
  failed(): number {
    const ms = Math.min(this.#firstMs * 2 ** this.#failures++, MOST_MS);
    return ms / 2 + (ms / 2) * this.#random();
  }
}
