import type { Prices } from "../state/prices.js";
import type { SeatFilter } from "../state/seat-filter.js";
import type { MoneyWriter, Words } from "../words.js";
import { build } from "./build.js";

/** Prices and kinds of seat to look for. Only what this event has is offered. */
export class FilterBar {
  readonly element: HTMLElement;
  readonly #words: Words;
  readonly #changed: (filter: SeatFilter) => void;
  #filter: SeatFilter = {};

  constructor(words: Words, changed: (filter: SeatFilter) => void) {
    this.#words = words;
    this.#changed = changed;
    this.element = build("div", { class: "filters", part: "filters", role: "group", "aria-label": words.filters });
  }

  show(filter: SeatFilter, prices: Prices, categories: ReadonlySet<string>, money: MoneyWriter): void {
    this.#filter = filter;
    const words = this.#words;
    const parts: HTMLElement[] = [];
    if (prices.amounts.length > 1) parts.push(this.#prices(prices, money));
    if (categories.has("wheelchair")) parts.push(this.#toggle(words.wheelchairOnly, "accessible"));
    if (categories.has("restricted_view")) parts.push(this.#toggle(words.fullView, "withoutRestrictedView"));
    parts.push(this.#toggle(words.availableOnly, "availableOnly"));
    this.element.replaceChildren(...parts);
  }

  #prices(prices: Prices, money: MoneyWriter): HTMLElement {
    const words = this.#words;
    const select = build("select", {
      "aria-label": words.price,
      change: () => this.#set({ priceTo: select.value === "" ? null : Number(select.value) }),
    });
    select.append(build("option", { value: "" }, words.anyPrice));
    // The dearest amount lets everything in, as "any" does.
    for (const amount of prices.amounts.slice(0, -1)) {
      select.append(build("option", { value: amount }, `${words.upTo} ${money(amount, prices.currency)}`));
    }
    select.value = this.#filter.priceTo == null ? "" : String(this.#filter.priceTo);
    return build("label", { class: "chip chip-select" }, select);
  }

  #toggle(label: string, name: "accessible" | "withoutRestrictedView" | "availableOnly"): HTMLElement {
    const button = build("button", {
      type: "button", class: "chip", "aria-pressed": String(!!this.#filter[name]),
      click: () => {
        const on = !this.#filter[name];
        button.setAttribute("aria-pressed", String(on));
        this.#set({ [name]: on });
      },
    }, label);
    return button;
  }

  #set(part: SeatFilter): void {
    this.#filter = { ...this.#filter, ...part };
    this.#changed(this.#filter);
  }
}
