import type { Palette, Theme } from "../draw/palette.js";
import type { SeatList } from "../list/seat-list.js";
import type { SeatFilter } from "../state/seat-filter.js";
import type { Surface } from "../surface.js";
import type { Words } from "../words.js";
import { Announcer } from "./announcer.js";
import { build, icon, ICONS } from "./build.js";
import { FilterBar } from "./filter-bar.js";
import { Legend } from "./legend.js";
import { Minimap } from "./minimap.js";
import { Tooltip } from "./tooltip.js";

export type Mode = "map" | "list";

export interface FrameManner {
  /** Parts that the page does without. */
  readonly hidden: ReadonlySet<string>;
  readonly lasso: boolean;
  readonly filtered: (filter: SeatFilter) => void;
  readonly moded: (mode: Mode) => void;
}

/** Everything inside the element. */
export interface Built {
  readonly frame: HTMLElement;
  readonly stage: HTMLElement;
  readonly mapParts: HTMLElement;
  readonly surface: Surface;
  readonly tooltip: Tooltip;
  readonly announcer: Announcer;
  readonly minimap: Minimap | null;
  readonly legend: Legend | null;
  readonly filters: FilterBar | null;
  readonly zoomIn: HTMLElement;
  readonly zoomOut: HTMLElement;
  readonly mapButton: HTMLElement;
  readonly listButton: HTMLElement;
  readonly status: HTMLElement;
  list: SeatList | null;
}

export function buildFrame(surface: Surface, words: Words, manner: FrameManner): Built {
  const tooltip = new Tooltip();
  const announcer = new Announcer();
  const minimap = manner.hidden.has("minimap") ? null : new Minimap(words.minimap, (point) => surface.centreOn(point));
  const legend = manner.hidden.has("legend") ? null : new Legend(words);
  const filters = manner.hidden.has("filters") ? null : new FilterBar(words, manner.filtered);
  const tool = (label: string, path: string, click: () => void) =>
    build("button", { type: "button", "aria-label": label, title: label, click }, icon(path));
  const zoomIn = tool(words.zoomIn, ICONS.plus, () => surface.zoomBy(1.7));
  const zoomOut = tool(words.zoomOut, ICONS.minus, () => surface.zoomBy(1 / 1.7));
  const whole = tool(words.wholePlan, ICONS.whole, () => surface.wholePlan());
  const lasso = manner.lasso ? tool(words.lasso, ICONS.lasso, () => {
    const on = lasso!.getAttribute("aria-pressed") !== "true";
    lasso!.setAttribute("aria-pressed", String(on));
    surface.draws = on;
  }) : null;
  lasso?.setAttribute("aria-pressed", "false");
  const zoom = manner.hidden.has("zoom") ? null : build("div", { class: "zoom", part: "zoom" },
    lasso && build("div", { class: "zoom-group" }, lasso),
    build("div", { class: "zoom-group" }, zoomIn, zoomOut, whole));
  const mapParts = build("div", { class: "map-parts" },
    surface.element, build("p", { class: "unseen", id: "map-help" }, words.mapHelp), minimap?.element, zoom, tooltip.element);
  const mode = (label: string, path: string, to: Mode) =>
    build("button", { type: "button", "aria-pressed": "false", click: () => manner.moded(to) }, icon(path), build("span", {}, label));
  const mapButton = mode(words.mapMode, ICONS.map, "map"), listButton = mode(words.listMode, ICONS.list, "list");
  const status = build("div", { class: "status", part: "status", role: "status", hidden: true });
  const stage = build("div", { class: "stage" }, mapParts, status);
  const bar = build("div", { class: "bar", part: "bar" }, filters?.element,
    !manner.hidden.has("modes") && build("div", { class: "modes", role: "group", "aria-label": `${words.mapMode} / ${words.listMode}` }, mapButton, listButton));
  bar.hidden = manner.hidden.has("filters") && manner.hidden.has("modes");
  const frame = build("div", { class: "frame", part: "frame" }, bar, stage, legend?.element, announcer.element);
  return {
    frame, stage, mapParts, surface, tooltip, announcer, minimap, legend, filters, zoomIn, zoomOut, mapButton, listButton, status, list: null,
  };
}

/** The parts around the map have the map's colours. */
export function showPalette(frame: HTMLElement, palette: Palette, theme: Theme): void {
  frame.style.colorScheme = theme;
  const control = theme === "dark" ? "#7d8ba1" : "#7a8698";
  const names: Readonly<Record<string, string>> = {
    "--ground": palette.ground, "--paper": palette.paper, "--ink": palette.ink, "--faint-ink": palette.faintInk,
    "--edge": palette.edge, "--highlight": palette.highlight, "--available": palette.available,
    "--control": palette.outlined ? palette.ink : control,
  };
  for (const [name, value] of Object.entries(names)) frame.style.setProperty(name, value);
}
