import type { Ring } from "../geometry/polygon.js";
import type { Pixel } from "./colour.js";
import type { Stamp } from "./stamp.js";

/** A rectangle of whole pixels; right and bottom are not part of it. */
export interface PixelBox {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** From places on the plan to pixels. */
export interface Placing {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

/** An opaque picture in memory, with the few ways of drawing that a plan needs. */
export class Pixels {
  readonly width: number;
  readonly height: number;
  readonly data: Uint32Array<ArrayBuffer>;
  readonly #edges = new Edges();

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    this.data = new Uint32Array(width * height);
  }

  get whole(): PixelBox {
    return { left: 0, top: 0, right: this.width, bottom: this.height };
  }

  fill(box: PixelBox, colour: Pixel): void {
    const { data, width } = this;
    if (box.left === 0 && box.right === width) {
      data.fill(colour, box.top * width, box.bottom * width);
      return;
    }
    for (let row = box.top; row < box.bottom; row++) data.fill(colour, row * width + box.left, row * width + box.right);
  }

  /** The same rectangle of another picture of the same size. */
  copy(from: Pixels, box: PixelBox): void {
    const { data, width } = this;
    if (box.left === 0 && box.right === width) {
      data.set(from.data.subarray(box.top * width, box.bottom * width), box.top * width);
      return;
    }
    const { left, right } = box;
    // A few pixels a row are quicker one by one than through a view of the array.
    if (right - left < 24) {
      for (let row = box.top; row < box.bottom; row++) {
        const end = row * width + right;
        for (let at = row * width + left; at < end; at++) data[at] = from.data[at]!;
      }
      return;
    }
    for (let row = box.top; row < box.bottom; row++) {
      data.set(from.data.subarray(row * width + left, row * width + right), row * width + left);
    }
  }

  /** Moves the whole picture; what comes in at the edges is left as it was. */
  shift(dx: number, dy: number): void {
    const { data, width, height } = this;
    const by = dy * width + dx;
    if (by > 0) data.copyWithin(by, 0, width * height - by);
    else if (by < 0) data.copyWithin(0, -by, width * height);
  }

  /** Puts a stamp down within `clip`. */
  blend(stamp: Stamp, atX: number, atY: number, clip: PixelBox): void {
    const { data, width } = this;
    const { pixels, width: wide, height: tall } = stamp;
    const fromX = atX < clip.left ? clip.left - atX : 0;
    const toX = atX + wide > clip.right ? clip.right - atX : wide;
    const fromY = atY < clip.top ? clip.top - atY : 0;
    const toY = atY + tall > clip.bottom ? clip.bottom - atY : tall;
    for (let row = fromY; row < toY; row++) {
      let source = row * wide + fromX;
      let target = (atY + row) * width + atX + fromX;
      for (let column = fromX; column < toX; column++, source++, target++) {
        const over = pixels[source]!;
        if (over === 0) continue;
        const left = 255 - (over >>> 24);
        if (left === 0) {
          data[target] = over;
          continue;
        }
        const under = data[target]!;
        // Two channels at once: 256 steps instead of 255 are near enough for an edge.
        const redBlue = (Math.imul(under & 0xff00ff, left + 1) >>> 8) & 0xff00ff;
        const green = (Math.imul((under >>> 8) & 0xff, left + 1) >>> 8) & 0xff;
        data[target] = (((over & 0xff00ff) + redBlue) & 0xff00ff) | (((over & 0xff00) + (green << 8)) & 0xff00) | 0xff000000;
      }
    }
  }

  /** Puts a mask of coverage (0–255) down in one colour within `clip`. */
  stencil(mask: Uint8Array, maskWidth: number, maskHeight: number, atX: number, atY: number, colour: Pixel, clip: PixelBox): void {
    const { data, width } = this;
    const fromX = Math.max(0, clip.left - atX), toX = Math.min(maskWidth, clip.right - atX);
    const fromY = Math.max(0, clip.top - atY), toY = Math.min(maskHeight, clip.bottom - atY);
    const redBlueInk = colour & 0xff00ff, greenInk = (colour >>> 8) & 0xff;
    for (let row = fromY; row < toY; row++) {
      let at = (atY + row) * width + atX + fromX;
      const end = row * maskWidth + toX;
      for (let i = row * maskWidth + fromX; i < end; i++, at++) {
        const cover = mask[i]!;
        if (cover === 0) continue;
        const share = cover + (cover >> 7), left = 256 - share;
        const under = data[at]!;
        const redBlue = ((Math.imul(under & 0xff00ff, left) + Math.imul(redBlueInk, share)) >>> 8) & 0xff00ff;
        const green = ((Math.imul((under >>> 8) & 0xff, left) + Math.imul(greenInk, share)) >>> 8) & 0xff;
        data[at] = redBlue | (green << 8) | 0xff000000;
      }
    }
  }

