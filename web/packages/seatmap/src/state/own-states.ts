import type { SeatLook } from "../draw/style.js";

/** A state that the page gives to seats by itself ("mine", "recommended"), beside what the server says. */
export interface OwnState {
  /** How it is called in the legend and in names of seats. */
  readonly label: string;
  readonly look?: Partial<SeatLook>;
  /** Whether seats in this state can be selected; as the seat's own state says, if left out. */
  readonly selectable?: boolean;
}

export class OwnStates {
  readonly #known = new Map<string, OwnState>();
  readonly #bySeat = new Map<number, string>();

  define(states: Readonly<Record<string, OwnState>>): void {
    this.#known.clear();
    for (const [key, state] of Object.entries(states)) this.#known.set(key, state);
  }

  /** Answers the seats that changed. */
  set(ordinals: Iterable<number>, key: string): number[] {
    const changed: number[] = [];
    for (const ordinal of ordinals) {
      if (this.#bySeat.get(ordinal) === key) continue;
      this.#bySeat.set(ordinal, key);
      changed.push(ordinal);
    }
    return changed;
  }

  /** Of these seats, of all in one state, or of all. */
  clear(which?: Iterable<number> | string): number[] {
    const ordinals =
      which === undefined ? [...this.#bySeat.keys()]
      : typeof which === "string" ? [...this.#bySeat].flatMap(([ordinal, key]) => (key === which ? [ordinal] : []))
      : [...which];
    return ordinals.filter((ordinal) => this.#bySeat.delete(ordinal));
  }

  keyOf(ordinal: number): string | null {
    return this.#bySeat.get(ordinal) ?? null;
  }

  of(ordinal: number): OwnState | null {
    const key = this.#bySeat.get(ordinal);
    return key === undefined ? null : this.described(key);
  }

  described(key: string): OwnState {
    return this.#known.get(key) ?? { label: key };
  }

  keys(): Set<string> {
    return new Set(this.#bySeat.values());
  }

  get any(): boolean {
    return this.#bySeat.size > 0;
  }
}
