/** Whether the server answers. While it does not, somebody knocks until it does. */
import type { FeedStatus } from '@holdfast/seatmap';

const KNOCK_MS = 2_000;
/** Shorter breaks are nobody's business. */
const GRACE_MS = 900;

export class Connection {
  /** Said to the buyer. */
  lost = $state(false);
  #apiAway = false;
  #feedAway = false;
  #grace: ReturnType<typeof setTimeout> | undefined;
  #knocking: ReturnType<typeof setTimeout> | undefined;
  readonly #knock: () => Promise<boolean>;
  readonly #back: () => void;

  /** `knock` asks for something small; `back` is told when the server is there again. */
  constructor(knock: () => Promise<boolean>, back: () => void) {
    this.#knock = knock;
    this.#back = back;
  }

  answered(): void {
    if (!this.#apiAway) return;
    this.#apiAway = false;
    clearTimeout(this.#knocking);
    this.#changed();
    this.#back();
  }

  away(): void {
    if (this.#apiAway) return;
    this.#apiAway = true;
    this.#changed();
    this.#knockLater();
  }

  feed(status: FeedStatus): void {
    const away = status === 'reconnecting' || status === 'down';
    if (away === this.#feedAway) return;
    this.#feedAway = away;
    this.#changed();
    if (status === 'live') this.#back();
  }

  close(): void {
    clearTimeout(this.#grace);
    clearTimeout(this.#knocking);
  }

  #changed(): void {
    clearTimeout(this.#grace);
    if (!this.#apiAway && !this.#feedAway) this.lost = false;
    else if (!this.lost) this.#grace = setTimeout(() => (this.lost = true), GRACE_MS);
  }

  #knockLater(): void {
    this.#knocking = setTimeout(async () => {
      if (await this.#knock()) this.answered();
      else if (this.#apiAway) this.#knockLater();
    }, KNOCK_MS);
  }
}
