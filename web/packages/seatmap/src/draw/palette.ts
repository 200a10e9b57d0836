import { isColour } from "./colour.js";

/** Colours of the drawn plan. Each can be set by a custom property of the same name: `--holdfast-available`, … */
export interface Palette {
  readonly ground: string;
  readonly section: string;
  readonly edge: string;
  readonly highlight: string;
  readonly available: string;
  readonly taken: string;
  readonly takenInk: string;
  readonly blocked: string;
  readonly selected: string;
  readonly paper: string;
  readonly ink: string;
  readonly faintInk: string;
  readonly stage: string;
  readonly stageInk: string;
  /** Of amounts, cheapest first. They differ in lightness as well as hue. */
  readonly tiers: readonly string[];
  /** Every seat has an edge that stands out from the ground. */
  readonly outlined: boolean;
}

export type Theme = "light" | "dark";

const LIGHT: Palette = {
  ground: "#f5f7fa", section: "#e7ecf3", edge: "#bcc7d6", highlight: "#2457d6",
  available: "#16805a", taken: "#cfd5de", takenInk: "#8b95a5", blocked: "#8e99a9", selected: "#101a33",
  paper: "#ffffff", ink: "#17202e", faintInk: "#556173", stage: "#28334a", stageInk: "#f2f5fa",
  tiers: ["#5b8c2a", "#0f7f78", "#2b62d9", "#7a3fc0", "#b02a75", "#8f3a12", "#3d4a63", "#5c2d91"], outlined: false,
};

const DARK: Palette = {
  ground: "#10151e", section: "#1b2331", edge: "#3a475c", highlight: "#7fa6ff",
  available: "#3ecf97", taken: "#2f3a4b", takenInk: "#6a788d", blocked: "#6f7d92", selected: "#ffffff",
  paper: "#1a2230", ink: "#eef2f8", faintInk: "#a7b3c5", stage: "#dfe6f1", stageInk: "#1a2230",
  tiers: ["#a6d96a", "#4fd6c9", "#82aaff", "#c39bff", "#ff8fc4", "#ffb27a", "#b5c2d9", "#d0a3ff"], outlined: false,
};

/** For whoever asked their system for more contrast. */
const STRONGER: Record<Theme, Partial<Palette>> = {
  light: {
    ground: "#ffffff", section: "#ffffff", edge: "#000000", highlight: "#0033cc", available: "#00553a", taken: "#e6e6e6",
    takenInk: "#4a4a4a", blocked: "#333333", selected: "#000000", ink: "#000000", faintInk: "#222222", stage: "#000000", stageInk: "#ffffff",
    outlined: true,
  },
  dark: {
    ground: "#000000", section: "#000000", edge: "#ffffff", highlight: "#ffe14d", available: "#5dffbf", taken: "#1c1c1c",
    takenInk: "#c2c2c2", blocked: "#dddddd", selected: "#ffffff", ink: "#ffffff", faintInk: "#e5e5e5", stage: "#ffffff", stageInk: "#000000",
    outlined: true,
  },
};

export function paletteOf(theme: Theme, moreContrast: boolean, property: (name: string) => string): Palette {
  const base = { ...(theme === "dark" ? DARK : LIGHT), ...(moreContrast ? STRONGER[theme] : {}) };
  const own: Record<string, string> = {};
  for (const [name, value] of Object.entries(base)) {
    if (typeof value !== "string") continue;
    const told = property(`--holdfast-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`).trim();
    if (isColour(told)) own[name] = told;
  }
  return { ...base, ...own };
}
