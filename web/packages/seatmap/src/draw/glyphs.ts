/** A character as a mask of coverage. */
export interface Glyph {
  readonly width: number;
  readonly height: number;
  readonly mask: Uint8Array;
  /** How far the next character is. */
  readonly advance: number;
}

/** Draws characters; a canvas can, and tests have one of their own. */
export type GlyphMaker = (text: string, heightPx: number, weight: number) => Glyph;

/** Numbers on seats are put down from masks: drawing ten thousand texts anew in each frame would take far too long. */
export class Glyphs {
  readonly #make: GlyphMaker;
  readonly #known = new Map<string, Glyph>();

  constructor(make: GlyphMaker) {
    this.#make = make;
  }

  get(text: string, heightPx: number, weight = 600): Glyph {
    const key = `${text}${heightPx}|${weight}`;
    let found = this.#known.get(key);
    if (!found) {
      if (this.#known.size > 2000) this.#known.clear();
      found = this.#make(text, heightPx, weight);
      this.#known.set(key, found);
    }
    return found;
  }
}

/** A whole text as one mask, put together from those of its characters: written in every frame, made up once. */
export class Texts {
  readonly #glyphs: Glyphs;
  readonly #known = new Map<string, Glyph>();

  constructor(glyphs: Glyphs) {
    this.#glyphs = glyphs;
  }

  get(text: string, heightPx: number, weight: number): Glyph {
    const key = `${text}|${heightPx}|${weight}`;
    let found = this.#known.get(key);
    if (!found) {
      if (this.#known.size > 3000) this.#known.clear();
      found = this.#composed(text, heightPx, weight);
      this.#known.set(key, found);
    }
    return found;
  }

  #composed(text: string, heightPx: number, weight: number): Glyph {
    const parts = [...text].map((character) => this.#glyphs.get(character, heightPx, weight));
    const advance = parts.reduce((sum, part) => sum + part.advance, 0);
    const height = parts[0]?.height ?? 1;
    const width = Math.ceil(advance) + 3;
    const mask = new Uint8Array(width * height);
    let at = 0;
    for (const part of parts) {
      const left = Math.round(at);
      for (let row = 0; row < height; row++) {
        for (let column = 0; column < part.width && left + column < width; column++) {
          const into = row * width + left + column;
          mask[into] = Math.max(mask[into]!, part.mask[row * part.width + column]!);
        }
      }
      at += part.advance;
    }
    return { width, height, mask, advance };
  }
}

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

export const SEAT_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

export function canvasGlyphMaker(context: Context): GlyphMaker {
  return (text, heightPx, weight) => {
    const font = `${weight} ${heightPx}px ${SEAT_FONT}`;
    context.font = font;
    const advance = context.measureText(text).width;
    const width = Math.max(1, Math.ceil(advance) + 2);
    const height = Math.ceil(heightPx * 1.3);
    const { canvas } = context;
    if (canvas.width < width || canvas.height < height) {
      // Setting a size is slow, and clears the canvas and its state.
      canvas.width = Math.max(canvas.width, 2 * width);
      canvas.height = Math.max(canvas.height, 2 * height);
      context.font = font;
    } else context.clearRect(0, 0, width, height);
    context.textBaseline = "middle";
    context.fillText(text, 1, height / 2 + heightPx * 0.04);
    const { data } = context.getImageData(0, 0, width, height);
    const mask = new Uint8Array(width * height);
    for (let i = 0; i < mask.length; i++) mask[i] = data[4 * i + 3]!;
    return { width, height, mask, advance };
  };
}
