import type { Box } from "../geometry/geometry.js";
import { SeatGrid } from "../geometry/seat-grid.js";
import { inkOn, pixelOf } from "./colour.js";
import type { Pixel } from "./colour.js";
import { NUMBERS_FROM_CSS_PX, SEATS_FROM_DEVICE_PX } from "./detail.js";
import type { Glyphs } from "./glyphs.js";
import { Pixels } from "./pixels.js";
import { samePaint } from "./scene.js";
import type { PixelBox } from "./pixels.js";
import type { Dressing, Frame, Scene, SectionPaint } from "./scene.js";
import { StampCache } from "./stamp.js";
import { LARGEST } from "./style.js";
import type { SeatLook } from "./style.js";

/** Above so many changed seats the whole picture is drawn anew: putting them in one by one would take longer. */
const SINGLY_UP_TO = 6000;

/**
 * Draws the plan into memory. Two pictures of the screen's size: the ground with its sections, and above it the same with
 * seats. Whoever pans moves both and draws only the strips that come in; a seat that changes is put back from the ground.
 */
export class Painter {
  readonly #glyphs: Glyphs;
  #scene: Scene | null = null;
  #grid: SeatGrid | null = null;
  #looks: readonly SeatLook[] = [];
  #inks: Pixel[] = [];
  #raised = new Uint8Array(0);
  #styles: Uint16Array = new Uint16Array(0);
  #sections: readonly SectionPaint[] = [];
  #ground: Pixel = 0xffffffff;
  #stamps = new StampCache([]);
  #under = new Pixels(0, 0);
  #front = new Pixels(0, 0);
  #drawn: Frame | null = null;
  #groundStale = true;
  readonly #changed = new Set<number>();

  constructor(glyphs: Glyphs) {
    this.#glyphs = glyphs;
  }

  get pixels(): Pixels {
    return this.#front;
  }

  get scene(): Scene | null {
    return this.#scene;
  }

  get sections(): readonly SectionPaint[] {
    return this.#sections;
  }

  setScene(scene: Scene): void {
    this.#scene = scene;
    this.#grid = new SeatGrid(scene.x, scene.y, scene.seatsBox, scene.cell);
    this.#styles = new Uint16Array(scene.x.length);
    this.#drawn = null;
  }

  dress({ looks, styles }: Dressing): void {
    this.#setLooks(looks);
    this.#styles = styles;
    this.#stamps = new StampCache(this.#looks);
    this.#drawn = null;
  }

  /** Some seats look different; looks that are new come behind the known ones. */
  redress(ordinals: Uint32Array, styles: Uint16Array, newLooks: readonly SeatLook[]): void {
    if (newLooks.length) {
      this.#setLooks([...this.#looks, ...newLooks]);
      this.#stamps = new StampCache(this.#looks);
    }
    for (let i = 0; i < ordinals.length; i++) {
      this.#styles[ordinals[i]!] = styles[i]!;
      this.#changed.add(ordinals[i]!);
    }
  }

