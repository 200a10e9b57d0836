/** One event on sale, as one buyer meets it: who they are, what they hold, what they buy, and whether the server is there. */
import { Api, Problem, type Asking } from '../shared/api';
import { stepOf, type Step } from './address';
import type { Data, EventAnswer, Page, PublicEventDetail, ZoneCounts } from './answers';
import { Cart } from './cart.svelte';
import { Clock } from './clock.svelte';
import { Connection } from './connection.svelte';
import { announcement, secondsLeft } from './countdown';
import { Guest, GuestApi, type Keeping } from './guest';
import { Purchase } from './purchase.svelte';

export type Loaded = 'loading' | 'ready' | 'missing' | 'away' | 'refused';

const ZONES_EVERY_MS = 10_000;
const RETRY_MS = 2_000;

/** The guest's API, and word of whether anybody answers it. */
class WatchedApi extends GuestApi {
  connection: Connection | null = null;

  override async ask<T>(...asking: [method: string, path: string, asking?: Asking]): Promise<T> {
    try {
      const answer = await super.ask<T>(...asking);
      this.connection?.answered();
      return answer;
    } catch (error) {
      if (error instanceof Problem) {
        if (error.away) this.connection?.away();
        else this.connection?.answered();
      }
      throw error;
    }
  }
}

export class Sale {
  loaded = $state<Loaded>('loading');
  refusal = $state('');
  poster = $state<PublicEventDetail | null>(null);
  event = $state<EventAnswer | null>(null);
  zones = $state<ZoneCounts[]>([]);
  step = $state<Step>('choose');
  /** For screen readers: said when the reader pauses. */
  said = $state('');

  readonly clock = new Clock();
  readonly guest: Guest;
  readonly api: GuestApi;
  readonly cart: Cart;
  readonly purchase: Purchase;
  readonly connection: Connection;
  readonly #open = new Api();
  #checkedAt = 0;
  #left = Infinity;
  #ends: (() => void)[] = [];

  constructor(readonly eventId: string, keeping: Keeping | null) {
    // Whoever reads the time sets the page's clock by it: a countdown must not begin above its length.
    const now = () => (this.clock.now = performance.now());
    this.guest = new Guest(eventId, keeping, this.#open);
    const api = new WatchedApi(this.guest);
    this.api = api;
    this.cart = new Cart(api, eventId, now);
    this.purchase = new Purchase(api, eventId, this.cart, now);
    this.connection = new Connection(() => this.#knock(), () => void this.refresh());
    api.connection = this.connection;
  }

  // Life --------------------------------------------------------------------------------------------------------------
  start(): () => void {
    const stepped = () => this.#stepped();
    const seen = () => {
      if (document.visibilityState === 'visible' && this.loaded === 'ready') void this.refresh();
    };
    addEventListener('hashchange', stepped);
    addEventListener('popstate', stepped);
    addEventListener('pageshow', seen);
    document.addEventListener('visibilitychange', seen);
    const zones = setInterval(() => {
      if (document.visibilityState !== 'visible' || this.loaded !== 'ready') return;
      void this.loadZones();
      if (!this.isOnSale) void this.#loadPoster().catch(() => undefined);
    }, ZONES_EVERY_MS);
    this.#ends = [
      this.clock.start(),
      () => removeEventListener('hashchange', stepped),
      () => removeEventListener('popstate', stepped),
      () => removeEventListener('pageshow', seen),
      () => document.removeEventListener('visibilitychange', seen),
      () => clearInterval(zones),
      () => this.connection.close(),
      () => this.purchase.close(),
    ];
    void this.#load();
    return () => this.#ends.forEach((end) => end());
  }

  async #load(): Promise<void> {
    try {
      await this.#loadPoster();
      const { data: event } = await this.api.get<Data<EventAnswer>>(`/api/events/${this.eventId}`);
      this.event = event;
      this.cart.maxPlaces = this.#policyNumber('max_seats_per_booking', 10);
      this.cart.maxHoldS = this.#policyNumber('max_hold_minutes', 30) * 60;
      await Promise.all([this.cart.refresh(), this.purchase.restore(), this.loadZones()]);
      this.loaded = 'ready';
      this.#stepped();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.away) {
        this.loaded = 'away';
        const timer = setTimeout(() => void this.#load(), RETRY_MS);
        this.#ends.push(() => clearTimeout(timer));
      } else {
        this.loaded = error.status === 404 ? 'missing' : 'refused';
        this.refusal = error.detail;
      }
    }
  }

