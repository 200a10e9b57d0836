import { expect, test } from 'vitest';
import { addressOf, placeOf } from '../place.svelte';

test('addresses and places say the same', () => {
  for (const place of [
    { view: 'events' }, { view: 'event', eventId: 'e1', tab: 'charts' }, { view: 'hold-types' }, { view: 'audit' },
  ] as const) expect(placeOf(addressOf(place))).toEqual(place);
});

test('an event opens live, and what does not exist is nowhere', () => {
  expect(placeOf('/dashboard/')).toEqual({ view: 'events' });
  expect(placeOf('/dashboard/events/e1')).toEqual({ view: 'event', eventId: 'e1', tab: 'live' });
  for (const path of ['/dashboard/events/e1/nonsense', '/dashboard/events/e1/live/more', '/dashboard/nonsense', '/dashboard/audit/x']) {
    expect(placeOf(path)).toEqual({ view: 'nowhere' });
  }
});
