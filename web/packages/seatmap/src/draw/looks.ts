import type { ShownHoldType } from "../state/hold-types.js";
import { AVAILABLE, BLOCKED, HELD } from "../state/snapshot.js";
import { contrast, cssOf, inkOn, mixed, pixelOf } from "./colour.js";
import type { Palette } from "./palette.js";
import { isMark } from "./shape.js";
import { LARGEST, PLAIN_LOOK } from "./style.js";
import type { Mark, SeatLook, Shape } from "./style.js";

/** Everything a look depends on. */
export interface SeatTraits {
  readonly state: number;
  /** Free, but kept for a companion. */
  readonly kept: boolean;
  readonly holdType: ShownHoldType | null;
  readonly category: string;
  /** Index among the amounts, -1 where seats are not coloured by price. */
  readonly tier: number;
  readonly selected: boolean;
  readonly awaited: boolean;
  /** Does not fit the filter, or its section is filtered out. */
  readonly dimmed: boolean;
  /** Its section is not for sale here. */
  readonly closed: boolean;
}

/**
 * Never colour alone: each state has its own form. Free seats are full; held ones hollow with the hands of a clock; sold ones
 * small, flat and crossed; blocked ones hollow squares with a stroke through; kept ones hollow with a dash; chosen ones
 * larger with a tick. Wheelchair places are square, companions' seats diamonds, a restricted view is half covered.
 */
export function lookOf(traits: SeatTraits, palette: Palette): SeatLook {
  const look = stateLook(traits, palette);
  const outlined = palette.outlined && look.stroke === null ? { ...look, stroke: palette.ink } : look;
  return traits.dimmed && !traits.selected ? { ...outlined, opacity: 0.2, mark: "none", icon: null, numbered: false } : outlined;
}

const SHAPES: Readonly<Record<string, Shape>> = { wheelchair: "square", companion: "diamond" };
const MARKS: Readonly<Record<string, Mark>> = { wheelchair: "wheelchair", companion: "companion", restricted_view: "half" };

function stateLook(traits: SeatTraits, palette: Palette): SeatLook {
  const shape = SHAPES[traits.category] ?? "circle";
  if (traits.selected || traits.awaited) {
    const ink = cssOf(inkOn(pixelOf(palette.selected)));
    return traits.awaited
      ? { ...PLAIN_LOOK, shape, fill: palette.paper, stroke: palette.selected, ink: palette.selected, mark: "dot", size: 1.16, raised: true }
      : { ...PLAIN_LOOK, shape, fill: palette.selected, stroke: palette.paper, ink, mark: "check", size: LARGEST, raised: true };
  }
  if (traits.state === HELD) return heldLook(traits.holdType, shape, palette);
  if (traits.state === BLOCKED || traits.closed) {
    return { ...PLAIN_LOOK, shape: "square", fill: palette.section, stroke: palette.blocked, ink: palette.blocked, mark: "slash", size: 0.82, numbered: false };
  }
  if (traits.state !== AVAILABLE) {
    return { ...PLAIN_LOOK, shape, fill: palette.taken, ink: palette.takenInk, mark: "cross", size: 0.8, numbered: false };
  }
  const colour = traits.tier >= 0 ? palette.tiers[traits.tier % palette.tiers.length]! : palette.available;
  if (traits.kept) {
    return { ...PLAIN_LOOK, shape, fill: palette.paper, stroke: colour, ink: colour, mark: "dash", size: 0.92, numbered: false };
  }
  const mark = MARKS[traits.category] ?? "none";
  const ink = mark === "half" ? cssOf(mixed(pixelOf(colour), pixelOf(palette.section), 0.62)) : cssOf(inkOn(pixelOf(colour)));
  return { ...PLAIN_LOOK, shape, fill: colour, ink, mark, numbered: mark === "none" };
}

function heldLook(holdType: ShownHoldType | null, shape: Shape, palette: Palette): SeatLook {
  const told = holdType?.displayColor ?? palette.blocked;
  const icon = holdType?.displayIcon ?? null;
  const mark: Mark = icon === null ? "clock" : isMark(icon) ? icon : "none";
  const text = icon !== null && !isMark(icon) ? [...icon].slice(0, 2).join("") : null;
  return {
    ...PLAIN_LOOK, shape, fill: palette.paper, stroke: palette.outlined ? readable(told, palette) : told, ink: readable(told, palette), mark, icon: text, size: 0.94, numbered: false,
  };
}

/** A hold type may have any colour; its mark must be seen on paper all the same. */
function readable(colour: string, palette: Palette): string {
  const paper = pixelOf(palette.paper), ink = pixelOf(palette.ink);
  let found = pixelOf(colour);
  for (let share = 0.15; contrast(found, paper) < 3 && share <= 1; share += 0.15) found = mixed(pixelOf(colour), ink, share);
  return cssOf(found);
}
