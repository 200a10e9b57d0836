/** How long holds lived: bars side by side by how they ended. */
import { life } from '../../words/time';

export interface LifeBar {
  from_s: number;
  to_s: number | null;
  holds: number;
}
export interface Lives {
  hold_type: string | null;
  end: string;
  holds: number;
  p50_s: number | null;
  p90_s: number | null;
  histogram: LifeBar[];
}

export interface LifeColumns {
  /** "0 – 10 s", … */
  labels: string[];
  byEnd: { end: string; holds: number[] }[];
}

/** The histograms of all types together, on one common row of lengths. */
export function lifeColumns(lives: readonly Lives[]): LifeColumns {
  const all = lives.filter((one) => one.hold_type === null);
  const bounds = new Map<number, number | null>();
  for (const { histogram } of all) for (const bar of histogram) bounds.set(bar.from_s, bar.to_s);
  const starts = [...bounds.keys()].sort((a, b) => a - b);
  return {
    labels: starts.map((from) => {
      const to = bounds.get(from);
      return to === null || to === undefined ? `over ${life(from)}` : `to ${life(to)}`;
    }),
    byEnd: all.map(({ end, histogram }) => {
      const byStart = new Map(histogram.map((bar) => [bar.from_s, bar.holds]));
      return { end, holds: starts.map((from) => byStart.get(from) ?? 0) };
    }),
  };
}
