/** What was chosen, in words: how many in which state, and where. */

export interface ChosenSeat {
  readonly section: { readonly name: string };
  readonly row: string;
  readonly number: number;
  readonly state: 'available' | 'held' | 'sold' | 'blocked';
}

export interface ChosenCounts {
  available: number;
  held: number;
  sold: number;
  blocked: number;
  total: number;
}

export function countsOf(seats: readonly ChosenSeat[]): ChosenCounts {
  const counts: ChosenCounts = { available: 0, held: 0, sold: 0, blocked: 0, total: seats.length };
  for (const seat of seats) counts[seat.state]++;
  return counts;
}

/** [1, 2, 3, 7, 9, 10] → "1–3, 7, 9–10" */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(end === i ? `${sorted[i]}` : `${sorted[i]}–${sorted[end]}`);
    i = end + 1;
  }
  return parts.join(', ');
}

/** "Stalls, row A: 1–12" for each row, in the order of the plan. */
export function rowsInWords(seats: readonly ChosenSeat[]): string[] {
  const rows = new Map<string, number[]>();
  for (const seat of seats) {
    const key = `${seat.section.name}, row ${seat.row}`;
    const numbers = rows.get(key);
    if (numbers) numbers.push(seat.number);
    else rows.set(key, [seat.number]);
  }
  return [...rows].map(([row, numbers]) => `${row}: ${ranges(numbers)}`);
}
