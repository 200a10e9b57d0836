import type { Box, Point } from "../geometry/geometry.js";
import type { Plan } from "../geometry/plan.js";
import { fitted, seenBox, toPlan, toScreen } from "../geometry/view.js";
import type { Size, View } from "../geometry/view.js";
import { cssOf } from "../draw/colour.js";
import type { SectionPaint } from "../draw/scene.js";
import { build } from "./build.js";

const MOST: Size = { width: 168, height: 112 };

/** The whole plan in the corner, and where on it one is. A click goes there: whoever cannot drag can still get about. */
export class Minimap {
  readonly element: HTMLElement;
  readonly #canvas = build("canvas", { "aria-hidden": "true" });
  readonly #window = build("div", { class: "minimap-window" });
  readonly #button: HTMLButtonElement;
  #view: View = { scale: 1, x: 0, y: 0 };
  #plan: Plan | null = null;
  #size: Size = MOST;

  constructor(label: string, goTo: (point: Point) => void) {
    this.#button = build("button", { type: "button", class: "minimap-button", "aria-label": label, tabindex: -1 }, this.#canvas, this.#window);
    this.element = build("div", { class: "minimap", part: "minimap", hidden: true }, this.#button);
    const go = (event: PointerEvent) => {
      if (event.type === "pointermove" && !(event.buttons & 1)) return;
      const { left, top } = this.#canvas.getBoundingClientRect();
      goTo(toPlan(this.#view, { x: event.clientX - left, y: event.clientY - top }));
    };
    this.#button.addEventListener("pointerdown", (event) => {
      if (event.isTrusted) this.#button.setPointerCapture(event.pointerId);
      go(event);
    });
    this.#button.addEventListener("pointermove", go);
  }

  setPlan(plan: Plan): void {
    this.#plan = plan;
    const width = plan.box.right - plan.box.left, height = plan.box.bottom - plan.box.top;
    const scale = Math.min((MOST.width - 12) / width, (MOST.height - 12) / height);
    this.#size = { width: Math.max(56, Math.round(width * scale + 12)), height: Math.max(40, Math.round(height * scale + 12)) };
    this.#view = fitted(plan.box, this.#size, 6);
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.#canvas.width = this.#size.width * ratio;
    this.#canvas.height = this.#size.height * ratio;
    this.#canvas.style.width = `${this.#size.width}px`;
    this.#canvas.style.height = `${this.#size.height}px`;
  }

  paint(sections: readonly SectionPaint[]): void {
    const plan = this.#plan;
    if (!plan) return;
    const context = this.#canvas.getContext("2d")!;
    const ratio = this.#canvas.width / this.#size.width;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    const { scale, x, y } = this.#view;
    plan.areas.forEach(({ rings }, n) => {
      context.fillStyle = cssOf(sections[n]!.farFill);
      context.beginPath();
      for (const ring of rings) {
        for (let i = 0; i < ring.length; i += 2) {
          const atX = (ring[i]! * scale + x) * ratio, atY = (ring[i + 1]! * scale + y) * ratio;
          if (i === 0) context.moveTo(atX, atY);
          else context.lineTo(atX, atY);
        }
        context.closePath();
      }
      context.fill("evenodd");
    });
  }

  /** Not shown while everything is in sight anyway. */
  follow(view: View, size: Size): void {
    if (!this.#plan) return;
    const seen = seenBox(view, size);
    const { box } = this.#plan;
    this.element.hidden = covers(seen, box);
    if (this.element.hidden) return;
    const from = toScreen(this.#view, { x: seen.left, y: seen.top }), to = toScreen(this.#view, { x: seen.right, y: seen.bottom });
    const left = Math.max(0, from.x), top = Math.max(0, from.y);
    const { style } = this.#window;
    style.transform = `translate(${left}px, ${top}px)`;
    style.width = `${Math.max(6, Math.min(this.#size.width, to.x) - left)}px`;
    style.height = `${Math.max(6, Math.min(this.#size.height, to.y) - top)}px`;
  }
}

function covers(outer: Box, inner: Box): boolean {
  return outer.left <= inner.left && outer.top <= inner.top && outer.right >= inner.right && outer.bottom >= inner.bottom;
}
