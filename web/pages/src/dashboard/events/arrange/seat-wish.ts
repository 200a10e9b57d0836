/** Seats by description instead of by hand: zone, row, category, state, type of hold. */
import type { Geometry, SeatState } from '@holdfast/seatmap';

export interface SeatWish {
  zone: string;
  row: string;
  category: string;
  state: '' | SeatState;
  holdType: string;
}

export const ANY_SEAT: SeatWish = { zone: '', row: '', category: '', state: '', holdType: '' };

export interface SeatNow {
  readonly state: SeatState;
  readonly holdType: string | null;
}

type Plan = Pick<Geometry, 'seatCount' | 'sections' | 'rows' | 'row' | 'categories' | 'category' | 'section'>;

/** Empty fields fit every seat. */
export function seatsThatFit(plan: Plan, wish: SeatWish, now: (ordinal: number) => SeatNow): number[] {
  const found: number[] = [];
  for (let ordinal = 0; ordinal < plan.seatCount; ordinal++) {
    if (wish.zone && plan.sections[plan.section[ordinal]!]!.zone_id !== wish.zone) continue;
    if (wish.row && plan.rows[plan.row[ordinal]!] !== wish.row) continue;
    if (wish.category && plan.categories[plan.category[ordinal]!] !== wish.category) continue;
    if (wish.state || wish.holdType) {
      const { state, holdType } = now(ordinal);
      if (wish.state && state !== wish.state) continue;
      if (wish.holdType && (state !== 'held' || holdType !== wish.holdType)) continue;
    }
    found.push(ordinal);
  }
  return found;
}

/** The rows of a zone, or of the whole house, each name once, in the order of the plan. */
export function rowsOf(plan: Plan, zone: string): string[] {
  const names = new Set<string>();
  plan.sections.forEach((section) => {
    if (zone && section.zone_id !== zone) return;
    for (let i = section.first_ordinal; i < section.first_ordinal + section.seat_count; i++) names.add(plan.rows[plan.row[i]!]!);
  });
  return [...names];
}
