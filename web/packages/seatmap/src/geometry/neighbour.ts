import type { Plan } from "./plan.js";

export type Direction = "left" | "right" | "up" | "down";

const STEPS: Record<Direction, readonly [number, number]> = {
  left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1],
};

/**
 * The seat that an arrow key leads to: the nearest one that way, seats to the side counting as farther off. First within
 * the section; only where that ends, across to the next one. -1 where there is none.
 */
export function neighbourOf(plan: Plan, seat: number, direction: Direction): number {
  const within = found(plan, seat, direction, plan.spacing * 8, true);
  return within >= 0 ? within : found(plan, seat, direction, plan.spacing * 40, false);
}

function found(plan: Plan, seat: number, direction: Direction, reach: number, sameSection: boolean): number {
  const { x, y, grid, spacing } = plan;
  const { section } = plan.geometry;
  const [stepX, stepY] = STEPS[direction];
  const atX = x[seat]!, atY = y[seat]!;
  let best = -1;
  let least = Infinity;
  const box = {
    left: stepX > 0 ? atX : atX - reach,
    right: stepX < 0 ? atX : atX + reach,
    top: stepY > 0 ? atY : atY - reach,
    bottom: stepY < 0 ? atY : atY + reach,
  };
  grid.visit(box, (other) => {
    if (other === seat || (sameSection && section[other] !== section[seat])) return;
    const dx = x[other]! - atX, dy = y[other]! - atY;
    const ahead = dx * stepX + dy * stepY;
    const aside = Math.abs(dx * stepY) + Math.abs(dy * stepX);
    if (ahead < spacing * 0.2 || aside > ahead * 1.5) return;
    const cost = ahead + aside * 2;
    if (cost < least && cost <= reach * 2) {
      least = cost;
      best = other;
    }
  });
  return best;
}
