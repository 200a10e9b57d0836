import { describe, expect, it } from "vitest";
import { contrast, cssOf, inkOn, mixed, pixelOf } from "../src/draw/colour.js";
import { detailAt } from "../src/draw/detail.js";
import { Glyphs } from "../src/draw/glyphs.js";
import { lookOf } from "../src/draw/looks.js";
import type { SeatTraits } from "../src/draw/looks.js";
import { Painter } from "../src/draw/painter.js";
import { paletteOf } from "../src/draw/palette.js";
import { Pixels } from "../src/draw/pixels.js";
import { sceneOf } from "../src/draw/scene.js";
import type { Frame } from "../src/draw/scene.js";
import { sectionPaints } from "../src/draw/section-paint.js";
import { stampOf } from "../src/draw/stamp.js";
import { PLAIN_LOOK, StyleTable } from "../src/draw/style.js";
import { Wardrobe } from "../src/draw/wardrobe.js";
import { rectangle } from "../src/geometry/polygon.js";
import { dice } from "../example/houses.js";
import { madeHouse } from "./made-house.js";

const WHITE = 0xffffffff, BLACK = 0xff000000;
const palette = paletteOf("light", false, () => "");
const glyphs = () => new Glyphs((text, height) => ({ width: 3, height, mask: new Uint8Array(3 * height).fill(text.charCodeAt(0)), advance: 4 }));

describe("colours", () => {
  it("go in and out, and anything else is a fallback", () => {
    expect(cssOf(pixelOf("#1a2B3c"))).toBe("#1a2b3c");
    expect(cssOf(pixelOf("#abc"))).toBe("#aabbcc");
    expect(pixelOf("red", BLACK)).toBe(BLACK);
    expect(cssOf(mixed(pixelOf("#000"), pixelOf("#fff"), 0.5))).toBe("#808080");
  });

  it("of every theme let text and marks be read", () => {
    for (const theme of ["light", "dark"] as const) {
      for (const more of [false, true]) {
        const shown = paletteOf(theme, more, () => "");
        const ratio = (one: string, other: string) => contrast(pixelOf(one), pixelOf(other));
        expect(ratio(shown.ink, shown.paper)).toBeGreaterThan(7);
        expect(ratio(shown.faintInk, shown.paper)).toBeGreaterThan(4.5);
        expect(ratio(shown.faintInk, shown.section)).toBeGreaterThan(4.5);
        expect(ratio(shown.available, shown.section)).toBeGreaterThan(3);
        expect(ratio(shown.highlight, shown.ground)).toBeGreaterThan(3);
        expect(ratio(shown.selected, shown.section)).toBeGreaterThan(7);
        for (const tier of shown.tiers) {
          expect(ratio(tier, shown.section)).toBeGreaterThan(3);
          expect(contrast(pixelOf(tier), inkOn(pixelOf(tier)))).toBeGreaterThan(4);
        }
      }
    }
  });

  it("can be set by the page, if they are colours", () => {
    const own = paletteOf("light", false, (name) => (name === "--holdfast-available" ? " #112233" : name === "--holdfast-taken-ink" ? "url(x)" : ""));
    expect(own.available).toBe("#112233");
    expect(own.takenInk).toBe(palette.takenInk);
  });
});

describe("looks", () => {
  const plain: SeatTraits = { state: 0, kept: false, holdType: null, category: "standard", tier: -1, selected: false, awaited: false, dimmed: false, closed: false };

  it("tell every state by form, not by colour alone", () => {
    const states: Partial<SeatTraits>[] = [
      {}, { state: 1 }, { state: 2 }, { state: 3 }, { kept: true }, { selected: true }, { awaited: true },
      { category: "wheelchair" }, { category: "companion" }, { category: "restricted_view" },
    ];
    const forms = states.map((traits) => {
      const { shape, mark, fill, stroke, size } = lookOf({ ...plain, ...traits }, palette);
      return `${shape}/${mark}/${fill === palette.paper ? "hollow" : "full"}/${stroke ? "edged" : "plain"}/${size}`;
    });
    expect(new Set(forms).size).toBe(states.length);
  });

  it("show a hold type's colour and icon, whatever those are", () => {
    const held = (displayIcon: string | null) => lookOf({ ...plain, state: 1, holdType: { name: "X", displayName: "X", displayColor: "#ffee00", displayIcon } }, palette);
    expect(held(null)).toMatchObject({ stroke: "#ffee00", mark: "clock", icon: null });
    expect(held("star")).toMatchObject({ mark: "star", icon: null });
    expect(held("★★★")).toMatchObject({ mark: "none", icon: "★★" });
    expect(contrast(pixelOf(held(null).ink), pixelOf(palette.paper))).toBeGreaterThan(3);
  });

  it("are one number for equal looks", () => {
    const table = new StyleTable();
    expect(table.intern({ ...PLAIN_LOOK })).toBe(table.intern({ ...PLAIN_LOOK }));
    expect(table.intern({ ...PLAIN_LOOK, size: 2 })).toBe(1);
    const wild = { ...PLAIN_LOOK, shape: "heart", mark: "constructor", size: NaN, opacity: -3 } as unknown as typeof PLAIN_LOOK;
    expect(table.looks[table.intern(wild)]).toMatchObject({ shape: "circle", mark: "none" });
    expect(table.looks[1]!.size).toBeLessThan(1.3);
  });

  it("ask the page's callback once a seat and change, never for a frame", () => {
    const { house } = madeHouse();
    let calls = 0;
    const wardrobe = new Wardrobe(house, palette, false, ({ seat }) => {
      calls++;
      return seat.ordinal === 3 ? { fill: "#ff0000" } : undefined;
    });
    while (wardrobe.isUnfinished) wardrobe.continueAsking([3]);
    expect(calls).toBe(house.geometry.seatCount);
    expect(wardrobe.looks[wardrobe.styles[3]!]!.fill).toBe("#ff0000");
    expect(wardrobe.change([3])).toEqual([]);
    expect(calls).toBe(house.geometry.seatCount + 1);
  });

  it("change only where something changed", () => {
    const { house } = madeHouse();
    const wardrobe = new Wardrobe(house, palette, true, null);
    const before = wardrobe.styles[0];
    house.states.apply({ ordinals: [0], values: [2], versions: [1] });
    expect(wardrobe.change([0, 1])).toEqual([0]);
    expect(wardrobe.styles[0]).not.toBe(before);
    expect(new Set(wardrobe.styles).size).toBeGreaterThan(3);
  });
});

