/** One clock for all countdowns of a page. It stands still while nobody looks at one. */
import { createSubscriber } from 'svelte/reactivity';

class Now {
  readonly #watch = createSubscriber((update) => {
    const timer = setInterval(update, 1000);
    return () => clearInterval(timer);
  });

  get ms(): number {
    this.#watch();
    return Date.now();
  }
}

export const now = new Now();
