/** Colours as numbers in the order a canvas keeps them: 0xAABBGGRR. */
export type Pixel = number;

const HEX = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i;

/** #RGB or #RRGGBB; anything else is `fallback`. */
export function pixelOf(colour: string, fallback: Pixel = 0xff808080): Pixel {
  const found = HEX.exec(colour.trim())?.[1];
  if (!found) return fallback >>> 0;
  const full = found.length === 3 ? found.replace(/./g, "$&$&") : found;
  const value = Number.parseInt(full, 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

export function cssOf(pixel: Pixel): string {
  const value = ((pixel & 0xff) << 16) | (pixel & 0xff00) | ((pixel >> 16) & 0xff);
  return `#${value.toString(16).padStart(6, "0")}`;
}

export function isColour(text: string): boolean {
  return HEX.test(text.trim());
}

/** `share` of the second in the first; both opaque. */
export function mixed(one: Pixel, other: Pixel, share: number): Pixel {
  const mix = (shift: number) => {
    const a = (one >> shift) & 0xff, b = (other >> shift) & 0xff;
    return Math.round(a + (b - a) * share) << shift;
  };
  return (0xff000000 | mix(16) | mix(8) | mix(0)) >>> 0;
}

/** Relative luminance of WCAG. */
export function luminance(pixel: Pixel): number {
  const part = (shift: number) => {
    const share = ((pixel >> shift) & 0xff) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(16);
}

export function contrast(one: Pixel, other: Pixel): number {
  const a = luminance(one), b = luminance(other);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** Black or white, whichever can be read better on it. */
export function inkOn(pixel: Pixel): Pixel {
  const white = 0xffffffff, black = 0xff1a1613;
  return contrast(pixel, white) >= contrast(pixel, black) ? white : black;
}
