import { describe, expect, test } from 'vitest';
import { countsOf, ranges, rowsInWords, type ChosenSeat } from '../events/arrange/chosen-seats';
import { ANY_SEAT, rowsOf, seatsThatFit, type SeatNow } from '../events/arrange/seat-wish';

const section = (zone_id: string, first_ordinal: number, seat_count: number) => ({
  id: zone_id, zone_id, name: zone_id, zone_type: 'reserved_seating' as const, capacity: seat_count, access_mode: 'public', required_tier: null,
  first_ordinal, seat_count, focal_point: null, seat_id_prefix: '', seat_id_separator: '-',
});
/** Stalls: rows A and B of two; balcony: row A of two, the last for a wheelchair. */
const plan = {
  seatCount: 6,
  sections: [section('stalls', 0, 4), section('pit', 4, 0), section('balcony', 4, 2)],
  rows: ['A', 'B', 'A'],
  row: Int32Array.from([0, 0, 1, 1, 2, 2]),
  categories: ['standard', 'wheelchair'],
  category: Uint8Array.from([0, 0, 0, 0, 0, 1]),
  section: Uint16Array.from([0, 0, 0, 0, 2, 2]),
};
const states: SeatNow[] = [
  { state: 'available', holdType: null }, { state: 'held', holdType: 'CART' }, { state: 'held', holdType: 'COMP' },
  { state: 'sold', holdType: 'COMP' }, { state: 'available', holdType: null }, { state: 'blocked', holdType: null },
];
const fit = (wish: Partial<typeof ANY_SEAT>) => seatsThatFit(plan, { ...ANY_SEAT, ...wish }, (ordinal) => states[ordinal]!);

describe('choosing by fields', () => {
  test('nothing said is every seat', () => expect(fit({})).toEqual([0, 1, 2, 3, 4, 5]));
  test('a row is one of its zone', () => {
    expect(fit({ row: 'A' })).toEqual([0, 1, 4, 5]);
    expect(fit({ zone: 'balcony', row: 'A' })).toEqual([4, 5]);
  });
  test('category and state', () => {
    expect(fit({ category: 'wheelchair' })).toEqual([5]);
    expect(fit({ state: 'held' })).toEqual([1, 2]);
    expect(fit({ zone: 'balcony', state: 'sold' })).toEqual([]);
  });
  test('a type of hold means held seats', () => expect(fit({ holdType: 'COMP' })).toEqual([2]));
  test('rows of a zone, and of the house', () => {
    expect(rowsOf(plan, 'balcony')).toEqual(['A']);
    expect(rowsOf(plan, '')).toEqual(['A', 'B']);
  });
});

describe('what was chosen', () => {
  const seat = (row: string, number: number, state: ChosenSeat['state'] = 'available'): ChosenSeat => ({ section: { name: 'Stalls' }, row, number, state });
  test('numbers in ranges', () => {
    expect(ranges([3, 1, 2, 7, 10, 9])).toBe('1–3, 7, 9–10');
    expect(ranges([])).toBe('');
  });
  test('row by row', () => expect(rowsInWords([seat('A', 1), seat('B', 4), seat('A', 2)])).toEqual(['Stalls, row A: 1–2', 'Stalls, row B: 4']));
  test('by state', () => expect(countsOf([seat('A', 1), seat('A', 2, 'sold')])).toEqual({ available: 1, held: 0, sold: 1, blocked: 0, total: 2 }));
});
