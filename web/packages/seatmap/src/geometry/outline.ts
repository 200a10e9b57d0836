import type { Box } from "./geometry.js";
import { rounded, signedArea, simplified } from "./polygon.js";
import type { Ring } from "./polygon.js";

/** In distances between rows: how far out the outline lies, and how wide an aisle (twice this) still belongs inside. */
const MARGIN_GAPS = 0.85;
const BRIDGE_GAPS = 1.8;
const CELLS_A_GAP = 1.25;
const MOST_NODES = 600_000;
const FAR = 1e12;

/**
 * The outline around seats, whatever the form of the section: curved, with aisles, in several parts, with a hole.
 *
 * Layouts do not say where a section ends, and a convex hull of a curved block would cover its neighbours. So distances to
 * the nearest seat are worked out on a grid; the ground within reach of seats is taken, and its rim taken off again, which
 * closes aisles but leaves the edge where it was. The contour of that (marching squares) is the outline.
 */
export function outlineOf(x: Float32Array, y: Float32Array, from: number, to: number, box: Box, gap: number): Ring[] {
  const reach = gap * BRIDGE_GAPS;
  let cell = gap / CELLS_A_GAP;
  const width = box.right - box.left + 2 * (reach + cell), height = box.bottom - box.top + 2 * (reach + cell);
  // A section of few seats far apart would be mostly empty grid: a coarser one does.
  cell = Math.max(cell, Math.sqrt((width * height) / MOST_NODES));
  const left = box.left - reach - cell, top = box.top - reach - cell;
  const columns = Math.ceil((box.right + reach + cell - left) / cell) + 1;
  const rows = Math.ceil((box.bottom + reach + cell - top) / cell) + 1;

  const away = new Float64Array(columns * rows).fill(FAR);
  for (let i = from; i < to; i++) {
    const atX = (x[i]! - left) / cell, atY = (y[i]! - top) / cell;
    const column = Math.floor(atX), row = Math.floor(atY);
    for (let dy = 0; dy < 2; dy++) {
      for (let dx = 0; dx < 2; dx++) {
        const node = (row + dy) * columns + column + dx;
        away[node] = Math.min(away[node]!, (column + dx - atX) ** 2 + (row + dy - atY) ** 2);
      }
    }
  }
  spread(away, columns, rows);
  const limit = reach / cell;
  for (let node = 0; node < away.length; node++) {
    const distance = Math.sqrt(away[node]!);
    // Nodes at the rim know how far it is; the others learn it from them.
    away[node] = distance >= limit ? 0 : distance > limit - 1.5 ? (limit - distance) ** 2 : FAR;
  }
  spread(away, columns, rows);
  const heights = new Float32Array(away.length);
  const rim = (BRIDGE_GAPS - MARGIN_GAPS) * (gap / cell);
  for (let node = 0; node < away.length; node++) heights[node] = Math.sqrt(away[node]!) - rim;
  return withoutSpecks(contours(heights, columns, rows), (gap / cell) ** 2 * 12).map((ring) => {
    for (let i = 0; i < ring.length; i += 2) {
      ring[i] = left + ring[i]! * cell;
      ring[i + 1] = top + ring[i + 1]! * cell;
    }
    return rounded(rounded(simplified(ring, gap * 0.12)));
  });
}

/** Small holes are no courtyards but accidents of spacing. */
function withoutSpecks(rings: Ring[], least: number): Ring[] {
  const areas = rings.map(signedArea);
  const outer = Math.sign(areas.reduce((most, area) => (Math.abs(area) > Math.abs(most) ? area : most), 0));
  return rings.filter((_, n) => Math.sign(areas[n]!) === outer || Math.abs(areas[n]!) >= least);
}

/** Squared distances to the nearest seed, exact and in two passes (Felzenszwalb and Huttenlocher). */
function spread(field: Float64Array, columns: number, rows: number): void {
  const longest = Math.max(columns, rows);
  const line = new Float64Array(longest);
  const hulls = new Int32Array(longest), borders = new Float64Array(longest + 1);
  for (let column = 0; column < columns; column++) spreadLine(field, column, columns, rows, line, hulls, borders);
  for (let row = 0; row < rows; row++) spreadLine(field, row * columns, 1, columns, line, hulls, borders);
}

function spreadLine(
  field: Float64Array, start: number, step: number, length: number, line: Float64Array, hulls: Int32Array, borders: Float64Array,
): void {
  for (let i = 0; i < length; i++) line[i] = field[start + i * step]!;
  let last = 0;
  hulls[0] = 0;
  borders[0] = -FAR;
  borders[1] = FAR;
  for (let i = 1; i < length; i++) {
    let meets: number;
    do {
      const seed = hulls[last]!;
      meets = (line[i]! + i * i - line[seed]! - seed * seed) / (2 * (i - seed));
    } while (meets <= borders[last]! && --last >= 0);
    last++;
    hulls[last] = i;
    borders[last] = meets;
    borders[last + 1] = FAR;
  }
  let hull = 0;
  for (let i = 0; i < length; i++) {
    while (borders[hull + 1]! < i) hull++;
    const seed = hulls[hull]!;
    field[start + i * step] = (i - seed) * (i - seed) + line[seed]!;
  }
}

/**
 * Marching squares at height 0. Each edge of the grid that the contour crosses is known by a number; every square links its
 * crossings in pairs, and the pairs are then followed until they close.
 */
function contours(heights: Float32Array, columns: number, rows: number): Ring[] {
  const links = new Map<number, number>();
  // An edge's number: twice its upper left node, plus one where it goes down instead of right.
  for (let row = 0; row + 1 < rows; row++) {
    for (let column = 0; column + 1 < columns; column++) {
      const node = row * columns + column;
      const code =
        (heights[node]! > 0 ? 1 : 0) | (heights[node + 1]! > 0 ? 2 : 0) |
        (heights[node + columns + 1]! > 0 ? 4 : 0) | (heights[node + columns]! > 0 ? 8 : 0);
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
      const share = -heights[node]! / (heights[other]! - heights[node]!);
      points.push((node % columns) + (edge & 1 ? 0 : share), Math.floor(node / columns) + (edge & 1 ? share : 0));
      edge = next;
    }
    if (points.length >= 6) rings.push(Float32Array.from(points));
  }
  return rings;
}
