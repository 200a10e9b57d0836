/** What an organiser does to many seats at once, each answered in words, with a way back where there is one. */
import type { components } from '../../../shared/schema';
import { allOf } from '../../pages-of';
import { api } from '../../session.svelte';
import { counted } from '../../words/amount';

type Hold = components['schemas']['HoldView'];

export interface Deed {
  words: string;
  undo?: { words: string; act: () => Promise<Deed> };
}

/** The server takes 10,000 at once, all or none of them; more go in several calls. */
const AT_ONCE = 10_000;

async function inParts<T, A>(things: readonly T[], act: (part: T[]) => Promise<A>): Promise<A[]> {
  const answers: A[] = [];
  for (let at = 0; at < things.length; at += AT_ONCE) answers.push(await act(things.slice(at, at + AT_ONCE)));
  return answers;
}

export async function placeHold(eventId: string, seats: readonly string[], holdType: string, typeName: string): Promise<Deed> {
  const placed = await inParts(seats, (part) =>
    api.post<{ data: { holds: Hold[] } }>(`/api/events/${eventId}/holds`, { seats: part, holdType }, { idempotencyKey: crypto.randomUUID() }));
  const holdIds = placed.flatMap(({ data }) => data.holds.map((hold) => hold.hold_id));
  return {
    words: `${counted(seats.length, 'seat')} held as ${typeName}.`,
    undo: { words: 'Undo', act: () => releaseHolds(eventId, holdIds) },
  };
}

export async function placeCounted(eventId: string, zone: string, zoneName: string, quantity: number, holdType: string, typeName: string): Promise<Deed> {
  const { data } = await api.post<{ data: { holds: Hold[] } }>(
    `/api/events/${eventId}/holds`, { ga: [{ zone_id: zone, quantity }], holdType }, { idempotencyKey: crypto.randomUUID() });
  return {
    words: `${counted(quantity, 'place')} of ${zoneName} held as ${typeName}.`,
    undo: { words: 'Undo', act: () => releaseHolds(eventId, data.holds.map((hold) => hold.hold_id)) },
  };
}

export async function releaseHolds(eventId: string, holdIds: readonly string[]): Promise<Deed> {
  const answers = await inParts(holdIds, (part) =>
    api.post<{ data: { released: number; expired: number } }>(`/api/events/${eventId}/holds/release`, { hold_ids: part }));
  const released = answers.reduce((sum, { data }) => sum + data.released, 0);
  const over = answers.reduce((sum, { data }) => sum + data.expired, 0);
  return { words: `${counted(released, 'hold')} released.${over ? ` ${counted(over, 'hold')} had ended already.` : ''}` };
}

/** The holds on these seats, as the server knows them now. */
export async function holdsOn(eventId: string, seats: ReadonlySet<string>): Promise<Hold[]> {
  const holds = await allOf<Hold>(`/api/events/${eventId}/holds`, {}, 250_000);
  return holds.filter((hold) => hold.seat_id !== null && seats.has(hold.seat_id));
}

export async function releaseSeats(eventId: string, seats: readonly string[]): Promise<Deed> {
  const holds = await holdsOn(eventId, new Set(seats));
  if (holds.length === 0) return { words: 'None of these seats is held any more.' };
  return releaseHolds(eventId, holds.map((hold) => hold.hold_id));
}

export async function blockSeats(eventId: string, seats: readonly string[], reason: string, soldToo = false): Promise<Deed> {
  const answers = await inParts(seats, (part) =>
    api.post<{ data: { blocked: string[]; already_blocked: string[] } }>(
      `/api/events/${eventId}/seats/block`, { seats: part, reason, force: soldToo }));
  const blocked = answers.flatMap(({ data }) => data.blocked);
  const before = answers.reduce((sum, { data }) => sum + data.already_blocked.length, 0);
  return {
    words: `${counted(blocked.length, 'seat')} blocked.${before ? ` ${counted(before, 'seat')} had been blocked before.` : ''}`,
    ...(blocked.length ? { undo: { words: 'Undo', act: () => unblockSeats(eventId, blocked, 'undone') } } : {}),
  };
}

export async function unblockSeats(eventId: string, seats: readonly string[], reason: string): Promise<Deed> {
  const answers = await inParts(seats, (part) =>
    api.post<{ data: { unblocked: string[] } }>(`/api/events/${eventId}/seats/unblock`, { seats: part, ...(reason ? { reason } : {}) }));
  const free = answers.flatMap(({ data }) => data.unblocked);
  return { words: `${counted(free.length, 'seat')} back on sale.` };
}

export async function blockCounted(eventId: string, zone: string, zoneName: string, quantity: number, reason: string): Promise<Deed> {
  await api.post(`/api/events/${eventId}/zones/${encodeURIComponent(zone)}/block`, { quantity, reason });
  return {
    words: `${counted(quantity, 'place')} of ${zoneName} blocked.`,
    undo: { words: 'Undo', act: () => unblockCounted(eventId, zone, zoneName, quantity) },
  };
}

export async function unblockCounted(eventId: string, zone: string, zoneName: string, quantity: number): Promise<Deed> {
  await api.post(`/api/events/${eventId}/zones/${encodeURIComponent(zone)}/unblock`, { quantity });
  return { words: `${counted(quantity, 'place')} of ${zoneName} back on sale.` };
}
