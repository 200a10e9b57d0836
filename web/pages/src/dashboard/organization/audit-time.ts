/** Entries of a stretch of time, out of pages that come newest first. */

export interface TimeWanted {
  /** As a field for local time gives it ("2026-11-15T09:30"); empty: no bound. */
  from: string;
  to: string;
}

/** Those that lie within, and whether everything that follows is older. */
export function withinTime<T extends { at: string }>(entries: readonly T[], wanted: TimeWanted): { fitting: T[]; over: boolean } {
  const from = wanted.from ? new Date(wanted.from).getTime() : -Infinity;
  const to = wanted.to ? new Date(wanted.to).getTime() : Infinity;
  const fitting = entries.filter(({ at }) => {
    const when = Date.parse(at);
    return when >= from && when < to;
  });
  const last = entries.at(-1);
  return { fitting, over: last !== undefined && Date.parse(last.at) < from };
}
