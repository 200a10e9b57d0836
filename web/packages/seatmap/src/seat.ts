import type { Section } from "./geometry/geometry.js";
import type { SeatState } from "./state/snapshot.js";

/** A seat as callbacks and events show it: as it is at that moment. */
export interface Seat {
  readonly ordinal: number;
  /** The UUID that the server's routes take. */
  readonly id: string;
  /** The organiser's own. */
  readonly seatId: string;
  readonly section: Section;
  readonly row: string;
  readonly number: number;
  readonly category: string;
  readonly state: SeatState;
  readonly holdType: string | null;
  /** False where it is taken, or free but kept for a companion. */
  readonly offered: boolean;
  readonly ownState: string | null;
  readonly selected: boolean;
  /** In minor units of the event's currency. */
  readonly priceMinor: number | null;
  readonly currency: string | null;
  /** Its companion's seat, where it has one. */
  readonly companionOrdinal: number | null;
  /** "Stalls, row A, seat 12, wheelchair, 80.00 EUR, available" */
  readonly label: string;
}

export interface Cart {
  readonly seats: readonly Seat[];
  /** null where a seat has no price. */
  readonly totalMinor: number | null;
  readonly currency: string | null;
}
