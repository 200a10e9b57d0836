import { describe, expect, it } from "vitest";
import { boxOf } from "../src/geometry/geometry.js";
import { neighbourOf } from "../src/geometry/neighbour.js";
import { outlineOf } from "../src/geometry/outline.js";
import { planOf, seatAt, sectionAt } from "../src/geometry/plan.js";
import { contains, ringBox, simplified } from "../src/geometry/polygon.js";
import { SeatGrid } from "../src/geometry/seat-grid.js";
import { between, clamped, fitted, panned, toPlan, toScreen, zoomedAbout } from "../src/geometry/view.js";
import { seatsInside } from "../src/input/lasso.js";
import { wheelFactor } from "../src/input/wheel.js";
import { commandOf } from "../src/input/keys.js";
import { dice, stadium, theatre } from "../example/houses.js";

const SIZE = { width: 800, height: 600 };

describe("the view", () => {
  const view = { scale: 3, x: 40, y: -20 };

  it("leads to the plan and back", () => {
    const point = toPlan(view, { x: 123, y: 45 });
    expect(toScreen(view, point)).toEqual({ x: 123, y: 45 });
  });

  it("keeps the point under the fingers where it is when zooming", () => {
    const at = { x: 250, y: 130 };
    const before = toPlan(view, at), after = toPlan(zoomedAbout(view, at, 1.7), at);
    expect(after.x).toBeCloseTo(before.x, 9);
    expect(after.y).toBeCloseTo(before.y, 9);
  });

  it("shows a whole box, in the middle", () => {
    const box = { left: 100, top: 50, right: 300, bottom: 90 };
    const fit = fitted(box, SIZE, 20);
    expect(toScreen(fit, { x: 200, y: 70 })).toEqual({ x: 400, y: 300 });
    expect(toScreen(fit, { x: 100, y: 50 }).x).toBeCloseTo(20);
  });

  it("never loses the plan, nor goes farther or nearer than it may", () => {
    const plan = { left: 0, top: 0, right: 1000, bottom: 800 };
    const limits = { plan, size: SIZE, leastScale: 0.7, mostScale: 20 };
    const random = dice(5);
    let moved = fitted(plan, SIZE, 10);
    for (let n = 0; n < 300; n++) {
      const wild = random() < 0.5
        ? panned(moved, (random() - 0.5) * 5000, (random() - 0.5) * 5000)
        : zoomedAbout(moved, { x: random() * 800, y: random() * 600 }, 0.2 + random() * 4);
      moved = clamped(wild, limits);
      expect(moved.scale).toBeGreaterThanOrEqual(0.7);
      expect(moved.scale).toBeLessThanOrEqual(20);
      const from = toScreen(moved, { x: 0, y: 0 }), to = toScreen(moved, { x: 1000, y: 800 });
      expect(Math.min(to.x, 800) - Math.max(from.x, 0)).toBeGreaterThan(300);
      expect(Math.min(to.y, 600) - Math.max(from.y, 0)).toBeGreaterThan(200);
      expect(clamped(moved, limits)).toEqual(moved);
    }
  });

  it("glides from one view to another and arrives", () => {
    const to = { scale: 12, x: -900, y: -400 };
    expect(between(view, to, SIZE, 0).x).toBeCloseTo(view.x, 6);
    expect(between(view, to, SIZE, 1).y).toBeCloseTo(to.y, 6);
    expect(between(view, to, SIZE, 0.5).scale).toBeCloseTo(6);
  });

  it("never zooms by much at one turn of the wheel", () => {
    expect(wheelFactor({ deltaY: -1e6, deltaMode: 0, ctrlKey: false })).toBe(1.5);
    expect(wheelFactor({ deltaY: 3, deltaMode: 1, ctrlKey: false })).toBeLessThan(1);
    expect(wheelFactor({ deltaY: 0, deltaMode: 0, ctrlKey: true })).toBe(1);
  });

  it("leaves keys alone that belong to the browser", () => {
    const key = (name: string, more = {}) => commandOf({ key: name, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...more });
    expect(key("+", { ctrlKey: true })).toBeNull();
    expect(key("Tab")).toBeNull();
    expect(key("ArrowUp")).toEqual({ do: "move", direction: "up" });
    expect(key("ArrowUp", { shiftKey: true })).toEqual({ do: "pan", direction: "up" });
  });
});

