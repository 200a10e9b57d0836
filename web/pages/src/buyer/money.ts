const formats = new Map<string, { format: Intl.NumberFormat; per: number }>();

/** "€80.00": minor units of the event's currency, with as many digits as that currency has. */
export function money(minor: number, currency: string | null, locale?: string): string {
  const key = `${locale ?? ''}/${currency ?? ''}`;
  let found = formats.get(key);
  if (!found) {
    const format = currency
      ? new Intl.NumberFormat(locale, { style: 'currency', currency })
      : new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    found = { format, per: 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2) };
    formats.set(key, found);
  }
  return found.format.format(minor / found.per);
}

/** "€30.00 – €150.00", "€30.00", or null where no price is stated. */
export function priceRange(from: number | null, to: number | null, currency: string | null, locale?: string): string | null {
  if (from === null) return null;
  const lowest = from === 0 ? 'Free' : money(from, currency, locale);
  return to === null || to === from ? lowest : `${lowest} – ${money(to, currency, locale)}`;
}
