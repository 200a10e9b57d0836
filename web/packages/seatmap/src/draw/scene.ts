import type { Box, Point } from "../geometry/geometry.js";
import type { Plan } from "../geometry/plan.js";
import type { Ring } from "../geometry/polygon.js";
import type { Pixel } from "./colour.js";
import type { SeatLook } from "./style.js";

/** What is drawn and does not change: it goes to the worker once. */
export interface Scene {
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly number: Int32Array;
  readonly seatsBox: Box;
  readonly cell: number;
  readonly radius: number;
  readonly spacing: number;
  readonly areas: readonly { readonly rings: readonly Ring[]; readonly box: Box; readonly label: Point; readonly room: number; readonly standing: boolean }[];
  readonly rows: readonly RowEnds[];
  readonly focalPoint: Point | null;
}

/** Where a row's name is written: one seat's place before its first seat, and one behind its last. */
export interface RowEnds {
  readonly name: string;
  readonly before: Point;
  readonly behind: Point;
}

/** How a section is painted now. */
export interface SectionPaint {
  readonly fill: Pixel;
  /** When seats are too small to be drawn. */
  readonly farFill: Pixel;
  readonly stroke: Pixel;
  readonly strokePx: number;
  readonly name: string;
  readonly detail: string;
  /** Where there is no room for the other. */
  readonly shortDetail: string;
}

export function samePaint(one: SectionPaint, other: SectionPaint): boolean {
  return one.fill === other.fill && one.farFill === other.farFill && one.stroke === other.stroke && one.strokePx === other.strokePx &&
    one.name === other.name && one.detail === other.detail && one.shortDetail === other.shortDetail;
}

/** The surroundings' colours, and how large things are. */
export interface Paper {
  readonly ground: Pixel;
  readonly ink: string;
  readonly faintInk: string;
  /** Behind names that stand over seats. */
  readonly plate: string;
  readonly stage: string;
  readonly stageInk: string;
  readonly stageWords: string;
}

/** The view in pixels of the device: `x` and `y` are whole, so that panning moves what is drawn already. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

export interface Dressing {
  readonly looks: readonly SeatLook[];
  /** By ordinal: number of the look. */
  readonly styles: Uint16Array;
}

export function sceneOf(plan: Plan): Scene {
  const { geometry, x, y, grid, areas, spacing } = plan;
  const last = { right: grid.left + grid.columns * grid.cell, bottom: grid.top + grid.rows * grid.cell };
  return {
    x, y, number: geometry.number,
    seatsBox: { left: grid.left, top: grid.top, right: last.right - grid.cell / 2, bottom: last.bottom - grid.cell / 2 },
    cell: grid.cell,
    radius: plan.seatRadius,
    spacing,
    areas: areas.map(({ rings, box, label, room }, n) => ({ rings, box, label, room, standing: geometry.sections[n]!.seat_count === 0 })),
    rows: rowEndsOf(plan),
    focalPoint: geometry.focalPoint,
  };
}

function rowEndsOf({ geometry, x, y, spacing }: Plan): RowEnds[] {
  const { row, rows, seatCount } = geometry;
  const found: RowEnds[] = [];
  for (let from = 0; from < seatCount; ) {
    let to = from + 1;
    while (to < seatCount && row[to] === row[from]) to++;
    found.push({
      name: rows[row[from]!]!,
      before: beyond(x, y, Math.min(from + 1, to - 1), from, spacing),
      behind: beyond(x, y, Math.max(to - 2, from), to - 1, spacing),
    });
    from = to;
  }
  return found;
}

/** One seat farther than `end`, coming from the seat beside it. */
function beyond(x: Float32Array, y: Float32Array, beside: number, end: number, spacing: number): Point {
  const dx = x[end]! - x[beside]!, dy = y[end]! - y[beside]!;
  const length = Math.hypot(dx, dy);
  const [alongX, alongY] = length > 0 ? [dx / length, dy / length] : [-1, 0];
  return { x: x[end]! + alongX * spacing, y: y[end]! + alongY * spacing };
}
