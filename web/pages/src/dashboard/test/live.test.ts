import { describe, expect, test } from 'vitest';
import { lastMove, LatestMoves, type Move } from '../events/live/latest-moves';

/** A log whose ids are those given: other events have the ones between. */
function log(ids: number[]) {
  let asked = 0;
  const read = (after: number, limit: number) => {
    asked++;
    return Promise.resolve(ids.filter((id) => id > after).slice(0, limit).map((id) => ({ id }) as Move));
  };
  return { read, asked: () => asked, add: (id: number) => ids.push(id) };
}

describe('the end of the log', () => {
  test('of none', async () => expect(await lastMove(log([]).read)).toBe(0));
  test('of one', async () => expect(await lastMove(log([7]).read)).toBe(7));
  test.each([2, 999, 1025, 40_000])('of %i moves', async (count) => {
    const ids = Array.from({ length: count }, (_, n) => 3 * n + 5);
    expect(await lastMove(log(ids).read)).toBe(ids.at(-1));
  });
  test('with a long gap', async () => expect(await lastMove(log([1, 2, 5_000_000]).read)).toBe(5_000_000));
  test('is found in few questions', async () => {
    const made = log(Array.from({ length: 100_000 }, (_, n) => n + 1));
    await lastMove(made.read);
    expect(made.asked()).toBeLessThan(30);
  });
});

test('newest first, and followed', async () => {
  const made = log([1, 2, 3]);
  const moves = new LatestMoves(made.read, 3);
  expect((await moves.refresh()).map(({ id }) => id)).toEqual([3, 2, 1]);
  made.add(9);
  expect((await moves.refresh()).map(({ id }) => id)).toEqual([9, 3, 2]);
});