  async #loadPoster(): Promise<void> {
    this.poster = (await this.#open.get<Data<PublicEventDetail>>(`/api/public/events/${this.eventId}`)).data;
  }

  /** All that may have changed behind the page's back. */
  async refresh(): Promise<void> {
    if (this.loaded !== 'ready') return;
    await Promise.all([this.cart.refresh(), this.purchase.refresh(), this.loadZones()]);
  }

  #policyNumber(field: string, otherwise: number): number {
    const value = this.event?.effective_policy?.[field];
    return typeof value === 'number' ? value : otherwise;
  }

  /** Where the system chooses, buyers name no seats. */
  get buyersPick(): boolean {
    return this.event?.effective_policy?.['prefer_clustering_over_selection'] !== true;
  }

  get isOnSale(): boolean {
    return this.poster?.sale === 'open';
  }

  async loadZones(): Promise<void> {
    if (!this.event?.zones?.some(({ seat_count }) => seat_count === 0)) return;
    try {
      this.zones = (await this.api.get<Page<ZoneCounts>>(`/api/events/${this.eventId}/zones`)).data;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }

  async #knock(): Promise<boolean> {
    try {
      await this.#open.get(`/api/public/events/${this.eventId}`);
      return true;
    } catch (error) {
      return error instanceof Problem && !error.away;
    }
  }

  // Steps -------------------------------------------------------------------------------------------------------------
  #stepped(): void {
    const asked = stepOf(location.hash);
    const possible = asked === 'choose' || (asked === 'checkout' ? this.purchase.checkout !== null : this.purchase.tickets.length > 0);
    if (!possible) this.go('choose');
    else this.step = asked;
  }

  go(step: Step): void {
    this.step = step;
    const hash = step === 'choose' ? '' : `#${step}`;
    if (location.hash !== hash) history.pushState(null, '', `${location.pathname}${location.search}${hash}`);
    scrollTo(0, 0);
  }

  async checkOut(): Promise<void> {
    this.cart.notice = null;
    if (await this.purchase.open()) this.go('checkout');
    else if (this.purchase.problem) this.cart.notice = { tone: 'sorry', text: this.purchase.problem };
  }

  async pay(): Promise<void> {
    await this.purchase.pay();
    void this.loadZones();
    if (this.purchase.checkout?.status === 'completed' && this.purchase.tickets.length) this.go('tickets');
  }

  async cancel(): Promise<void> {
    if (await this.purchase.cancel()) {
      this.go('choose');
      this.cart.notice = { tone: 'info', text: 'Cancelled. The seats are free again; nothing was charged.' };
    }
  }

  async takeBack(): Promise<void> {
    this.purchase.leave();
    this.go('choose');
    await this.cart.takeBack();
  }

  chooseOthers(): void {
    this.purchase.leave();
    this.cart.chooseOthers();
    this.go('choose');
  }

  // Time --------------------------------------------------------------------------------------------------------------
  /** Of what is held and in no checkout, the first end; of a checkout the session's own. */
  get endsAt(): number | null {
    const ends = [this.cart.firstEnd, this.purchase.isOpen ? this.purchase.endsAt : null].filter((end) => end !== null);
    return ends.length ? Math.min(...ends) : null;
  }

  /** Every quarter of a second: says how much is left, and asks the server when it is over. */
  tick(now: number): void {
    const ends = this.endsAt;
    if (ends === null) {
      this.#left = Infinity;
      return;
    }
    const left = secondsLeft({ endsAt: ends }, now);
    const words = announcement(this.#left, left);
    if (words && this.#left !== Infinity) this.said = words;
    this.#left = left;
    if (left === 0 && now - this.#checkedAt > 1_000) {
      this.#checkedAt = now;
      void this.#timeIsOver();
    }
  }

  async #timeIsOver(): Promise<void> {
    await Promise.all([this.cart.refresh(), this.purchase.isOpen ? this.purchase.refresh() : null]);
  }
}
