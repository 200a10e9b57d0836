import type { Point } from "../geometry/geometry.js";

export interface GestureHandlers {
  pan(dx: number, dy: number): void;
  /** About a point, and moved with it. */
  pinch(at: Point, factor: number, dx: number, dy: number): void;
  tap(at: Point, pointerType: string): void;
  hover(at: Point | null): void;
  /** Whether a drag draws instead of panning. */
  draws(): boolean;
  drawn(path: readonly Point[], modifiers: { readonly add: boolean; readonly remove: boolean }): void;
  drawing(path: readonly Point[]): void;
}

/** A finger trembles: what moves less than this was meant to stay. */
const TAP_SLACK_PX = { mouse: 4, touch: 10, pen: 8 } as const;
const TAP_MS = 700;

/** Fingers, mouse and pen on the map. */
export class Gestures {
  readonly #target: HTMLElement;
  readonly #handlers: GestureHandlers;
  readonly #down = new Map<number, Point>();
  readonly #listening = new AbortController();
  #begun: { at: Point; ms: number; moved: boolean; type: string } | null = null;
  #path: Point[] | null = null;

  constructor(target: HTMLElement, handlers: GestureHandlers) {
    this.#target = target;
    this.#handlers = handlers;
    const { signal } = this.#listening;
    target.addEventListener("pointerdown", (event) => this.#press(event), { signal });
    target.addEventListener("pointermove", (event) => this.#move(event), { signal });
    target.addEventListener("pointerup", (event) => this.#lift(event, true), { signal });
    target.addEventListener("pointercancel", (event) => this.#lift(event, false), { signal });
    target.addEventListener("pointerleave", () => handlers.hover(null), { signal });
  }

  close(): void {
    this.#listening.abort();
  }

  /** Gives up a drawing that has begun. */
  cancelDrawing(): boolean {
    if (!this.#path) return false;
    this.#path = null;
    this.#handlers.drawing([]);
    return true;
  }

  #press(event: PointerEvent): void {
    if (event.button !== 0) return;
    const at = this.#place(event);
    // A pointer that is gone already (or never was real) cannot be captured, and need not be.
    if (event.isTrusted) this.#target.setPointerCapture(event.pointerId);
    this.#down.set(event.pointerId, at);
    if (this.#down.size > 1) {
      this.#begun = null;
      this.cancelDrawing();
      return;
    }
    this.#begun = { at, ms: event.timeStamp, moved: false, type: event.pointerType };
    if (this.#handlers.draws()) this.#path = [at];
  }

  #move(event: PointerEvent): void {
    const at = this.#place(event);
    const before = this.#down.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.#handlers.hover(at);
      return;
    }
    if (this.#down.size === 2) {
      this.#pinch(event.pointerId, before, at);
    } else if (this.#begun) {
      const slack = TAP_SLACK_PX[event.pointerType as keyof typeof TAP_SLACK_PX] ?? TAP_SLACK_PX.touch;
      if (!this.#begun.moved && distance(this.#begun.at, at) <= slack) return;
      if (!this.#begun.moved) {
        this.#begun.moved = true;
        this.#handlers.hover(null);
      }
      if (this.#path) {
        this.#path.push(at);
        this.#handlers.drawing(this.#path);
      } else this.#handlers.pan(at.x - before.x, at.y - before.y);
    } else {
      // One finger is left of two: it pans on.
      this.#handlers.pan(at.x - before.x, at.y - before.y);
    }
    this.#down.set(event.pointerId, at);
  }

  #pinch(moving: number, before: Point, at: Point): void {
    const other = [...this.#down].find(([id]) => id !== moving)![1];
    const was = distance(before, other), is = distance(at, other);
    const middle = { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 };
    this.#handlers.pinch(middle, was > 0 ? is / was : 1, (at.x - before.x) / 2, (at.y - before.y) / 2);
  }

  #lift(event: PointerEvent, completed: boolean): void {
    if (!this.#down.delete(event.pointerId)) return;
    const begun = this.#begun;
    if (this.#down.size > 0) return;
    this.#begun = null;
    const path = this.#path;
    this.#path = null;
    if (!completed || !begun) return;
    if (!begun.moved) {
      if (event.timeStamp - begun.ms <= TAP_MS) this.#handlers.tap(begun.at, begun.type);
    } else if (path) {
      this.#handlers.drawn(path, { add: event.shiftKey, remove: event.altKey });
    }
  }

  #place(event: PointerEvent): Point {
    const { left, top } = this.#target.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }
}

function distance(one: Point, other: Point): number {
  return Math.hypot(one.x - other.x, one.y - other.y);
}
