import { describe, expect, it } from "vitest";
import { decodeGeometry } from "../src/geometry/decode-geometry.js";
import { SeatIdentities } from "../src/geometry/seat-identity.js";
import { HoldTypes } from "../src/state/hold-types.js";
import { Prices } from "../src/state/prices.js";
import { SeatStates } from "../src/state/seat-states.js";
import { decodeSnapshot } from "../src/state/snapshot.js";
import { moneyWriter } from "../src/words.js";
import { madeHouse } from "./made-house.js";
import { readFileSync } from "node:fs";

const free = (seats: number) => decodeSnapshot({ sequence: "1.1.1", seat_count: seats, states: "a".repeat(seats) });

describe("states of seats", () => {
  it("take a newer version and an equal one, and leave an older", () => {
    const states = new SeatStates(4);
    states.replace(free(4));
    expect(states.apply({ ordinals: [2], values: [1], versions: [5] }).seats).toEqual([2]);
    expect(states.apply({ ordinals: [2], values: [0], versions: [4] }).seats).toEqual([]);
    expect(states.state[2]).toBe(1);
    expect(states.apply({ ordinals: [2], values: [0x80], versions: [5] }).seats).toEqual([2]);
    expect([states.state[2], states.kept[2]]).toEqual([0, 1]);
  });

  it("end the same in whatever order messages come", () => {
    const messages = [1, 2, 3, 4, 5].map((version) => ({ ordinals: [0], values: [version % 4], versions: [version] }));
    const orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 1, 3]];
    const ends = orders.map((order) => {
      const states = new SeatStates(1);
      states.replace(free(1));
      for (const n of order) states.apply(messages[n]!);
      return states.state[0];
    });
    expect(ends).toEqual([1, 1, 1]);
  });

  it("translate each message's own indices of hold types", () => {
    const states = new SeatStates(3);
    states.replace(free(3));
    states.apply({ ordinals: [0], values: [1 | (1 << 2)], versions: [1], hold_types: [null, "CART"] });
    states.apply({ ordinals: [1, 2], values: [1 | (1 << 2), 1 | (2 << 2)], versions: [1, 1], hold_types: [null, "VIP", "CART"] });
    expect([0, 1, 2].map((n) => states.holdTypeName(n))).toEqual(["CART", "VIP", "CART"]);
  });

  it("name only seats that look different", () => {
    const states = new SeatStates(3);
    states.replace(free(3));
    expect(states.replace(free(3))).toEqual([]);
    expect(states.apply({ ordinals: [0, 1], values: [0, 2], versions: [9, 9] }).seats).toEqual([1]);
  });

  it("begin anew with a snapshot: what follows it counts, whatever its version", () => {
    const states = new SeatStates(1);
    states.replace(free(1));
    states.apply({ ordinals: [0], values: [2], versions: [9] });
    states.replace(free(1));
    expect(states.apply({ ordinals: [0], values: [1], versions: [3] }).seats).toEqual([0]);
  });

  it("refuse a snapshot of another plan, and pass over ordinals that are not theirs", () => {
    const states = new SeatStates(2);
    expect(() => states.replace(free(3))).toThrow(RangeError);
    expect(states.apply({ ordinals: [7], values: [1], versions: [1] }).seats).toEqual([]);
  });

  it("count places of general admission, by version too", () => {
    const { house } = madeHouse();
    house.states.apply({ zones: [{ zone_no: 4, capacity: 120, held: 10, sold: 20, blocked: 5, version: 3 }] });
    house.states.apply({ zones: [{ zone_no: 4, capacity: 120, held: 0, sold: 0, blocked: 0, version: 2 }] });
    house.counts.recount([4]);
    expect(house.counts.of(4).available).toBe(85);
  });
});