describe("stamps", () => {
  it("cover about the seat's area, wherever in the pixel it lies", () => {
    for (const shift of [0, 0.3, 0.9]) {
      for (const radius of [1.2, 4, 15]) {
        const { pixels } = stampOf({ ...PLAIN_LOOK }, radius, shift, shift);
        const area = pixels.reduce((sum, pixel) => sum + (pixel >>> 24) / 255, 0);
        expect(area / (Math.PI * radius ** 2)).toBeGreaterThan(0.93);
        expect(area / (Math.PI * radius ** 2)).toBeLessThan(1.1);
      }
    }
  });

  it("are premultiplied and lie around their middle", () => {
    for (const shape of ["circle", "square", "diamond"] as const) {
      const { pixels, width, height, left, top } = stampOf({ ...PLAIN_LOOK, shape, stroke: "#ff0000", mark: "check", opacity: 0.5 }, 9.3, 0.99, 0.01);
      // Trimmed to what is there: around the middle, and as wide as the shape and its soft edge.
      for (const side of [width, height]) {
        expect(side).toBeGreaterThanOrEqual(17);
        expect(side).toBeLessThanOrEqual(23);
      }
      expect(Math.abs(left + width / 2 - 0.99)).toBeLessThan(1.01);
      expect(Math.abs(top + height / 2 - 0.01)).toBeLessThan(1.01);
      for (const pixel of pixels) expect(Math.max(pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255)).toBeLessThanOrEqual((pixel >>> 24) + 1);
    }
  });
});

describe("pixels", () => {
  it("fill a ring with its area, and nothing outside the clip", () => {
    const pixels = new Pixels(100, 80);
    pixels.fill(pixels.whole, WHITE);
    const ring = rectangle({ left: 10.25, top: 5.5, right: 60.75, bottom: 40.5 }, 0);
    const place = { scale: 1, x: 0, y: 0 };
    pixels.fillRings([ring], place, BLACK, pixels.whole, pixels.whole);
    const dark = pixels.data.reduce((sum, pixel) => sum + (255 - (pixel & 255)) / 255, 0);
    expect(dark).toBeGreaterThan(50.5 * 35 * 0.995);
    expect(dark).toBeLessThan(50.5 * 35 * 1.005);
    pixels.fill(pixels.whole, WHITE);
    pixels.fillRings([ring], place, BLACK, { left: 30, top: 10, right: 50, bottom: 20 }, pixels.whole);
    pixels.data.forEach((pixel, at) => {
      const inside = at % 100 >= 30 && at % 100 < 50 && at >= 1000 && at < 2000;
      expect(pixel).toBe(inside ? BLACK : WHITE);
    });
  });

  it("blend half over white to grey", () => {
    const pixels = new Pixels(1, 1);
    pixels.fill(pixels.whole, WHITE);
    pixels.blend({ width: 1, height: 1, left: 0, top: 0, pixels: Uint32Array.of(0x80000000) }, 0, 0, pixels.whole);
    expect(Math.abs((pixels.data[0]! & 255) - 127)).toBeLessThanOrEqual(1);
  });
});

