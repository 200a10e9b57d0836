import type { FrameReport } from "./draw/backend.js";
import { paletteOf } from "./draw/palette.js";
import type { Palette, Theme } from "./draw/palette.js";
import type { SectionPaint } from "./draw/scene.js";
import { sectionPaints, withOldWords } from "./draw/section-paint.js";
import { Wardrobe } from "./draw/wardrobe.js";
import type { BeforeSeatDraw } from "./draw/wardrobe.js";
import type { SeatmapEvents } from "./events.js";
import { Feed } from "./feed/feed.js";
import type { FeedStatus, TokenSource } from "./feed/feed.js";
import { decodeGeometry } from "./geometry/decode-geometry.js";
import type { GeometryDocument } from "./geometry/decode-geometry.js";
import { boxOf, unitedBox } from "./geometry/geometry.js";
import type { Box, Geometry, Section } from "./geometry/geometry.js";
import type { SeatName } from "./geometry/seat-identity.js";
import type { View } from "./geometry/view.js";
import { House } from "./house.js";
import type { SelectionKind } from "./house.js";
import type { WheelKind } from "./input/wheel.js";
import { SeatList } from "./list/seat-list.js";
import { setAttribute } from "./parts/build.js";
import { buildFrame, showPalette } from "./parts/frame.js";
import type { Built, Mode } from "./parts/frame.js";
import { legendOf } from "./parts/legend.js";
import { stylesheet } from "./parts/stylesheet.js";
import { tooltipText } from "./parts/tooltip-text.js";
import type { Cart, Seat } from "./seat.js";
import { HoldTypes } from "./state/hold-types.js";
import type { HoldTypeDisplay } from "./state/hold-types.js";
import type { OwnState } from "./state/own-states.js";
import { Prices } from "./state/prices.js";
import type { PricesDocument } from "./state/prices.js";
import { filtersAnything } from "./state/seat-filter.js";
import type { SeatFilter } from "./state/seat-filter.js";
import type { SeatChanges } from "./state/seat-states.js";
import type { SectionState } from "./state/section-states.js";
import type { Verdict } from "./state/selection.js";
import { decodeSnapshot } from "./state/snapshot.js";
import type { Snapshot, SnapshotDocument } from "./state/snapshot.js";
import { Surface } from "./surface.js";
import type { Pointed } from "./surface.js";
import { ENGLISH, moneyWriter } from "./words.js";
import type { MoneyWriter, Words } from "./words.js";

const ATTRIBUTES = [
  "event-id", "src", "mode", "theme", "selection", "lasso", "color-by", "draw", "worker-url", "locale", "hide", "label",
] as const;

/** Legend and overview follow the seats at leisure: nobody reads them sixty times a second. */
const AT_LEISURE_MS = 400;

/** On a server there are no elements: the package can be imported there all the same, to be rendered by the browser. */
const PageElement = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);

export class HoldfastSeatmap extends PageElement {
  static readonly observedAttributes: readonly string[] = ATTRIBUTES;

  /** `false`, or a promise of it, is a veto. */
  onSeatSelect: ((seat: Seat) => Verdict) | null = before(this, "onSeatSelect");
  onSeatDeselect: ((seat: Seat) => Verdict) | null = before(this, "onSeatDeselect");
  onCartChange: ((cart: Cart) => void) | null = before(this, "onCartChange");
  /** `false` keeps the map where it is. */
  onSectionClick: ((section: Section) => void | boolean) | null = before(this, "onSectionClick");
  onLasso: ((seats: readonly Seat[]) => void | boolean) | null = before(this, "onLasso");

  readonly #root = this.attachShadow({ mode: "open", delegatesFocus: false });
  #beforeSeatDraw: BeforeSeatDraw | null = null;
  #token: TokenSource | null = null;
  #words: Words = ENGLISH;
  #money: MoneyWriter = moneyWriter(undefined);
  #house: House | null = null;
  #wardrobe: Wardrobe | null = null;
  #palette: Palette = paletteOf("light", false, () => "");
  #feed: Feed | null = null;
  #built: Built | null = null;
  #holdTypes: Readonly<Record<string, HoldTypeDisplay>> = {};
  #ownStates: Readonly<Record<string, OwnState>> = {};
  #pricesDocument: PricesDocument | null = null;
  #filter: SeatFilter = {};
  #hovered = -1;
  #pointed: Pointed | null = null;
  #asked = 0;
  #leisure: ReturnType<typeof setTimeout> | undefined;
  #asking: ReturnType<typeof setTimeout> | undefined;
  #firstFrame = false;
  #undressed = false;
  #paints: readonly SectionPaint[] = [];
  readonly #changedSeats = new Set<number>();
  readonly #changedSections = new Set<number>();
  readonly #media = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(prefers-reduced-motion: reduce)"].map((query) => matchMedia(query));
  readonly #themeChanged = () => this.#dressAll();

