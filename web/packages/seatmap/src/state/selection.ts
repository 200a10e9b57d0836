export type SelectResult = "selected" | "vetoed" | "full" | "already" | "refused";

/** May answer later; only `false` (or a rejection) is a veto. */
export type Verdict = void | boolean | Promise<void | boolean>;

export interface SelectionRules {
  /** Whether the seat can be selected at all. */
  readonly selectable: (ordinal: number) => boolean;
  readonly most: () => number;
  readonly asked: (ordinal: number) => Verdict;
  readonly askedToDrop: (ordinal: number) => Verdict;
  readonly changed: (ordinals: readonly number[]) => void;
}

/** The seats a buyer has chosen. A seat whose answer is still awaited counts, and cannot be asked for twice. */
export class Selection {
  readonly #selected = new Set<number>();
  readonly #awaited = new Set<number>();
  readonly #rules: SelectionRules;

  constructor(rules: SelectionRules) {
    this.#rules = rules;
  }

  get seats(): number[] {
    return [...this.#selected];
  }

  get size(): number {
    return this.#selected.size;
  }

  has(ordinal: number): boolean {
    return this.#selected.has(ordinal);
  }

  isAwaited(ordinal: number): boolean {
    return this.#awaited.has(ordinal);
  }

  async select(ordinal: number): Promise<SelectResult> {
    if (this.#selected.has(ordinal) || this.#awaited.has(ordinal)) return "already";
    if (!this.#rules.selectable(ordinal)) return "refused";
    if (this.#selected.size + this.#awaited.size >= this.#rules.most()) return "full";
    if (!(await this.#agreed(ordinal, this.#rules.asked))) return "vetoed";
    // The seat may have gone while the answer was awaited; whoever answered yes knows best.
    this.#selected.add(ordinal);
    this.#rules.changed([ordinal]);
    return "selected";
  }

  async deselect(ordinal: number): Promise<boolean> {
    if (!this.#selected.has(ordinal) || this.#awaited.has(ordinal)) return false;
    if (!(await this.#agreed(ordinal, this.#rules.askedToDrop))) return false;
    const dropped = this.#selected.delete(ordinal);
    this.#rules.changed([ordinal]);
    return dropped;
  }

  /** Without asking: by the page itself, or because the seats are gone. Answers those that changed. */
  put(ordinals: Iterable<number>, on: boolean): number[] {
    const changed: number[] = [];
    for (const ordinal of ordinals) {
      if (this.#selected.has(ordinal) === on || (on && this.#selected.size >= this.#rules.most())) continue;
      if (on) this.#selected.add(ordinal);
      else this.#selected.delete(ordinal);
      changed.push(ordinal);
    }
    if (changed.length) this.#rules.changed(changed);
    return changed;
  }

  async #agreed(ordinal: number, ask: (ordinal: number) => Verdict): Promise<boolean> {
    const verdict = ask(ordinal);
    if (!(verdict instanceof Promise)) return verdict !== false;
    this.#awaited.add(ordinal);
    this.#rules.changed([ordinal]);
    try {
      return (await verdict) !== false;
    } catch {
      return false;
    } finally {
      this.#awaited.delete(ordinal);
      this.#rules.changed([ordinal]);
    }
  }
}
