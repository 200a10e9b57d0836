const CSS = `
:host { display: block; position: relative; height: 600px; min-height: 300px; color-scheme: light dark; }
:host([hidden]) { display: none; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.frame {
  display: grid; grid-template-rows: auto minmax(0, 1fr) auto; height: 100%; overflow: hidden;
  container-type: inline-size;
  font: 500 14px/1.4 var(--holdfast-font, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif);
  color: var(--ink); background: var(--paper); border: 1px solid var(--edge); border-radius: var(--holdfast-radius, 14px);
}
.bar { grid-row: 1; }
.stage { grid-row: 2; }
.legend { grid-row: 3; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
button, select { font: inherit; color: inherit; }
button { cursor: pointer; }
:focus { outline: none; }
:focus-visible { outline: 3px solid var(--highlight); outline-offset: 2px; }
.icon { width: 20px; height: 20px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; flex: none; }

.bar { display: flex; gap: 8px; align-items: center; padding: 8px 10px; border-bottom: 1px solid var(--edge); background: var(--paper); min-width: 0; }
.filters { display: flex; gap: 8px; align-items: center; flex: 1 1 auto; min-width: 0; overflow-x: auto; scrollbar-width: none; padding: 4px; margin: -4px; }
.chip {
  flex: none; display: inline-flex; align-items: center; min-height: 36px; padding: 0 14px; border: 1px solid var(--control); border-radius: 18px;
  background: var(--paper); color: var(--ink); white-space: nowrap;
}
.chip:hover { background: var(--ground); }
.chip[aria-pressed="true"] { background: var(--ink); border-color: var(--ink); color: var(--paper); }
.chip[aria-pressed="true"]::before { content: "✓"; margin-right: 6px; }
.chip-select { padding: 0; }
.chip-select select { appearance: none; border: 0; background: transparent; min-height: 34px; padding: 0 32px 0 14px; border-radius: 18px; cursor: pointer; max-width: 220px; }
.chip-select select option { color: var(--ink); background: var(--paper); }
.chip-select { position: relative; }
.chip-select::after {
  content: ""; position: absolute; right: 14px; top: 50%; width: 7px; height: 7px; margin-top: -6px; pointer-events: none;
  border: solid currentColor; border-width: 0 2px 2px 0; transform: rotate(45deg);
}
.modes { flex: none; display: inline-flex; margin-left: auto; border: 1px solid var(--control); border-radius: 18px; overflow: clip; }
.modes button { display: inline-flex; gap: 6px; align-items: center; min-height: 36px; padding: 0 14px; border: 0; background: transparent; }
.modes button[aria-pressed="true"] { background: var(--ink); color: var(--paper); }
.modes button:focus-visible { outline-offset: -4px; outline-color: currentColor; }

.stage { position: relative; min-height: 0; background: var(--ground); }
.map-parts { position: absolute; inset: 0; overflow: hidden; }
.surface { position: absolute; inset: 0; overflow: hidden; touch-action: none; cursor: grab; user-select: none; -webkit-user-select: none; }
.surface:active { cursor: grabbing; }
.surface[data-over="seat"] { cursor: pointer; }
.surface[data-over="section"] { cursor: zoom-in; }
.surface[data-draws] { cursor: crosshair; }
.surface:focus-visible { outline: 3px solid var(--highlight); outline-offset: -3px; }
.surface canvas { position: absolute; inset: 0; width: 100%; height: 100%; display: block; }
.ring { position: absolute; left: 0; top: 0; border: 3px solid var(--highlight); border-radius: 50%; box-shadow: 0 0 0 2px var(--paper), inset 0 0 0 1px var(--paper); pointer-events: none; }
.lasso { position: absolute; inset: 0; width: 100%; height: 100%; pointer-events: none; }
.lasso path { fill: var(--highlight); fill-opacity: .14; stroke: var(--highlight); stroke-width: 2; stroke-dasharray: 6 5; stroke-linejoin: round; }

.zoom { position: absolute; right: 12px; bottom: 12px; display: grid; gap: 8px; }
.zoom-group { display: grid; border-radius: 12px; overflow: clip; box-shadow: 0 1px 2px rgb(0 0 0 / .14), 0 4px 14px rgb(0 0 0 / .10); background: var(--paper); border: 1px solid var(--edge); }
.zoom button { width: 44px; height: 44px; display: grid; place-items: center; border: 0; background: var(--paper); }
.zoom button + button { border-top: 1px solid var(--edge); }
.zoom button:hover { background: var(--ground); }
.zoom button[aria-pressed="true"] { background: var(--ink); color: var(--paper); }
.zoom button:focus-visible { outline-offset: -4px; }
.zoom button[aria-disabled="true"] { color: var(--faint-ink); opacity: .55; cursor: default; }

.minimap { position: absolute; left: 12px; bottom: 12px; border-radius: 12px; overflow: clip; background: var(--paper); border: 1px solid var(--edge); box-shadow: 0 1px 2px rgb(0 0 0 / .14), 0 4px 14px rgb(0 0 0 / .10); }
.minimap-button { position: relative; display: block; padding: 0; border: 0; background: transparent; touch-action: none; cursor: crosshair; overflow: hidden; }
.minimap canvas { display: block; }
.minimap-window { position: absolute; left: 0; top: 0; border: 2px solid var(--highlight); border-radius: 4px; box-shadow: 0 0 0 200px rgb(0 0 0 / .12); pointer-events: none; }

.tooltip { position: absolute; left: 0; top: 0; max-width: 280px; padding: 10px 12px; border-radius: 10px; pointer-events: none; background: var(--paper); color: var(--ink); border: 1px solid var(--edge); box-shadow: 0 2px 6px rgb(0 0 0 / .16), 0 10px 28px rgb(0 0 0 / .16); z-index: 3; }
.tooltip-title { display: flex; gap: 14px; justify-content: space-between; font-weight: 650; }
.tooltip-price { white-space: nowrap; }
.tooltip-line { display: flex; align-items: center; gap: 6px; color: var(--faint-ink); font-size: 13px; }
.swatch { width: 18px; height: 18px; flex: none; }

.status { position: absolute; left: 12px; top: 12px; display: inline-flex; gap: 8px; align-items: center; padding: 5px 12px; border-radius: 15px; background: var(--paper); border: 1px solid var(--edge); font-size: 13px; max-width: calc(100% - 24px); z-index: 2; }
.status::before { content: ""; width: 9px; height: 9px; border-radius: 50%; background: var(--available); flex: none; }
.status[data-status="reconnecting"]::before, .status[data-status="loading"]::before { background: transparent; border: 2px solid var(--faint-ink); border-top-color: transparent; animation: turn 1s linear infinite; width: 12px; height: 12px; }
.status[data-status="down"], .status[data-status="refused"] { background: #8c1d18; border-color: #8c1d18; color: #fff; }
.status[data-status="down"]::before, .status[data-status="refused"]::before { content: "!"; background: transparent; width: auto; height: auto; font-weight: 800; }
@keyframes turn { to { transform: rotate(1turn); } }

.legend { border-top: 1px solid var(--edge); background: var(--paper); overflow-x: auto; scrollbar-width: none; }
.legend-list { display: flex; flex-wrap: wrap; gap: 6px 18px; margin: 0; padding: 9px 14px; list-style: none; font-size: 13px; }
.legend-list li { display: inline-flex; gap: 7px; align-items: center; white-space: nowrap; }

.list { position: absolute; inset: 0; overflow: auto; padding: 0 12px; background: var(--paper); }
.list-lines { position: relative; }
.list-line { position: absolute; left: 0; right: 0; top: 0; }
.list-empty { margin: 32px; text-align: center; color: var(--faint-ink); }
.list-section { display: flex; align-items: center; gap: 8px; border-top: 1px solid var(--edge); }
.list-section:first-child { border-top: 0; }
.list-heading { flex: 1; min-width: 0; }
.list-section-button { width: 100%; min-height: 52px; display: flex; gap: 10px; align-items: center; padding: 0 8px; border: 0; border-radius: 10px; background: transparent; text-align: start; }
.list-section-button:hover { background: var(--ground); }
.list-section-button:focus-visible { outline-offset: -3px; }
.list-section-button[aria-expanded="false"] .icon { transform: rotate(-90deg); }
.list-name { font-weight: 650; font-size: 16px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.list-about { color: var(--faint-ink); font-size: 13px; white-space: nowrap; }
.list-count { margin-left: auto; color: var(--faint-ink); font-size: 13px; white-space: nowrap; }
.list-row { display: flex; align-items: flex-start; gap: 8px; padding-bottom: 10px; }
.list-row-name { flex: none; width: 96px; min-height: 44px; display: flex; align-items: center; padding-left: 8px; color: var(--faint-ink); font-size: 13px; text-transform: capitalize; }
button.list-row-name { padding: 0 10px; justify-content: center; border-radius: 10px; color: var(--ink); }
.list-seats { display: flex; flex-wrap: wrap; align-content: flex-start; flex: 1; min-width: 0; }
.seat { width: 44px; height: 44px; margin: 2px; display: grid; justify-items: center; align-content: center; gap: 1px; border: 1px solid var(--control); border-radius: 9px; background: var(--paper); padding: 0; font-size: 12px; line-height: 1.1; }
.seat .swatch { width: 20px; height: 20px; }
.seat:hover:not([aria-disabled="true"]) { border-color: var(--ink); background: var(--ground); }
.seat[aria-disabled="true"] { border-style: dashed; border-color: var(--edge); color: var(--faint-ink); cursor: default; }
.seat[aria-pressed="true"] { border: 2px solid var(--ink); font-weight: 700; }

@container (max-width: 560px) {
  .modes button { padding: 0 12px; }
  .modes span { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .bar { padding: 6px 8px; }
  .legend-list { flex-wrap: nowrap; gap: 16px; width: max-content; }
  .list-row-name { width: 40px; padding-left: 2px; }
  .list-about, .list-row-word { display: none; }
  span.list-row-name { font-weight: 650; color: var(--ink); }
  .minimap { transform: scale(.75); transform-origin: left bottom; }
}
@media (prefers-reduced-motion: reduce) { .status::before { animation: none !important; } }
@media (forced-colors: active) { .chip[aria-pressed="true"], .modes button[aria-pressed="true"], .seat[aria-pressed="true"] { outline: 2px solid Highlight; } }
`;

let made: CSSStyleSheet | null = null;

/** One sheet for all maps of a page, constructed: a content policy that forbids inline styles lets it through. */
export function stylesheet(): CSSStyleSheet {
  if (!made) {
    made = new CSSStyleSheet();
    made.replaceSync(CSS);
  }
  return made;
}
