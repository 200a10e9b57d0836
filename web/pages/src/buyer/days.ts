/** Days as an event has them ("2030-05-01"): dates without an hour, the same in every time zone. */
function dated(day: string): Date {
  return new Date(`${day}T12:00:00Z`);
}

export function dayWords(day: string, locale?: string): string {
  return new Intl.DateTimeFormat(locale, { weekday: 'short', day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' }).format(dated(day));
}

/** One day, a stretch without gaps, or each of them. */
export function daysWords(days: readonly string[], locale?: string): string | null {
  const first = days[0];
  const last = days.at(-1);
  if (first === undefined || last === undefined) return null;
  if (days.length === 1) return dayWords(first, locale);
  const apart = (dated(last).getTime() - dated(first).getTime()) / 86_400_000;
  if (apart === days.length - 1) {
    const format = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });
    return format.formatRange(dated(first), dated(last));
  }
  return days.map((day) => dayWords(day, locale)).join(', ');
}

/** An instant of the server, in the reader's own time zone. */
export function instantWords(instant: string, locale?: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(instant));
}
