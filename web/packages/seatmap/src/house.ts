import type { Plan } from "./geometry/plan.js";
import { planOf } from "./geometry/plan.js";
import type { Geometry } from "./geometry/geometry.js";
import { SeatIdentities } from "./geometry/seat-identity.js";
import type { SeatName } from "./geometry/seat-identity.js";
import type { Cart, Seat } from "./seat.js";
import { HoldTypes } from "./state/hold-types.js";
import { OwnStates } from "./state/own-states.js";
import { Prices } from "./state/prices.js";
import { FilteredSeats } from "./state/seat-filter.js";
import { SeatStates } from "./state/seat-states.js";
import { SectionCounts } from "./state/section-counts.js";
import type { SectionCount } from "./state/section-counts.js";
import { SectionStates } from "./state/section-states.js";
import { Selection } from "./state/selection.js";
import type { SelectionRules } from "./state/selection.js";
import { AVAILABLE, STATE_NAMES } from "./state/snapshot.js";
import type { MoneyWriter, Words } from "./words.js";

/** Made once: `toLocaleString` makes one at every call, and counts are written by the hundred. */
const WHOLE = new Intl.NumberFormat();

/** Who may select what: a buyer free seats only, an organiser any. */
export type SelectionKind = "available" | "any" | "none";

export interface HouseManner {
  readonly words: () => Words;
  readonly money: () => MoneyWriter;
  readonly selectionKind: () => SelectionKind;
  readonly rules: Omit<SelectionRules, "selectable">;
}

/** Everything the page knows of one event's seats, without a word about how they are shown. */
export class House {
  readonly geometry: Geometry;
  readonly plan: Plan;
  readonly identities: SeatIdentities;
  readonly states: SeatStates;
  readonly counts: SectionCounts;
  readonly filtered: FilteredSeats;
  readonly ownStates = new OwnStates();
  readonly sectionStates = new SectionStates();
  readonly selection: Selection;
  prices: Prices;
  holdTypes = new HoldTypes();
  readonly #manner: HouseManner;
  readonly #companions: Map<number, number>;
  readonly #sectionWords: { count: SectionCount; closed: boolean; words: Words; text: string }[] = [];

  constructor(geometry: Geometry, manner: HouseManner) {
    this.geometry = geometry;
    this.#manner = manner;
    this.plan = planOf(geometry);
    this.identities = new SeatIdentities(geometry);
    this.states = new SeatStates(geometry.seatCount);
    this.counts = new SectionCounts(geometry, this.states);
    this.filtered = new FilteredSeats(geometry, this.states);
    this.prices = Prices.none(geometry);
    this.#companions = new Map(geometry.companions.map(([seat, companion]) => [seat, companion]));
    this.selection = new Selection({ ...manner.rules, selectable: (ordinal) => this.isSelectable(ordinal) });
  }

  ordinalsOf(names: Iterable<SeatName | Seat>): number[] {
    const found: number[] = [];
    for (const name of names) {
      const ordinal = typeof name === "object" ? name.ordinal : this.identities.ordinal(name);
      if (ordinal >= 0) found.push(ordinal);
    }
    return found;
  }

  /** By number, id or the organiser's zone_id; -1 where there is none. */
  sectionNo(name: number | string): number {
    if (typeof name === "number") return name in this.geometry.sections ? name : -1;
    return this.geometry.sections.findIndex(({ id, zone_id }) => id === name || zone_id === name);
  }

  isSelectable(ordinal: number): boolean {
    const kind = this.#manner.selectionKind();
    if (kind !== "available") return kind === "any";
    const own = this.ownStates.of(ordinal)?.selectable;
    if (own !== undefined) return own;
    return this.states.isOffered(ordinal) && !this.isClosed(ordinal);
  }

  isClosed(ordinal: number): boolean {
    return this.sectionStates.has(this.geometry.section[ordinal]!, "unavailable");
  }

  category(ordinal: number): string {
    return this.geometry.categories[this.geometry.category[ordinal]!] ?? "standard";
  }

