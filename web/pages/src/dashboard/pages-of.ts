/** Lists come in pages; these read several of them. */
import type { Asking } from '../shared/api';
import { api } from './session.svelte';

export interface PageOf<T> {
  data: T[];
  next_cursor: string | null;
}

export async function allOf<T>(path: string, query: Asking['query'] = {}, most = 100_000, signal?: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | null = null;
  do {
    const page: PageOf<T> = await api.get<PageOf<T>>(path, { query: { limit: 1000, ...query, cursor }, ...(signal ? { signal } : {}) });
    found.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null && found.length < most);
  return found;
}
