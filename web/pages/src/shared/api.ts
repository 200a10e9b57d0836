/** The public API as the pages use it: typed paths, problems as errors, one place that knows how to ask. */
import type { paths } from './schema';

export type Path = keyof paths & string;

/** A refusal in the server's own words (RFC 9457), or word that the server did not answer. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly facts: Record<string, unknown> = {},
    readonly retryAfterS: number | null = null,
  ) {
    super(detail);
  }

  /** Nobody answered: worth another try, unlike a refusal. */
  get away(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

export type Credential = () => Record<string, string> | Promise<Record<string, string>>;

export interface Asking {
  body?: unknown;
  query?: Record<string, string | number | boolean | null | undefined>;
  idempotencyKey?: string;
  signal?: AbortSignal;
}

const TIMEOUT_MS = 15_000;

export class Api {
  constructor(private readonly credential: Credential = () => ({})) {}

  get<T>(path: string, asking: Asking = {}): Promise<T> {
    return this.ask<T>('GET', path, asking);
  }

  post<T>(path: string, body?: unknown, asking: Asking = {}): Promise<T> {
    return this.ask<T>('POST', path, { ...asking, body });
  }

  put<T>(path: string, body?: unknown): Promise<T> {
    return this.ask<T>('PUT', path, { body });
  }

  delete<T>(path: string): Promise<T> {
    return this.ask<T>('DELETE', path);
  }

  /** The whole body; most callers want `.data` of it. */
  async ask<T>(method: string, path: string, asking: Asking = {}): Promise<T> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(asking.query ?? {})) {
      if (value !== null && value !== undefined) query.set(name, String(value));
    }
    const headers: Record<string, string> = { Accept: 'application/json', ...(await this.credential()) };
    if (asking.body !== undefined) headers['Content-Type'] = 'application/json';
    if (asking.idempotencyKey) headers['Idempotency-Key'] = asking.idempotencyKey;
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = asking.signal ? AbortSignal.any([asking.signal, timeout]) : timeout;
    let answer: Response;
    try {
      answer = await fetch(query.size ? `${path}?${query}` : path, {
        method,
        headers,
        signal,
        credentials: 'same-origin',
        ...(asking.body !== undefined ? { body: JSON.stringify(asking.body) } : {}),
      });
    } catch (error) {
      if (asking.signal?.aborted) throw error;
      throw new Problem(0, 'unreachable', 'The server does not answer. Trying again …');
    }
    if (answer.status === 204) return undefined as T;
    const said: unknown = await answer.json().catch(() => null);
    if (answer.ok) return said as T;
    const problem = (said ?? {}) as Record<string, unknown>;
    const retry = Number(answer.headers.get('Retry-After'));
    throw new Problem(
      answer.status,
      String(problem['error'] ?? 'unknown'),
      String(problem['detail'] ?? problem['title'] ?? `The server answered ${answer.status}.`),
      problem,
      Number.isFinite(retry) && retry > 0 ? retry : null,
    );
  }
}