  paintSections(sections: readonly SectionPaint[], ground: Pixel): void {
    const before = this.#sections;
    this.#groundStale ||= ground !== this.#ground || before.length !== sections.length;
    // Counts change all the time: only what is seen of them makes the ground old, and only there.
    if (!this.#groundStale) {
      const standing = (n: number) => this.#scene?.areas[n]?.standing ?? false;
      const shown = (paint: SectionPaint, n: number) => (this.#seatsShown && !standing(n) ? paint.fill : paint.farFill);
      sections.forEach((paint, n) => {
        const old = before[n]!;
        const edge = paint.stroke !== old.stroke || paint.strokePx !== old.strokePx;
        if (edge || shown(paint, n) !== shown(old, n)) this.#staleSections.add(n);
      });
    }
    // What is equal stays the same object, wherever it came from: whoever keeps something about it need not do it again.
    this.#sections = sections.map((paint, n) => (before[n] && samePaint(paint, before[n]) ? before[n] : paint));
    this.#ground = ground;
  }

  readonly #staleSections = new Set<number>();
  #seatsShown = true;

  /** Whether anything of the picture changed. */
  draw(frame: Frame): boolean {
    if (!this.#scene) return false;
    const seatsShown = this.#scene.radius * 2 * frame.scale >= SEATS_FROM_DEVICE_PX;
    if (seatsShown !== this.#seatsShown) this.#groundStale = true;
    this.#seatsShown = seatsShown;
    const before = this.#drawn;
    this.#drawn = frame;
    if (frame.width !== this.#front.width || frame.height !== this.#front.height) {
      this.#under = new Pixels(frame.width, frame.height);
      this.#front = new Pixels(frame.width, frame.height);
      return this.#drawWhole(frame);
    }
    if (!before || this.#groundStale || before.scale !== frame.scale || this.#changed.size > SINGLY_UP_TO) {
      return this.#drawWhole(frame);
    }
    const dx = frame.x - before.x, dy = frame.y - before.y;
    if (Math.abs(dx) >= frame.width * 0.7 || Math.abs(dy) >= frame.height * 0.7) return this.#drawWhole(frame);
    const moved = dx !== 0 || dy !== 0;
    if (moved) this.#pan(frame, dx, dy);
    const repainted = this.#repaint(frame);
    const recoloured = this.#changed.size > 0 && seatsShown;
    if (recoloured) this.#putBack(frame);
    this.#changed.clear();
    return moved || repainted || recoloured;
  }

  #setLooks(looks: readonly SeatLook[]): void {
    this.#looks = looks;
    this.#raised = Uint8Array.from(looks, ({ raised }) => (raised ? 1 : 0));
    this.#inks = looks.map(({ ink, fill }) => pixelOf(ink, fill ? inkOn(pixelOf(fill)) : 0xff000000));
  }

  #drawWhole(frame: Frame): boolean {
    this.#groundStale = false;
    this.#staleSections.clear();
    this.#changed.clear();
    this.#drawBox(frame, this.#front.whole);
    return true;
  }

  #pan(frame: Frame, dx: number, dy: number): void {
    this.#under.shift(dx, dy);
    this.#front.shift(dx, dy);
    const { width, height } = frame;
    const top = dy > 0 ? dy : 0, bottom = dy < 0 ? height + dy : height;
    if (dy > 0) this.#drawBox(frame, { left: 0, top: 0, right: width, bottom: dy });
    if (dy < 0) this.#drawBox(frame, { left: 0, top: height + dy, right: width, bottom: height });
    if (dx > 0) this.#drawBox(frame, { left: 0, top, right: dx, bottom });
    if (dx < 0) this.#drawBox(frame, { left: width + dx, top, right: width, bottom });
  }

  /** Sections that look different: their boxes, with whatever else is in them. */
  #repaint(frame: Frame): boolean {
    let any = false;
    for (const n of this.#staleSections) {
      const around = pixelBoxOf(this.#scene!.areas[n]!.box, frame, 4 * frame.ratio);
      const box: PixelBox = {
        left: Math.max(0, around.left), right: Math.min(frame.width, around.right),
        top: Math.max(0, around.top), bottom: Math.min(frame.height, around.bottom),
      };
      if (box.left >= box.right || box.top >= box.bottom) continue;
      this.#drawBox(frame, box);
      any = true;
    }
    this.#staleSections.clear();
    return any;
  }

  #drawBox(frame: Frame, box: PixelBox): void {
    this.#drawGround(frame, box);
    this.#front.copy(this.#under, box);
    if (this.#seatsShown) this.#drawSeats(frame, box);
  }

