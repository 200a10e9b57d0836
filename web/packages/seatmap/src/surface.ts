import { detailAt } from "./draw/detail.js";
import type { Detail } from "./draw/detail.js";
import type { Backend, BackendKind, FrameReport } from "./draw/backend.js";
import { pixelOf } from "./draw/colour.js";
import { openBackend } from "./draw/open-backend.js";
import type { Palette } from "./draw/palette.js";
import { sceneOf } from "./draw/scene.js";
import type { SectionPaint } from "./draw/scene.js";
import { samePaints } from "./draw/section-paint.js";
import type { SeatLook } from "./draw/style.js";
import type { Box, Point } from "./geometry/geometry.js";
import { grownBox } from "./geometry/geometry.js";
import { neighbourOf } from "./geometry/neighbour.js";
import type { Direction } from "./geometry/neighbour.js";
import type { Plan } from "./geometry/plan.js";
import { seatAt, sectionAt } from "./geometry/plan.js";
import { clamped, fitted, panned, sameView, seenBox, toScreen, zoomedAbout } from "./geometry/view.js";
import type { Size, View } from "./geometry/view.js";
import { Gestures } from "./input/gestures.js";
import { Glide } from "./input/glide.js";
import { commandOf } from "./input/keys.js";
import { seatsInside } from "./input/lasso.js";
import { listenToWheel } from "./input/wheel.js";
import type { WheelKind } from "./input/wheel.js";
import { build, setAttribute } from "./parts/build.js";
import type { Words } from "./words.js";

/** Below this, a seat cannot be meant: a tap is for its section. */
const SEAT_FROM_CSS_PX = { mouse: 5, touch: 8 } as const;
/** How near one can get, and how near the keyboard brings one: seats with their numbers. */
const NEAREST_CSS_PX = 54;
const READABLE_CSS_PX = 24;
const MOST_PIXELS = 4_200_000;

export interface SurfaceHandlers {
  seatTapped(ordinal: number): void;
  sectionTapped(section: number): void;
  /** What the pointer or the keyboard is at, and where that is on the screen. */
  pointed(at: Pointed | null): void;
  lassoed(ordinals: number[], modifiers: { readonly add: boolean; readonly remove: boolean }): void;
  viewed(view: View, size: Size, detail: Detail): void;
  drawn(report: FrameReport): void;
  left(): void;
}

export interface Pointed {
  readonly seat: number;
  readonly section: number;
  readonly at: Point;
  /** Half the height of what is pointed at. */
  readonly gap: number;
  readonly by: "pointer" | "keyboard";
}

export interface SurfaceManner {
  readonly draw: BackendKind | "auto";
  readonly workerUrl: string | null;
  readonly wheel: () => WheelKind;
  readonly still: () => boolean;
}

/** The drawn plan: what is seen of it, and what fingers, wheel and keys do there. */
export class Surface {
  readonly element: HTMLElement;
  readonly #handlers: SurfaceHandlers;
  readonly #manner: SurfaceManner;
  readonly #gestures: Gestures;
  readonly #glide = new Glide();
  readonly #listening = new AbortController();
  readonly #watch: ResizeObserver;
  readonly #ring = build("div", { class: "ring", hidden: true });
  readonly #lassoPath: SVGPathElement;
  #backend: Backend;
  #canvas: HTMLCanvasElement;
  #kind: BackendKind;
  #plan: Plan | null = null;
  #view: View = { scale: 1, x: 0, y: 0 };
  #size: Size = { width: 0, height: 0 };
  #paints: readonly SectionPaint[] = [];
  #ground = 0;
  #cursor = -1;
  #draws = false;
  #untouched = true;
  /** What the backend was last told, to tell it to another should the worker fail. */
  #retell: (() => void) | null = null;

