import { between } from "../geometry/view.js";
import type { Size, View } from "../geometry/view.js";

const GLIDE_MS = 260;

/** Moves the view smoothly, or at once for whoever asked for less motion. */
export class Glide {
  #asked = 0;

  go(from: View, to: View, size: Size, still: boolean, show: (view: View) => void): void {
    this.stop();
    if (still) {
      show(to);
      return;
    }
    const began = performance.now();
    const step = () => {
      const share = Math.min((performance.now() - began) / GLIDE_MS, 1);
      const eased = 1 - (1 - share) ** 3;
      this.#asked = share < 1 ? requestAnimationFrame(step) : 0;
      show(share < 1 ? between(from, to, size, eased) : to);
    };
    this.#asked = requestAnimationFrame(step);
  }

  stop(): void {
    if (this.#asked) cancelAnimationFrame(this.#asked);
    this.#asked = 0;
  }
}
