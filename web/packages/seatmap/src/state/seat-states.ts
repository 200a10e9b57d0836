import { AVAILABLE, holdTypeIn, isKept, stateIn } from "./snapshot.js";
import type { CountedPlaces, Snapshot } from "./snapshot.js";

/** A `seats` message: position by position an ordinal, its byte, its version. */
export interface SeatChanges {
  readonly ordinals?: readonly number[];
  readonly values?: readonly number[];
  readonly versions?: readonly number[];
  readonly hold_types?: readonly (string | null)[];
  readonly zones?: readonly CountedPlaces[];
}

const NEVER_SEEN = -1;

/** Who has which seat, by ordinal. A change with a lower version than the seat's is old; an equal one counts. */
export class SeatStates {
  readonly seatCount: number;
  readonly state: Uint8Array;
  /** Index into `holdTypeNames`. */
  readonly holdType: Uint8Array;
  readonly kept: Uint8Array;
  /** Index 0 is none. Messages bring indices of their own: they are translated into these. */
  readonly holdTypeNames: string[] = [""];
  readonly places = new Map<number, CountedPlaces>();
  notOfferedBecause: string | null = null;
  readonly #version: Int32Array;
  readonly #knownTypes = new Map<string, number>();

  constructor(seatCount: number) {
    this.seatCount = seatCount;
    this.state = new Uint8Array(seatCount);
    this.holdType = new Uint8Array(seatCount);
    this.kept = new Uint8Array(seatCount);
    this.#version = new Int32Array(seatCount).fill(NEVER_SEEN);
  }

  /** Takes in a whole snapshot; answers the seats that differ. It has no versions: what follows it counts. */
  replace(snapshot: Snapshot): number[] {
    if (snapshot.seatCount !== this.seatCount) {
      throw new RangeError(`a snapshot of ${snapshot.seatCount} seats for a plan of ${this.seatCount}`);
    }
    const types = snapshot.holdTypes.map((name) => this.#typeIndex(name));
    const changed: number[] = [];
    for (let ordinal = 0; ordinal < this.seatCount; ordinal++) {
      if (this.#put(ordinal, snapshot.values[ordinal]!, types)) changed.push(ordinal);
    }
    this.#version.fill(NEVER_SEEN);
    this.places.clear();
    for (const place of snapshot.places) this.places.set(place.zone_no, place);
    this.notOfferedBecause = snapshot.notOfferedBecause;
    return changed;
  }

  /** Answers the seats that look different now, and the zones whose counts do. */
  apply(changes: SeatChanges): { seats: number[]; zones: number[] } {
    const { ordinals = [], values = [], versions = [] } = changes;
    const types = (changes.hold_types ?? []).map((name) => this.#typeIndex(name));
    const seats: number[] = [];
    for (let i = 0; i < ordinals.length; i++) {
      const ordinal = ordinals[i]!;
      const version = versions[i] ?? 0;
      if (ordinal >= this.seatCount || version < this.#version[ordinal]!) continue;
      this.#version[ordinal] = version;
      if (this.#put(ordinal, values[i]!, types)) seats.push(ordinal);
    }
    const zones: number[] = [];
    for (const place of changes.zones ?? []) {
      const known = this.places.get(place.zone_no);
      if (known && known.version > place.version) continue;
      this.places.set(place.zone_no, place);
      zones.push(place.zone_no);
    }
    return { seats, zones };
  }

  isOffered(ordinal: number): boolean {
    return this.state[ordinal] === AVAILABLE && this.kept[ordinal] === 0;
  }

  holdTypeName(ordinal: number): string | null {
    return this.holdTypeNames[this.holdType[ordinal]!] || null;
  }

  #put(ordinal: number, value: number, types: readonly number[]): boolean {
    const state = stateIn(value);
    const holdType = types[holdTypeIn(value)] ?? 0;
    const kept = isKept(value) ? 1 : 0;
    if (this.state[ordinal] === state && this.holdType[ordinal] === holdType && this.kept[ordinal] === kept) return false;
    this.state[ordinal] = state;
    this.holdType[ordinal] = holdType;
    this.kept[ordinal] = kept;
    return true;
  }

  #typeIndex(name: string | null): number {
    if (!name) return 0;
    let index = this.#knownTypes.get(name);
    if (index === undefined) {
      // One byte a seat: a 256th name would be drawn like "held" of no special type.
      index = this.holdTypeNames.length < 256 ? this.holdTypeNames.push(name) - 1 : 0;
      this.#knownTypes.set(name, index);
    }
    return index;
  }
}
