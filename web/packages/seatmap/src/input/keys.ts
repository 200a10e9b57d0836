import type { Direction } from "../geometry/neighbour.js";

export type KeyCommand =
  | { readonly do: "move"; readonly direction: Direction }
  | { readonly do: "pan"; readonly direction: Direction }
  | { readonly do: "select" }
  | { readonly do: "zoom"; readonly factor: number }
  | { readonly do: "whole" }
  | { readonly do: "leave" };

const ARROWS: Readonly<Record<string, Direction>> = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
};

/** What a key means on the map; null for the keys that are none of its business. */
export function commandOf(event: Pick<KeyboardEvent, "key" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey">): KeyCommand | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const direction = ARROWS[event.key];
  if (direction) return { do: event.shiftKey ? "pan" : "move", direction };
  switch (event.key) {
    case "Enter": case " ": return { do: "select" };
    case "+": case "=": return { do: "zoom", factor: 1.5 };
    case "-": case "_": return { do: "zoom", factor: 1 / 1.5 };
    case "0": case "Home": return { do: "whole" };
    case "Escape": return { do: "leave" };
    default: return null;
  }
}
