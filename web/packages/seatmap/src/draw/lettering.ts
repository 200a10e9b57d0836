import { rectangle } from "../geometry/polygon.js";
import { inkOn, pixelOf } from "./colour.js";
import type { Pixel } from "./colour.js";
import { ROW_NAMES_FROM_CSS_PX, SEATS_FROM_DEVICE_PX, SECTION_NAMES_TO_CSS_PX } from "./detail.js";
import { Texts } from "./glyphs.js";
import type { Glyph, Glyphs } from "./glyphs.js";
import type { Pixels } from "./pixels.js";
import type { Frame, Paper, Scene, SectionPaint } from "./scene.js";

/** Of a section's box, a name may cover so much where seats are drawn. */
const MOST_COVERED = 0.05;
const BOLD = 650, PLAIN = 500;
const AS_DRAWN = { scale: 1, x: 0, y: 0 } as const;

/**
 * Writes what is not on seats: names of sections, of rows, of general admission, and the stage. Out of masks of characters,
 * as the numbers on seats are: a canvas that is asked to write two hundred texts takes longer than all seats together.
 */
export class Lettering {
  readonly #texts: Texts;
  readonly #laid: Laid[] = [];

  constructor(glyphs: Glyphs) {
    this.#texts = new Texts(glyphs);
  }

  write(on: Pixels, scene: Scene, frame: Frame, sections: readonly SectionPaint[], paper: Paper): void {
    const diameterCss = (scene.radius * 2 * frame.scale) / frame.ratio;
    if (scene.focalPoint) this.#stage(on, scene, frame, paper);
    if (diameterCss >= ROW_NAMES_FROM_CSS_PX) this.#rows(on, scene, frame, paper, diameterCss);
    this.#sections(on, scene, frame, sections, paper, diameterCss);
  }

  #stage(on: Pixels, scene: Scene, frame: Frame, paper: Paper): void {
    const { ratio } = frame;
    const x = scene.focalPoint!.x * frame.scale + frame.x, y = scene.focalPoint!.y * frame.scale + frame.y;
    const height = Math.round(Math.min(Math.max(scene.spacing * 1.6 * frame.scale, 20 * ratio), 44 * ratio));
    const size = Math.round(height * 0.5);
    const width = Math.max(this.#width(paper.stageWords, size, BOLD) + height * 1.6, Math.min(scene.spacing * 9 * frame.scale, 320 * ratio));
    if (x + width < 0 || x - width > frame.width || y + height < 0 || y - height > frame.height) return;
    plate(on, x, y, width, height, height * 0.28, pixelOf(paper.stage), 256);
    this.#centred(on, paper.stageWords, x, y, size, BOLD, pixelOf(paper.stageInk));
  }

