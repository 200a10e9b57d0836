import type { House } from "../house.js";
import type { Seat } from "../seat.js";
import type { SeatState } from "../state/snapshot.js";
import { lookOf } from "./looks.js";
import type { SeatTraits } from "./looks.js";
import type { Palette } from "./palette.js";
import { StyleTable } from "./style.js";
import type { SeatLook } from "./style.js";

/** The page's last word on how a seat looks: what it answers is laid over the look. Called once per change, not per frame. */
export type BeforeSeatDraw = (drawn: { seat: Seat; state: SeatState; style: SeatLook }) => Partial<SeatLook> | void;

/** The page's callback gets so long at once before the page may breathe. */
const SLICE_MS = 6;

/** Which look each seat wears. Looks are worked out once for all seats that have everything in common. */
export class Wardrobe {
  readonly styles: Uint16Array;
  readonly #house: House;
  readonly #colourByPrice: boolean;
  readonly #palette: Palette;
  readonly #table = new StyleTable();
  readonly #byTraits = new Map<number, number>();
  readonly #beforeSeatDraw: BeforeSeatDraw | null;
  readonly #awaiting = new Set<number>();
  #told = 0;

  constructor(house: House, palette: Palette, colourByPrice: boolean, beforeSeatDraw: BeforeSeatDraw | null) {
    this.#house = house;
    this.#palette = palette;
    this.#colourByPrice = colourByPrice && house.prices.amounts.length > 1;
    this.#beforeSeatDraw = beforeSeatDraw;
    this.styles = new Uint16Array(house.geometry.seatCount);
    for (let ordinal = 0; ordinal < this.styles.length; ordinal++) this.styles[ordinal] = this.#styleOf(ordinal);
    if (beforeSeatDraw) for (let ordinal = 0; ordinal < this.styles.length; ordinal++) this.#awaiting.add(ordinal);
  }

  get looks(): readonly SeatLook[] {
    return this.#table.looks;
  }

  /** Looks that came up since they were last asked for. */
  newLooks(): readonly SeatLook[] {
    const found = this.#table.looks.slice(this.#told);
    this.#told = this.#table.looks.length;
    return found;
  }

  /** Whether the page's callback still has seats to look at. */
  get isUnfinished(): boolean {
    return this.#awaiting.size > 0;
  }

  /** Works out the looks of these seats anew; answers those that changed. */
  change(ordinals: Iterable<number>): number[] {
    const changed: number[] = [];
    for (const ordinal of ordinals) {
      // Seats that just changed are few: the page's callback sees them at once, so that nothing flickers.
      const style = this.#beforeSeatDraw ? this.#asked(ordinal, this.#styleOf(ordinal)) : this.#styleOf(ordinal);
      this.#awaiting.delete(ordinal);
      if (this.styles[ordinal] === style) continue;
      this.styles[ordinal] = style;
      changed.push(ordinal);
    }
    return changed;
  }

  /** Lets the page's callback look at some more seats; answers those that changed. */
  continueAsking(first: Iterable<number> = []): number[] {
    const until = performance.now() + SLICE_MS;
    const changed: number[] = [];
    const ask = (ordinal: number) => {
      if (!this.#awaiting.delete(ordinal)) return;
      const style = this.#asked(ordinal, this.#styleOf(ordinal));
      if (this.styles[ordinal] !== style) {
        this.styles[ordinal] = style;
        changed.push(ordinal);
      }
    };
    for (const ordinal of first) {
      ask(ordinal);
      if (performance.now() > until) return changed;
    }
    let asked = 0;
    for (const ordinal of this.#awaiting) {
      ask(ordinal);
      if (++asked % 32 === 0 && performance.now() > until) break;
    }
    return changed;
  }

  /** As it looks without the page's callback. */
  lookOf(ordinal: number): SeatLook {
    return this.#table.looks[this.#styleOf(ordinal)]!;
  }

  #asked(ordinal: number, style: number): number {
    const seat = this.#house.seat(ordinal);
    const look = this.#table.looks[style]!;
    let answer: Partial<SeatLook> | void = undefined;
    try {
      answer = this.#beforeSeatDraw!({ seat, state: seat.state, style: look });
    } catch (error) {
      // One seat the page cannot draw must not keep all others from being drawn.
      globalThis.reportError?.(error);
    }
    return answer ? this.#table.intern({ ...look, ...answer }) : style;
  }

  #styleOf(ordinal: number): number {
    const { states, geometry, selection, ownStates, filtered, prices } = this.#house;
    const section = geometry.section[ordinal]!;
    const sections = this.#house.sectionStates;
    const selected = selection.has(ordinal), awaited = selection.isAwaited(ordinal);
    const dimmed = filtered.fits[ordinal] === 0 || sections.has(section, "filtered");
    const closed = sections.has(section, "unavailable");
    const tier = this.#colourByPrice ? prices.tier(ordinal) : -1;
    const key =
      states.state[ordinal]! | (states.kept[ordinal]! << 2) | (states.holdType[ordinal]! << 3) |
      (geometry.category[ordinal]! << 11) | ((selected ? 1 : 0) << 15) | ((awaited ? 1 : 0) << 16) |
      ((dimmed ? 1 : 0) << 17) | ((closed ? 1 : 0) << 18) | (((tier + 1) & 0xfff) << 19);
    const own = ownStates.any ? ownStates.of(ordinal) : null;
    if (!own?.look || selected || awaited) {
      let style = this.#byTraits.get(key);
      if (style === undefined) {
        style = this.#table.intern(lookOf(this.#traits(ordinal, { selected, awaited, dimmed, closed, tier }), this.#palette));
        this.#byTraits.set(key, style);
      }
      return style;
    }
    const look = { ...lookOf(this.#traits(ordinal, { selected, awaited, dimmed: false, closed, tier }), this.#palette), ...own.look };
    return this.#table.intern(dimmed ? { ...look, opacity: look.opacity * 0.3 } : look);
  }

  #traits(
    ordinal: number, rest: Pick<SeatTraits, "selected" | "awaited" | "dimmed" | "closed" | "tier">,
  ): SeatTraits {
    const { states, holdTypes } = this.#house;
    const holdType = states.holdTypeName(ordinal);
    return {
      state: states.state[ordinal]!,
      kept: states.kept[ordinal] === 1,
      holdType: holdType === null ? null : holdTypes.shown(holdType),
      category: this.#house.category(ordinal),
      ...rest,
    };
  }
}
