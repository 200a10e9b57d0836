import type { Geometry } from "./geometry.js";
import type { SeatGrid } from "./seat-grid.js";

/** Distances of so many seats are looked at: enough for a median. */
const SAMPLES = 240;


/** Rather the small distances of a plan than the usual one: seats of its tightest part must not overlap. */
export function spacingOf(x: Float32Array, y: Float32Array, grid: SeatGrid): number {
  const found: number[] = [];
  const step = Math.max(1, Math.floor(x.length / SAMPLES));
  for (let i = 0; i < x.length; i += step) {
    const near = nearestOther(x, y, grid, i, () => true);
    if (near > 0 && near < Infinity) found.push(near);
  }
  return found.length ? quantile(found, 0.1) : 1;
}

/** The usual distance between a section's rows; Infinity where it has only one. */
export function rowGapOf(geometry: Geometry, x: Float32Array, y: Float32Array, grid: SeatGrid, sectionNo: number): number {
  const section = geometry.sections[sectionNo]!;
  const { row, section: sectionOf } = geometry;
  const found: number[] = [];
  const step = Math.max(1, Math.floor(section.seat_count / 12));
  for (let i = section.first_ordinal; i < section.first_ordinal + section.seat_count; i += step) {
    const near = nearestOther(x, y, grid, i, (other) => row[other] !== row[i] && sectionOf[other] === sectionNo);
    if (near < Infinity) found.push(near);
  }
  return found.length ? quantile(found, 0.5) : Infinity;
}

function nearestOther(
  x: Float32Array, y: Float32Array, grid: SeatGrid, seat: number, counts: (other: number) => boolean,
): number {
  const atX = x[seat]!, atY = y[seat]!;
  let best = Infinity;
  // The first ring of cells usually has it; a lone seat is not looked for across the whole plan.
  for (let reach = grid.cell; reach <= grid.cell * 4 && best > reach; reach *= 2) {
    grid.visit({ left: atX - reach, top: atY - reach, right: atX + reach, bottom: atY + reach }, (other) => {
      if (other === seat) return;
      const distance = Math.hypot(x[other]! - atX, y[other]! - atY);
      if (distance > 0 && distance < best && counts(other)) best = distance;
    });
  }
  return best;
}

function quantile(values: number[], share: number): number {
  values.sort((a, b) => a - b);
  return values[Math.floor((values.length - 1) * share)]!;
}
