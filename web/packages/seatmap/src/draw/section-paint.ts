import type { House } from "../house.js";
import { mixed, pixelOf } from "./colour.js";
import type { Palette } from "./palette.js";
import { samePaint } from "./scene.js";
import type { SectionPaint } from "./scene.js";

/** How each section is painted: from far away by what is left of it, and by what the page says of it. */
export function sectionPaints(house: House, palette: Palette, hovered: number): SectionPaint[] {
  const base = pixelOf(palette.section), edge = pixelOf(palette.edge), ground = pixelOf(palette.ground);
  const available = pixelOf(palette.available), taken = pixelOf(palette.taken), highlight = pixelOf(palette.highlight);
  const { sectionStates } = house;
  return house.geometry.sections.map((section, n) => {
    const { available: left, total } = house.counts.of(n);
    const share = total > 0 ? left / total : 0;
    const closed = sectionStates.has(n, "unavailable");
    const selected = sectionStates.has(n, "selected"), highlighted = sectionStates.has(n, "highlighted");
    // In steps: a ground that changed with every single seat would have to be drawn anew each time.
    const step = Math.ceil(share * 8) / 8;
    let farFill = closed || left === 0 ? taken : mixed(base, available, 0.18 + 0.5 * step);
    let fill = base;
    if (highlighted) fill = mixed(base, highlight, 0.14);
    if (selected) {
      fill = mixed(base, highlight, 0.24);
      farFill = mixed(farFill, highlight, 0.45);
    }
    if (closed) fill = mixed(base, taken, 0.6);
    if (n === hovered) farFill = mixed(farFill, pixelOf(palette.ink), 0.08);
    if (sectionStates.has(n, "filtered")) {
      fill = mixed(fill, ground, 0.7);
      farFill = mixed(farFill, ground, 0.75);
    }
    const strong = highlighted || selected || n === hovered;
    return {
      fill, farFill,
      stroke: strong ? highlight : edge,
      strokePx: selected ? 2.5 : strong ? 2 : palette.outlined ? 1.5 : 1,
      name: section.name,
      detail: house.sectionWords(n),
      shortDetail: house.shortSectionWords(n),
    };
  });
}

export function samePaints(one: readonly SectionPaint[], other: readonly SectionPaint[]): boolean {
  return one.length === other.length && one.every((paint, n) => samePaint(paint, other[n]!));
}

/** New colours with the words of before. */
export function withOldWords(paints: readonly SectionPaint[], before: readonly SectionPaint[]): readonly SectionPaint[] {
  if (paints.length !== before.length) return paints;
  return paints.map((paint, n) => ({ ...paint, detail: before[n]!.detail, shortDetail: before[n]!.shortDetail }));
}