describe("the painter", () => {
  const { house } = madeHouse(true);
  const scene = sceneOf(house.plan);
  const painterOf = (wardrobe: Wardrobe) => {
    const painter = new Painter(glyphs());
    painter.setScene(scene);
    painter.dress({ looks: [...wardrobe.looks], styles: wardrobe.styles.slice() });
    painter.paintSections(sectionPaints(house, palette, -1), pixelOf(palette.ground));
    return painter;
  };
  const frameAt = (scale: number, x: number, y: number): Frame => ({ width: 320, height: 240, ratio: 1, scale, x, y });

  it("draws the same picture after panning as at once, at every size", () => {
    const wardrobe = new Wardrobe(house, palette, false, null);
    const random = dice(21);
    for (const scale of [1, 4.3, 11, 37]) {
      const panning = painterOf(wardrobe);
      let [x, y] = [Math.round(-50 * scale + 160), Math.round(-25 * scale + 120)];
      panning.draw(frameAt(scale, x, y));
      for (let n = 0; n < 25; n++) {
        x += Math.round((random() - 0.5) * 90);
        y += Math.round((random() - 0.5) * 90);
        panning.draw(frameAt(scale, x, y));
      }
      // At last by single pixels: nothing after them covers what they leave out.
      for (const [dx, dy] of [[1, 0], [0, 1], [1, 0], [-1, -1], [-1, 0], [0, -1]] as const) {
        x += dx;
        y += dy;
        panning.draw(frameAt(scale, x, y));
        const anew = painterOf(wardrobe);
        anew.draw(frameAt(scale, x, y));
        expect(differing(panning.pixels, anew.pixels)).toBe(0);
      }
    }
  });

  it("draws the same picture after seats changed as at once", () => {
    const { house: changing } = madeHouse(true);
    for (const scale of [4.3, 11, 37]) {
      const frame = frameAt(scale, Math.round(-50 * scale + 160), Math.round(-25 * scale + 120));
      const wardrobe = new Wardrobe(changing, palette, false, null);
      wardrobe.newLooks();
      const painter = painterOf(wardrobe);
      painter.draw(frame);
      const random = dice(scale);
      for (let round = 0; round < 4; round++) {
        const ordinals = Array.from({ length: 60 }, () => Math.floor(random() * changing.geometry.seatCount));
        changing.states.apply({ ordinals, values: ordinals.map(() => Math.floor(random() * 4)), versions: ordinals.map(() => 1) });
        changing.selection.put(ordinals.slice(0, 9), random() < 0.7);
        const changed = wardrobe.change(ordinals);
        painter.redress(Uint32Array.from(changed), Uint16Array.from(changed, (n) => wardrobe.styles[n]!), wardrobe.newLooks());
        painter.draw(frame);
      }
      const anew = painterOf(wardrobe);
      anew.draw(frame);
      expect(differing(painter.pixels, anew.pixels)).toBe(0);
    }
  });

  it("draws the same picture after sections were painted otherwise as at once", () => {
    const { house: changing } = madeHouse(true);
    const wardrobe = new Wardrobe(changing, palette, false, null);
    for (const scale of [1.2, 4.3]) {
      const frame = frameAt(scale, Math.round(-50 * scale + 160), Math.round(-25 * scale + 120));
      const painter = painterOf(wardrobe);
      painter.draw(frame);
      changing.sectionStates.set(1, "highlighted", scale < 2);
      changing.sectionStates.set(3, "selected", true);
      painter.paintSections(sectionPaints(changing, palette, 0), pixelOf(palette.ground));
      painter.draw(frame);
      const anew = painterOf(wardrobe);
      anew.paintSections(sectionPaints(changing, palette, 0), pixelOf(palette.ground));
      anew.draw(frame);
      expect(differing(painter.pixels, anew.pixels)).toBe(0);
    }
  });

  it("draws nothing where nothing changed", () => {
    const painter = painterOf(new Wardrobe(house, palette, false, null));
    const frame = frameAt(5, 0, 0);
    expect(painter.draw(frame)).toBe(true);
    expect(painter.draw(frame)).toBe(false);
    painter.paintSections(sectionPaints(house, palette, -1), pixelOf(palette.ground));
    expect(painter.draw(frame)).toBe(false);
  });

  it("fills sections when seats are too small to be seen", () => {
    const painter = painterOf(new Wardrobe(house, palette, false, null));
    painter.draw(frameAt(1.2, 100, 100));
    const colours = new Set(painter.pixels.data);
    expect(colours.has(pixelOf(palette.available))).toBe(false);
    expect(colours.has(sectionPaints(house, palette, -1)[0]!.farFill)).toBe(true);
  });

  it("knows far from near", () => {
    expect([detailAt(1, 1), detailAt(1, 2), detailAt(6, 1), detailAt(20, 1)]).toEqual(["far", "middle", "middle", "near"]);
  });
});

/** Sums of fractions round differently when they begin elsewhere: a step or two in a channel is no difference. */
function differing(one: Pixels, other: Pixels): number {
  let count = 0;
  for (let i = 0; i < one.data.length; i++) {
    const [a, b] = [one.data[i]!, other.data[i]!];
    if ([0, 8, 16].some((shift) => Math.abs(((a >> shift) & 255) - ((b >> shift) & 255)) > 2)) count++;
  }
  return count;
}
