/** The stretches of time that charts show. */

export const WINDOWS = [
  { key: '1h', name: '1 hour', ms: 3_600_000 },
  { key: '24h', name: '24 hours', ms: 86_400_000 },
  { key: '7d', name: '7 days', ms: 604_800_000 },
] as const;
export type WindowKey = (typeof WINDOWS)[number]['key'];

export function since(key: WindowKey, nowMs: number): string {
  const found = WINDOWS.find((one) => one.key === key) ?? WINDOWS[0];
  return new Date(nowMs - found.ms).toISOString();
}

export interface OccupancyAt {
  at: string;
  held: number;
  sold: number;
  blocked: number;
  total: number;
}

/** Columns for layers that lie on each other: instants, sold, sold and held, all that is taken. */
export function layers(points: readonly OccupancyAt[]): [number[], number[], number[], number[]] {
  const found: [number[], number[], number[], number[]] = [[], [], [], []];
  for (const point of points) {
    found[0].push(Date.parse(point.at) / 1000);
    found[1].push(point.sold + point.held + point.blocked);
    found[2].push(point.sold + point.held);
    found[3].push(point.sold);
  }
  return found;
}
