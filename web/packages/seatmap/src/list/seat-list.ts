import type { SeatLook } from "../draw/style.js";
import type { House } from "../house.js";
import { build, icon, ICONS, setAttribute } from "../parts/build.js";
import { Swatches } from "../parts/swatch.js";
import type { MoneyWriter, Words } from "../words.js";
import { heightOf, linesBetween, linesOf } from "./list-lines.js";
import type { ListLine, ListMeasures } from "./list-lines.js";

export interface SeatListManner {
  readonly words: Words;
  readonly money: MoneyWriter;
  /** Whole rows and sections can be chosen: for organisers. */
  readonly inBulk: boolean;
  readonly look: (ordinal: number) => SeatLook;
  readonly toggle: (ordinal: number) => void;
  readonly toggleMany: (ordinals: readonly number[]) => void;
  readonly openSection: (section: number) => void;
}

const SEAT_WIDTH = 48;
const SEAT_HEIGHT = 48;
/** Lines beyond the edge that exist already: a screen reader or a quick wheel must not run into nothing. */
const OVERSCAN_PX = 300;

/** The same seats as on the map, as buttons: sections, rows, seats. Only what is near the screen exists. */
export class SeatList {
  readonly element: HTMLElement;
  readonly #spacer = build("div", { class: "list-lines", role: "list" });
  readonly #empty: HTMLElement;
  readonly #house: House;
  readonly #manner: SeatListManner;
  readonly #open = new Set<number>();
  readonly #shown = new Map<string, HTMLElement>();
  readonly #buttons = new Map<number, { button: HTMLButtonElement; swatch: HTMLCanvasElement }>();
  readonly #swatches = new Swatches(20);
  readonly #watch: ResizeObserver;
  #lines: ListLine[] = [];
  #filtering = false;
  #asked = 0;

