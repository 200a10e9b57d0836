/** Files go to the server as they are. */
import { Problem } from '../../shared/api';
import { session } from '../session.svelte';

const MINUTES_2 = 120_000;

export async function sendFile<T>(path: string, file: File, query: Record<string, string> = {}): Promise<T> {
  const asked = new URLSearchParams(query);
  let answer: Response;
  try {
    answer = await fetch(asked.size ? `${path}?${asked}` : path, {
      method: 'POST',
      headers: { Accept: 'application/json', 'Content-Type': kindOf(file.name), ...session.csrf() },
      credentials: 'same-origin',
      body: file,
      signal: AbortSignal.timeout(MINUTES_2),
    });
  } catch {
    throw new Problem(0, 'unreachable', 'The server does not answer. Please try again in a moment.');
  }
  const said = (await answer.json().catch(() => ({}))) as Record<string, unknown>;
  if (answer.ok) return said as T;
  if (answer.status === 401) session.expire();
  throw new Problem(answer.status, String(said['error'] ?? 'unknown'), String(said['detail'] ?? `The server answered ${answer.status}.`), said);
}

/** The format by the file's ending; null where it has none of ours, and the server looks inside. */
export function formatOf(name: string): 'csv' | 'svg' | null {
  const ending = name.toLowerCase().split('.').pop();
  return ending === 'csv' || ending === 'svg' ? ending : null;
}

function kindOf(name: string): string {
  const format = formatOf(name);
  return format === 'csv' ? 'text/csv' : format === 'svg' ? 'image/svg+xml' : 'application/json';
}
