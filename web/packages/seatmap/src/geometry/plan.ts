import { boxOf, grownBox, isGeneralAdmission, unitedBox } from "./geometry.js";
import type { Box, Geometry, Point } from "./geometry.js";
import { outlineOf } from "./outline.js";
import { contains, distanceToEdge, rectangle, ringBox } from "./polygon.js";
import type { Ring } from "./polygon.js";
import { SeatGrid } from "./seat-grid.js";
import { rowGapOf, spacingOf } from "./spacing.js";
import type { View } from "./view.js";
import { toPlan } from "./view.js";

/** A section on the plan: its outline, the box around it, and where its name is written. */
export interface Area {
  readonly rings: readonly Ring[];
  readonly box: Box;
  readonly label: Point;
  /** From there to the nearest edge. */
  readonly room: number;
}

/** A geometry made ready to be drawn and pointed at. */
export interface Plan {
  readonly geometry: Geometry;
  /** By ordinal; every seat has a place here, those without one in the layout below the others. */
  readonly x: Float32Array;
  readonly y: Float32Array;
  /** Distance between neighbours where the plan is tightest. */
  readonly spacing: number;
  readonly seatRadius: number;
  readonly grid: SeatGrid;
  readonly areas: readonly Area[];
  readonly box: Box;
}

export function planOf(geometry: Geometry): Plan {
  const placed = firstPlaces(geometry);
  const roughBox = boxOf(placed.x, placed.y) ?? { left: 0, top: 0, right: 1, bottom: 1 };
  const rough = new SeatGrid(placed.x, placed.y, roughBox, roughCell(roughBox, geometry.seatCount));
  const spacing = spacingOf(placed.x, placed.y, rough);
  const { x, y } = placed.missing.length ? placedBelow(geometry, placed, spacing) : placed;
  const seatsBox = boxOf(x, y);
  const grid = new SeatGrid(x, y, seatsBox ?? roughBox, Math.max(spacing * 4, roughCell(seatsBox ?? roughBox, geometry.seatCount)));
  const areas = areasOf(geometry, x, y, grid, spacing, seatsBox);
  let box = seatsBox;
  for (const area of areas) box = unitedBox(box, area.box);
  if (geometry.focalPoint) {
    const { x: atX, y: atY } = geometry.focalPoint;
    // A focal point far away (a hill behind the stage) must not make the seats small.
    const near = box && atX >= box.left - spacing * 12 && atX <= box.right + spacing * 12 && atY >= box.top - spacing * 12 && atY <= box.bottom + spacing * 12;
    if (near) box = unitedBox(box, grownBox({ left: atX, right: atX, top: atY, bottom: atY }, spacing * 1.5));
  }
  return {
    geometry, x, y, spacing, seatRadius: spacing * 0.42, grid, areas,
    box: box ?? { left: 0, top: 0, right: 1, bottom: 1 },
  };
}

/** A few seats a cell; never more cells than seats by far, however the seats are spread. */
function roughCell(box: Box, seats: number): number {
  const width = box.right - box.left, height = box.bottom - box.top;
  const area = Math.max(width * height, (width + height) ** 2 / 1000, 1e-9);
  return Math.sqrt((area / Math.max(seats, 1)) * 6);
}

interface FirstPlaces {
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly missing: readonly number[];
}

function firstPlaces(geometry: Geometry): FirstPlaces {
  const missing: number[] = [];
  for (let i = 0; i < geometry.seatCount; i++) if (Number.isNaN(geometry.x[i]!) || Number.isNaN(geometry.y[i]!)) missing.push(i);
  if (!missing.length) return { x: geometry.x, y: geometry.y, missing };
  const box = boxOf(geometry.x, geometry.y);
  const x = geometry.x.slice(), y = geometry.y.slice();
  for (const ordinal of missing) {
    x[ordinal] = box ? box.left : ordinal;
    y[ordinal] = box ? box.bottom : 0;
  }
  return { x, y, missing };
}

