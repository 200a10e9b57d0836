/** Instants and lengths of time as people read them. */

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const DAY_AND_TIME = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

export function clock(instant: string): string {
  return CLOCK.format(new Date(instant));
}

export function day(instant: string): string {
  return DAY.format(new Date(instant));
}

export function dayAndTime(instant: string): string {
  return DAY_AND_TIME.format(new Date(instant));
}

/** What is left until an instant: "0:25", "12:04", "1:02:09", "3 days"; "over" when it is. */
export function countdown(untilMs: number, nowMs: number): string {
  const left = Math.ceil((untilMs - nowMs) / 1000);
  if (left <= 0) return 'over';
  if (left >= 172_800) return `${Math.floor(left / 86_400)} days`;
  const seconds = String(left % 60).padStart(2, '0');
  const minutes = Math.floor(left / 60);
  if (minutes < 60) return `${minutes}:${seconds}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}:${seconds}`;
}

/** 25 → "25 s", 900 → "15 min", 5400 → "1 h 30 min", null → "until released". */
export function life(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return 'until released';
  const parts: string[] = [];
  let rest = Math.round(seconds);
  for (const [length, unit] of [[86_400, 'd'], [3_600, 'h'], [60, 'min'], [1, 's']] as const) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(' ') || '0 s';
}

/** "just now", "4 min ago", "3 h ago"; a date where that says more. */
export function ago(instant: string, nowMs: number): string {
  const seconds = Math.max(0, (nowMs - Date.parse(instant)) / 1000);
  if (seconds < 10) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return dayAndTime(instant);
}
