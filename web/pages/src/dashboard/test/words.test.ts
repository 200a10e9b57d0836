import { describe, expect, test } from 'vitest';
import { counted, money, share, shareOf } from '../words/amount';
import { inWords } from '../words/names';
import { ago, countdown, life } from '../words/time';

describe('amounts', () => {
  test('minor units go by the currency', () => {
    expect(money(8000, 'EUR')).toContain('80.00');
    expect(money(8000, 'JPY')).toContain('8,000');
    expect(money(null, 'EUR')).toBe('–');
    expect(money(12, null)).toBe('12');
  });
  test('shares of nothing are no shares', () => {
    expect(share(0.4386)).toBe('43.9%');
    expect(share(null)).toBe('–');
    expect(shareOf(3, 0)).toBe('–');
  });
  test('one is not many', () => {
    expect(counted(1, 'seat')).toBe('1 seat');
    expect(counted(1200, 'seat')).toBe('1,200 seats');
    expect(counted(2, 'entry', 'entries')).toBe('2 entries');
  });
});

describe('time', () => {
  test('a countdown to the second', () => {
    expect(countdown(25_000, 0)).toBe('0:25');
    expect(countdown(24_001, 0)).toBe('0:25');
    expect(countdown(724_000, 0)).toBe('12:04');
    expect(countdown(3_729_000, 0)).toBe('1:02:09');
    expect(countdown(3 * 86_400_000, 0)).toBe('3 days');
    expect(countdown(0, 0)).toBe('over');
  });
  test('lives', () => {
    expect(life(null)).toBe('until released');
    expect(life(25)).toBe('25 s');
    expect(life(900)).toBe('15 min');
    expect(life(5400)).toBe('1 h 30 min');
    expect(life(0)).toBe('0 s');
  });
  test('how long ago', () => {
    const at = '2026-01-01T00:00:00Z';
    const ms = Date.parse(at);
    expect(ago(at, ms + 4_000)).toBe('just now');
    expect(ago(at, ms + 42_000)).toBe('42 s ago');
    expect(ago(at, ms + 240_000)).toBe('4 min ago');
    expect(ago(at, ms + 3 * 3_600_000)).toBe('3 h ago');
  });
});

test('names of programs, for people', () => {
  expect(inWords('zone_access_denied')).toBe('Zone access denied');
  expect(inWords('COMP')).toBe('Comp');
  expect(inWords('SeatHold')).toBe('Seat hold');
});
