/** Amounts and counts as people read them. */

const WHOLE = new Intl.NumberFormat();
const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const writers = new Map<string, { write: (amount: number) => string; per: number }>();

export function whole(count: number): string {
  return WHOLE.format(count);
}

/** 0.4386 → "43.9%"; nothing of nothing is no share. */
export function share(part: number | null | undefined): string {
  return part === null || part === undefined || !Number.isFinite(part) ? '–' : PERCENT.format(part);
}

export function shareOf(part: number, all: number): string {
  return share(all > 0 ? part / all : null);
}

/** Minor units in the event's currency: 8000 EUR → "€80.00", 8000 JPY → "¥8,000". */
export function money(minor: number | null | undefined, currency: string | null | undefined): string {
  if (minor === null || minor === undefined) return '–';
  if (!currency) return whole(minor);
  let writer = writers.get(currency);
  if (!writer) {
    try {
      const format = new Intl.NumberFormat(undefined, { style: 'currency', currency });
      writer = { write: (amount) => format.format(amount), per: 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2) };
    } catch {
      writer = { write: (amount) => `${amount.toFixed(2)} ${currency}`, per: 100 };
    }
    writers.set(currency, writer);
  }
  return writer.write(minor / writer.per);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}