  // Life --------------------------------------------------------------------------------------------------------------
  connectedCallback(): void {
    for (const name of PROPERTIES) this.#upgrade(name);
    this.#build();
    for (const query of this.#media) query.addEventListener("change", this.#themeChanged);
    // The script that brought the element goes on first: it has a token to set.
    queueMicrotask(() => {
      if (!this.#feed) this.#startFeed();
    });
  }

  disconnectedCallback(): void {
    for (const query of this.#media) query.removeEventListener("change", this.#themeChanged);
    this.#feed?.close();
    this.#feed = null;
    this.#tearDown();
  }

  attributeChangedCallback(name: (typeof ATTRIBUTES)[number], before: string | null, now: string | null): void {
    if (before === now || !this.#built) return;
    switch (name) {
      case "event-id": case "src": this.#startFeed(); break;
      case "mode": this.#showMode(); break;
      case "theme": case "color-by": this.#dressAll(); break;
      case "locale":
        this.#money = moneyWriter(now ?? undefined);
        this.#rebuild();
        break;
      default: this.#rebuild();
    }
  }

  // Data --------------------------------------------------------------------------------------------------------------
  /** The server's geometry: its bytes, its JSON, or decoded. */
  set geometry(resource: ArrayBuffer | GeometryDocument | { data: GeometryDocument } | Geometry | null) {
    this.#setGeometry(resource === null ? null : "seatCount" in resource ? resource : decodeGeometry(resource));
  }

  get geometry(): Geometry | null {
    return this.#house?.geometry ?? null;
  }

  /** The server's availability: its bytes, its JSON, or decoded. */
  set snapshot(resource: ArrayBuffer | SnapshotDocument | { data: SnapshotDocument } | Snapshot) {
    if (!this.#house) throw new Error("a snapshot needs a geometry first");
    const snapshot = "seatCount" in resource ? resource : decodeSnapshot(resource);
    const changed = this.#house.states.replace(snapshot);
    this.#house.geometry.sections.forEach((_, n) => this.#changedSections.add(n));
    this.#statesChanged(changed);
  }

  /** What changed since: the data of a `seats` message. */
  applyChanges(changes: SeatChanges): void {
    if (!this.#house) return;
    const { seats, zones } = this.#house.states.apply(changes);
    for (const zone of zones) this.#changedSections.add(zone);
    this.#statesChanged(seats);
  }

  /** The server's prices, without the envelope. */
  set prices(document: PricesDocument | null) {
    this.#pricesDocument = document;
    this.#takePrices();
  }

  get prices(): PricesDocument | null {
    return this.#pricesDocument;
  }

  /** How hold types are shown, by name. */
  set holdTypes(types: Readonly<Record<string, HoldTypeDisplay>>) {
    this.#holdTypes = types;
    if (this.#house) this.#house.holdTypes = new HoldTypes(types);
    this.#dressAll();
  }

  get holdTypes(): Readonly<Record<string, HoldTypeDisplay>> {
    return this.#holdTypes;
  }

  /** States of the page's own, by key, for `setSeatsState`. */
  set ownStates(states: Readonly<Record<string, OwnState>>) {
    this.#ownStates = states;
    this.#house?.ownStates.define(states);
    this.#dressAll();
  }

  get ownStates(): Readonly<Record<string, OwnState>> {
    return this.#ownStates;
  }

  /** Where the token for the server comes from. Set later than the element came into the page, it begins anew. */
  set token(token: TokenSource | null) {
    this.#token = token;
    if (this.#feed) this.#startFeed();
  }

  get token(): TokenSource | null {
    return this.#token;
  }

  set words(words: Partial<Words>) {
    this.#words = { ...ENGLISH, ...words };
    this.#rebuild();
  }

  get words(): Words {
    return this.#words;
  }

  set filter(filter: SeatFilter) {
    this.#setFilter(filter);
    this.#showFilters();
  }

  get filter(): SeatFilter {
    return this.#filter;
  }

  set onBeforeSeatDraw(callback: BeforeSeatDraw | null) {
    this.#beforeSeatDraw = callback;
    this.#dressAll();
  }

  get onBeforeSeatDraw(): BeforeSeatDraw | null {
    return this.#beforeSeatDraw;
  }

  set mode(mode: Mode) {
    this.setAttribute("mode", mode);
  }

  get mode(): Mode {
    return this.getAttribute("mode") === "list" ? "list" : "map";
  }

  get cart(): Cart {
    return this.#house?.cart() ?? { seats: [], totalMinor: 0, currency: null };
  }

  get view(): View | null {
    return this.#house ? this.#built?.surface.view ?? null : null;
  }

  // What the page can do ----------------------------------------------------------------------------------------------
  seat(name: SeatName): Seat | null {
    const ordinal = this.#house?.ordinalsOf([name])[0];
    return ordinal === undefined ? null : this.#house!.seat(ordinal);
  }

  /** Gives seats a state of the page's own, described in `ownStates`. */
  setSeatsState(seats: Iterable<SeatName | Seat>, key: string): void {
    if (this.#house) this.#seatsChanged(this.#house.ownStates.set(this.#house.ordinalsOf(seats), key));
  }

  /** Of these seats, of all in the state `key`, or of all. */
  clearSeatsState(which?: Iterable<SeatName | Seat> | string): void {
    const house = this.#house;
    if (!house) return;
    const cleared = which === undefined || typeof which === "string" ? which : house.ordinalsOf(which);
    this.#seatsChanged(house.ownStates.clear(cleared));
  }

  /** Without asking the callbacks. Answers the seats that were not selected before. */
  selectSeats(seats: Iterable<SeatName | Seat>): Seat[] {
    return this.#put(seats, true);
  }

  deselectSeats(seats: Iterable<SeatName | Seat> = this.cart.seats): Seat[] {
    return this.#put(seats, false);
  }

  /** Shows the whole plan, a section (by zone_id, id or number), or seats. */
  zoomTo(where: "all" | { section: string | number } | { seats: Iterable<SeatName | Seat> }): void {
    const house = this.#house, surface = this.#built?.surface;
    if (!house || !surface) return;
    if (where === "all") surface.wholePlan();
    else if ("section" in where) this.#showSection(house.sectionNo(where.section));
    else {
      const ordinals = house.ordinalsOf(where.seats);
      let box: Box | null = null;
      for (const ordinal of ordinals) box = unitedBox(box, boxOf(house.plan.x, house.plan.y, ordinal, ordinal + 1));
      if (box) surface.showBox(box);
    }
  }

  setSectionState(section: string | number, state: SectionState, on = true): void {
    const house = this.#house;
    const n = house?.sectionNo(section) ?? -1;
    if (!house || n < 0 || !house.sectionStates.set(n, state, on)) return;
    const { first_ordinal: from, seat_count: count } = house.geometry.sections[n]!;
    this.#changedSections.add(n);
    if (state === "unavailable" || state === "filtered") this.#seatsChanged(Array.from({ length: count }, (_, i) => from + i));
    this.#schedule();
    if (state === "filtered") this.#built?.list?.layOut(filtersAnything(this.#filter));
  }

  /** Asks the server anew, where there is one, and draws everything anew. */
  async refresh(): Promise<void> {
    this.#dressAll();
    await this.#feed?.refresh();
  }

  // Inside: data ------------------------------------------------------------------------------------------------------
  #setGeometry(geometry: Geometry | null): void {
    this.#closeList();
    this.#changedSeats.clear();
    this.#changedSections.clear();
    this.#hovered = -1;
    this.#built?.tooltip.hide();
    if (!geometry) {
      this.#house = null;
      this.#wardrobe = null;
      return;
    }
    this.#house = new House(geometry, {
      words: () => this.#words,
      money: () => this.#money,
      selectionKind: () => this.#selectionKind,
      rules: {
        most: () => Number(this.getAttribute("max-selected") ?? Infinity),
        asked: (ordinal) => this.#verdict("seatselect", ordinal, this.onSeatSelect),
        askedToDrop: (ordinal) => this.#verdict("seatdeselect", ordinal, this.onSeatDeselect),
        changed: (ordinals) => this.#seatsChanged(ordinals),
      },
    });
    this.#house.holdTypes = new HoldTypes(this.#holdTypes);
    this.#house.ownStates.define(this.#ownStates);
    this.#showPlan();
    this.#takePrices();
    this.#showMode();
  }

  #takePrices(): void {
    const house = this.#house;
    if (!house) return;
    house.prices = this.#pricesDocument ? Prices.of(this.#pricesDocument, house.geometry, house.identities) : Prices.none(house.geometry);
    house.filtered.set(this.#filter, house.prices);
    this.#dressAll();
    this.#showFilters();
  }

  #setFilter(filter: SeatFilter): void {
    this.#filter = filter;
    const house = this.#house;
    if (!house) return;
    this.#seatsChanged(house.filtered.set(filter, house.prices));
    this.#built?.list?.layOut(filtersAnything(filter));
  }

  #statesChanged(ordinals: readonly number[]): void {
    const house = this.#house!;
    for (const ordinal of ordinals) this.#changedSections.add(house.geometry.section[ordinal]!);
    house.filtered.refresh(ordinals, house.prices);
    this.#seatsChanged(ordinals);
    this.#dropLost(ordinals);
  }

  /** Seats that somebody else took are no longer the buyer's; seats that the page holds for the buyer look taken, too. */
  #dropLost(ordinals: readonly number[]): void {
    const house = this.#house!;
    if (house.selection.size === 0 || this.#selectionKind !== "available" || this.hasAttribute("hold-on-select")) return;
    const lost = ordinals.filter((ordinal) => house.selection.has(ordinal) && !house.isSelectable(ordinal));
    if (!lost.length) return;
    house.selection.put(lost, false);
    for (const ordinal of lost) {
      this.#tell("seatlost", { seat: house.seat(ordinal) });
      this.#say(`${house.label(ordinal)}: ${this.#words.gone}`);
    }
    this.#cartChanged();
  }

  #startFeed(): void {
    this.#feed?.close();
    this.#feed = null;
    const eventId = this.getAttribute("event-id");
    if (!eventId || !this.isConnected) return;
    const token: TokenSource = async (renew) => (await this.#token?.(renew)) ?? null;
    this.#feed = new Feed({ eventId, baseUrl: this.getAttribute("src") ?? "", token }, {
      geometry: (geometry) => this.#setGeometry(geometry),
      prices: (prices) => (this.prices = prices),
      snapshot: (snapshot) => (this.snapshot = snapshot),
      changes: (changes) => this.applyChanges(changes),
      notice: (notice) => this.#tell("eventnotice", notice),
      status: (status, detail) => this.#showStatus(status, detail),
    });
    this.#feed.start();
  }

  // Inside: selection -------------------------------------------------------------------------------------------------
  get #selectionKind(): SelectionKind {
    const told = this.getAttribute("selection");
    return told === "any" || told === "none" ? told : "available";
  }

  #verdict(type: "seatselect" | "seatdeselect", ordinal: number, callback: ((seat: Seat) => Verdict) | null): Verdict {
    const seat = this.#house!.seat(ordinal);
    if (!this.#tell(type, { seat }, true)) return false;
    return callback?.(seat);
  }

  async #toggle(ordinal: number): Promise<void> {
    const house = this.#house!;
    const words = this.#words;
    if (this.#selectionKind === "none") return;
    if (house.selection.has(ordinal)) {
      if (await house.selection.deselect(ordinal)) {
        this.#say(`${house.label(ordinal)}: ${words.deselectedNow}`);
        this.#cartChanged();
      }
      return;
    }
    const result = await house.selection.select(ordinal);
    if (this.#house !== house) return;
    const name = house.label(ordinal);
    if (result === "selected") {
      this.#say(name);
      this.#cartChanged();
    } else if (result === "full") this.#say(words.selectionFull);
    else if (result === "refused") this.#say(`${name}: ${words.notAvailable}`);
    else if (result === "vetoed") this.#say(`${name}: ${words.notSelected}`);
  }

  #put(names: Iterable<SeatName | Seat>, on: boolean): Seat[] {
    const house = this.#house;
    if (!house) return [];
    const changed = house.selection.put(house.ordinalsOf(names), on);
    if (changed.length) this.#cartChanged();
    return changed.map((ordinal) => house.seat(ordinal));
  }

  /** All of them, or none of them if all were: as with a drawn line, so with a row of the list. */
  #selectMany(ordinals: readonly number[], modifiers: { readonly add: boolean; readonly remove: boolean }): void {
    const house = this.#house!;
    const able = ordinals.filter((ordinal) => house.selection.has(ordinal) || house.isSelectable(ordinal));
    const seats = able.map((ordinal) => house.seat(ordinal));
    if (!this.#tell("lasso", { seats }, true) || this.onLasso?.(seats) === false) return;
    if (modifiers.remove) house.selection.put(able, false);
    else {
      if (!modifiers.add) {
        const wanted = new Set(able);
        house.selection.put(house.selection.seats.filter((ordinal) => !wanted.has(ordinal)), false);
      }
      house.selection.put(able, true);
    }
    this.#say(`${able.length} ${this.#words.seatsInside}`);
    this.#cartChanged();
  }

  #cartChanged(): void {
    const cart = this.cart;
    this.onCartChange?.(cart);
    this.#tell("cartchange", cart);
  }

