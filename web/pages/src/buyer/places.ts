/** Seats and places in words, and put together as a person would say them. */
export interface HeldPlace {
  readonly holdId: string;
  /** The seat's UUID; null: places of a zone without numbers. */
  readonly seatId: string | null;
  /** As the organiser calls it, "A-12". */
  readonly label: string | null;
  readonly zoneId: string;
  readonly zone: string;
  readonly row: string | null;
  readonly number: number | null;
  readonly quantity: number;
}

/** "Row A, seat 12" or "2 places". */
export function placeWords(place: Pick<HeldPlace, 'row' | 'number' | 'quantity'>): string {
  if (place.row !== null && place.number !== null) return `Row ${place.row}, seat ${place.number}`;
  return countOf(place.quantity, 'place');
}

export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** "A-1", "A-1 and A-2", "A-1, A-2 and A-3" */
export function listed(names: readonly string[]): string {
  const last = names.at(-1);
  if (last === undefined) return '';
  return names.length === 1 ? last : `${names.slice(0, -1).join(', ')} and ${last}`;
}

export interface ZoneGroup<T extends HeldPlace> {
  readonly zoneId: string;
  readonly zone: string;
  readonly places: T[];
}

/** By zone in the order they were first held; within one by row and number. */
export function byZone<T extends HeldPlace>(places: readonly T[]): ZoneGroup<T>[] {
  const groups = new Map<string, ZoneGroup<T>>();
  for (const place of places) {
    const group = groups.get(place.zoneId) ?? { zoneId: place.zoneId, zone: place.zone, places: [] };
    groups.set(place.zoneId, group);
    group.places.push(place);
  }
  for (const { places: inside } of groups.values()) {
    inside.sort((a, b) => (a.row ?? '').localeCompare(b.row ?? '', undefined, { numeric: true }) || (a.number ?? 0) - (b.number ?? 0));
  }
  return [...groups.values()];
}

/** How many people find room: a seat is one, places are as many as they count. */
export function headCount(places: readonly Pick<HeldPlace, 'quantity'>[]): number {
  return places.reduce((sum, { quantity }) => sum + quantity, 0);
}

/** The sum, or null where one of them has no known price. */
export function sumMinor(places: readonly { readonly priceMinor: number | null; readonly quantity: number }[]): number | null {
  let sum = 0;
  for (const { priceMinor, quantity } of places) {
    if (priceMinor === null) return null;
    sum += priceMinor * quantity;
  }
  return sum;
}
