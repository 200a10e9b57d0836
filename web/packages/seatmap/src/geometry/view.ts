import type { Box, Point } from "./geometry.js";

/** Where the plan is on the screen: a point of the plan is at `point * scale + (x, y)`, in CSS pixels. */
export interface View {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export function toScreen(view: View, point: Point): Point {
  return { x: point.x * view.scale + view.x, y: point.y * view.scale + view.y };
}

export function toPlan(view: View, point: Point): Point {
  return { x: (point.x - view.x) / view.scale, y: (point.y - view.y) / view.scale };
}

export function seenBox(view: View, size: Size): Box {
  const { x: left, y: top } = toPlan(view, { x: 0, y: 0 });
  const { x: right, y: bottom } = toPlan(view, { x: size.width, y: size.height });
  return { left, top, right, bottom };
}

export function panned(view: View, dx: number, dy: number): View {
  return { scale: view.scale, x: view.x + dx, y: view.y + dy };
}

/** The point of the plan under `at` stays there. */
export function zoomedAbout(view: View, at: Point, factor: number): View {
  return {
    scale: view.scale * factor,
    x: at.x - (at.x - view.x) * factor,
    y: at.y - (at.y - view.y) * factor,
  };
}

export function fitted(box: Box, size: Size, margin: number, mostScale = Infinity): View {
  const width = Math.max(box.right - box.left, 1e-6);
  const height = Math.max(box.bottom - box.top, 1e-6);
  const roomX = Math.max(size.width - 2 * margin, 1);
  const roomY = Math.max(size.height - 2 * margin, 1);
  const scale = Math.min(roomX / width, roomY / height, mostScale);
  return {
    scale,
    x: size.width / 2 - ((box.left + box.right) / 2) * scale,
    y: size.height / 2 - ((box.top + box.bottom) / 2) * scale,
  };
}

export interface Limits {
  readonly plan: Box;
  readonly size: Size;
  readonly leastScale: number;
  readonly mostScale: number;
}

/** Never farther out than the whole plan, nor nearer than useful, and never with the plan out of sight. */
export function clamped(view: View, limits: Limits): View {
  const { plan, size } = limits;
  const scale = Math.min(Math.max(view.scale, limits.leastScale), limits.mostScale);
  const corrected = scale === view.scale
    ? view
    : zoomedAbout(view, { x: size.width / 2, y: size.height / 2 }, scale / view.scale);
  return {
    scale,
    x: clampedAxis(corrected.x, plan.left * scale, plan.right * scale, size.width),
    y: clampedAxis(corrected.y, plan.top * scale, plan.bottom * scale, size.height),
  };
}

/** A part of the plan stays on the screen; a plan smaller than the screen stays on it as a whole. */
function clampedAxis(offset: number, from: number, to: number, room: number): number {
  const length = to - from;
  if (length <= room) return Math.min(Math.max(offset, -from), room - to);
  const over = room * 0.4;
  return Math.min(Math.max(offset, room - over - to), over - from);
}

/** Between two views, so that zooming looks even: the scale moves by ratio, the place with it. */
export function between(from: View, to: View, size: Size, share: number): View {
  const scale = from.scale * (to.scale / from.scale) ** share;
  const middle = { x: size.width / 2, y: size.height / 2 };
  const start = toPlan(from, middle);
  const end = toPlan(to, middle);
  const straight = Math.abs(to.scale / from.scale - 1) < 1e-3;
  // The place follows the scale: else a zoom towards a far point would first run away from it.
  const along = straight ? share : (1 / scale - 1 / from.scale) / (1 / to.scale - 1 / from.scale);
  const x = start.x + (end.x - start.x) * along;
  const y = start.y + (end.y - start.y) * along;
  return { scale, x: middle.x - x * scale, y: middle.y - y * scale };
}

export function sameView(one: View, other: View): boolean {
  return one.scale === other.scale && one.x === other.x && one.y === other.y;
}
