import type { Geometry } from "../geometry/geometry.js";
import type { SeatIdentities } from "../geometry/seat-identity.js";

/** `GET …/prices`, without the envelope's `data`. Amounts are in minor units. */
export interface PricesDocument {
  readonly currency: string | null;
  readonly zones: readonly {
    readonly zone_id: string;
    readonly amount_minor: number | null;
    readonly categories?: readonly { readonly category: string; readonly amount_minor: number | null }[];
  }[];
  readonly pricing_zones?: readonly { readonly amount_minor: number; readonly seat_ids?: readonly string[] }[];
}

/** What places cost: by seat, and by section where places are counted. NaN where nothing is said. */
export class Prices {
  readonly currency: string | null;
  /** Distinct amounts of seats, cheapest first. */
  readonly amounts: readonly number[];
  readonly #bySeat: Float64Array;
  readonly #bySection: Float64Array;

  private constructor(currency: string | null, bySeat: Float64Array, bySection: Float64Array) {
    this.currency = currency;
    this.#bySeat = bySeat;
    this.#bySection = bySection;
    const amounts = new Set<number>();
    for (const amount of bySeat) if (!Number.isNaN(amount)) amounts.add(amount);
    this.amounts = [...amounts].sort((a, b) => a - b);
  }

  static none(geometry: Geometry): Prices {
    return new Prices(null, new Float64Array(geometry.seatCount).fill(NaN), new Float64Array(geometry.sections.length).fill(NaN));
  }

  static of(document: PricesDocument, geometry: Geometry, identities: SeatIdentities): Prices {
    const bySeat = new Float64Array(geometry.seatCount).fill(NaN);
    const bySection = new Float64Array(geometry.sections.length).fill(NaN);
    const told = new Map(document.zones.map((zone) => [zone.zone_id, zone]));
    geometry.sections.forEach((section, n) => {
      const zone = told.get(section.zone_id);
      if (!zone) return;
      bySection[n] = zone.amount_minor ?? NaN;
      const byCategory = new Map((zone.categories ?? []).map(({ category, amount_minor }) => [category, amount_minor]));
      const amounts = geometry.categories.map((category) => byCategory.get(category) ?? zone.amount_minor ?? NaN);
      const end = section.first_ordinal + section.seat_count;
      for (let i = section.first_ordinal; i < end; i++) bySeat[i] = amounts[geometry.category[i]!]!;
    });
    // The seats these name cost what is said here, whatever their zone says.
    for (const { amount_minor, seat_ids = [] } of document.pricing_zones ?? []) {
      for (const seatId of seat_ids) {
        const ordinal = identities.ordinal(seatId);
        if (ordinal >= 0) bySeat[ordinal] = amount_minor;
      }
    }
    return new Prices(document.currency, bySeat, bySection);
  }

  /** In minor units, or null. */
  ofSeat(ordinal: number): number | null {
    const amount = this.#bySeat[ordinal]!;
    return Number.isNaN(amount) ? null : amount;
  }

  ofSection(sectionNo: number): number | null {
    const amount = this.#bySection[sectionNo]!;
    return Number.isNaN(amount) ? null : amount;
  }

  /** Which of `amounts` the seat has; -1 for none. */
  tier(ordinal: number): number {
    const amount = this.#bySeat[ordinal]!;
    return Number.isNaN(amount) ? -1 : this.amounts.indexOf(amount);
  }
}
