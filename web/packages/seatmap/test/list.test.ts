import { describe, expect, it } from "vitest";
import { heightOf, linesBetween, linesOf } from "../src/list/list-lines.js";
import { madeHouse } from "./made-house.js";

const MEASURES = { width: 600, nameWidth: 100, seatWidth: 50, seatHeight: 50, sectionHeight: 60, rowMargin: 10 };

describe("the list", () => {
  const { house } = madeHouse();
  const all = new Set(house.geometry.sections.keys());

  it("has every seat once, row by row", () => {
    const lines = linesOf(house, all, false, MEASURES);
    const seats = lines.flatMap((line) => (line.kind === "row" ? line.seats : []));
    expect(seats).toEqual([...Array(house.geometry.seatCount).keys()]);
    const sections = lines.filter(({ kind }) => kind === "section");
    expect(sections).toHaveLength(house.geometry.sections.length);
  });

  it("leaves no gap and no overlap between its lines", () => {
    const lines = linesOf(house, all, false, MEASURES);
    lines.reduce((top, line) => {
      expect(line.top).toBe(top);
      if (line.kind === "row") expect(line.height).toBe(Math.ceil(line.seats.length / 10) * 50 + 10);
      return line.top + line.height;
    }, 0);
    expect(heightOf(lines)).toBe(lines.at(-1)!.top + lines.at(-1)!.height);
    expect(heightOf([])).toBe(0);
  });

  it("finds the lines of a stretch", () => {
    const lines = linesOf(house, all, false, MEASURES);
    for (const from of [0, 333, 1000, heightOf(lines) - 10]) {
      const { first, last } = linesBetween(lines, from, from + 300);
      lines.forEach((line, n) => {
        const touches = line.top + line.height > from && line.top < from + 300;
        expect(n >= first && n <= last).toBe(touches);
      });
    }
  });

  it("leaves out what a filter leaves out", () => {
    house.filtered.set({ accessible: true }, house.prices);
    const lines = linesOf(house, all, true, MEASURES);
    expect(lines.map(({ kind }) => kind)).toEqual(["section", "row", "section"]);
    expect(lines[1]).toMatchObject({ seats: expect.objectContaining({ length: 8 }) });
    house.filtered.set({}, house.prices);
  });
});
