import { describe, expect, test } from 'vitest';
import { ticketsFor } from '../events/sales/ticket-search';
import { withinTime } from '../organization/audit-time';
import { browserWords } from '../organization/browser-words';
import { seatsIn, seatsMeant } from '../organization/file-seats';
import { typeName, withActor, withField } from '../organization/hold-type-form';
import { documentOf, draftOf, POLICY_FIELDS, policyWords } from '../organization/policy-fields';

describe('hold types', () => {
  test('fields are said and left to the layers below', () => {
    const said = withField({ COMP: { displayName: 'Comp' } }, 'COMP', 'ttlSeconds', null);
    expect(said).toEqual({ COMP: { displayName: 'Comp', ttlSeconds: null } });
    expect(withField(said, 'COMP', 'displayName', undefined)).toEqual({ COMP: { ttlSeconds: null } });
  });
  test('actors keep their order', () => {
    expect(withActor('ADMIN', 'CUSTOMER', true)).toBe('CUSTOMER,ADMIN');
    expect(withActor('CUSTOMER,ADMIN', 'CUSTOMER', false)).toBe('ADMIN');
  });
  test('names as programs write them', () => expect(typeName(' Friends of the house! ')).toBe('FRIENDS_OF_THE_HOUSE'));
});

describe('policy', () => {
  test('what is stored and what is sent are the same', () => {
    const stored = { max_seats_per_booking: 4, max_holds_per_ip: null, locked_fields: ['max_group_split', 'checkout_minutes'] };
    expect(documentOf(draftOf(stored))).toEqual({ ...stored, locked_fields: ['checkout_minutes', 'max_group_split'] });
    expect(documentOf(draftOf(null))).toEqual({});
  });
  test('every field once, in words', () => {
    expect(new Set(POLICY_FIELDS.map(({ name }) => name)).size).toBe(24);
    const ofIp = POLICY_FIELDS.find(({ name }) => name === 'max_holds_per_ip')!;
    expect(policyWords(ofIp, null)).toBe('no limit');
    expect(policyWords(POLICY_FIELDS[0]!, true)).toBe('yes');
  });
});

describe('files of layouts', () => {
  test('problems find their seats', () => {
    const seats = seatsIn(JSON.stringify({ zones: [{ seats: [{ seat_id: 'A-1', coordinates: { x: 1, y: 2 } }, { seat_id: 'A-1', coordinates: { x: 3, y: 2 } }, { seat_id: 'x' }] }] }));
    expect(seats.map(({ name, pointer }) => [name, pointer])).toEqual([['A-1', '/zones/0/seats/0'], ['A-1', '/zones/0/seats/1']]);
    const meant = seatsMeant(seats, [{ pointer: '/zones/0/seats/1/seat_id', detail: 'twice' }, { pointer: '/zones/0/capacity', detail: 'wrong' }, { pointer: '/zones/0/seats/1', detail: 'taken' }]);
    expect([...meant.values()].map((list) => list.map(({ detail }) => detail))).toEqual([['twice', 'taken']]);
  });
  test('lines of a CSV', () => {
    const seats = seatsIn('\uFEFFzone;row;number;x;y\nstalls;A;1;1,5;2\nstalls;A;2;;\nstalls;A;3;4;2\n');
    expect(seats).toEqual([
      { pointer: '/lines/2', x: 1.5, y: 2, name: 'stalls-A-1' }, { pointer: '/lines/4', x: 4, y: 2, name: 'stalls-A-3' },
    ]);
  });
  test('what cannot be read has no seats', () => {
    expect(seatsIn('{nonsense')).toEqual([]);
    expect(seatsIn('<svg/>')).toEqual([]);
    expect(seatsIn('{"zones": [null, 3, {"seats": [null]}]}')).toEqual([]);
  });
});

test('tickets by what people say', () => {
  const ticket = (id: string, seat_id: string, name: string | null) => ({ id, checkout_id: 'c', seat: { seat_id, row: seat_id[0]!, number: 1 }, zone: { name: 'Stalls' }, attendee: { name } });
  const all = [ticket('t1', 'A-12', 'Ada Lovelace'), ticket('t2', 'B-12', null)];
  expect(ticketsFor(all, '').length).toBe(2);
  expect(ticketsFor(all, 'ada stalls').map(({ id }) => id)).toEqual(['t1']);
  expect(ticketsFor(all, 'b-12').map(({ id }) => id)).toEqual(['t2']);
  expect(ticketsFor(all, 'nobody')).toEqual([]);
});

test('a stretch of time out of entries that come newest first', () => {
  const entries = ['2026-01-03T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z'].map((at) => ({ at }));
  const bounds = { from: '2026-01-01T12:00:00Z', to: '2026-01-02T12:00:00Z' };
  expect(withinTime(entries, bounds)).toEqual({ fitting: [entries[1]], over: true });
  expect(withinTime(entries, { from: '', to: '' })).toEqual({ fitting: entries, over: false });
});

test('browsers by name', () => {
  expect(browserWords('Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36')).toBe('Chrome on Linux');
  expect(browserWords('curl/8.5')).toBe('curl/8.5');
  expect(browserWords(null)).toBe('A program');
});
