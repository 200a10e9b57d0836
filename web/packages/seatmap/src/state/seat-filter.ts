import type { Geometry } from "../geometry/geometry.js";
import type { Prices } from "./prices.js";
import type { SeatStates } from "./seat-states.js";

/** What a buyer looks for. Seats that do not fit stay where they are, dimmed. */
export interface SeatFilter {
  /** In minor units, both inclusive. */
  readonly priceFrom?: number | null;
  readonly priceTo?: number | null;
  /** Wheelchair places and the seats of their companions. */
  readonly accessible?: boolean;
  readonly withoutRestrictedView?: boolean;
  readonly availableOnly?: boolean;
}

const ACCESSIBLE = new Set(["wheelchair", "companion"]);

export function filtersAnything(filter: SeatFilter): boolean {
  return filter.priceFrom != null || filter.priceTo != null ||
    !!(filter.accessible || filter.withoutRestrictedView || filter.availableOnly);
}

export class FilteredSeats {
  /** By ordinal: 1 where the seat fits. */
  readonly fits: Uint8Array;
  filter: SeatFilter = {};
  readonly #geometry: Geometry;
  readonly #states: SeatStates;

  constructor(geometry: Geometry, states: SeatStates) {
    this.#geometry = geometry;
    this.#states = states;
    this.fits = new Uint8Array(geometry.seatCount).fill(1);
  }

  /** Answers the seats that fit now and did not before, or the other way round. */
  set(filter: SeatFilter, prices: Prices): number[] {
    this.filter = filter;
    const changed: number[] = [];
    for (let i = 0; i < this.fits.length; i++) if (this.#refit(i, prices)) changed.push(i);
    return changed;
  }

  /** After a change of state: a filter for available seats lets others in. */
  refresh(ordinals: Iterable<number>, prices: Prices): void {
    if (!this.filter.availableOnly) return;
    for (const ordinal of ordinals) this.#refit(ordinal, prices);
  }

  #refit(ordinal: number, prices: Prices): boolean {
    const fits = this.#fits(ordinal, prices) ? 1 : 0;
    if (this.fits[ordinal] === fits) return false;
    this.fits[ordinal] = fits;
    return true;
  }

  #fits(ordinal: number, prices: Prices): boolean {
    const { priceFrom, priceTo, accessible, withoutRestrictedView, availableOnly } = this.filter;
    const category = this.#geometry.categories[this.#geometry.category[ordinal]!]!;
    if (accessible && !ACCESSIBLE.has(category)) return false;
    if (withoutRestrictedView && category === "restricted_view") return false;
    if (availableOnly && !this.#states.isOffered(ordinal)) return false;
    if (priceFrom == null && priceTo == null) return true;
    const amount = prices.ofSeat(ordinal);
    return amount !== null && amount >= (priceFrom ?? -Infinity) && amount <= (priceTo ?? Infinity);
  }
}
