import { boxOf } from "./geometry.js";
import type { Box, Point } from "./geometry.js";

/** A closed ring: x and y by turns. */
export type Ring = Float32Array;

export function ringBox(rings: readonly Ring[]): Box | null {
  let box: Box | null = null;
  for (const ring of rings) {
    const x: number[] = [], y: number[] = [];
    for (let i = 0; i < ring.length; i += 2) {
      x.push(ring[i]!);
      y.push(ring[i + 1]!);
    }
    const one = boxOf(x, y);
    if (one && box) {
      box = {
        left: Math.min(box.left, one.left),
        top: Math.min(box.top, one.top),
        right: Math.max(box.right, one.right),
        bottom: Math.max(box.bottom, one.bottom),
      };
    } else box ??= one;
  }
  return box;
}

/** Even-odd: a ring within a ring is a hole. */
export function contains(rings: readonly Ring[], at: Point): boolean {
  let inside = false;
  for (const ring of rings) {
    for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
      const y = ring[i + 1]!, before = ring[j + 1]!;
      if (y > at.y === before > at.y) continue;
      const x = ring[i]!;
      if (at.x < ((ring[j]! - x) * (at.y - y)) / (before - y) + x) inside = !inside;
    }
  }
  return inside;
}

/** Its sign says which way round the ring goes. */
export function signedArea(ring: Ring): number {
  let twice = 0;
  for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) twice += ring[j]! * ring[i + 1]! - ring[i]! * ring[j + 1]!;
  return twice / 2;
}

/** From a point to the nearest corner: near enough for rings of many. */
export function distanceToEdge(rings: readonly Ring[], at: Point): number {
  let least = Infinity;
  for (const ring of rings) {
    for (let i = 0; i < ring.length; i += 2) least = Math.min(least, (ring[i]! - at.x) ** 2 + (ring[i + 1]! - at.y) ** 2);
  }
  return Math.sqrt(least);
}

/** Ramer, Douglas and Peucker, on a closed ring: begun at two points that are far apart. */
export function simplified(ring: Ring, tolerance: number): Ring {
  const points = ring.length / 2;
  if (points <= 8) return ring;
  let farthest = 0;
  let most = -1;
  for (let i = 1; i < points; i++) {
    const distance = (ring[2 * i]! - ring[0]!) ** 2 + (ring[2 * i + 1]! - ring[1]!) ** 2;
    if (distance > most) {
      most = distance;
      farthest = i;
    }
  }
  const kept = new Uint8Array(points + 1);
  kept[0] = kept[farthest] = kept[points] = 1;
  const spans: [number, number][] = [[0, farthest], [farthest, points]];
  while (spans.length) {
    const [from, to] = spans.pop()!;
    const ax = ring[2 * from]!, ay = ring[2 * from + 1]!;
    const bx = ring[2 * (to % points)]!, by = ring[2 * (to % points) + 1]!;
    const length = Math.hypot(bx - ax, by - ay);
    let split = -1;
    let worst = tolerance;
    for (let i = from + 1; i < to; i++) {
      const px = ring[2 * i]! - ax, py = ring[2 * i + 1]! - ay;
      const off = length === 0 ? Math.hypot(px, py) : Math.abs(px * (by - ay) - py * (bx - ax)) / length;
      if (off > worst) {
        worst = off;
        split = i;
      }
    }
    if (split >= 0) {
      kept[split] = 1;
      spans.push([from, split], [split, to]);
    }
  }
  const out: number[] = [];
  for (let i = 0; i < points; i++) if (kept[i]) out.push(ring[2 * i]!, ring[2 * i + 1]!);
  return Float32Array.from(out);
}

/** Corners cut once at a quarter of each side (Chaikin): what was stepped looks drawn. */
export function rounded(ring: Ring): Ring {
  const out = new Float32Array(ring.length * 2);
  for (let i = 0; i < ring.length; i += 2) {
    const next = (i + 2) % ring.length;
    const x = ring[i]!, y = ring[i + 1]!, nx = ring[next]!, ny = ring[next + 1]!;
    out[2 * i] = x * 0.75 + nx * 0.25;
    out[2 * i + 1] = y * 0.75 + ny * 0.25;
    out[2 * i + 2] = x * 0.25 + nx * 0.75;
    out[2 * i + 3] = y * 0.25 + ny * 0.75;
  }
  return out;
}

export function rectangle(box: Box, corner: number): Ring {
  const { left, top, right, bottom } = box;
  const c = Math.min(corner, (right - left) / 2, (bottom - top) / 2);
  const out: number[] = [];
  const corners: [number, number, number][] = [
    [right - c, top + c, -Math.PI / 2],
    [right - c, bottom - c, 0],
    [left + c, bottom - c, Math.PI / 2],
    [left + c, top + c, Math.PI],
  ];
  for (const [x, y, from] of corners) {
    for (let step = 0; step <= 6; step++) {
      const angle = from + (step / 6) * (Math.PI / 2);
      out.push(x + c * Math.cos(angle), y + c * Math.sin(angle));
    }
  }
  return Float32Array.from(out);
}
