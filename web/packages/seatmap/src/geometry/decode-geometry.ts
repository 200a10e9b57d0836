import { sectionColumn } from "./geometry.js";
import type { Geometry, Point, SeatGroup, Section } from "./geometry.js";

/** The form of the resource that this code knows. Another one must not be guessed at. */
const KNOWN_FORM = 1;
const HEADER_BYTES = 16;

export class GeometryInvalid extends Error {
  override readonly name = "GeometryInvalid";
}

interface Told {
  readonly layout_id: string;
  readonly total_capacity: number;
  readonly scale: number;
  readonly focal_point: Point | null;
  readonly zones: readonly Section[];
  readonly rows: readonly string[];
  readonly aisles: Readonly<Record<string, readonly number[]>>;
  readonly categories: readonly string[];
  readonly groups: readonly SeatGroup[];
  readonly companions: readonly (readonly [number, number])[];
  readonly seat_ids: Readonly<Record<string, string>>;
}

interface PackedColumn {
  readonly name: "x" | "y" | "row" | "number" | "category";
  readonly type: "int16" | "int32" | "uint8";
  readonly order: number;
  readonly bytes: number;
  readonly origins?: readonly number[] | null;
}

/** The resource as JSON, without the envelope's `data`. */
export interface GeometryDocument extends Told {
  readonly form: number;
  readonly seat_count: number;
  readonly columns: {
    readonly x: readonly (number | null)[];
    readonly y: readonly (number | null)[];
    readonly row: readonly number[];
    readonly number: readonly number[];
    readonly category: readonly number[];
  };
}

/** Whichever of the two forms came. */
export function decodeGeometry(resource: ArrayBuffer | GeometryDocument | { data: GeometryDocument }): Geometry {
  if (resource instanceof ArrayBuffer) return decodePacked(resource);
  return decodeDocument("data" in resource ? resource.data : resource);
}

function decodeDocument(document: GeometryDocument): Geometry {
  if (document.form !== KNOWN_FORM) throw new GeometryInvalid(`form ${document.form} is not known, only ${KNOWN_FORM}`);
  const { columns, seat_count: seats } = document;
  for (const [name, column] of Object.entries(columns)) {
    if (column.length !== seats) throw new GeometryInvalid(`column ${name} has ${column.length} seats of ${seats}`);
  }
  return geometryOf(document, seats, {
    x: Float32Array.from(columns.x, (value) => value ?? NaN),
    y: Float32Array.from(columns.y, (value) => value ?? NaN),
    row: Int32Array.from(columns.row),
    number: Int32Array.from(columns.number),
    category: Uint8Array.from(columns.category),
  });
}

function decodePacked(buffer: ArrayBuffer): Geometry {
  const head = new DataView(buffer);
  const magic = buffer.byteLength >= HEADER_BYTES ? new TextDecoder().decode(new Uint8Array(buffer, 0, 4)) : "";
  if (magic !== "HFGM") throw new GeometryInvalid("this is no geometry");
  const form = head.getUint16(4, true);
  if (form !== KNOWN_FORM) throw new GeometryInvalid(`form ${form} is not known, only ${KNOWN_FORM}`);
  const seats = head.getUint32(8, true);
  const blockBytes = head.getUint32(12, true);
  if (HEADER_BYTES + blockBytes > buffer.byteLength) throw new GeometryInvalid("the geometry is cut short");
  const block = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, HEADER_BYTES, blockBytes))) as Told & {
    columns: readonly PackedColumn[];
  };

  const found: Partial<Record<PackedColumn["name"], Float64Array>> = {};
  let at = HEADER_BYTES + blockBytes;
  for (const column of block.columns) {
    const values = columnValues(buffer, at, column, seats);
    found[column.name] = column.origins
      ? undoneBySection(values, column, column.origins, block.zones)
      : undone(values, column.order);
    at += column.bytes + ((4 - (column.bytes % 4)) % 4);
  }
  if (at !== buffer.byteLength) throw new GeometryInvalid(`${buffer.byteLength - at} bytes too many`);
  const { x, y, row, number, category } = found;
  if (!x || !y || !row || !number || !category) throw new GeometryInvalid("a column is missing");
  const { scale } = block;
  return geometryOf(block, seats, {
    x: Float32Array.from(x, (value) => value / scale),
    y: Float32Array.from(y, (value) => value / scale),
    row: Int32Array.from(row),
    number: Int32Array.from(number),
    category: Uint8Array.from(category),
  });
}

const WIDTHS = { int16: Int16Array, int32: Int32Array, uint8: Uint8Array } as const;

function columnValues(
  buffer: ArrayBuffer, at: number, column: PackedColumn, seats: number,
): Int16Array | Int32Array | Uint8Array {
  const Column = WIDTHS[column.type];
  const length = column.bytes / Column.BYTES_PER_ELEMENT;
  if (length !== seats) throw new GeometryInvalid(`column ${column.name} has ${length} seats of ${seats}`);
  if (at + column.bytes > buffer.byteLength) throw new GeometryInvalid("the geometry is cut short");
  // Every machine that runs a browser today is little-endian, as the form is.
  return new Column(buffer, at, length);
}

function undone(values: ArrayLike<number>, order: number): Float64Array {
  const sums = Float64Array.from(values);
  for (let pass = 0; pass < order; pass++) {
    for (let i = 1; i < sums.length; i++) sums[i]! += sums[i - 1]!;
  }
  return sums;
}

/** Sums begin anew with every section, at its origin; the lowest number of the type is a seat without a place. */
function undoneBySection(
  values: ArrayLike<number>, column: PackedColumn, origins: readonly number[], sections: readonly Section[],
): Float64Array {
  const missing = column.type === "int16" ? -32768 : -2147483648;
  const found = new Float64Array(values.length).fill(NaN);
  sections.forEach((section, n) => {
    let step = 0;
    let at = origins[n]!;
    const end = section.first_ordinal + section.seat_count;
    for (let i = section.first_ordinal; i < end; i++) {
      if (values[i] === missing) continue;
      step = column.order === 2 ? step + values[i]! : values[i]!;
      at += step;
      found[i] = at;
    }
  });
  return found;
}

type Columns = Pick<Geometry, "x" | "y" | "row" | "number" | "category">;

function geometryOf(told: Told, seatCount: number, columns: Columns): Geometry {
  return {
    layoutId: told.layout_id,
    seatCount,
    totalCapacity: told.total_capacity,
    focalPoint: told.focal_point,
    sections: told.zones,
    rows: told.rows,
    aisles: told.aisles,
    categories: told.categories,
    groups: told.groups,
    companions: told.companions,
    irregularSeatIds: told.seat_ids,
    section: sectionColumn(told.zones, seatCount),
    ...columns,
  };
}
