/** The server's refusals as kind words. What it says itself is used wherever it helps. */
import type { Problem } from '../shared/api';
import { clockFace } from './countdown';

export interface SeatOption {
  readonly seatIds: readonly string[];
  readonly words: string;
}

export interface OrphanRefusal {
  /** Labels of the seats that would be left alone. */
  readonly alone: readonly string[];
  readonly detail: string;
  readonly options: readonly SeatOption[];
}

interface SeatFact {
  id: string;
  seat_id: string;
  row: string;
  number: number;
}

const seats = (value: unknown): SeatFact[] => (Array.isArray(value) ? (value as SeatFact[]) : []);

/** Somebody else has it: it makes sense to go on without this seat. */
export function isTaken(problem: Problem): boolean {
  return ['seat_held_by_another_user', 'seat_not_available', 'seat_sold', 'seat_not_offered', 'block_at_capacity'].includes(problem.code);
}

/** `wanted` are the seats that were asked for; with those left alone they make one more option, which is often what was meant. */
export function orphanRefusal(problem: Problem, wanted: readonly { id: string; label: string }[], roomFor: number): OrphanRefusal | null {
  if (problem.code !== 'orphan_seat') return null;
  const stranded = seats(problem.facts['stranded']);
  const alternatives = Array.isArray(problem.facts['alternatives']) ? (problem.facts['alternatives'] as { seats: SeatFact[]; words: string }[]) : [];
  const options: SeatOption[] = alternatives.map((one) => ({ seatIds: one.seats.map(({ id }) => id), words: one.words }));
  if (stranded.length && stranded.length + wanted.length <= roomFor) {
    const names = [...wanted.map(({ label }) => label), ...stranded.map(({ seat_id }) => seat_id)];
    names.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    options.push({ seatIds: [...wanted.map(({ id }) => id), ...stranded.map(({ id }) => id)], words: names.length === 2 ? `Both ${names[0]} and ${names[1]}` : `All of ${names.join(', ')}` });
  }
  return { alone: stranded.map(({ seat_id }) => seat_id), detail: problem.detail, options };
}

/** One sentence or two for the buyer. `seat`: how they know the seat they asked for. */
export function refusalWords(problem: Problem, seat: string | null = null): string {
  const it = seat ?? 'this seat';
  switch (problem.code) {
    case 'seat_held_by_another_user': {
      const left = problem.facts['expires_in'];
      const hope = typeof left === 'number' && left > 0 ? ` It may come free in ${clockFace(left)}.` : '';
      return `Somebody was faster: ${it} is held.${hope}`;
    }
    case 'seat_not_available':
    case 'seat_sold':
      return problem.facts['current_status'] === 'blocked' ? `${capital(it)} is not for sale.` : `Somebody was faster: ${it} is sold.`;
    case 'rate_limited': {
      const wait = problem.retryAfterS;
      return `That was a lot of seats in a short time. Please wait${wait ? ` ${clockFace(wait)} (minutes:seconds)` : ' a little'}, then go on.`;
    }
    case 'event_sales_closed':
    case 'event_not_available':
    case 'event_unavailable':
      return `${problem.detail} Nothing can be held at the moment.`;
    case 'payment_provider_not_found':
      return 'Paying is not set up for these events yet. Please ask the organiser. Your seats stay held until the time is over.';
    default:
      return problem.detail;
  }
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