  constructor(words: Words, manner: SurfaceManner, handlers: SurfaceHandlers) {
    this.#manner = manner;
    this.#handlers = handlers;
    const opened = this.#open(manner.draw);
    this.#backend = opened.backend;
    this.#canvas = opened.canvas;
    this.#kind = opened.kind;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "lasso");
    svg.setAttribute("aria-hidden", "true");
    this.#lassoPath = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.append(this.#lassoPath);
    this.element = build("div", {
      class: "surface", part: "surface", tabindex: 0, role: "application", "aria-label": words.map,
      "aria-roledescription": words.map, "aria-describedby": "map-help",
    }, this.#canvas, svg, this.#ring);
    this.#gestures = new Gestures(this.element, {
      pan: (dx, dy) => this.#move(panned(this.#view, dx, dy)),
      pinch: (at, factor, dx, dy) => this.#move(panned(zoomedAbout(this.#view, at, factor), dx, dy)),
      tap: (at, type) => this.#tap(at, type),
      hover: (at) => this.#hover(at),
      draws: () => this.#draws,
      drawing: (path) => this.#lassoPath.setAttribute("d", pathOf(path)),
      drawn: (path, modifiers) => this.#lassoed(path, modifiers),
    });
    const { signal } = this.#listening;
    listenToWheel(this.element, manner.wheel, (at, factor) => this.#move(zoomedAbout(this.#view, at, factor)), signal);
    this.element.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.element.addEventListener("blur", () => this.#setCursor(-1), { signal });
    this.#watch = new ResizeObserver(() => this.#resized());
    this.#watch.observe(this.element);
  }

  get kind(): BackendKind {
    return this.#kind;
  }

  get view(): View {
    return this.#view;
  }

  get size(): Size {
    return this.#size;
  }

  get detail(): Detail {
    return detailAt(this.seatCssPx, this.#ratio());
  }

  get seatCssPx(): number {
    return this.#plan ? this.#plan.seatRadius * 2 * this.#view.scale : 0;
  }

  get atNearest(): boolean {
    return this.#plan !== null && this.#view.scale >= this.#limits().mostScale * 0.999;
  }

  get atFarthest(): boolean {
    return this.#plan !== null && this.#view.scale <= this.#limits().leastScale * 1.001;
  }

  set draws(on: boolean) {
    this.#draws = on;
    setAttribute(this.element, "data-draws", on);
    if (!on) this.#gestures.cancelDrawing();
  }

  close(): void {
    this.#listening.abort();
    this.#gestures.close();
    this.#glide.stop();
    this.#watch.disconnect();
    this.#backend.close();
  }

  // What is drawn -----------------------------------------------------------------------------------------------------
  setPlan(plan: Plan): void {
    this.#plan = plan;
    this.#paints = [];
    this.#setCursor(-1);
    this.#backend.setScene(sceneOf(plan));
    this.#untouched = true;
    this.#resized();
  }

  /** Everything anew: another theme, other prices. */
  dress(palette: Palette, stageWords: string, looks: readonly SeatLook[], styles: Uint16Array): void {
    const tell = () => {
      this.#backend.setPaper({
        ground: pixelOf(palette.ground), ink: palette.ink, faintInk: palette.faintInk, plate: palette.paper,
        stage: palette.stage, stageInk: palette.stageInk, stageWords,
      });
      this.#backend.dress({ looks: [...looks], styles });
    };
    this.#ground = pixelOf(palette.ground);
    this.#retell = tell;
    tell();
  }

  redress(ordinals: readonly number[], styles: Uint16Array, newLooks: readonly SeatLook[]): void {
    if (!ordinals.length && !newLooks.length) return;
    const seats = Uint32Array.from(ordinals);
    const worn = new Uint16Array(ordinals.length);
    for (let i = 0; i < ordinals.length; i++) worn[i] = styles[ordinals[i]!]!;
    this.#backend.redress(seats, worn, newLooks);
  }

