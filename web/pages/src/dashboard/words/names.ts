/** Names that programs use, as people say them. */

/** "SEAT_RESERVED", "zone_access_denied" → "Seat reserved", "Zone access denied" */
export function inWords(name: string): string {
  const words = name.replaceAll(/[_-]+/g, ' ').trim().toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function shortId(id: string | null | undefined): string {
  return id ? id.slice(-8) : '–';
}