  /** Ids are worked out when asked for: a hash a seat is too much for everybody who only wants the row. */
  seat(ordinal: number): Seat {
    const { geometry, identities, states, prices } = this;
    const label = () => this.label(ordinal);
    return {
      ordinal,
      get id() {
        return identities.uuid(ordinal);
      },
      get seatId() {
        return identities.seatId(ordinal);
      },
      get label() {
        return label();
      },
      section: geometry.sections[geometry.section[ordinal]!]!,
      row: geometry.rows[geometry.row[ordinal]!]!,
      number: geometry.number[ordinal]!,
      category: this.category(ordinal),
      state: STATE_NAMES[states.state[ordinal]!]!,
      holdType: states.holdTypeName(ordinal),
      offered: states.isOffered(ordinal),
      ownState: this.ownStates.keyOf(ordinal),
      selected: this.selection.has(ordinal),
      priceMinor: prices.ofSeat(ordinal),
      currency: prices.currency,
      companionOrdinal: this.#companions.get(ordinal) ?? null,
    };
  }

  /** "Stalls, row A, seat 12, wheelchair, 80.00 EUR, available" */
  label(ordinal: number): string {
    const { geometry } = this;
    const words = this.#manner.words();
    const kinds: Readonly<Record<string, string>> = {
      wheelchair: words.wheelchair, companion: words.companion, restricted_view: words.restrictedView,
    };
    const price = this.prices.ofSeat(ordinal);
    return [
      geometry.sections[geometry.section[ordinal]!]!.name,
      `${words.row} ${geometry.rows[geometry.row[ordinal]!]}`,
      `${words.seat} ${geometry.number[ordinal]}`,
      kinds[this.category(ordinal)],
      price === null ? undefined : this.#manner.money()(price, this.prices.currency),
      this.stateWords(ordinal),
    ].filter(Boolean).join(", ");
  }

  stateWords(ordinal: number): string {
    const words = this.#manner.words();
    if (this.selection.isAwaited(ordinal)) return words.awaited;
    if (this.selection.has(ordinal)) return words.selected;
    const own = this.ownStates.of(ordinal);
    if (own) return own.label;
    const state = this.states.state[ordinal]!;
    if (state === AVAILABLE) {
      return this.isClosed(ordinal) ? words.closed : this.states.kept[ordinal] ? words.kept : words.available;
    }
    const holdType = this.states.holdTypeName(ordinal);
    const name = words[STATE_NAMES[state]!];
    return STATE_NAMES[state] === "held" && holdType ? `${name}, ${this.holdTypes.shown(holdType).displayName}` : name;
  }

  /** Anew only where the count is another: counts change by the second, words of most sections do not. */
  sectionWords(sectionNo: number): string {
    const count = this.counts.of(sectionNo);
    const closed = this.sectionStates.has(sectionNo, "unavailable");
    const known = this.#sectionWords[sectionNo];
    if (known && known.count === count && known.closed === closed && known.words === this.#manner.words()) return known.text;
    const text = this.#saidOfSection(sectionNo);
    this.#sectionWords[sectionNo] = { count, closed, words: this.#manner.words(), text };
    return text;
  }

  #saidOfSection(sectionNo: number): string {
    const words = this.#manner.words();
    const { available, total } = this.counts.of(sectionNo);
    if (this.sectionStates.has(sectionNo, "unavailable")) return words.closed;
    return available === 0 ? words.soldOut : `${WHOLE.format(available)} ${words.of} ${WHOLE.format(total)} ${words.left}`;
  }

  shortSectionWords(sectionNo: number): string {
    const { available } = this.counts.of(sectionNo);
    return available === 0 || this.sectionStates.has(sectionNo, "unavailable") ? "" : `${WHOLE.format(available)} ${this.#manner.words().left}`;
  }

  cart(): Cart {
    const seats = this.selection.seats.map((ordinal) => this.seat(ordinal));
    const priced = seats.every(({ priceMinor }) => priceMinor !== null);
    return {
      seats,
      totalMinor: priced ? seats.reduce((sum, { priceMinor }) => sum + priceMinor!, 0) : null,
      currency: this.prices.currency,
    };
  }
}
