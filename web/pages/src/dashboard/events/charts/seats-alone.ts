/** Free seats that nobody sits beside and nobody can be sold beside: hard to sell. */
import type { Geometry } from '@holdfast/seatmap';

type Plan = Pick<Geometry, 'seatCount' | 'row' | 'section' | 'number' | 'aisles'>;

/** How many seats are free, and how many of them have no free neighbour: consecutive numbers of one row, no aisle between. */
export function seatsAlone(plan: Plan, isFree: (ordinal: number) => boolean): { free: number; alone: number } {
  const rows = new Map<string, number[]>();
  let free = 0;
  for (let ordinal = 0; ordinal < plan.seatCount; ordinal++) {
    if (!isFree(ordinal)) continue;
    free++;
    const key = `${plan.section[ordinal]}/${plan.row[ordinal]}`;
    const row = rows.get(key);
    if (row) row.push(ordinal);
    else rows.set(key, [ordinal]);
  }
  let alone = 0;
  for (const row of rows.values()) {
    row.sort((a, b) => plan.number[a]! - plan.number[b]!);
    const aisles = new Set(plan.aisles[String(plan.row[row[0]!])] ?? []);
    const together = (left: number | undefined, right: number | undefined) =>
      left !== undefined && right !== undefined && plan.number[right] === plan.number[left]! + 1 && !aisles.has(plan.number[left]!);
    row.forEach((seat, i) => {
      if (!together(row[i - 1], seat) && !together(seat, row[i + 1])) alone++;
    });
  }
  return { free, alone };
}
