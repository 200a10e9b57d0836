import { describe, expect, it } from 'vitest';
import { Problem } from '../src/shared/api';
import { placeOf, stepOf } from '../src/buyer/address';
import { announcement, clockFace, deadlineIn, secondsLeft, spokenTime, urgency } from '../src/buyer/countdown';
import { daysWords } from '../src/buyer/days';
import { Guest } from '../src/buyer/guest';
import { money, priceRange } from '../src/buyer/money';
import { byZone, headCount, listed, placeWords, sumMinor } from '../src/buyer/places';
import { orphanRefusal, refusalWords } from '../src/buyer/refusals';

const ID = '01a1e02d-93e5-7d5a-a9b0-cc38ea8d141d';

describe('addresses', () => {
  it('tells the pages apart', () => {
    expect(placeOf(`/e/${ID}`, '', null)).toEqual({ kind: 'event', event: ID });
    expect(placeOf('/', `?organization=${ID}`, null)).toEqual({ kind: 'events', organization: ID });
    expect(placeOf('/', '', ID)).toEqual({ kind: 'events', organization: ID });
    expect(placeOf('/', '', null)).toEqual({ kind: 'unknown' });
    expect(placeOf('/e/nonsense', '', ID)).toEqual({ kind: 'unknown' });
  });

  it('keeps the step behind #', () => {
    expect([stepOf(''), stepOf('#checkout'), stepOf('#tickets'), stepOf('#cart')]).toEqual(['choose', 'checkout', 'tickets', 'choose']);
  });
});

describe('the countdown', () => {
  it('never shows more than there is, nor less than nothing', () => {
    const deadline = deadlineIn(300, 1_000);
    expect(secondsLeft(deadline, 1_000)).toBe(300);
    expect(secondsLeft(deadline, 1_001)).toBe(300);
    expect(secondsLeft(deadline, 2_000)).toBe(299);
    expect(secondsLeft(deadline, 300_999)).toBe(1);
    expect(secondsLeft(deadline, 301_000)).toBe(0);
    expect(secondsLeft(deadline, 999_999)).toBe(0);
  });

  it('is written mm:ss', () => {
    expect([0, 9, 60, 250, 3_720].map(clockFace)).toEqual(['0:00', '0:09', '1:00', '4:10', '62:00']);
  });

  it('is spoken in words', () => {
    expect([1, 30, 60, 130].map(spokenTime)).toEqual(['1 second', '30 seconds', '1 minute', '2 minutes and 10 seconds']);
  });

  it('warns at thirty seconds', () => {
    expect([31, 30, 1, 0].map(urgency)).toEqual(['calm', 'soon', 'soon', 'over']);
  });

  it('says little: once at each mark, and after a sleep only the last', () => {
    expect(announcement(301, 300)).toBe('5 minutes left.');
    expect(announcement(300, 299)).toBeNull();
    expect(announcement(31, 30)).toBe('30 seconds left.');
    expect(announcement(200, 25)).toBe('25 seconds left.');
    expect(announcement(5, 0)).toBeNull();
  });
});

describe('money', () => {
  it('has the digits of its currency', () => {
    expect(money(8000, 'EUR', 'en')).toBe('€80.00');
    expect(money(8000, 'JPY', 'en')).toBe('¥8,000');
    expect(money(8000, 'KWD', 'en').replace(/\s/g, ' ')).toBe('KWD 8.000');
    expect(money(8000, null, 'en')).toBe('80.00');
  });

  it('is a range where prices differ', () => {
    expect(priceRange(3000, 15000, 'EUR', 'en')).toBe('€30.00 – €150.00');
    expect(priceRange(3000, 3000, 'EUR', 'en')).toBe('€30.00');
    expect(priceRange(0, 0, 'EUR', 'en')).toBe('Free');
    expect(priceRange(null, null, 'EUR', 'en')).toBeNull();
  });
});

describe('days', () => {
  it('are one, a stretch or a list', () => {
    expect(daysWords([], 'en-GB')).toBeNull();
    expect(daysWords(['2030-05-01'], 'en-GB')).toBe('Wed, 1 May 2030');
    expect(daysWords(['2030-05-01', '2030-05-02'], 'en-GB')?.replace(/\s/g, ' ')).toMatch(/^1 ?– ?2 May 2030$/);
    expect(daysWords(['2030-05-01', '2030-05-03'], 'en-GB')).toBe('Wed, 1 May 2030, Fri, 3 May 2030');
  });
});

