/** Who is signed in. The token against forged requests lives here, in memory, and nowhere else. */
import { Api, Problem, type Asking } from '../shared/api';
import type { components } from '../shared/schema';

export type SignedIn = components['schemas']['Session'];
export interface OrganizationChoice {
  id: string;
  name: string;
}

type Status = 'checking' | 'away' | 'out' | 'in';

const ASK_AGAIN_MS = 3_000;

class Session {
  status = $state<Status>('checking');
  who = $state.raw<SignedIn | null>(null);
  /** Somebody was signed in, and the server says it is over: they come back to where they were. */
  ended = $state(false);
  /** The last request found no server. Any answer, even a refusal, ends it. */
  serverAway = $state(false);

  get mayAdminister(): boolean {
    return this.who?.role === 'admin' || this.who?.role === 'superadmin';
  }

  csrf(): Record<string, string> {
    return this.who ? { 'X-CSRF-Token': this.who.csrf_token } : {};
  }

  async check(): Promise<void> {
    try {
      this.#enter((await new Api().get<{ data: SignedIn }>('/api/session')).data);
    } catch (error) {
      if (error instanceof Problem && error.away) {
        this.status = 'away';
        setTimeout(() => void this.check(), ASK_AGAIN_MS);
      } else this.status = 'out';
    }
  }

  async signIn(email: string, password: string, organizationId?: string): Promise<void> {
    const body = { email, password, ...(organizationId ? { organization_id: organizationId } : {}) };
    this.#enter((await new Api().post<{ data: SignedIn }>('/api/session', body)).data);
  }

  async signOut(): Promise<void> {
    await new Api(() => this.csrf()).delete('/api/session').catch(() => undefined);
    this.who = null;
    this.ended = false;
    this.status = 'out';
  }

  /** The server no longer knows this browser. */
  expire(): void {
    if (this.status !== 'in') return;
    this.ended = true;
    this.who = null;
    this.status = 'out';
  }

  #enter(who: SignedIn): void {
    this.who = who;
    this.ended = false;
    this.status = 'in';
  }
}

export const session = new Session();

/** The API as the person who is signed in. */
class OrganisersApi extends Api {
  override async ask<T>(method: string, path: string, asking: Asking = {}): Promise<T> {
    try {
      const answer = await super.ask<T>(method, path, asking);
      session.serverAway = false;
      return answer;
    } catch (error) {
      if (error instanceof Problem) {
        session.serverAway = error.away;
        if (error.status === 401) session.expire();
      }
      throw error;
    }
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return this.ask<T>('PATCH', path, { body });
  }
}

export const api = new OrganisersApi(() => session.csrf());
