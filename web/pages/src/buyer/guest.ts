/** A buyer without an account: a token for one event, kept as long as the tab, and renewed when it is refused. */
import { Api, Problem } from '../shared/api';
import type { Data, GuestToken } from './answers';

export interface Keeping {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

export class Guest {
  readonly #open: Api;
  readonly #key: string;
  readonly #keeping: Keeping | null;
  #token: string | null;
  #asked: Promise<string> | null = null;

  constructor(readonly eventId: string, keeping: Keeping | null, open: Api = new Api()) {
    this.#open = open;
    this.#keeping = keeping;
    this.#key = `holdfast-guest-${eventId}`;
    this.#token = kept(keeping, this.#key);
  }

  /** `renew`: the last one was refused. */
  async token(renew = false): Promise<string> {
    if (this.#token && !renew) return this.#token;
    this.#asked ??= this.#fetch().finally(() => (this.#asked = null));
    return this.#asked;
  }

  async #fetch(): Promise<string> {
    const { data } = await this.#open.post<Data<GuestToken>>('/api/guest-tokens', { event_id: this.eventId });
    this.#token = data.token;
    try {
      this.#keeping?.setItem(this.#key, data.token);
    } catch {
      // A browser that keeps nothing: the token lives as long as this page.
    }
    return data.token;
  }
}

/** The API as this guest; a refused token is renewed once. What was held with the old one is lost with it. */
export class GuestApi extends Api {
  constructor(private readonly guest: Guest) {
    super(async () => ({ Authorization: `Bearer ${await guest.token()}` }));
  }

  override async ask<T>(...asking: Parameters<Api['ask']>): Promise<T> {
    try {
      return await super.ask<T>(...asking);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 401) throw error;
      await this.guest.token(true);
      return super.ask<T>(...asking);
    }
  }

  /** A picture as a data URL: the only kind beside our own files that the page's policy shows. */
  async picture(path: string): Promise<string> {
    const answer = await fetch(path, { headers: { Authorization: `Bearer ${await this.guest.token()}` } });
    if (!answer.ok) throw new Problem(answer.status, 'picture', `The server answered ${answer.status}.`);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte);
    return `data:${answer.headers.get('Content-Type')?.split(';')[0] ?? 'image/svg+xml'};base64,${btoa(text)}`;
  }
}

function kept(keeping: Keeping | null, key: string): string | null {
  try {
    return keeping?.getItem(key) ?? null;
  } catch {
    return null;
  }
}

/** Repeated after a broken connection, a request with the same key counts once. Works on plain http, too. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
