import type { Backend, FrameReport } from "./backend.js";
import type { Pixel } from "./colour.js";
import { canvasGlyphMaker, Glyphs } from "./glyphs.js";
import { Lettering } from "./lettering.js";
import { Painter } from "./painter.js";
import { Pixels } from "./pixels.js";
import type { Dressing, Frame, Paper, Scene, SectionPaint } from "./scene.js";
import type { SeatLook } from "./style.js";

type Canvas = HTMLCanvasElement | OffscreenCanvas;
type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** Paints in memory and shows it on a canvas: in a worker and on the main thread alike. */
export class CanvasBackend implements Backend {
  readonly #canvas: Canvas;
  readonly #context: Context;
  readonly #painter: Painter;
  readonly #lettering: Lettering;
  readonly #drawn: (report: FrameReport) => void;
  #frame: Frame | null = null;
  #paper: Paper | null = null;
  #picture = new Pixels(0, 0);
  #image: ImageData | null = null;
  #dressed = false;
  #stale = false;
  #asked = 0;
  #frames = 0;

  constructor(canvas: Canvas, scratch: Canvas, drawn: (report: FrameReport) => void) {
    this.#canvas = canvas;
    // The picture is opaque and comes from memory: a canvas on the graphics card would only have to fetch it.
    this.#context = canvas.getContext("2d", { alpha: false, willReadFrequently: true }) as Context;
    const lettering = scratch.getContext("2d", { willReadFrequently: true }) as Context;
    const glyphs = new Glyphs(canvasGlyphMaker(lettering));
    this.#painter = new Painter(glyphs);
    this.#lettering = new Lettering(glyphs);
    this.#drawn = drawn;
  }

  setScene(scene: Scene): void {
    this.#painter.setScene(scene);
    this.#dressed = false;
    this.#ask();
  }

  setPaper(paper: Paper): void {
    this.#paper = paper;
    this.#stale = true;
    this.#ask();
  }

  dress(dressing: Dressing): void {
    this.#painter.dress(dressing);
    this.#dressed = true;
    this.#ask();
  }

  redress(ordinals: Uint32Array, styles: Uint16Array, newLooks: readonly SeatLook[]): void {
    this.#painter.redress(ordinals, styles, newLooks);
    this.#ask();
  }

  paintSections(sections: readonly SectionPaint[], ground: Pixel): void {
    this.#painter.paintSections(sections, ground);
    this.#stale = true;
    this.#ask();
  }

  setFrame(frame: Frame): void {
    this.#frame = frame;
    this.#ask();
  }

  close(): void {
    if (this.#asked) cancelAnimationFrame(this.#asked);
    this.#asked = -1;
  }

  #ask(): void {
    if (this.#asked === 0) this.#asked = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#asked = 0;
    const frame = this.#frame, paper = this.#paper, scene = this.#painter.scene;
    if (!frame || !paper || !scene || !this.#dressed || frame.width < 1 || frame.height < 1) return;
    const began = performance.now();
    const changed = this.#painter.draw(frame);
    if (!changed && !this.#stale) return;
    this.#stale = false;
    this.#show(frame, scene, paper);
    this.#drawn({ frame: ++this.#frames, drawMs: performance.now() - began });
  }

  /** What is painted stays as it is, to be moved by the next frame: names are written on a copy. */
  #show(frame: Frame, scene: Scene, paper: Paper): void {
    const { width, height } = frame;
    if (this.#canvas.width !== width || this.#canvas.height !== height) {
      this.#canvas.width = width;
      this.#canvas.height = height;
    }
    if (this.#picture.width !== width || this.#picture.height !== height || !this.#image) {
      this.#picture = new Pixels(width, height);
      this.#image = new ImageData(new Uint8ClampedArray(this.#picture.data.buffer), width, height);
    }
    this.#picture.copy(this.#painter.pixels, this.#picture.whole);
    // Finding the fonts takes longer than drawing everything: the first picture does not wait for its names.
    if (this.#frames > 0) this.#lettering.write(this.#picture, scene, frame, this.#painter.sections, paper);
    else {
      this.#stale = true;
      this.#ask();
    }
    this.#context.putImageData(this.#image, 0, 0);
  }
}
