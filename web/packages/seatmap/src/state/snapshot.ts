/** The state of every seat as the server tells it: `GET …/availability`, one byte a seat or JSON. */

export const STATE_NAMES = ["available", "held", "sold", "blocked"] as const;
export type SeatState = (typeof STATE_NAMES)[number];

export const AVAILABLE = 0;
export const HELD = 1;
export const SOLD = 2;
export const BLOCKED = 3;

const TYPE_SHIFT = 2;
const TYPE_MASK = 31;
const KEPT_BIT = 0x80;
const HEAD_BYTES = 18;

/** What a zone that counts its places has of them; what is left is the capacity without the other three. */
export interface CountedPlaces {
  readonly zone_no: number;
  readonly capacity: number;
  readonly held: number;
  readonly sold: number;
  readonly blocked?: number;
  readonly version: number;
}

export interface Snapshot {
  readonly sequence: string;
  readonly seatCount: number;
  /** One byte a seat; hold types are indices into `holdTypes`. */
  readonly values: Uint8Array;
  readonly holdTypes: readonly (string | null)[];
  readonly places: readonly CountedPlaces[];
  readonly notOfferedBecause: string | null;
}

export interface SnapshotDocument {
  readonly sequence: string;
  readonly seat_count: number;
  readonly states: string;
  readonly hold_types?: Readonly<Record<string, readonly number[]>>;
  readonly zones?: readonly CountedPlaces[];
  readonly not_offered?: readonly number[];
  readonly not_offered_because?: string | null;
}

export class SnapshotInvalid extends Error {
  override readonly name = "SnapshotInvalid";
}

export function decodeSnapshot(resource: ArrayBuffer | SnapshotDocument | { data: SnapshotDocument }): Snapshot {
  if (resource instanceof ArrayBuffer) return decodePacked(resource);
  return decodeDocument("data" in resource ? resource.data : resource);
}

function decodePacked(buffer: ArrayBuffer): Snapshot {
  const magic = buffer.byteLength >= HEAD_BYTES ? new TextDecoder().decode(new Uint8Array(buffer, 0, 4)) : "";
  if (magic !== "HFS1") throw new SnapshotInvalid("this is no snapshot of seats");
  const head = new DataView(buffer);
  const seatCount = head.getUint32(4, true);
  const words = head.getUint16(16, true);
  if (buffer.byteLength < HEAD_BYTES + words + seatCount) throw new SnapshotInvalid("the snapshot is cut short");
  const said = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, HEAD_BYTES, words))) as {
    sequence: string;
    hold_types: (string | null)[];
    zones?: CountedPlaces[];
    not_offered_because?: string;
  };
  return {
    sequence: said.sequence,
    seatCount,
    values: new Uint8Array(buffer, HEAD_BYTES + words, seatCount),
    holdTypes: said.hold_types,
    places: said.zones ?? [],
    notOfferedBecause: said.not_offered_because ?? null,
  };
}

function decodeDocument(document: SnapshotDocument): Snapshot {
  const { states, seat_count: seatCount } = document;
  if (states.length !== seatCount) throw new SnapshotInvalid(`${states.length} states of ${seatCount} seats`);
  const values = Uint8Array.from(states, (letter) => {
    const state = "ahsb".indexOf(letter);
    if (state < 0) throw new SnapshotInvalid(`"${letter}" is no state of a seat`);
    return state;
  });
  const holdTypes: (string | null)[] = [null];
  for (const [name, ordinals] of Object.entries(document.hold_types ?? {})) {
    const index = holdTypes.length <= TYPE_MASK ? holdTypes.push(name) - 1 : 0;
    for (const ordinal of ordinals) values[ordinal]! |= index << TYPE_SHIFT;
  }
  for (const ordinal of document.not_offered ?? []) values[ordinal]! |= KEPT_BIT;
  return {
    sequence: document.sequence,
    seatCount,
    values,
    holdTypes,
    places: document.zones ?? [],
    notOfferedBecause: document.not_offered_because ?? null,
  };
}

export function stateIn(value: number): number {
  return value & 3;
}

export function holdTypeIn(value: number): number {
  return (value >> TYPE_SHIFT) & TYPE_MASK;
}

/** Free, but kept for the companion of a wheelchair user. */
export function isKept(value: number): boolean {
  return (value & KEPT_BIT) !== 0;
}
