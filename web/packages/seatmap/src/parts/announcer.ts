import { build } from "./build.js";

/** Says aloud what changed. Only the last of several at once: a screen reader must not lag behind the keys. */
export class Announcer {
  readonly element = build("div", { class: "unseen", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  #asked: ReturnType<typeof setTimeout> | undefined;

  say(text: string): void {
    clearTimeout(this.#asked);
    this.#asked = setTimeout(() => {
      // The same words twice are heard twice only if they were gone in between.
      this.element.textContent = this.element.textContent === text ? `${text}\u00a0` : text;
    }, 60);
  }
}
