import { lookOf } from "../draw/looks.js";
import type { SeatTraits } from "../draw/looks.js";
import type { Palette } from "../draw/palette.js";
import type { SeatLook } from "../draw/style.js";
import type { House } from "../house.js";
import { AVAILABLE, BLOCKED, HELD, SOLD } from "../state/snapshot.js";
import type { MoneyWriter, Words } from "../words.js";
import { build } from "./build.js";
import { Swatches } from "./swatch.js";

export interface LegendEntry {
  readonly key: string;
  readonly label: string;
  readonly look: SeatLook;
}

const PLAIN: SeatTraits = {
  state: AVAILABLE, kept: false, holdType: null, category: "standard", tier: -1,
  selected: false, awaited: false, dimmed: false, closed: false,
};

/** What there is to explain: the states, hold types and kinds of seat that this event has at the moment. */
export function legendOf(house: House, palette: Palette, words: Words, money: MoneyWriter, byPrice: boolean): LegendEntry[] {
  const { states, geometry, prices, ownStates } = house;
  const seen = new Set<number>();
  const heldTypes = new Set<number>();
  let kept = false;
  for (let i = 0; i < states.seatCount; i++) {
    const state = states.state[i]!;
    seen.add(state);
    if (state === HELD) heldTypes.add(states.holdType[i]!);
    if (states.kept[i]) kept = true;
  }
  const entries: LegendEntry[] = [];
  const add = (key: string, label: string, traits: Partial<SeatTraits>) =>
    entries.push({ key, label: capitalised(label), look: lookOf({ ...PLAIN, ...traits }, palette) });

  if (byPrice && prices.amounts.length > 1) {
    prices.amounts.slice(0, palette.tiers.length).forEach((amount, tier) => add(`price-${tier}`, money(amount, prices.currency), { tier }));
  } else if (seen.has(AVAILABLE)) add("available", words.available, {});
  add("selected", words.selected, { selected: true });
  for (const type of heldTypes) {
    const name = states.holdTypeNames[type];
    const holdType = name ? house.holdTypes.shown(name) : null;
    add(`held-${name}`, holdType?.displayName ?? words.held, { state: HELD, holdType });
  }
  if (seen.has(SOLD)) add("sold", words.sold, { state: SOLD });
  if (seen.has(BLOCKED)) add("blocked", words.blocked, { state: BLOCKED });
  if (kept) add("kept", words.kept, { kept: true });
  const categories = new Set(geometry.category);
  const kinds: [string, string][] = [
    ["wheelchair", words.wheelchair], ["companion", words.companion], ["restricted_view", words.restrictedView],
  ];
  for (const [category, label] of kinds) {
    if (categories.has(geometry.categories.indexOf(category))) add(category, label, { category });
  }
  for (const key of ownStates.keys()) {
    const own = ownStates.described(key);
    entries.push({ key: `own-${key}`, label: own.label, look: { ...lookOf(PLAIN, palette), ...own.look } });
  }
  return entries;
}

export class Legend {
  readonly element: HTMLElement;
  readonly #list = build("ul", { class: "legend-list" });
  #swatches = new Swatches(18);
  #shown = "";

  constructor(words: Words) {
    this.element = build("div", { class: "legend", part: "legend", role: "group", "aria-label": words.legend }, this.#list);
  }

  show(entries: readonly LegendEntry[]): void {
    const key = entries.map((entry) => JSON.stringify(entry)).join();
    if (key === this.#shown) return;
    this.#shown = key;
    this.#swatches = new Swatches(18);
    this.#list.replaceChildren(...entries.map(({ label, look }) => {
      const canvas = this.#swatches.canvas();
      this.#swatches.draw(canvas, look);
      return build("li", {}, canvas, build("span", {}, label));
    }));
  }
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
