/** What the page says of a section as a whole. */
export type SectionState = "highlighted" | "selected" | "unavailable" | "filtered";

export class SectionStates {
  readonly #bySection = new Map<number, Set<SectionState>>();

  /** Whether anything changed. */
  set(sectionNo: number, state: SectionState, on: boolean): boolean {
    const states = this.#bySection.get(sectionNo) ?? new Set();
    if (states.has(state) === on) return false;
    if (on) states.add(state);
    else states.delete(state);
    this.#bySection.set(sectionNo, states);
    return true;
  }

  clear(sectionNo: number): boolean {
    return (this.#bySection.get(sectionNo)?.size ?? 0) > 0 && this.#bySection.delete(sectionNo);
  }

  has(sectionNo: number, state: SectionState): boolean {
    return this.#bySection.get(sectionNo)?.has(state) ?? false;
  }
}
