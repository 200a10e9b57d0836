/** Something of the server's that is shown: loaded, kept fresh, and asked for again by itself while the server is away. */
import { Problem } from '../shared/api';

const WHILE_AWAY_MS = 3_000;

export class Loaded<T> {
  value = $state.raw<T | null>(null);
  problem = $state.raw<Problem | null>(null);
  busy = $state(false);
  readonly #ask: (signal: AbortSignal) => Promise<T>;
  readonly #everyMs: number | null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking: AbortController | null = null;
  #closed = false;

  constructor(ask: (signal: AbortSignal) => Promise<T>, everyMs: number | null = null) {
    this.#ask = ask;
    this.#everyMs = everyMs;
  }

  /** For `$effect(() => thing.open())`: begins, and answers how to end. */
  open(): () => void {
    this.#closed = false;
    void this.refresh();
    return () => this.close();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#asking?.abort();
  }

  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    const asking = new AbortController();
    this.#asking = asking;
    this.busy = true;
    let next = this.#everyMs;
    try {
      const value = await this.#ask(asking.signal);
      if (this.#asking !== asking || this.#closed) return;
      this.value = value;
      this.problem = null;
    } catch (error) {
      if (this.#asking !== asking || this.#closed) return;
      this.problem = error instanceof Problem ? error : new Problem(0, 'unknown', String(error));
      if (this.problem.away) next = WHILE_AWAY_MS;
    } finally {
      if (this.#asking === asking) this.busy = false;
    }
    if (next !== null && !this.#closed) this.#timer = setTimeout(() => void this.#whenSeen(), next);
  }

  /** Nobody looks at a page in the background: it asks again when somebody does. */
  async #whenSeen(): Promise<void> {
    if (document.hidden) {
      await new Promise<void>((seen) => {
        document.addEventListener('visibilitychange', () => seen(), { once: true });
      });
    }
    if (!this.#closed) await this.refresh();
  }
}
