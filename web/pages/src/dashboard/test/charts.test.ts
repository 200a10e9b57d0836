import { describe, expect, test } from 'vitest';
import { lifeColumns } from '../events/charts/lives';
import { seatsAlone } from '../events/charts/seats-alone';
import { layers, since } from '../events/charts/windows';

/** One row in one section, numbered from 1. */
const row = (length: number, aisles: number[] = []) => ({
  seatCount: length,
  row: new Int32Array(length),
  section: new Uint16Array(length),
  number: Int32Array.from({ length }, (_, n) => n + 1),
  aisles: { '0': aisles },
});
const alone = (picture: string, aisles: number[] = []) => seatsAlone(row(picture.length, aisles), (ordinal) => picture[ordinal] === '.');

describe('seats left alone', () => {
  test('a free seat between taken ones', () => expect(alone('x.x..x')).toEqual({ free: 3, alone: 1 }));
  test('at the edge of the row', () => expect(alone('.x....')).toEqual({ free: 5, alone: 1 }));
  test('neighbours do not reach across an aisle', () => expect(alone('..xx', [1])).toEqual({ free: 2, alone: 2 }));
  test('nobody in an empty or a full row', () => {
    expect(alone('....')).toEqual({ free: 4, alone: 0 });
    expect(alone('xxxx')).toEqual({ free: 0, alone: 0 });
  });
  test('another row is no neighbour', () => {
    const plan = { seatCount: 2, row: Int32Array.from([0, 1]), section: new Uint16Array(2), number: Int32Array.from([1, 2]), aisles: {} };
    expect(seatsAlone(plan, () => true)).toEqual({ free: 2, alone: 2 });
  });
});

test('layers lie on each other', () => {
  expect(layers([{ at: '1970-01-01T00:01:00Z', sold: 3, held: 2, blocked: 1, total: 10 }])).toEqual([[60], [6], [5], [3]]);
});

test('a window begins so long ago', () => {
  expect(since('1h', Date.parse('2026-01-02T00:00:00Z'))).toBe('2026-01-01T23:00:00.000Z');
  expect(since('7d', Date.parse('2026-01-08T00:00:00Z'))).toBe('2026-01-01T00:00:00.000Z');
});

test('lives of all types on one row of lengths', () => {
  const columns = lifeColumns([
    { hold_type: null, end: 'converted', holds: 3, p50_s: 1, p90_s: 1, histogram: [{ from_s: 0, to_s: 10, holds: 3 }] },
    { hold_type: null, end: 'expired', holds: 2, p50_s: 1, p90_s: 1, histogram: [{ from_s: 10, to_s: 60, holds: 1 }, { from_s: 60, to_s: null, holds: 1 }] },
    { hold_type: 'CART', end: 'expired', holds: 2, p50_s: 1, p90_s: 1, histogram: [{ from_s: 0, to_s: 10, holds: 9 }] },
  ]);
  expect(columns.labels).toEqual(['to 10 s', 'to 1 min', 'over 1 min']);
  expect(columns.byEnd).toEqual([{ end: 'converted', holds: [3, 0, 0] }, { end: 'expired', holds: [0, 1, 1] }]);
});
