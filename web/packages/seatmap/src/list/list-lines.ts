import type { House } from "../house.js";

/** The list as lines of known height, so that only those on the screen need to exist. */
export type ListLine =
  | { readonly kind: "section"; readonly section: number; readonly top: number; readonly height: number; readonly open: boolean }
  | { readonly kind: "row"; readonly section: number; readonly row: string; readonly seats: readonly number[]; readonly top: number; readonly height: number };

export interface ListMeasures {
  readonly width: number;
  /** Room for a row's name, and beside each seat. */
  readonly nameWidth: number;
  readonly seatWidth: number;
  readonly seatHeight: number;
  readonly sectionHeight: number;
  readonly rowMargin: number;
}

export function seatsALine(measures: ListMeasures): number {
  return Math.max(1, Math.floor((measures.width - measures.nameWidth) / measures.seatWidth));
}

/** `filtering`: seats that do not fit are left out, and rows and sections without any. */
export function linesOf(house: House, open: ReadonlySet<number>, filtering: boolean, measures: ListMeasures): ListLine[] {
  const { sections, row, rows } = house.geometry;
  const fits = house.filtered.fits;
  const perLine = seatsALine(measures);
  const lines: ListLine[] = [];
  let top = 0;
  sections.forEach((section, n) => {
    const from = section.first_ordinal, to = from + section.seat_count;
    if (house.sectionStates.has(n, "filtered")) return;
    if (filtering && section.seat_count > 0 && !fits.subarray(from, to).includes(1)) return;
    lines.push({ kind: "section", section: n, top, height: measures.sectionHeight, open: open.has(n) });
    top += measures.sectionHeight;
    if (!open.has(n)) return;
    for (let start = from; start < to; ) {
      const seats: number[] = [];
      let at = start;
      for (; at < to && row[at] === row[start]; at++) if (!filtering || fits[at]) seats.push(at);
      if (seats.length) {
        const height = Math.ceil(seats.length / perLine) * measures.seatHeight + measures.rowMargin;
        lines.push({ kind: "row", section: n, row: rows[row[start]!]!, seats, top, height });
        top += height;
      }
      start = at;
    }
  });
  return lines;
}

export function heightOf(lines: readonly ListLine[]): number {
  const last = lines.at(-1);
  return last ? last.top + last.height : 0;
}

/** First and last line that a stretch of the list touches. */
export function linesBetween(lines: readonly ListLine[], from: number, to: number): { first: number; last: number } {
  let low = 0, high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle]!.top + lines[middle]!.height <= from) low = middle + 1;
    else high = middle;
  }
  let last = low;
  while (last + 1 < lines.length && lines[last + 1]!.top < to) last++;
  return { first: low, last: Math.min(last, lines.length - 1) };
}