describe("the grid", () => {
  const random = dice(9);
  const x = Float32Array.from({ length: 3000 }, () => random() * 500 - 100), y = Float32Array.from({ length: 3000 }, () => random() * 90);
  const grid = new SeatGrid(x, y, boxOf(x, y)!, 7);

  it("finds exactly the seats of a rectangle among those it visits", () => {
    for (let n = 0; n < 50; n++) {
      const left = random() * 500 - 120, top = random() * 100 - 10;
      const box = { left, top, right: left + random() * 80, bottom: top + random() * 30 };
      const inside = (i: number) => x[i]! >= box.left && x[i]! <= box.right && y[i]! >= box.top && y[i]! <= box.bottom;
      const seen: number[] = [];
      grid.visit(box, (i) => seen.push(i));
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.filter(inside).sort((a, b) => a - b)).toEqual([...x.keys()].filter(inside));
    }
  });

  it("finds the nearest seat, and none beyond the reach", () => {
    for (let n = 0; n < 100; n++) {
      const atX = random() * 500 - 100, atY = random() * 90;
      const distances = [...x.keys()].map((i) => Math.hypot(x[i]! - atX, y[i]! - atY));
      const least = Math.min(...distances);
      const found = grid.nearest(x, y, atX, atY, 12);
      if (least > 12) expect(found).toBe(-1);
      else expect(distances[found]).toBeCloseTo(least, 4);
    }
    expect(grid.nearest(x, y, 1e6, 1e6, 5)).toBe(-1);
  });
});

describe("outlines", () => {
  it("go around all seats of a section and none of another", () => {
    const { geometry } = stadium(30_000);
    const plan = planOf(geometry);
    const wrong: number[] = [];
    for (let i = 0; i < geometry.seatCount; i += 7) {
      const at = { x: plan.x[i]!, y: plan.y[i]! };
      const around = plan.areas.flatMap((area, n) => (contains(area.rings, at) ? [n] : []));
      if (around.length !== 1 || around[0] !== geometry.section[i]) wrong.push(i);
    }
    expect(wrong).toEqual([]);
  });

  it("leave a courtyard open and close an aisle", () => {
    const x: number[] = [], y: number[] = [];
    for (let column = 0; column < 40; column++) {
      for (let row = 0; row < 30; row++) {
        const courtyard = column > 10 && column < 28 && row > 9 && row < 20;
        if (!courtyard && column !== 5) {
          x.push(column);
          y.push(row);
        }
      }
    }
    const [xs, ys] = [Float32Array.from(x), Float32Array.from(y)];
    const rings = outlineOf(xs, ys, 0, x.length, boxOf(xs, ys)!, 1);
    expect(rings).toHaveLength(2);
    expect(contains(rings, { x: 19, y: 15 })).toBe(false);
    expect(contains(rings, { x: 5, y: 15 })).toBe(true);
    expect(ringBox(rings)!.left).toBeGreaterThan(-1.3);
  });

  it("keep their form when they are simplified", () => {
    const circle = Float32Array.from({ length: 720 }, (_, i) => (i % 2 ? Math.sin : Math.cos)((Math.floor(i / 2) / 180) * Math.PI) * 10);
    const few = simplified(circle, 0.1);
    expect(few.length).toBeLessThan(80);
    for (let i = 0; i < few.length; i += 2) expect(Math.hypot(few[i]!, few[i + 1]!)).toBeCloseTo(10, 3);
  });
});

