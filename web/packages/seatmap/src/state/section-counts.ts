import type { Geometry } from "../geometry/geometry.js";
import type { SeatStates } from "./seat-states.js";

export interface SectionCount {
  readonly available: number;
  readonly held: number;
  readonly sold: number;
  readonly blocked: number;
  readonly total: number;
}

/** How many seats of each section are in which state: recounted for the sections where something changed. */
export class SectionCounts {
  readonly #geometry: Geometry;
  readonly #states: SeatStates;
  readonly #counts: SectionCount[];

  constructor(geometry: Geometry, states: SeatStates) {
    this.#geometry = geometry;
    this.#states = states;
    this.#counts = geometry.sections.map((_, n) => this.#counted(n));
  }

  of(sectionNo: number): SectionCount {
    return this.#counts[sectionNo]!;
  }

  recount(sectionNos: Iterable<number>): void {
    for (const n of sectionNos) {
      const before = this.#counts[n];
      if (!before) continue;
      const now = this.#counted(n);
      // The same object as long as nothing changed: whoever keeps it sees that.
      const same = now.available === before.available && now.held === before.held && now.sold === before.sold && now.blocked === before.blocked && now.total === before.total;
      if (!same) this.#counts[n] = now;
    }
  }

  #counted(sectionNo: number): SectionCount {
    const section = this.#geometry.sections[sectionNo]!;
    if (section.seat_count === 0) {
      const place = this.#states.places.get(sectionNo);
      const { held = 0, sold = 0, blocked = 0, capacity: total = section.capacity } = place ?? {};
      return { available: Math.max(0, total - held - sold - blocked), held, sold, blocked, total };
    }
    const by = [0, 0, 0, 0];
    const { state } = this.#states;
    const end = section.first_ordinal + section.seat_count;
    for (let i = section.first_ordinal; i < end; i++) by[state[i]!]!++;
    return { available: by[0]!, held: by[1]!, sold: by[2]!, blocked: by[3]!, total: section.seat_count };
  }
}