  /** Fills rings with soft edges: signed areas are added up by row, then summed from left to right. */
  fillRings(rings: readonly Ring[], placing: Placing, colour: Pixel, clip: PixelBox, area: PixelBox, opacity = 256): void {
    const left = Math.max(clip.left, area.left), right = Math.min(clip.right, area.right);
    const top = Math.max(clip.top, area.top), bottom = Math.min(clip.bottom, area.bottom);
    const width = right - left, height = bottom - top;
    if (width <= 0 || height <= 0) return;
    const edges = this.#edges.sized(width, height);
    for (const ring of rings) {
      let fromX = 0, fromY = 0;
      eachCorner(ring, placing.scale, (cornerX, cornerY, first) => {
        const toX = cornerX + placing.x - left, toY = cornerY + placing.y - top;
        if (!first) edges.add(fromX, fromY, toX, toY);
        fromX = toX;
        fromY = toY;
      });
    }
    const { data } = this;
    const { slopes, stride, firstColumn, lastColumn } = edges;
    for (let row = 0; row < height; row++) {
      const first = firstColumn[row]!, last = Math.min(lastColumn[row]!, width - 1);
      let sum = 0;
      let at = (top + row) * this.width + left + first;
      const end = row * stride + last;
      for (let i = row * stride + first; i <= end; i++, at++) {
        sum += slopes[i]!;
        const share = sum < 0 ? -sum : sum;
        if (share > 0.996 && opacity === 256) {
          // Between two edges nothing changes: the run is filled at once.
          const start = at;
          while (i < end && slopes[i + 1] === 0) {
            i++;
            at++;
          }
          data.fill(colour, start, at + 1);
        }
        else if (share > 0.004) this.#lay(at, colour, ((share > 1 ? 1 : share) * opacity) | 0, data);
      }
    }
    edges.clear();
  }

  /** Follows rings with a line of so many pixels. */
  strokeRings(rings: readonly Ring[], placing: Placing, thickness: number, colour: Pixel, clip: PixelBox): void {
    for (const ring of rings) {
      let fromX = 0, fromY = 0;
      eachCorner(ring, placing.scale, (cornerX, cornerY, first) => {
        const toX = cornerX + placing.x, toY = cornerY + placing.y;
        if (!first) this.#line(fromX, fromY, toX, toY, thickness / 2, colour, clip);
        fromX = toX;
        fromY = toY;
      });
    }
  }

  #line(fromX: number, fromY: number, toX: number, toY: number, half: number, colour: Pixel, clip: PixelBox): void {
    const reach = half + 1;
    const top = Math.max(clip.top, Math.floor(Math.min(fromY, toY) - reach));
    const bottom = Math.min(clip.bottom, Math.ceil(Math.max(fromY, toY) + reach));
    if (top >= bottom || Math.max(fromX, toX) + reach < clip.left || Math.min(fromX, toX) - reach > clip.right) return;
    const lengthX = toX - fromX, lengthY = toY - fromY;
    const length2 = lengthX * lengthX + lengthY * lengthY;
    if (length2 < 1e-6) return;
    const { data, width } = this;
    // How far the line's band reaches sideways in one row: a long flat line must not be searched as a whole box.
    const steep = Math.abs(lengthY) < 1e-3 ? Infinity : Math.sqrt(length2) / Math.abs(lengthY) * reach;
    for (let row = top; row < bottom; row++) {
      const y = row + 0.5;
      const share = lengthY === 0 ? 0 : (y - fromY) / lengthY;
      const middle = fromX + lengthX * share;
      const low = Math.max(Math.min(fromX, toX) - reach, middle - steep);
      const high = Math.min(Math.max(fromX, toX) + reach, middle + steep);
      const first = Math.max(clip.left, Math.floor(low)), last = Math.min(clip.right, Math.ceil(high));
      for (let column = first; column < last; column++) {
        const x = column + 0.5;
        const along = Math.min(Math.max(((x - fromX) * lengthX + (y - fromY) * lengthY) / length2, 0), 1);
        const dx = x - fromX - lengthX * along, dy = y - fromY - lengthY * along;
        const cover = half + 0.5 - Math.sqrt(dx * dx + dy * dy);
        if (cover > 0) this.#lay(row * width + column, colour, cover >= 1 ? 256 : (cover * 256) | 0, data);
      }
    }
  }

  #lay(at: number, colour: Pixel, share: number, data: Uint32Array): void {
    const under = data[at]!;
    const left = 256 - share;
    const redBlue = ((Math.imul(under & 0xff00ff, left) + Math.imul(colour & 0xff00ff, share)) >>> 8) & 0xff00ff;
    const green = ((Math.imul((under >>> 8) & 0xff, left) + Math.imul((colour >>> 8) & 0xff, share)) >>> 8) & 0xff;
    data[at] = (redBlue | (green << 8) | 0xff000000) >>> 0;
  }
}

