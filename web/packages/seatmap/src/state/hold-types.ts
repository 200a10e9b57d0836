/** How a hold type is shown, as the organization's config says it. */
export interface HoldTypeDisplay {
  readonly displayName?: string;
  readonly displayColor?: string;
  readonly displayIcon?: string | null;
}

export interface ShownHoldType {
  readonly name: string;
  readonly displayName: string;
  readonly displayColor: string;
  readonly displayIcon: string | null;
}

/** What the server itself assumes of the two types it brings along, and of those nobody described. */
const KNOWN: Readonly<Record<string, HoldTypeDisplay>> = {
  CART: { displayName: "In a cart", displayColor: "#F5A623" },
  RESERVED: { displayName: "Reserved", displayColor: "#4A6FA5" },
};
const UNKNOWN_COLOUR = "#808080";

export class HoldTypes {
  readonly #told: Readonly<Record<string, HoldTypeDisplay>>;

  constructor(told: Readonly<Record<string, HoldTypeDisplay>> = {}) {
    this.#told = told;
  }

  shown(name: string): ShownHoldType {
    const told = { ...KNOWN[name], ...this.#told[name] };
    return {
      name,
      displayName: told.displayName ?? inWords(name),
      displayColor: told.displayColor ?? UNKNOWN_COLOUR,
      displayIcon: told.displayIcon ?? null,
    };
  }
}

function inWords(name: string): string {
  const words = name.split("_").filter(Boolean).map((word) => word[0]!.toUpperCase() + word.slice(1).toLowerCase());
  return words.join(" ") || name;
}