  constructor(house: House, manner: SeatListManner) {
    this.#house = house;
    this.#manner = manner;
    this.#empty = build("p", { class: "list-empty", hidden: true }, manner.words.noSeats);
    this.element = build("div", { class: "list", part: "list", role: "region", "aria-label": manner.words.list, tabindex: -1 }, this.#empty, this.#spacer);
    this.element.addEventListener("scroll", () => this.#ask(), { passive: true });
    this.#spacer.addEventListener("keydown", (event) => this.#key(event));
    this.#watch = new ResizeObserver(() => this.layOut(this.#filtering));
    this.#watch.observe(this.element);
    const first = house.geometry.sections.findIndex(({ seat_count }) => seat_count > 0);
    if (first >= 0) this.#open.add(first);
  }

  close(): void {
    this.#watch.disconnect();
    if (this.#asked) cancelAnimationFrame(this.#asked);
  }

  /** Works the lines out anew: another width, other filters, a section opened. */
  layOut(filtering: boolean): void {
    this.#filtering = filtering;
    this.#lines = linesOf(this.#house, this.#open, filtering, this.#measures());
    this.#spacer.style.height = `${heightOf(this.#lines)}px`;
    this.#empty.hidden = this.#lines.length > 0;
    const held = this.#held();
    this.#forget();
    this.#render();
    this.#giveBack(held);
  }

  /** These seats changed; null: any may have. */
  change(ordinals: Iterable<number> | null): void {
    const changed = ordinals ?? this.#buttons.keys();
    for (const ordinal of changed) {
      const found = this.#buttons.get(ordinal);
      if (found) this.#dress(ordinal, found.button, found.swatch);
    }
    for (const [key, element] of this.#shown) {
      if (key.startsWith("s")) this.#countIn(element, Number(key.slice(1)));
    }
  }

  /** Opens the section and scrolls there. */
  goTo(section: number): void {
    this.#open.add(section);
    this.layOut(this.#filtering);
    const line = this.#lines.find((one) => one.kind === "section" && one.section === section);
    if (line) this.element.scrollTop = line.top;
    this.#render();
    (this.#shown.get(`s${section}`)?.querySelector("button") as HTMLElement | null)?.focus();
  }

  #measures(): ListMeasures {
    const width = Math.max(this.element.clientWidth - 24, 120);
    return {
      width, nameWidth: width < 420 ? 48 : 104, seatWidth: SEAT_WIDTH, seatHeight: SEAT_HEIGHT, sectionHeight: 60, rowMargin: 10,
    };
  }

  #ask(): void {
    if (!this.#asked) this.#asked = requestAnimationFrame(() => {
      this.#asked = 0;
      this.#render();
    });
  }

  #forget(): void {
    this.#shown.clear();
    this.#buttons.clear();
    this.#spacer.replaceChildren();
  }

  #render(): void {
    const { scrollTop, clientHeight } = this.element;
    if (!this.#lines.length) return;
    const { first, last } = linesBetween(this.#lines, scrollTop - OVERSCAN_PX, scrollTop + clientHeight + OVERSCAN_PX);
    const wanted = new Set<string>();
    let before: HTMLElement | null = null;
    for (let n = first; n <= last; n++) {
      const line = this.#lines[n]!;
      const key = keyOf(line);
      wanted.add(key);
      let element = this.#shown.get(key);
      if (!element) {
        element = line.kind === "section" ? this.#section(line) : this.#row(line);
        element.style.transform = `translateY(${line.top}px)`;
        element.style.height = `${line.height}px`;
        setAttribute(element, "aria-posinset", n + 1);
        setAttribute(element, "aria-setsize", this.#lines.length);
        this.#shown.set(key, element);
        // In the order of the list: Tab and a reader's cursor follow the document, not the screen.
        if (before) before.after(element);
        else this.#spacer.prepend(element);
      }
      before = element;
    }
    for (const [key, element] of this.#shown) {
      if (wanted.has(key) || element.matches(":focus-within")) continue;
      this.#shown.delete(key);
      for (const button of element.querySelectorAll<HTMLElement>("[data-seat]")) this.#buttons.delete(Number(button.dataset.seat));
      element.remove();
    }
  }

  #section(line: ListLine & { kind: "section" }): HTMLElement {
    const { house, words } = { house: this.#house, words: this.#manner.words };
    const section = house.geometry.sections[line.section]!;
    const price = house.prices.ofSection(line.section);
    const standing = section.seat_count === 0;
    const count = build("span", { class: "list-count" });
    const name = build("span", { class: "list-name" }, section.name);
    const about = build("span", { class: "list-about" },
      [standing ? words.generalAdmission : null, price === null ? null : this.#manner.money(price, house.prices.currency)].filter(Boolean).join(" · "));
    const head = build("button", {
      type: "button", class: "list-section-button",
      "aria-expanded": standing ? null : String(line.open),
      click: () => (standing ? this.#manner.openSection(line.section) : this.#toggleSection(line.section)),
    }, standing ? null : icon(ICONS.open), name, about, count);
    const element = build("div", { class: "list-line list-section", role: "listitem" },
      build("div", { class: "list-heading", role: "heading", "aria-level": 3 }, head));
    if (this.#manner.inBulk && !standing) {
      element.append(build("button", {
        type: "button", class: "chip list-bulk", "aria-label": `${words.selectSection}: ${section.name}`,
        click: () => this.#manner.toggleMany(range(section.first_ordinal, section.seat_count)),
      }, words.selectSection));
    }
    this.#countIn(element, line.section);
    return element;
  }

  #countIn(element: HTMLElement, section: number): void {
    const count = element.querySelector(".list-count");
    const text = this.#house.sectionWords(section);
    if (count && count.textContent !== text) count.textContent = text;
  }

  #row(line: ListLine & { kind: "row" }): HTMLElement {
    const { words } = this.#manner;
    const { name } = this.#house.geometry.sections[line.section]!;
    const label = `${words.row} ${line.row}`;
    const seats = build("div", { class: "list-seats", role: "group", "aria-label": `${name}, ${label}` });
    line.seats.forEach((ordinal, place) => {
      const swatch = this.#swatches.canvas();
      const button = build("button", {
        type: "button", class: "seat", "data-seat": ordinal, tabindex: place === 0 ? 0 : -1,
        click: () => this.#manner.toggle(ordinal),
      }, swatch, build("span", { class: "seat-number" }, String(this.#house.geometry.number[ordinal])));
      this.#buttons.set(ordinal, { button, swatch });
      this.#dress(ordinal, button, swatch);
      seats.append(button);
    });
    const head = this.#manner.inBulk
      ? build("button", {
          type: "button", class: "list-row-name chip", "aria-label": `${words.selectRow}: ${name}, ${label}`,
          click: () => this.#manner.toggleMany(line.seats),
        }, label)
      : build("span", { class: "list-row-name", "aria-hidden": "true" }, build("span", { class: "list-row-word" }, `${words.row}\u00a0`), line.row);
    return build("div", { class: "list-line list-row", role: "listitem" }, head, seats);
  }

  #dress(ordinal: number, button: HTMLButtonElement, swatch: HTMLCanvasElement): void {
    const { selection } = this.#house;
    const selected = selection.has(ordinal);
    setAttribute(button, "aria-label", this.#house.label(ordinal));
    setAttribute(button, "aria-pressed", String(selected));
    // Not `disabled`: what cannot be chosen must still be found and read.
    setAttribute(button, "aria-disabled", !selected && !this.#house.isSelectable(ordinal) ? "true" : null);
    setAttribute(button, "aria-busy", selection.isAwaited(ordinal) ? "true" : null);
    const context = swatch.getContext("2d")!;
    context.clearRect(0, 0, swatch.width, swatch.height);
    this.#swatches.draw(swatch, this.#manner.look(ordinal));
  }

  #toggleSection(section: number): void {
    if (!this.#open.delete(section)) this.#open.add(section);
    this.layOut(this.#filtering);
    (this.#shown.get(`s${section}`)?.querySelector(".list-section-button") as HTMLElement | null)?.focus();
  }

  /** One Tab stop a row; arrows go along it and from row to row. */
  #key(event: KeyboardEvent): void {
    const button = (event.target as HTMLElement).closest<HTMLElement>("[data-seat]");
    if (!button) return;
    const siblings = [...button.parentElement!.querySelectorAll<HTMLElement>("[data-seat]")];
    const place = siblings.indexOf(button);
    let next: HTMLElement | undefined;
    if (event.key === "ArrowRight") next = siblings[place + 1];
    else if (event.key === "ArrowLeft") next = siblings[place - 1];
    else if (event.key === "Home") next = siblings[0];
    else if (event.key === "End") next = siblings.at(-1);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") next = this.#acrossRows(button, place, event.key === "ArrowDown" ? 1 : -1);
    else return;
    event.preventDefault();
    if (!next) return;
    for (const sibling of next.parentElement!.querySelectorAll<HTMLElement>("[data-seat]")) sibling.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  #acrossRows(button: HTMLElement, place: number, step: 1 | -1): HTMLElement | undefined {
    const seat = Number(button.dataset.seat);
    let at = this.#lines.findIndex((line) => line.kind === "row" && line.seats.includes(seat)) + step;
    while (this.#lines[at] && this.#lines[at]!.kind !== "row") at += step;
    const line = this.#lines[at];
    if (line?.kind !== "row") return undefined;
    const { scrollTop, clientHeight } = this.element;
    if (line.top < scrollTop || line.top + line.height > scrollTop + clientHeight) {
      this.element.scrollTop = line.top - clientHeight / 2;
      this.#render();
    }
    return this.#buttons.get(line.seats[Math.min(place, line.seats.length - 1)]!)?.button;
  }

  #held(): number | null {
    const root = this.element.getRootNode() as Document | ShadowRoot;
    const seat = (root.activeElement as HTMLElement | null)?.closest<HTMLElement>("[data-seat]");
    return seat ? Number(seat.dataset.seat) : null;
  }

  #giveBack(seat: number | null): void {
    if (seat !== null) this.#buttons.get(seat)?.button.focus({ preventScroll: true });
  }
}

function keyOf(line: ListLine): string {
  return line.kind === "section" ? `s${line.section}` : `r${line.section}/${line.seats[0]}`;
}

function range(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, n) => from + n);
}
