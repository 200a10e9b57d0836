/** An event as the server tells it, and words for where it stands. */
import type { components } from '../../shared/schema';

export type EventDocument = components['schemas']['EventAnswer'];
export type Occupancy = components['schemas']['OccupancyAnswer'];
export type EventStatus = components['schemas']['EventStatus'];

export const STATUS_WORDS: Record<EventStatus, { words: string; kind: 'good' | 'warn' | 'bad' | 'busy' | '' }> = {
  draft: { words: 'Draft', kind: '' },
  published: { words: 'On sale', kind: 'good' },
  live: { words: 'Live', kind: 'busy' },
  cancelled: { words: 'Cancelled', kind: 'bad' },
  archived: { words: 'Archived', kind: '' },
};
