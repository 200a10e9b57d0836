/** What the server tells about an event's seats that never changes, as columns by ordinal. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export type SectionKind = "reserved_seating" | "ga_seated" | "ga_standing" | "vip_reserved" | "vip_standing";

/** The server calls it a zone. General admission has no seats: its places are counted. */
export interface Section {
  readonly id: string;
  readonly zone_id: string;
  readonly name: string;
  readonly zone_type: SectionKind;
  readonly capacity: number;
  readonly access_mode: string;
  readonly required_tier: string | null;
  readonly first_ordinal: number;
  readonly seat_count: number;
  readonly focal_point: Point | null;
  readonly seat_id_prefix: string;
  readonly seat_id_separator: string;
}

export interface SeatGroup {
  readonly group_id: string;
  readonly group_type: string;
  readonly zone_no: number;
  readonly ordinals: readonly number[];
}

export interface Geometry {
  readonly layoutId: string;
  readonly seatCount: number;
  readonly totalCapacity: number;
  readonly focalPoint: Point | null;
  readonly sections: readonly Section[];
  readonly rows: readonly string[];
  readonly aisles: Readonly<Record<string, readonly number[]>>;
  readonly categories: readonly string[];
  readonly groups: readonly SeatGroup[];
  readonly companions: readonly (readonly [number, number])[];
  readonly irregularSeatIds: Readonly<Record<string, string>>;
  /** By ordinal; NaN in both where a seat has no place on the plan. */
  readonly x: Float32Array;
  readonly y: Float32Array;
  /** By ordinal: index into `rows`. */
  readonly row: Int32Array;
  readonly number: Int32Array;
  /** By ordinal: index into `categories`. */
  readonly category: Uint8Array;
  /** By ordinal: index into `sections`. */
  readonly section: Uint16Array;
}

export function isGeneralAdmission(section: Section): boolean {
  return section.seat_count === 0;
}

export function sectionColumn(sections: readonly Section[], seatCount: number): Uint16Array {
  const column = new Uint16Array(seatCount);
  sections.forEach((section, n) => column.fill(n, section.first_ordinal, section.first_ordinal + section.seat_count));
  return column;
}

export function boxOf(x: ArrayLike<number>, y: ArrayLike<number>, from = 0, to = x.length): Box | null {
  let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
  for (let i = from; i < to; i++) {
    const atX = x[i]!, atY = y[i]!;
    if (atX < left) left = atX;
    if (atX > right) right = atX;
    if (atY < top) top = atY;
    if (atY > bottom) bottom = atY;
  }
  return left <= right ? { left, top, right, bottom } : null;
}

export function grownBox(box: Box, by: number): Box {
  return { left: box.left - by, top: box.top - by, right: box.right + by, bottom: box.bottom + by };
}

export function unitedBox(one: Box | null, other: Box | null): Box | null {
  if (!one || !other) return one ?? other;
  return {
    left: Math.min(one.left, other.left),
    top: Math.min(one.top, other.top),
    right: Math.max(one.right, other.right),
    bottom: Math.max(one.bottom, other.bottom),
  };
}