/** Corners nearer to each other than this are one. */
const CORNER_PX = 0.8;

/**
 * Visits a ring's corners in pixels, the first one again at the end, without those that make no difference at this size.
 * Which ones depends on the size alone, so that a picture that is moved fits what is drawn beside it.
 */
function eachCorner(ring: Ring, scale: number, visit: (x: number, y: number, first: boolean) => void): void {
  const startX = ring[0]! * scale, startY = ring[1]! * scale;
  visit(startX, startY, true);
  let lastX = startX, lastY = startY;
  for (let i = 2; i < ring.length; i += 2) {
    const x = ring[i]! * scale, y = ring[i + 1]! * scale;
    if (Math.abs(x - lastX) + Math.abs(y - lastY) < CORNER_PX) continue;
    visit(x, y, false);
    lastX = x;
    lastY = y;
  }
  visit(startX, startY, false);
}

/** Edges of a shape, as the change of coverage at each pixel; and between which columns of a row there are any. */
class Edges {
  slopes = new Float32Array(0);
  firstColumn = new Int32Array(0);
  lastColumn = new Int32Array(0);
  stride = 0;
  #width = 0;
  #height = 0;

  /** Everything is zero between two uses. */
  sized(width: number, height: number): this {
    this.#width = width;
    this.#height = height;
    this.stride = width + 2;
    if (this.slopes.length < this.stride * height) this.slopes = new Float32Array(this.stride * height);
    if (this.firstColumn.length < height) {
      this.firstColumn = new Int32Array(height);
      this.lastColumn = new Int32Array(height);
    }
    this.firstColumn.fill(width, 0, height);
    this.lastColumn.fill(-1, 0, height);
    return this;
  }

  clear(): void {
    const { slopes, stride, firstColumn, lastColumn } = this;
    for (let row = 0; row < this.#height; row++) {
      if (lastColumn[row]! >= 0) slopes.fill(0, row * stride + firstColumn[row]!, row * stride + lastColumn[row]! + 2);
    }
  }

  add(fromX: number, fromY: number, toX: number, toY: number): void {
    if (fromY === toY) return;
    // Beyond either side only the height counts: where an edge goes out, the two parts are two edges.
    for (const side of [0, this.#width]) {
      if ((fromX - side) * (toX - side) >= 0) continue;
      const crossing = fromY + ((toY - fromY) * (side - fromX)) / (toX - fromX);
      this.add(fromX, fromY, side, crossing);
      this.add(side, crossing, toX, toY);
      return;
    }
    const down = fromY < toY ? 1 : -1;
    const topX = down > 0 ? fromX : toX, topY = down > 0 ? fromY : toY;
    const bottomX = down > 0 ? toX : fromX, bottomY = down > 0 ? toY : fromY;
    if (bottomY <= 0 || topY >= this.#height) return;
    const { slopes, stride, firstColumn, lastColumn } = this;
    const width = this.#width;
    const lean = (bottomX - topX) / (bottomY - topY);
    const end = Math.min(this.#height, Math.ceil(bottomY));
    for (let row = Math.max(0, Math.floor(topY)); row < end; row++) {
      const startY = Math.max(row, topY), stopY = Math.min(row + 1, bottomY);
      const share = (stopY - startY) * down;
      const oneX = clampedTo(topX + (startY - topY) * lean, width), otherX = clampedTo(topX + (stopY - topY) * lean, width);
      const low = oneX < otherX ? oneX : otherX, high = oneX < otherX ? otherX : oneX;
      const base = row * stride;
      const first = Math.floor(low), last = Math.floor(high);
      if (first < firstColumn[row]!) firstColumn[row] = first;
      if (last > lastColumn[row]!) lastColumn[row] = last;
      if (first === last) {
        const middle = (low + high) / 2 - first;
        slopes[base + first]! += share * (1 - middle);
        slopes[base + first + 1]! += share * middle;
        continue;
      }
      // A flat edge crosses several pixels of the row: each gets the part of the area that lies to its right.
      const per = share / (high - low);
      for (let column = first; column <= last; column++) {
        const enter = Math.max(low, column), leave = Math.min(high, column + 1);
        const rise = (leave - enter) * per;
        const middle = (enter + leave) / 2 - column;
        slopes[base + column]! += rise * (1 - middle);
        slopes[base + column + 1]! += rise * middle;
      }
    }
  }
}

function clampedTo(x: number, width: number): number {
  return x < 0 ? 0 : x > width ? width : x;
}