/** Row by row below what has a place, seats in the order of their numbers. */
function placedBelow(geometry: Geometry, placed: FirstPlaces, spacing: number): { x: Float32Array; y: Float32Array } {
  const known = boxOf(geometry.x, geometry.y);
  const { x, y } = { x: placed.x.slice(), y: placed.y.slice() };
  const left = known?.left ?? 0;
  let atY = known ? known.bottom + spacing * 4 : 0;
  let lastRow = -1, lastSection = -1, column = 0;
  for (const ordinal of placed.missing) {
    if (geometry.section[ordinal] !== lastSection && lastSection >= 0) atY += spacing * 2;
    if (geometry.row[ordinal] !== lastRow) {
      if (lastRow >= 0) atY += spacing * 1.15;
      column = 0;
    }
    lastRow = geometry.row[ordinal]!;
    lastSection = geometry.section[ordinal]!;
    x[ordinal] = left + column++ * spacing;
    y[ordinal] = atY;
  }
  return { x, y };
}

function areasOf(
  geometry: Geometry, x: Float32Array, y: Float32Array, grid: SeatGrid, spacing: number, seatsBox: Box | null,
): Area[] {
  const standing = standingBoxes(geometry, seatsBox, spacing);
  return geometry.sections.map((section, n) => {
    if (isGeneralAdmission(section)) {
      const box = standing.get(n)!;
      const label = { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 };
      return { rings: [rectangle(box, spacing)], box, label, room: (box.right - box.left) / 2 };
    }
    const from = section.first_ordinal, to = from + section.seat_count;
    const seats = boxOf(x, y, from, to)!;
    const rowGap = rowGapOf(geometry, x, y, grid, n);
    const gap = Math.max(spacing, rowGap < spacing * 3 ? rowGap : spacing);
    const rings = outlineOf(x, y, from, to, seats, gap);
    const fallback = rings.length ? rings : [rectangle(grownBox(seats, gap), spacing)];
    const label = middleSeat(x, y, from, to);
    return { rings: fallback, box: ringBox(fallback)!, label, room: distanceToEdge(fallback, label) };
  });
}

/** The seat nearest to the middle of all: the middle itself may lie outside a curved section. */
function middleSeat(x: Float32Array, y: Float32Array, from: number, to: number): Point {
  let sumX = 0, sumY = 0;
  for (let i = from; i < to; i++) {
    sumX += x[i]!;
    sumY += y[i]!;
  }
  const midX = sumX / (to - from), midY = sumY / (to - from);
  let best = from;
  let least = Infinity;
  for (let i = from; i < to; i++) {
    const distance = (x[i]! - midX) ** 2 + (y[i]! - midY) ** 2;
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return { x: x[best]!, y: y[best]! };
}

/** A layout does not say where general admission is: it is drawn below the seats, as the server's pictures do. */
function standingBoxes(geometry: Geometry, seatsBox: Box | null, spacing: number): Map<number, Box> {
  const found = new Map<number, Box>();
  const numbers = geometry.sections.flatMap((section, n) => (isGeneralAdmission(section) ? [n] : []));
  if (!numbers.length) return found;
  const around = seatsBox ?? { left: 0, top: 0, right: spacing * 60, bottom: 0 };
  const width = Math.max(around.right - around.left, spacing * 24);
  const left = (around.left + around.right - width) / 2;
  const columns = Math.min(numbers.length, width > spacing * 80 ? 4 : 2);
  const gap = spacing * 2;
  const each = (width - gap * (columns - 1)) / columns;
  const height = Math.min(Math.max(each * 0.16, spacing * 5), spacing * 14);
  numbers.forEach((n, place) => {
    const column = place % columns, row = Math.floor(place / columns);
    const atX = left + column * (each + gap), atY = around.bottom + spacing * 5 + row * (height + gap);
    found.set(n, { left: atX, top: atY, right: atX + each, bottom: atY + height });
  });
  return found;
}

/** The seat under a point of the screen, or -1; a finger needs more room than the seat is wide. */
export function seatAt(plan: Plan, view: View, at: Point, slackPx: number): number {
  const { x, y } = toPlan(view, at);
  return plan.grid.nearest(plan.x, plan.y, x, y, Math.max(plan.seatRadius * 1.15, slackPx / view.scale));
}

export function sectionAt(plan: Plan, view: View, at: Point): number {
  const point = toPlan(view, at);
  return plan.areas.findIndex(
    ({ box, rings }) =>
      point.x >= box.left && point.x <= box.right && point.y >= box.top && point.y <= box.bottom && contains(rings, point),
  );
}
