/** Tickets by what somebody at the counter says: a seat, a name, a part of an id. */

export interface FoundTicket {
  readonly id: string;
  readonly checkout_id: string;
  readonly seat: { readonly seat_id: string; readonly row: string; readonly number: number } | null;
  readonly zone: { readonly name: string };
  readonly attendee: { readonly name: string | null };
}

/** Every word must be found somewhere; no word finds all. */
export function ticketsFor<T extends FoundTicket>(tickets: readonly T[], said: string): T[] {
  const words = said.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...tickets];
  return tickets.filter((ticket) => {
    const text = [
      ticket.id, ticket.checkout_id, ticket.zone.name, ticket.attendee.name ?? '',
      ticket.seat ? `${ticket.seat.seat_id} ${ticket.seat.row}${ticket.seat.number}` : '',
    ].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
