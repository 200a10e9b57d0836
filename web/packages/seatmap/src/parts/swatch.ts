import { stampOf } from "../draw/stamp.js";
import type { SeatLook } from "../draw/style.js";

/** A seat as the map draws it, on a small canvas of its own: for the legend, the list and the tooltip. */
export class Swatches {
  readonly #pictures = new WeakMap<SeatLook, ImageData>();
  readonly #ratio: number;
  readonly #sizePx: number;

  constructor(sizeCss: number) {
    this.#ratio = Math.min(Math.max(globalThis.devicePixelRatio || 1, 1), 3);
    this.#sizePx = Math.round(sizeCss * this.#ratio);
  }

  canvas(): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = this.#sizePx;
    canvas.className = "swatch";
    canvas.setAttribute("aria-hidden", "true");
    return canvas;
  }

  draw(canvas: HTMLCanvasElement, look: SeatLook): void {
    canvas.getContext("2d")!.putImageData(this.#picture(look), 0, 0);
  }

  #picture(look: SeatLook): ImageData {
    let found = this.#pictures.get(look);
    if (found) return found;
    const size = this.#sizePx;
    // Numbers are not drawn here; what is larger on the map must still fit.
    const stamp = stampOf({ ...look, size: Math.min(look.size, 1.05) }, (size / 2) * 0.86, 0.5, 0.5);
    found = new ImageData(size, size);
    const middle = Math.floor(size / 2);
    for (let row = 0; row < stamp.height; row++) {
      for (let column = 0; column < stamp.width; column++) {
        const x = middle + stamp.left + column, y = middle + stamp.top + row;
        if (x < 0 || y < 0 || x >= size || y >= size) continue;
        const pixel = stamp.pixels[row * stamp.width + column]!;
        const alpha = pixel >>> 24;
        if (!alpha) continue;
        // Stamps are premultiplied, pictures of a canvas are not.
        const at = 4 * (y * size + x);
        found.data[at] = ((pixel & 0xff) * 255) / alpha;
        found.data[at + 1] = (((pixel >> 8) & 0xff) * 255) / alpha;
        found.data[at + 2] = (((pixel >> 16) & 0xff) * 255) / alpha;
        found.data[at + 3] = alpha;
      }
    }
    this.#pictures.set(look, found);
    return found;
  }
}