describe("the plan", () => {
  const { geometry } = theatre();
  const plan = planOf(geometry);

  it("has the seat that is pointed at, and its section", () => {
    const view = fitted(plan.box, SIZE, 10);
    for (let i = 0; i < geometry.seatCount; i += 11) {
      const at = toScreen(view, { x: plan.x[i]!, y: plan.y[i]! });
      expect(seatAt(plan, view, at, 0)).toBe(i);
      expect(sectionAt(plan, view, at)).toBe(geometry.section[i]);
    }
  });

  it("puts general admission beside the seats, where it can be tapped", () => {
    const standing = geometry.sections.findIndex(({ seat_count }) => seat_count === 0);
    const view = fitted(plan.box, SIZE, 10);
    expect(sectionAt(plan, view, toScreen(view, plan.areas[standing]!.label))).toBe(standing);
  });

  it("gives seats without coordinates a place of their own", () => {
    const x = geometry.x.slice(), y = geometry.y.slice();
    x.fill(NaN, 0, 30);
    y.fill(NaN, 0, 30);
    const mended = planOf({ ...geometry, x, y });
    const places = new Set(Array.from({ length: 30 }, (_, i) => `${mended.x[i]},${mended.y[i]}`));
    expect(places.size).toBe(30);
    expect(Math.min(...mended.y.subarray(0, 30))).toBeGreaterThan(boxOf(geometry.x, geometry.y, 30)!.bottom);
    const nowhere = planOf({ ...geometry, x: x.map(() => NaN), y: y.map(() => NaN) });
    expect(nowhere.x.some(Number.isNaN)).toBe(false);
    expect(nowhere.spacing).toBeGreaterThan(0);
  });

  it("stands without a single seat", () => {
    const empty = planOf({
      ...geometry, seatCount: 0, sections: geometry.sections.slice(4).map((section) => ({ ...section, first_ordinal: 0 })),
      x: new Float32Array(0), y: new Float32Array(0), row: new Int32Array(0), number: new Int32Array(0), category: new Uint8Array(0), section: new Uint16Array(0),
      companions: [],
    });
    expect(empty.areas).toHaveLength(1);
    expect(seatAt(empty, { scale: 1, x: 0, y: 0 }, { x: 1, y: 1 }, 5)).toBe(-1);
  });

  it("is walked by arrows along rows and from row to row, and back", () => {
    let seat = geometry.sections[0]!.first_ordinal + 200;
    for (let n = 0; n < 4; n++) {
      const right = neighbourOf(plan, seat, "right");
      expect(plan.x[right]!).toBeGreaterThan(plan.x[seat]!);
      expect(neighbourOf(plan, right, "left")).toBe(seat);
      seat = right;
    }
    const down = neighbourOf(plan, seat, "down");
    expect(plan.y[down]!).toBeGreaterThan(plan.y[seat]!);
    expect(geometry.row[down]).not.toBe(geometry.row[seat]);
  });

  it("reaches every seat by arrows", () => {
    const reached = new Set([0]);
    const queue = [0];
    while (queue.length) {
      const seat = queue.pop()!;
      for (const direction of ["left", "right", "up", "down"] as const) {
        const next = neighbourOf(plan, seat, direction);
        if (next >= 0 && !reached.has(next)) {
          reached.add(next);
          queue.push(next);
        }
      }
    }
    expect(reached.size).toBe(geometry.seatCount);
  });

  it("has the seats inside a drawn line", () => {
    const view = { scale: 1, x: 0, y: 0 };
    const box = boxOf(plan.x, plan.y)!;
    const all = [{ x: box.left - 1, y: box.top - 1 }, { x: box.right + 1, y: box.top - 1 }, { x: box.right + 1, y: box.bottom + 1 }, { x: box.left - 1, y: box.bottom + 1 }];
    expect(seatsInside(plan, view, all)).toHaveLength(geometry.seatCount);
    expect(seatsInside(plan, view, all.slice(0, 2))).toEqual([]);
    const half = all.map(({ x, y }) => ({ x: Math.min(x, 50), y }));
    expect(seatsInside(plan, view, half).every((i) => plan.x[i]! <= 50)).toBe(true);
  });
});