  #drawGround(frame: Frame, box: PixelBox): void {
    const under = this.#under;
    under.fill(box, this.#ground);
    this.#scene!.areas.forEach((area, n) => {
      const paint = this.#sections[n];
      if (!paint) return;
      const on = pixelBoxOf(area.box, frame, paint.strokePx + 1);
      if (on.left >= box.right || on.right <= box.left || on.top >= box.bottom || on.bottom <= box.top) return;
      const fill = this.#seatsShown && !area.standing ? paint.fill : paint.farFill;
      under.fillRings(area.rings, frame, fill, box, on);
      under.strokeRings(area.rings, frame, paint.strokePx * frame.ratio, paint.stroke, box);
    });
  }

  #drawSeats(frame: Frame, box: PixelBox): void {
    const scene = this.#scene!, grid = this.#grid!;
    const { x, y } = scene;
    const { scale, x: moveX, y: moveY } = frame;
    const radius = scene.radius * scale;
    const set = this.#stamps.at(radius);
    const reachPx = radius * 1.45 + 2;
    const reach = reachPx / scale;
    const seen: Box = {
      left: (box.left - moveX) / scale - reach, right: (box.right - moveX) / scale + reach,
      top: (box.top - moveY) / scale - reach, bottom: (box.bottom - moveY) / scale + reach,
    };
    const { firstColumn, lastColumn, firstRow, lastRow } = grid.cellsIn(seen);
    if (firstColumn > lastColumn) return;
    const { starts, seats, columns } = grid;
    const styles = this.#styles, raisedStyles = this.#raised, front = this.#front;
    const { phases } = set;
    const numbers = this.#numberHeight(frame);
    const [minX, maxX, minY, maxY] = [box.left - reachPx, box.right + reachPx, box.top - reachPx, box.bottom + reachPx];
    const raised: number[] = [];
    // Every seat of the plan may come by here in every frame: no calls, no objects.
    for (let row = firstRow; row <= lastRow; row++) {
      const to = starts[row * columns + lastColumn + 1]!;
      for (let i = starts[row * columns + firstColumn]!; i < to; i++) {
        const seat = seats[i]!;
        const atX = x[seat]! * scale + moveX, atY = y[seat]! * scale + moveY;
        if (atX < minX || atX > maxX || atY < minY || atY > maxY) continue;
        const style = styles[seat]!;
        if (raisedStyles[style]) {
          raised.push(seat);
          continue;
        }
        const wholeX = Math.floor(atX), wholeY = Math.floor(atY);
        const stamp = set.get(style, ((atX - wholeX) * phases) | 0, ((atY - wholeY) * phases) | 0);
        front.blend(stamp, wholeX + stamp.left, wholeY + stamp.top, box);
        if (numbers > 0) this.#write(seat, style, atX, atY, box, numbers);
      }
    }
    for (const seat of raised) {
      const atX = x[seat]! * scale + moveX, atY = y[seat]! * scale + moveY;
      const wholeX = Math.floor(atX), wholeY = Math.floor(atY);
      const stamp = set.get(styles[seat]!, ((atX - wholeX) * phases) | 0, ((atY - wholeY) * phases) | 0);
      front.blend(stamp, wholeX + stamp.left, wholeY + stamp.top, box);
      if (numbers > 0) this.#write(seat, styles[seat]!, atX, atY, box, numbers);
    }
  }

  #write(seat: number, style: number, atX: number, atY: number, clip: PixelBox, height: number): void {
    const look = this.#looks[style]!;
    const text = look.icon ?? (look.numbered && look.mark === "none" ? String(this.#scene!.number[seat]) : "");
    if (!text) return;
    const ink = this.#inks[style]!;
    if (look.icon !== null) {
      const glyph = this.#glyphs.get(text, height);
      this.#front.stencil(glyph.mask, glyph.width, glyph.height, Math.round(atX - glyph.width / 2), Math.round(atY - glyph.height / 2), ink, clip);
      return;
    }
    let width = 0;
    for (const digit of text) width += this.#glyphs.get(digit, height).advance;
    let at = atX - width / 2;
    for (const digit of text) {
      const glyph = this.#glyphs.get(digit, height);
      this.#front.stencil(glyph.mask, glyph.width, glyph.height, Math.round(at - 1), Math.round(atY - glyph.height / 2), ink, clip);
      at += glyph.advance;
    }
  }

  /** 0 where seats are too small for it. */
  #numberHeight(frame: Frame): number {
    const diameter = this.#scene!.radius * 2 * frame.scale;
    return diameter < NUMBERS_FROM_CSS_PX * frame.ratio ? 0 : Math.min(Math.round(diameter * 0.46), 40);
  }

  /** Changed seats one by one: their place is taken from the ground, then they and what overlaps it are drawn again. */
  #putBack(frame: Frame): void {
    const { x, y, radius } = this.#scene!;
    // As far as the largest stamp goes: a chosen seat's.
    const reach = Math.ceil(radius * frame.scale * LARGEST * 1.16 + 0.5);
    for (const seat of this.#changed) {
      const atX = Math.floor(x[seat]! * frame.scale + frame.x), atY = Math.floor(y[seat]! * frame.scale + frame.y);
      const box: PixelBox = {
        left: Math.max(0, atX - reach), right: Math.min(frame.width, atX + reach + 1),
        top: Math.max(0, atY - reach), bottom: Math.min(frame.height, atY + reach + 1),
      };
      if (box.left >= box.right || box.top >= box.bottom) continue;
      this.#front.copy(this.#under, box);
      this.#drawSeats(frame, box);
    }
  }
}

export function pixelBoxOf(box: Box, frame: Frame, margin: number): PixelBox {
  return {
    left: Math.floor(box.left * frame.scale + frame.x - margin),
    top: Math.floor(box.top * frame.scale + frame.y - margin),
    right: Math.ceil(box.right * frame.scale + frame.x + margin),
    bottom: Math.ceil(box.bottom * frame.scale + frame.y + margin),
  };
}
