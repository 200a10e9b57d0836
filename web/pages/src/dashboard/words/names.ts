/** Names that programs use, as people say them. */

/** "SEAT_RESERVED", "zone_access_denied", "SeatHold" → "Seat reserved", "Zone access denied", "Seat hold" */
export function inWords(name: string): string {
  const words = name.replaceAll(/([a-z])([A-Z])/g, '$1 $2').replaceAll(/[_-]+/g, ' ').trim().toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function shortId(id: string | null | undefined): string {
  return id ? id.slice(-8) : '–';
}