  paint(paints: readonly SectionPaint[]): boolean {
    if (samePaints(paints, this.#paints)) return false;
    this.#paints = paints;
    this.#backend.paintSections(paints, this.#ground);
    return true;
  }

  // Where one looks ---------------------------------------------------------------------------------------------------
  zoomBy(factor: number): void {
    const middle = { x: this.#size.width / 2, y: this.#size.height / 2 };
    this.#glideTo(zoomedAbout(this.#view, middle, factor));
  }

  wholePlan(): void {
    if (this.#plan) this.#glideTo(this.#fitted(this.#plan.box));
  }

  /** `readable`: no nearer than seats with numbers, however small the box. */
  showBox(box: Box): void {
    if (!this.#plan) return;
    const most = READABLE_CSS_PX / (this.#plan.seatRadius * 2);
    this.#glideTo(fitted(grownBox(box, this.#plan.spacing), this.#size, 24, most));
  }

  centreOn(point: Point, glide = false): void {
    const { scale } = this.#view;
    const view = { scale, x: this.#size.width / 2 - point.x * scale, y: this.#size.height / 2 - point.y * scale };
    if (glide) this.#glideTo(view);
    else this.#move(view);
  }

  visibleSeats(): number[] {
    const found: number[] = [];
    if (this.#plan) this.#plan.grid.visit(seenBox(this.#view, this.#size), (ordinal) => found.push(ordinal));
    return found;
  }

  placeOf(ordinal: number): Point {
    const plan = this.#plan!;
    return toScreen(this.#view, { x: plan.x[ordinal]!, y: plan.y[ordinal]! });
  }

  // Inside ------------------------------------------------------------------------------------------------------------
  #open(kind: BackendKind | "auto") {
    return openBackend({
      kind,
      workerUrl: this.#manner.workerUrl,
      drawn: (report) => this.#handlers.drawn(report),
      failed: () => this.#drawHere(),
    });
  }

  /** The worker could not be had: its canvas is lost with it, so another takes its place. */
  #drawHere(): void {
    const opened = this.#open("main");
    this.#canvas.replaceWith(opened.canvas);
    this.#canvas = opened.canvas;
    this.#backend = opened.backend;
    this.#kind = opened.kind;
    if (!this.#plan) return;
    this.#backend.setScene(sceneOf(this.#plan));
    this.#retell?.();
    this.#backend.paintSections(this.#paints, this.#ground);
    this.#show();
  }

  #ratio(): number {
    const { width, height } = this.#size;
    return Math.min(globalThis.devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / Math.max(width * height, 1)));
  }

  #limits() {
    const { box, seatRadius } = this.#plan!;
    const least = this.#fitted(box).scale;
    return { plan: box, size: this.#size, leastScale: least, mostScale: Math.max(NEAREST_CSS_PX / (seatRadius * 2), least) };
  }

  #fitted(box: Box): View {
    const margin = Math.min(28, this.#size.width * 0.04);
    return fitted(box, this.#size, margin, NEAREST_CSS_PX / (this.#plan!.seatRadius * 2));
  }

  #resized(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    const before = this.#size;
    this.#size = { width, height };
    if (!this.#plan) return;
    if (this.#untouched || !before.width) {
      this.#view = this.#fitted(this.#plan.box);
    } else {
      this.#view = clamped(panned(this.#view, (width - before.width) / 2, (height - before.height) / 2), this.#limits());
    }
    this.#show();
  }

  #glideTo(view: View): void {
    if (!this.#plan) return;
    this.#untouched = false;
    const to = clamped(view, this.#limits());
    this.#glide.go(this.#view, to, this.#size, this.#manner.still(), (at) => {
      this.#view = at;
      this.#show();
    });
  }

  #move(view: View): void {
    if (!this.#plan) return;
    this.#glide.stop();
    this.#untouched = false;
    const next = clamped(view, this.#limits());
    if (sameView(next, this.#view)) return;
    this.#view = next;
    this.#show();
  }

  #show(): void {
    if (!this.#plan || !this.#size.width) return;
    const ratio = this.#ratio();
    this.#backend.setFrame({
      width: Math.round(this.#size.width * ratio),
      height: Math.round(this.#size.height * ratio),
      ratio,
      scale: this.#view.scale * ratio,
      x: Math.round(this.#view.x * ratio),
      y: Math.round(this.#view.y * ratio),
    });
    this.#placeRing();
    this.#handlers.viewed(this.#view, this.#size, this.detail);
  }

  #tap(at: Point, type: string): void {
    if (!this.#plan) return;
    const touch = type !== "mouse";
    const section = sectionAt(this.#plan, this.#view, at);
    const seat = this.seatCssPx >= SEAT_FROM_CSS_PX[touch ? "touch" : "mouse"] ? seatAt(this.#plan, this.#view, at, touch ? 14 : 0) : -1;
    if (seat >= 0) {
      this.#handlers.seatTapped(seat);
      this.#handlers.pointed({ seat, section, at: this.placeOf(seat), gap: this.seatCssPx / 2 + 8, by: "pointer" });
    } else if (section >= 0) this.#handlers.sectionTapped(section);
    else this.#handlers.pointed(null);
  }

  #hover(at: Point | null): void {
    if (!this.#plan || !at || this.#draws) {
      setAttribute(this.element, "data-over", null);
      this.#handlers.pointed(null);
      return;
    }
    const seat = this.seatCssPx >= SEAT_FROM_CSS_PX.mouse ? seatAt(this.#plan, this.#view, at, 0) : -1;
    const section = sectionAt(this.#plan, this.#view, at);
    const standing = section >= 0 && this.#plan.geometry.sections[section]!.seat_count === 0;
    const overSection = section >= 0 && (standing || this.seatCssPx < SEAT_FROM_CSS_PX.mouse);
    setAttribute(this.element, "data-over", seat >= 0 ? "seat" : overSection ? "section" : null);
    if (seat >= 0) this.#handlers.pointed({ seat, section, at: this.placeOf(seat), gap: this.seatCssPx / 2 + 8, by: "pointer" });
    else if (overSection) this.#handlers.pointed({ seat: -1, section, at, gap: 16, by: "pointer" });
    else this.#handlers.pointed(null);
  }

  #lassoed(path: readonly Point[], modifiers: { readonly add: boolean; readonly remove: boolean }): void {
    this.#lassoPath.setAttribute("d", "");
    if (this.#plan) this.#handlers.lassoed(seatsInside(this.#plan, this.#view, path), modifiers);
  }

  #key(event: KeyboardEvent): void {
    const command = commandOf(event);
    if (!command || !this.#plan) return;
    if (command.do === "leave") {
      if (this.#gestures.cancelDrawing() || this.#cursor >= 0) {
        event.preventDefault();
        this.#setCursor(-1);
        this.#handlers.pointed(null);
      } else this.#handlers.left();
      return;
    }
    event.preventDefault();
    switch (command.do) {
      case "move": this.#moveCursor(command.direction); break;
      case "pan": this.#panBy(command.direction); break;
      case "zoom": this.zoomBy(command.factor); break;
      case "whole": this.wholePlan(); break;
      case "select":
        if (this.#cursor >= 0) this.#handlers.seatTapped(this.#cursor);
        else this.#moveCursor(null);
        break;
    }
  }

  #panBy(direction: Direction): void {
    const step = Math.min(this.#size.width, this.#size.height) / 3;
    const dx = direction === "left" ? step : direction === "right" ? -step : 0;
    const dy = direction === "up" ? step : direction === "down" ? -step : 0;
    this.#glideTo(panned(this.#view, dx, dy));
  }

  #moveCursor(direction: Direction | null): void {
    const plan = this.#plan!;
    let next: number;
    if (this.#cursor < 0 || direction === null) {
      const middle = seenBox(this.#view, this.#size);
      const x = (middle.left + middle.right) / 2, y = (middle.top + middle.bottom) / 2;
      const reach = Math.max(plan.box.right - plan.box.left, plan.box.bottom - plan.box.top);
      next = -1;
      for (let within = plan.spacing * 4; next < 0 && within < reach * 2; within *= 2) next = plan.grid.nearest(plan.x, plan.y, x, y, within);
    } else next = neighbourOf(plan, this.#cursor, direction);
    if (next < 0) return;
    this.#setCursor(next);
    this.#bringIntoView(next);
    this.pointAtCursor();
  }

  /** Tells anew what the keyboard is at: it moved, or the seat changed. */
  pointAtCursor(): void {
    if (this.#cursor < 0) return;
    this.#handlers.pointed({
      seat: this.#cursor, section: this.#plan!.geometry.section[this.#cursor]!, at: this.placeOf(this.#cursor),
      gap: this.seatCssPx / 2 + 10, by: "keyboard",
    });
  }

  #bringIntoView(seat: number): void {
    const place = this.placeOf(seat);
    const { width, height } = this.#size;
    if (this.seatCssPx < READABLE_CSS_PX * 0.6) {
      // Too small to be seen: straight there, or the ring would run ahead of the map.
      const scale = READABLE_CSS_PX / (this.#plan!.seatRadius * 2);
      this.#move({ scale, x: width / 2 - this.#plan!.x[seat]! * scale, y: height / 2 - this.#plan!.y[seat]! * scale });
      return;
    }
    const margin = Math.min(80, width / 4, height / 4);
    const dx = place.x < margin ? margin - place.x : place.x > width - margin ? width - margin - place.x : 0;
    const dy = place.y < margin ? margin - place.y : place.y > height - margin ? height - margin - place.y : 0;
    if (dx || dy) this.#move(panned(this.#view, dx, dy));
  }

  #setCursor(seat: number): void {
    this.#cursor = seat;
    this.#placeRing();
  }

  #placeRing(): void {
    this.#ring.hidden = this.#cursor < 0;
    if (this.#cursor < 0) return;
    const { x, y } = this.placeOf(this.#cursor);
    const size = Math.max(this.seatCssPx * 1.45, 16);
    this.#ring.style.width = this.#ring.style.height = `${size}px`;
    this.#ring.style.transform = `translate(${x - size / 2}px, ${y - size / 2}px)`;
  }
}

function pathOf(path: readonly Point[]): string {
  if (path.length < 2) return "";
  return `M${path.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
}