  #rows(on: Pixels, scene: Scene, frame: Frame, paper: Paper, diameterCss: number): void {
    const size = Math.round(Math.min(diameterCss * 0.62, 20) * frame.ratio);
    const ink = pixelOf(paper.faintInk);
    for (const { name, before, behind } of scene.rows) {
      for (const end of [before, behind]) {
        const x = end.x * frame.scale + frame.x, y = end.y * frame.scale + frame.y;
        if (x < -size || y < -size || x > frame.width + size || y > frame.height + size) continue;
        this.#centred(on, name, x, y, size, BOLD, ink);
      }
    }
  }

  /** On a filled section straight onto it; over seats on a plate, and only where it covers little of them. */
  #sections(
    on: Pixels, scene: Scene, frame: Frame, sections: readonly SectionPaint[], paper: Paper, diameterCss: number,
  ): void {
    const seatsShown = diameterCss * frame.ratio >= SEATS_FROM_DEVICE_PX;
    scene.areas.forEach((area, n) => {
      const paint = sections[n];
      const overSeats = seatsShown && !area.standing;
      if (!paint || (overSeats && diameterCss > SECTION_NAMES_TO_CSS_PX)) return;
      const x = area.label.x * frame.scale + frame.x, y = area.label.y * frame.scale + frame.y;
      const width = (area.box.right - area.box.left) * frame.scale, height = (area.box.bottom - area.box.top) * frame.scale;
      if (x + width < 0 || x - width > frame.width || y + height < 0 || y - height > frame.height) return;
      let laid = this.#laid[n];
      if (laid?.paint !== paint || laid.scale !== frame.scale || laid.overSeats !== overSeats) {
        laid = this.#laid[n] = this.#laidOut(area, paint, frame, overSeats);
      }
      if (!laid.name) return;
      const { size, small, detail } = laid;
      const ink = overSeats ? pixelOf(paper.ink) : inkOn(paint.farFill);
      if (overSeats) {
        const wide = Math.max(laid.name.advance, detail?.advance ?? 0) + size * 1.1;
        const tall = (detail ? size * 1.15 + small * 1.15 : size * 1.2) + size * 0.5;
        plate(on, x, y, wide, tall, size * 0.5, pixelOf(paper.plate), 232);
      }
      put(on, laid.name, x, detail ? y - small * 0.62 : y, ink);
      if (detail) put(on, detail, x, y + size * 0.6, overSeats ? pixelOf(paper.faintInk) : ink);
    });
  }

  #laidOut(area: Scene["areas"][number], paint: SectionPaint, { scale, ratio }: Frame, overSeats: boolean): Laid {
    const width = (area.box.right - area.box.left) * scale, height = (area.box.bottom - area.box.top) * scale;
    const room = Math.min(area.room * 2 * scale * (area.standing ? 0.94 : overSeats ? 1.4 : 0.98), width);
    const wanted = Math.min(Math.max(Math.min(room / 4, height / 4), 10 * ratio), (area.standing ? 18 : 15) * ratio);
    // Few sizes: each has masks of its own.
    const size = Math.round(Math.floor(wanted / (2.5 * ratio)) * 2.5 * ratio);
    const small = Math.round(Math.max(size * 0.8, 10 * ratio));
    const name = this.#texts.get(paint.name, size, BOLD);
    const bare: Laid = { paint, scale, overSeats, size, small, name: null, detail: null };
    // A name wider than its section would be taken for the neighbour's.
    if (size * 1.2 > height || name.advance > room) return bare;
    if (overSeats && name.advance * size * 1.8 > width * height * MOST_COVERED) return bare;
    for (const words of [paint.detail, paint.shortDetail]) {
      if (words === "" || size * 2.6 > height) continue;
      const detail = this.#texts.get(words, small, PLAIN);
      const wide = Math.max(name.advance, detail.advance);
      if (wide <= room && (!overSeats || wide * size * 2.6 < width * height * MOST_COVERED)) return { ...bare, name, detail };
    }
    return { ...bare, name };
  }

  #width(text: string, size: number, weight: number): number {
    return this.#texts.get(text, size, weight).advance;
  }

  #centred(on: Pixels, text: string, x: number, y: number, size: number, weight: number, ink: Pixel): void {
    put(on, this.#texts.get(text, size, weight), x, y, ink);
  }
}

/** A section's words at one size: worked out when either changes, written in every frame. */
interface Laid {
  readonly paint: SectionPaint;
  readonly scale: number;
  readonly overSeats: boolean;
  readonly size: number;
  readonly small: number;
  readonly name: Glyph | null;
  readonly detail: Glyph | null;
}

function put(on: Pixels, { mask, width, height, advance }: Glyph, x: number, y: number, ink: Pixel): void {
  on.stencil(mask, width, height, Math.round(x - advance / 2 - 1), Math.round(y - height / 2), ink, on.whole);
}

function plate(on: Pixels, x: number, y: number, width: number, height: number, corner: number, colour: Pixel, share: number): void {
  const box = { left: Math.round(x - width / 2), top: Math.round(y - height / 2), right: Math.round(x + width / 2), bottom: Math.round(y + height / 2) };
  on.fillRings([rectangle(box, corner)], AS_DRAWN, colour, on.whole, box, share);
}
