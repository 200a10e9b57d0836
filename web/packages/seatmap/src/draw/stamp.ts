import { pixelOf } from "./colour.js";
import type { Pixel } from "./colour.js";
import { markDistance, shapeDistance } from "./shape.js";
import type { SeatLook } from "./style.js";

/** A seat drawn once, to be put down many times: premultiplied pixels, and where its middle lies among them. */
export interface Stamp {
  readonly width: number;
  readonly height: number;
  /** From the seat's whole pixel to the stamp's upper left one. */
  readonly left: number;
  readonly top: number;
  readonly pixels: Uint32Array;
}

/** Marks smaller than this cannot be told from dirt. */
const MARK_FROM_RADIUS_PX = 2.6;

/** `radius` in pixels; the middle lies at (shiftX, shiftY) of a pixel, each from 0 to 1. */
export function stampOf(look: SeatLook, radius: number, shiftX: number, shiftY: number): Stamp {
  const reach = radius * look.size;
  const half = Math.ceil(reach * 1.16 + 0.5);
  const width = 2 * half + 1;
  const pixels = new Uint32Array(width * width);
  const fill = look.fill === null ? null : pixelOf(look.fill);
  const stroke = look.stroke === null ? null : pixelOf(look.stroke);
  const ink = pixelOf(look.ink);
  const marked = look.mark !== "none" && reach >= MARK_FROM_RADIUS_PX;
  // A line thinner than a pixel fades; one thicker than a third of the seat fills it.
  const line = Math.min(Math.max(reach * 0.2, 1), reach * 0.55);
  for (let row = 0; row < width; row++) {
    for (let column = 0; column < width; column++) {
      const x = (column - half + 0.5 - shiftX) / reach, y = (row - half + 0.5 - shiftY) / reach;
      const inside = shapeDistance(look.shape, x, y) * reach;
      const whole = covered(inside);
      if (whole === 0) continue;
      const paint: Paint = { r: 0, g: 0, b: 0, a: 0 };
      if (fill !== null) lay(paint, fill, whole);
      if (stroke !== null) lay(paint, stroke, Math.min(whole, 1 - covered(inside + line)));
      if (marked) lay(paint, ink, Math.min(whole, covered(markDistance(look.mark, x, y) * reach)));
      pixels[row * width + column] = packed(paint, look.opacity);
    }
  }
  return trimmed(pixels, width, half);
}

/** Without the empty rim: of a seat of two pixels it would be most of the stamp. */
function trimmed(pixels: Uint32Array, width: number, half: number): Stamp {
  let left = width, top = width, right = -1, bottom = -1;
  for (let row = 0; row < width; row++) {
    for (let column = 0; column < width; column++) {
      if (pixels[row * width + column]! >>> 24 < 3) continue;
      left = Math.min(left, column);
      right = Math.max(right, column);
      top = Math.min(top, row);
      bottom = row;
    }
  }
  if (right < 0) return { width: 0, height: 0, left: 0, top: 0, pixels: new Uint32Array(0) };
  const kept = new Uint32Array((right - left + 1) * (bottom - top + 1));
  for (let row = top, at = 0; row <= bottom; row++) {
    for (let column = left; column <= right; column++) kept[at++] = pixels[row * width + column]!;
  }
  return { width: right - left + 1, height: bottom - top + 1, left: left - half, top: top - half, pixels: kept };
}

interface Paint {
  r: number;
  g: number;
  b: number;
  a: number;
}

function covered(distance: number): number {
  return Math.min(Math.max(0.5 - distance, 0), 1);
}

function lay(paint: Paint, colour: Pixel, share: number): void {
  const left = 1 - share;
  paint.r = (colour & 0xff) * share + paint.r * left;
  paint.g = ((colour >> 8) & 0xff) * share + paint.g * left;
  paint.b = ((colour >> 16) & 0xff) * share + paint.b * left;
  paint.a = share + paint.a * left;
}

function packed({ r, g, b, a }: Paint, opacity: number): Pixel {
  const alpha = Math.round(a * opacity * 255);
  return ((alpha << 24) | (Math.round(b * opacity) << 16) | (Math.round(g * opacity) << 8) | Math.round(r * opacity)) >>> 0;
}

/** The stamps of one size, made when they are first put down. */
export class StampSet {
  readonly radius: number;
  /** Positions within a pixel that are told apart, each way: small seats need them, or their rows look uneven. */
  readonly phases: number;
  readonly #looks: readonly SeatLook[];
  readonly #stamps: (Stamp | undefined)[] = [];

  constructor(looks: readonly SeatLook[], radius: number) {
    this.#looks = looks;
    this.radius = radius;
    this.phases = radius < 7 ? 4 : radius < 14 ? 2 : 1;
  }

  get(style: number, phaseX: number, phaseY: number): Stamp {
    const { phases } = this;
    const at = (style * phases + phaseY) * phases + phaseX;
    return (this.#stamps[at] ??= stampOf(this.#looks[style]!, this.radius, (phaseX + 0.5) / phases, (phaseY + 0.5) / phases));
  }
}

/** A few sizes are kept: whoever zooms in often zooms back out. */
export class StampCache {
  readonly #looks: readonly SeatLook[];
  readonly #sets = new Map<number, StampSet>();

  constructor(looks: readonly SeatLook[]) {
    this.#looks = looks;
  }

  at(radius: number): StampSet {
    const step = radius < 4 ? 16 : radius < 16 ? 8 : 4;
    const rounded = Math.max(Math.round(radius * step) / step, 0.25);
    const found = this.#sets.get(rounded) ?? new StampSet(this.#looks, rounded);
    this.#sets.delete(rounded);
    this.#sets.set(rounded, found);
    if (this.#sets.size > 12) this.#sets.delete(this.#sets.keys().next().value!);
    return found;
  }
}