  #tell<K extends keyof SeatmapEvents>(type: K, detail: SeatmapEvents[K]["detail"], cancelable = false): boolean {
    return this.dispatchEvent(new CustomEvent(type, { detail, cancelable, bubbles: true, composed: true }));
  }

  // Inside: what is shown ---------------------------------------------------------------------------------------------
  #seatsChanged(ordinals: readonly number[]): void {
    for (const ordinal of ordinals) this.#changedSeats.add(ordinal);
    this.#schedule();
  }

  #schedule(): void {
    if (!this.#asked && this.#built) this.#asked = requestAnimationFrame(() => this.#flush());
  }

  /** Once a frame: what changed goes to the map and to the list. */
  #flush(): void {
    this.#asked = 0;
    if (this.#undressed) this.#dressNow();
    const house = this.#house, built = this.#built, wardrobe = this.#wardrobe;
    if (!house || !built || !wardrobe) return;
    house.counts.recount(this.#changedSections);
    const changed = wardrobe.change(this.#changedSeats);
    built.surface.redress(changed, wardrobe.styles, wardrobe.newLooks());
    built.list?.change(this.#changedSeats);
    const pointedAt = this.#pointed;
    if (pointedAt && pointedAt.seat >= 0 && this.#changedSeats.has(pointedAt.seat)) this.#showTooltip(pointedAt);
    this.#changedSeats.clear();
    this.#changedSections.clear();
    this.#paint(false);
    this.#atLeisure();
  }

  /** Words about what is left change with every seat: they are written at leisure, colours at once. */
  #paint(words: boolean): void {
    const paints = sectionPaints(this.#house!, this.#palette, this.#hovered);
    this.#paints = words ? paints : withOldWords(paints, this.#paints);
    this.#built!.surface.paint(this.#paints);
  }

  #atLeisure(): void {
    this.#leisure ??= setTimeout(() => {
      this.#leisure = undefined;
      if (!this.#house || !this.#built) return;
      this.#paint(true);
      this.#explain();
    }, AT_LEISURE_MS);
  }

  #explain(): void {
    const built = this.#built!;
    built.legend?.show(legendOf(this.#house!, this.#palette, this.#words, this.#money, this.#coloursByPrice));
    built.minimap?.paint(this.#paints);
  }

  get #coloursByPrice(): boolean {
    return this.getAttribute("color-by") === "price";
  }

  get #theme(): Theme {
    const told = this.getAttribute("theme");
    return told === "light" || told === "dark" ? told : this.#media[0]!.matches ? "dark" : "light";
  }

  /** Everything that colours depend on may have changed. Geometry, prices and snapshot often come at once: dressed once. */
  #dressAll(): void {
    this.#undressed = true;
    this.#schedule();
  }

  #dressNow(): void {
    const built = this.#built;
    if (!built) return;
    this.#undressed = false;
    const computed = getComputedStyle(this);
    this.#palette = paletteOf(this.#theme, this.#media[1]!.matches, (name) => computed.getPropertyValue(name));
    showPalette(built.frame, this.#palette, this.#theme);
    const house = this.#house;
    if (!house) return;
    house.counts.recount(house.geometry.sections.keys());
    const wardrobe = new Wardrobe(house, this.#palette, this.#coloursByPrice, this.#beforeSeatDraw);
    this.#wardrobe = wardrobe;
    wardrobe.newLooks();
    built.surface.dress(this.#palette, this.#words.stage, wardrobe.looks, wardrobe.styles);
    built.surface.paint([]);
    this.#paint(true);
    built.list?.change(null);
    // Not at leisure: a legend that came later would push the map about.
    this.#explain();
    this.#keepAsking();
  }

  /** Lets the page's own drawing callback see every seat, a few at a time, those in sight first. */
  #keepAsking(): void {
    clearTimeout(this.#asking);
    const wardrobe = this.#wardrobe, built = this.#built;
    if (!wardrobe?.isUnfinished || !built) return;
    this.#asking = setTimeout(() => {
      if (this.#wardrobe !== wardrobe || this.#built !== built) return;
      const changed = wardrobe.continueAsking(built.surface.visibleSeats());
      built.surface.redress(changed, wardrobe.styles, wardrobe.newLooks());
      this.#keepAsking();
    }, 0);
  }

  #showPlan(): void {
    if (!this.#house || !this.#built) return;
    this.#firstFrame = true;
    this.#built.surface.setPlan(this.#house.plan);
    this.#built.minimap?.setPlan(this.#house.plan);
  }

  #showSection(section: number): void {
    const house = this.#house!;
    if (section < 0) return;
    if (this.mode === "list") this.#built?.list?.goTo(section);
    else this.#built?.surface.showBox(house.plan.areas[section]!.box);
  }

  #sectionTapped(n: number): void {
    const section = this.#house!.geometry.sections[n]!;
    const kept = !this.#tell("sectionclick", { section }, true) || this.onSectionClick?.(section) === false;
    // General admission has no seats to come nearer to.
    if (!kept && section.seat_count > 0 && this.mode === "map") this.#showSection(n);
  }

  #pointedAt(pointed: Pointed | null): void {
    this.#pointed = pointed;
    const hovered = pointed && pointed.seat < 0 ? pointed.section : -1;
    if (hovered !== this.#hovered) {
      this.#hovered = hovered;
      this.#schedule();
    }
    if (!pointed) {
      this.#built?.tooltip.hide();
      return;
    }
    this.#showTooltip(pointed);
    if (pointed.by === "keyboard") this.#say(this.#house!.label(pointed.seat));
  }

  #showTooltip(pointed: Pointed): void {
    const built = this.#built!;
    const text = tooltipText(this.#house!, this.#words, this.#money, pointed, this.#wardrobe);
    if (text) built.tooltip.show(text, pointed.at, pointed.gap, built.surface.size);
  }

  #viewed(view: View): void {
    const built = this.#built;
    if (!built) return;
    built.minimap?.follow(view, built.surface.size);
    setAttribute(built.zoomIn, "aria-disabled", built.surface.atNearest ? "true" : null);
    setAttribute(built.zoomOut, "aria-disabled", built.surface.atFarthest ? "true" : null);
    if (this.#pointed?.by === "keyboard") built.surface.pointAtCursor();
    else if (this.#pointed) this.#pointedAt(null);
    this.#tell("viewchange", { view });
  }

  #drawn(report: FrameReport): void {
    const drawnIn = this.#built?.surface.kind;
    if (!drawnIn) return;
    this.dispatchEvent(new CustomEvent("framedrawn", { detail: { drawMs: report.drawMs, drawnIn } }));
    if (!this.#firstFrame) return;
    this.#firstFrame = false;
    this.#tell("seatmapready", { drawMs: report.drawMs, drawnIn });
  }

  #say(text: string): void {
    this.#built?.announcer.say(text);
  }

  #showStatus(status: FeedStatus, detail: string): void {
    this.#tell("feedstatus", { status, detail });
    const element = this.#built?.status;
    if (!element) return;
    const words = this.#words;
    const texts: Record<FeedStatus, string> = {
      loading: words.loading, live: words.live, reconnecting: words.reconnecting, down: words.down, refused: detail, closed: "",
    };
    element.hidden = status === "closed";
    setAttribute(element, "data-status", status);
    element.textContent = texts[status];
  }

  #showFilters(): void {
    const house = this.#house;
    if (!house) return;
    const categories = new Set([...new Set(house.geometry.category)].map((code) => house.geometry.categories[code]!));
    this.#built?.filters?.show(this.#filter, house.prices, categories, this.#money);
  }

  #showMode(): void {
    const built = this.#built;
    if (!built) return;
    const list = this.mode === "list";
    built.mapParts.hidden = list;
    setAttribute(built.mapButton, "aria-pressed", String(!list));
    setAttribute(built.listButton, "aria-pressed", String(list));
    if (!list) {
      this.#closeList();
      return;
    }
    built.tooltip.hide();
    if (built.list || !this.#house) return;
    if (this.#undressed) this.#dressNow();
    const house = this.#house;
    built.list = new SeatList(house, {
      words: this.#words,
      money: this.#money,
      inBulk: this.#selectionKind === "any",
      look: (ordinal) => this.#wardrobe!.lookOf(ordinal),
      toggle: (ordinal) => void this.#toggle(ordinal),
      toggleMany: (ordinals) => {
        const all = ordinals.every((ordinal) => house.selection.has(ordinal));
        this.#selectMany(ordinals, { add: !all, remove: all });
      },
      openSection: (section) => this.#sectionTapped(section),
    });
    built.stage.append(built.list.element);
    built.list.layOut(filtersAnything(this.#filter));
  }

  #closeList(): void {
    const list = this.#built?.list;
    if (!list) return;
    list.close();
    list.element.remove();
    this.#built!.list = null;
  }

  // Inside: the parts -------------------------------------------------------------------------------------------------
  #rebuild(): void {
    if (!this.#built) return;
    this.#tearDown();
    this.#build();
  }

  #tearDown(): void {
    this.#built?.list?.close();
    this.#built?.surface.close();
    this.#built = null;
    this.#pointed = null;
    if (this.#asked) cancelAnimationFrame(this.#asked);
    this.#asked = 0;
    clearTimeout(this.#leisure);
    this.#leisure = undefined;
    clearTimeout(this.#asking);
  }

  #build(): void {
    const words = this.#words;
    const hidden = new Set((this.getAttribute("hide") ?? "").split(/\s+/));
    this.#root.adoptedStyleSheets = [stylesheet()];
    const draw = this.getAttribute("draw");
    const surface = new Surface(words, {
      draw: draw === "main" || draw === "worker" ? draw : "auto",
      workerUrl: this.getAttribute("worker-url"),
      wheel: () => (this.getAttribute("wheel") === "ctrl" ? "ctrl" : "zoom") satisfies WheelKind,
      still: () => this.#media[2]!.matches,
    }, {
      seatTapped: (ordinal) => void this.#toggle(ordinal),
      sectionTapped: (section) => this.#sectionTapped(section),
      pointed: (pointed) => this.#pointedAt(pointed),
      lassoed: (ordinals, modifiers) => this.#selectMany(ordinals, modifiers),
      viewed: (view) => this.#viewed(view),
      drawn: (report) => this.#drawn(report),
      left: () => this.#built?.listButton.focus(),
    });
    surface.element.setAttribute("aria-label", this.getAttribute("label") ?? words.map);
    const built = buildFrame(surface, words, {
      hidden,
      lasso: this.hasAttribute("lasso"),
      filtered: (filter) => this.#setFilter(filter),
      moded: (mode) => (this.mode = mode),
    });
    this.#root.replaceChildren(built.frame);
    this.#built = built;
    this.#showPlan();
    this.#dressNow();
    this.#showFilters();
    this.#showMode();
  }

  /** Properties that were set before the element was defined hide the real ones: they are set again. */
  #upgrade(name: string): void {
    if (!Object.hasOwn(this, name)) return;
    const self = this as unknown as Record<string, unknown>;
    const value = self[name];
    delete self[name];
    self[name] = value;
  }
}

/** What was set before the element was defined would be lost under the fields of the class. */
function before<T>(element: object, name: string): T | null {
  return (element as Record<string, T | undefined>)[name] ?? null;
}

const PROPERTIES = ["token", "words", "geometry", "prices", "holdTypes", "ownStates", "snapshot", "filter", "mode", "onBeforeSeatDraw"] as const;

declare global {
  interface HTMLElementTagNameMap {
    "holdfast-seatmap": HoldfastSeatmap;
  }
}
