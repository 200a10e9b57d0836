import type { Point } from "../geometry/geometry.js";

/** "ctrl": the wheel scrolls the page, and zooms only with the control key held (as a trackpad's pinch does by itself). */
export type WheelKind = "zoom" | "ctrl";

export function listenToWheel(
  target: HTMLElement, kind: () => WheelKind, zoom: (at: Point, factor: number) => void, signal: AbortSignal,
): void {
  target.addEventListener("wheel", (event) => {
    if (kind() === "ctrl" && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = target.getBoundingClientRect();
    zoom({ x: event.clientX - left, y: event.clientY - top }, wheelFactor(event));
  }, { passive: false, signal });
}

const LINE_PX = 16;
const PAGE_PX = 400;

/** Mice send large steps, trackpads many small ones; a single event never zooms by more than half. */
export function wheelFactor({ deltaY, deltaMode, ctrlKey }: Pick<WheelEvent, "deltaY" | "deltaMode" | "ctrlKey">): number {
  const px = deltaY * (deltaMode === 1 ? LINE_PX : deltaMode === 2 ? PAGE_PX : 1);
  const factor = 2 ** (-px / (ctrlKey ? 60 : 240));
  return Math.min(Math.max(factor, 2 / 3), 1.5);
}