describe('places', () => {
  const place = (zoneId: string, row: string | null, number: number | null, quantity = 1) => ({
    holdId: `${zoneId}${row}${number}`, seatId: row === null ? null : `${row}-${number}`, label: null, zoneId, zone: zoneId.toUpperCase(), row, number, quantity,
  });

  it('are put together by zone, rows and numbers in order', () => {
    const groups = byZone([place('b', 'A', 10), place('a', null, null, 3), place('b', 'A', 9), place('b', 'AA', 1), place('b', 'B', 2)]);
    expect(groups.map(({ zone }) => zone)).toEqual(['B', 'A']);
    expect(groups[0]!.places.map(placeWords)).toEqual(['Row A, seat 9', 'Row A, seat 10', 'Row AA, seat 1', 'Row B, seat 2']);
    expect(groups[1]!.places.map(placeWords)).toEqual(['3 places']);
  });

  it('are counted and added up', () => {
    expect(headCount([place('a', 'A', 1), place('b', null, null, 3)])).toBe(4);
    expect(sumMinor([{ priceMinor: 8000, quantity: 1 }, { priceMinor: 3000, quantity: 3 }])).toBe(17000);
    expect(sumMinor([{ priceMinor: 8000, quantity: 1 }, { priceMinor: null, quantity: 1 }])).toBeNull();
  });

  it('are listed as people do', () => {
    expect([listed([]), listed(['A-1']), listed(['A-1', 'A-2', 'A-3'])]).toEqual(['', 'A-1', 'A-1, A-2 and A-3']);
  });
});

describe('refusals', () => {
  it('are kind to whoever was slower', () => {
    const held = new Problem(409, 'seat_held_by_another_user', 'Someone else is holding this seat.', { expires_in: 250 });
    expect(refusalWords(held, 'A-12')).toBe('Somebody was faster: A-12 is held. It may come free in 4:10.');
    expect(refusalWords(new Problem(409, 'seat_not_available', 'This seat is sold.', { current_status: 'sold' }), 'A-12')).toBe('Somebody was faster: A-12 is sold.');
    expect(refusalWords(new Problem(409, 'seat_not_available', 'This seat is blocked.', { current_status: 'blocked' }))).toBe('This seat is not for sale.');
  });

  it('keep the server’s words where they help', () => {
    expect(refusalWords(new Problem(403, 'zone_access_denied', 'Boxes are for gold members.'))).toBe('Boxes are for gold members.');
  });

  const fact = (id: string) => ({ id: `id-${id}`, seat_id: id, row: 'B', number: 1 });
  const orphan = new Problem(409, 'orphan_seat', 'This would leave …', {
    stranded: [fact('B-1')], alternatives: [{ seats: [fact('B-3')], words: 'Stalls, row B, seat 3' }],
  });

  it('of a seat left alone have every alternative, and the two together', () => {
    const refusal = orphanRefusal(orphan, [{ id: 'id-B-2', label: 'B-2' }], 5);
    expect(refusal?.alone).toEqual(['B-1']);
    expect(refusal?.options).toEqual([
      { seatIds: ['id-B-3'], words: 'Stalls, row B, seat 3' },
      { seatIds: ['id-B-2', 'id-B-1'], words: 'Both B-1 and B-2' },
    ]);
    expect(orphanRefusal(orphan, [{ id: 'id-B-2', label: 'B-2' }], 1)?.options).toHaveLength(1);
    expect(orphanRefusal(new Problem(409, 'other', ''), [], 5)).toBeNull();
  });
});

describe('a guest', () => {
  it('has one token for the tab, asked for once, and another when it was refused', async () => {
    const kept = new Map<string, string>();
    const keeping = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
    let asked = 0;
    const open = { post: () => Promise.resolve({ data: { token: `t${++asked}` } }) } as never;
    const guest = new Guest(ID, keeping, open);
    expect(await Promise.all([guest.token(), guest.token()])).toEqual(['t1', 't1']);
    expect(await new Guest(ID, keeping, open).token()).toBe('t1');
    expect(await guest.token(true)).toBe('t2');
    expect(asked).toBe(2);
  });
});
