import type { Point } from "../geometry/geometry.js";
import type { Size } from "../geometry/view.js";
import type { SeatLook } from "../draw/style.js";
import { build } from "./build.js";
import { Swatches } from "./swatch.js";

export interface TooltipText {
  readonly title: string;
  readonly lines: readonly string[];
  readonly look: SeatLook | null;
  readonly price: string | null;
}

/** What is under the pointer or the keyboard's place. Screen readers hear it from the announcer instead. */
export class Tooltip {
  readonly element = build("div", { class: "tooltip", part: "tooltip", "aria-hidden": "true", hidden: true });
  readonly #swatches = new Swatches(18);

  show(text: TooltipText, at: Point, gap: number, room: Size): void {
    const head = build("div", { class: "tooltip-title" }, text.title, text.price !== null && build("span", { class: "tooltip-price" }, text.price));
    const lines = text.lines.map((line, n) => {
      const swatch = n === text.lines.length - 1 && text.look ? this.#swatches.canvas() : null;
      if (swatch) this.#swatches.draw(swatch, text.look!);
      return build("div", { class: "tooltip-line" }, swatch, line);
    });
    this.element.replaceChildren(head, ...lines);
    this.element.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const x = Math.min(Math.max(at.x - width / 2, 6), Math.max(6, room.width - width - 6));
    const above = at.y - gap - height;
    const y = above >= 6 ? above : Math.min(at.y + gap, room.height - height - 6);
    this.element.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }

  hide(): void {
    this.element.hidden = true;
  }

  get isShown(): boolean {
    return !this.element.hidden;
  }
}
