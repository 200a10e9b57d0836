import type { Point } from "../geometry/geometry.js";
import type { Plan } from "../geometry/plan.js";
import { contains, ringBox } from "../geometry/polygon.js";
import { toPlan } from "../geometry/view.js";
import type { View } from "../geometry/view.js";

/** The seats whose middle lies inside a path that was drawn on the screen. */
export function seatsInside(plan: Plan, view: View, path: readonly Point[]): number[] {
  if (path.length < 3) return [];
  const ring = new Float32Array(path.length * 2);
  path.forEach((point, i) => {
    const { x, y } = toPlan(view, point);
    ring[2 * i] = x;
    ring[2 * i + 1] = y;
  });
  const rings = [ring];
  const found: number[] = [];
  plan.grid.visit(ringBox(rings)!, (ordinal) => {
    if (contains(rings, { x: plan.x[ordinal]!, y: plan.y[ordinal]! })) found.push(ordinal);
  });
  return found.sort((a, b) => a - b);
}
