import type { Box } from "./geometry.js";
import { rounded, simplified } from "./polygon.js";
import type { Ring } from "./polygon.js";

/** How far a seat's influence reaches, and how much of it makes the edge: the edge lies about 0.85 gaps outside. */
const REACH_GAPS = 1.5;
const EDGE = 0.5;
const CELLS_A_GAP = 2;

/**
 * The outline around seats, whatever the form of the section: curved, with an aisle, in several parts, with a hole.
 *
 * Layouts do not say where a section ends, and a convex hull of a curved block would cover its neighbours. So every seat
 * raises a smooth hill on a coarse grid, and the contour of the sum (marching squares) is the outline.
 */
export function outlineOf(x: Float32Array, y: Float32Array, from: number, to: number, box: Box, gap: number): Ring[] {
  const cell = gap / CELLS_A_GAP;
  const reach = gap * REACH_GAPS;
  const left = box.left - reach - cell;
  const top = box.top - reach - cell;
  const columns = Math.ceil((box.right + reach + cell - left) / cell) + 1;
  const rows = Math.ceil((box.bottom + reach + cell - top) / cell) + 1;
  if (columns * rows > 4_000_000) return [];
  const hills = heights(x, y, from, to, { left, top, columns, rows, cell, reach });
  return contours(hills, columns, rows).map((ring) => {
    for (let i = 0; i < ring.length; i += 2) {
      ring[i] = left + ring[i]! * cell;
      ring[i + 1] = top + ring[i + 1]! * cell;
    }
    return rounded(simplified(ring, gap * 0.12));
  });
}

interface Field {
  readonly left: number;
  readonly top: number;
  readonly columns: number;
  readonly rows: number;
  readonly cell: number;
  readonly reach: number;
}

function heights(x: Float32Array, y: Float32Array, from: number, to: number, field: Field): Float32Array {
  const { left, top, columns, rows, cell } = field;
  const hills = new Float32Array(columns * rows);
  const reach = field.reach / cell;
  const perReach = 1 / (reach * reach);
  for (let i = from; i < to; i++) {
    const atX = (x[i]! - left) / cell, atY = (y[i]! - top) / cell;
    const firstRow = Math.ceil(atY - reach), lastRow = Math.floor(atY + reach);
    const firstColumn = Math.ceil(atX - reach), lastColumn = Math.floor(atX + reach);
    for (let row = firstRow; row <= lastRow; row++) {
      const dy = (row - atY) * (row - atY);
      for (let column = firstColumn; column <= lastColumn; column++) {
        const near = 1 - (dy + (column - atX) * (column - atX)) * perReach;
        if (near > 0) hills[row * columns + column]! += near * near;
      }
    }
  }
  return hills;
}

/**
 * Marching squares. Each edge of the grid that the contour crosses is known by a number; every square links its crossings
 * in pairs, and the pairs are then followed until they close.
 */
function contours(hills: Float32Array, columns: number, rows: number): Ring[] {
  const links = new Map<number, number>();
  // An edge's number: twice its upper left node, plus one where it goes down instead of right.
  for (let row = 0; row + 1 < rows; row++) {
    for (let column = 0; column + 1 < columns; column++) {
      const node = row * columns + column;
      const code =
        (hills[node]! > EDGE ? 1 : 0) | (hills[node + 1]! > EDGE ? 2 : 0) |
        (hills[node + columns + 1]! > EDGE ? 4 : 0) | (hills[node + columns]! > EDGE ? 8 : 0);
      if (code === 0 || code === 15) continue;
      const top = 2 * node, left = 2 * node + 1, right = 2 * (node + 1) + 1, bottom = 2 * (node + columns);
      // High ground is kept on the right hand, so that every crossing is left exactly once.
      switch (code) {
        case 1: links.set(left, top); break;
        case 2: links.set(top, right); break;
        case 3: links.set(left, right); break;
        case 4: links.set(right, bottom); break;
        case 5: links.set(left, top); links.set(right, bottom); break;
        case 6: links.set(top, bottom); break;
        case 7: links.set(left, bottom); break;
        case 8: links.set(bottom, left); break;
        case 9: links.set(bottom, top); break;
        case 10: links.set(top, right); links.set(bottom, left); break;
        case 11: links.set(bottom, right); break;
        case 12: links.set(right, left); break;
        case 13: links.set(right, top); break;
        case 14: links.set(top, left); break;
      }
    }
  }
  const rings: Ring[] = [];
  for (const start of links.keys()) {
    if (!links.has(start)) continue;
    const points: number[] = [];
    let edge: number | undefined = start;
    while (edge !== undefined && links.has(edge)) {
      const next: number = links.get(edge)!;
      links.delete(edge);
      const node = edge >> 1;
      const other = edge & 1 ? node + columns : node + 1;
      const share = (EDGE - hills[node]!) / (hills[other]! - hills[node]!);
      points.push((node % columns) + (edge & 1 ? 0 : share), Math.floor(node / columns) + (edge & 1 ? share : 0));
      edge = next;
    }
    if (points.length >= 6) rings.push(Float32Array.from(points));
  }
  return rings;
}