describe("selecting", () => {
  it("asks, waits, and heeds a veto in every form", async () => {
    const { house, asked } = madeHouse();
    expect(await house.selection.select(1)).toBe("selected");
    asked.answer = () => false;
    expect(await house.selection.select(2)).toBe("vetoed");
    asked.answer = () => Promise.resolve(false);
    expect(await house.selection.select(2)).toBe("vetoed");
    asked.answer = () => Promise.reject(new Error("no network"));
    expect(await house.selection.select(2)).toBe("vetoed");
    asked.answer = () => Promise.resolve();
    expect(await house.selection.select(2)).toBe("selected");
    expect(house.selection.seats).toEqual([1, 2]);
  });

  it("does not ask twice for a seat whose answer is awaited, and counts it", async () => {
    const { house, asked } = madeHouse();
    asked.most = 1;
    let say!: (yes: boolean) => void;
    let times = 0;
    asked.answer = () => {
      times++;
      return new Promise<boolean>((resolve) => (say = resolve));
    };
    const first = house.selection.select(5);
    expect(await house.selection.select(5)).toBe("already");
    expect(await house.selection.select(6)).toBe("full");
    expect(house.stateWords(5)).toBe("being selected");
    say(true);
    expect(await first).toBe("selected");
    expect(times).toBe(1);
  });

  it("lets a buyer choose free seats only, an organiser any, a visitor none", async () => {
    const { house, asked } = madeHouse();
    house.states.apply({ ordinals: [3, 4], values: [2, 0x80], versions: [1, 1] });
    expect(await house.selection.select(3)).toBe("refused");
    expect(await house.selection.select(4)).toBe("refused");
    asked.kind = "any";
    expect(await house.selection.select(3)).toBe("selected");
    asked.kind = "none";
    expect(await house.selection.select(8)).toBe("refused");
  });

  it("can be refused when letting go, too", async () => {
    const { house, asked } = madeHouse();
    await house.selection.select(1);
    asked.answerToDrop = () => Promise.resolve(false);
    expect(await house.selection.deselect(1)).toBe(false);
    asked.answerToDrop = () => true;
    expect(await house.selection.deselect(1)).toBe(true);
    expect(await house.selection.deselect(1)).toBe(false);
  });

  it("follows the page's own states and sections that are closed", async () => {
    const { house } = madeHouse();
    house.ownStates.define({ mine: { label: "yours", selectable: false }, spare: { label: "spare", selectable: true } });
    house.ownStates.set([1], "mine");
    house.states.apply({ ordinals: [2], values: [1], versions: [1] });
    house.ownStates.set([2], "spare");
    expect([1, 2, 3].map((n) => house.isSelectable(n))).toEqual([false, true, true]);
    house.sectionStates.set(0, "unavailable", true);
    expect(house.isSelectable(3)).toBe(false);
    expect(house.ownStates.clear("mine")).toEqual([1]);
    expect(house.ownStates.clear([9])).toEqual([]);
    expect(house.ownStates.clear()).toEqual([2]);
  });

  it("sums up a cart, unless a seat has no price", async () => {
    const { house } = madeHouse();
    house.selection.put([0, house.geometry.sections[2]!.first_ordinal], true);
    expect(house.cart().totalMinor).toBe(8000 + 9500);
    house.prices = Prices.none(house.geometry);
    expect(house.cart().totalMinor).toBeNull();
  });
});

describe("prices", () => {
  it("count the narrowest: seat, then category, then zone", () => {
    const json = JSON.parse(readFileSync(new URL("./fixtures/geometry.json", import.meta.url)).toString());
    const geometry = decodeGeometry(json);
    const prices = Prices.of({
      currency: "EUR",
      zones: [{ zone_id: "stalls", amount_minor: 8000, categories: [{ category: "wheelchair", amount_minor: 4000 }, { category: "standard", amount_minor: null }] }],
      pricing_zones: [{ amount_minor: 100_00, seat_ids: ["the Queen's", "nobody"] }],
    }, geometry, new SeatIdentities(geometry));
    expect([0, 1, 5, 20, 70].map((n) => prices.ofSeat(n))).toEqual([4000, 8000, 8000, 10000, null]);
    expect(prices.amounts).toEqual([4000, 8000, 10000]);
    expect([0, 5, 70].map((n) => prices.tier(n))).toEqual([0, 1, -1]);
  });

  it("are written with the digits of their currency", () => {
    const money = moneyWriter("en");
    expect([money(8000, "EUR"), money(8000, "JPY"), money(8000, "KWD"), money(8050, null), money(100, "not a currency")]).toEqual(
      ["80.00 EUR", "8,000 JPY", "8.000 KWD", "80.50", "1.00 not a currency"]);
  });
});

describe("filters", () => {
  it("let in what fits: price, accessible places, a full view, what is free", () => {
    const { house } = madeHouse();
    const count = () => house.filtered.fits.reduce((sum, fits) => sum + fits, 0);
    const { seatCount } = house.geometry;
    expect(count()).toBe(seatCount);
    house.filtered.set({ accessible: true }, house.prices);
    expect(count()).toBe(8);
    house.filtered.set({ priceTo: 3500 }, house.prices);
    const cheap = count();
    expect(cheap).toBeGreaterThan(0);
    expect(cheap).toBeLessThan(seatCount / 4);
    house.filtered.set({ priceTo: 3500, withoutRestrictedView: true }, house.prices);
    expect(count()).toBe(0);
    expect(house.filtered.set({}, house.prices)).toHaveLength(seatCount);
    house.filtered.set({ availableOnly: true }, house.prices);
    house.states.apply({ ordinals: [7], values: [2], versions: [1] });
    house.filtered.refresh([7], house.prices);
    expect(count()).toBe(seatCount - 1);
  });
});

describe("names", () => {
  it("say section, row, seat, kind, price and state", () => {
    const { house } = madeHouse();
    const wheelchair = house.geometry.category.indexOf(house.geometry.categories.indexOf("wheelchair"));
    expect(house.label(wheelchair)).toBe("Stalls, row P, seat 1, wheelchair, 40.00 EUR, available");
    house.states.apply({ ordinals: [0], values: [1 | (1 << 2)], versions: [1], hold_types: [null, "GROUP_SALE"] });
    expect(house.label(0)).toBe("Stalls, row A, seat 1, 80.00 EUR, held, Group Sale");
    house.holdTypes = new HoldTypes({ GROUP_SALE: { displayName: "Groups" } });
    expect(house.label(0)).toContain("held, Groups");
    house.selection.put([0], true);
    expect(house.label(0)).toContain("selected");
  });
});
