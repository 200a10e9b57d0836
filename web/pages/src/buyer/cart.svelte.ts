/** What the buyer holds. The server decides; this says what it decided, and for how long. */
import { Problem, type Api } from '../shared/api';
import type { CompanionSeat, Data, HoldView, Page, Placement, Reserved } from './answers';
import { newKey } from './guest';
import { countOf, headCount, listed, type HeldPlace } from './places';
import { isTaken, orphanRefusal, refusalWords, type OrphanRefusal } from './refusals';

export interface CartHold extends HeldPlace {
  /** On the page's clock; null: it has no end. */
  readonly endsAt: number | null;
  readonly startedAt: number;
  readonly checkoutId: string | null;
}

export interface Notice {
  readonly tone: 'sorry' | 'good' | 'info';
  readonly text: string;
}

export interface SeatWish {
  readonly id: string;
  readonly label: string;
}

/** Behind its end a hold is asked for again at this distance: clocks are read to the second. */
const SLACK_MS = 1_200;

export class Cart {
  holds = $state<CartHold[]>([]);
  /** Whose time ran out; offered again until the buyer says otherwise. */
  lost = $state<HeldPlace[]>([]);
  companions = $state<CompanionSeat[]>([]);
  orphan = $state<OrphanRefusal | null>(null);
  notice = $state<Notice | null>(null);
  busy = $state(false);
  /** No hold of these can be made longer. */
  atMaximum = $state<string[]>([]);
  maxPlaces = $state(10);
  maxHoldS = $state(1800);

  #changes = 0;
  #releasing = new Set<string>();

  constructor(private readonly api: Api, private readonly eventId: string, private readonly now: () => number) {}

  get count(): number {
    return headCount(this.holds);
  }

  /** Of what ends by itself, the first; null: nothing does. What is in a checkout ends with that. */
  get firstEnd(): number | null {
    const ends = this.holds.flatMap(({ endsAt, checkoutId }) => (endsAt === null || checkoutId !== null ? [] : [endsAt]));
    return ends.length ? Math.min(...ends) : null;
  }

  /** How long the hold that ends first has lived and will, in seconds. */
  get firstLifeS(): number {
    const first = this.holds.find(({ endsAt }) => endsAt !== null && endsAt === this.firstEnd);
    return first?.endsAt ? (first.endsAt - first.startedAt) / 1000 : 0;
  }

  get seatIds(): string[] {
    return this.holds.flatMap(({ seatId }) => (seatId ? [seatId] : []));
  }

  get canExtend(): boolean {
    return this.#extendable().length > 0;
  }

  #extendable(): CartHold[] {
    return this.holds.filter(
      ({ endsAt, startedAt, checkoutId, holdId }) =>
        endsAt !== null && checkoutId === null && !this.atMaximum.includes(holdId) && (endsAt - startedAt) / 1000 < this.maxHoldS - 1,
    );
  }

  // Holding -----------------------------------------------------------------------------------------------------------
  /** One seat, as it was tapped. Answers whether it is the buyer's now. */
  async take(seat: SeatWish): Promise<boolean> {
    if (!this.#roomFor(1)) return false;
    this.#begin();
    try {
      const { data } = await this.api.post<Data<Reserved>>(`/api/events/${this.eventId}/seats/${seat.id}/reserve`, {});
      this.#add([{ ...data, quantity: 1 } as unknown as HoldView]);
      return true;
    } catch (error) {
      this.#refused(error, [seat]);
      return false;
    }
  }

  /** Several seats and places: all, or none. */
  async takeMany(seats: readonly SeatWish[], places: readonly { zoneId: string; quantity: number }[] = []): Promise<boolean> {
    const wanted = seats.length + headCount(places);
    if (!this.#roomFor(wanted)) return false;
    this.#begin();
    this.busy = true;
    try {
      const body = { seats: seats.map(({ id }) => id), ga: places.map(({ zoneId, quantity }) => ({ zone_id: zoneId, quantity })) };
      const { data } = await this.api.ask<Data<Placement>>('POST', `/api/events/${this.eventId}/holds`, { body, idempotencyKey: newKey() });
      this.#add(data.holds);
      return true;
    } catch (error) {
      this.#refused(error, seats);
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** So many places of a zone in all: more are held in addition, fewer replace what was held. */
  async setPlaces(zoneId: string, quantity: number): Promise<boolean> {
    const before = this.holds.filter((hold) => hold.seatId === null && hold.zoneId === zoneId);
    const had = headCount(before);
    if (quantity === had) return true;
    if (quantity > had) return this.takeMany([], [{ zoneId, quantity: quantity - had }]);
    await Promise.all(before.map((hold) => this.release(hold.holdId)));
    return quantity === 0 || this.takeMany([], [{ zoneId, quantity }]);
  }

  /** What came of another request: best available, or a companion's seat. */
  add(holds: readonly HoldView[]): void {
    this.#begin();
    this.#add(holds);
  }

  refused(error: unknown, wanted: readonly SeatWish[] = []): void {
    this.#refused(error, wanted);
  }

  async takeOption(seatIds: readonly string[]): Promise<boolean> {
    const held = new Set(this.seatIds);
    return this.takeMany(seatIds.filter((id) => !held.has(id)).map((id) => ({ id, label: 'one of these seats' })));
  }

  async takeCompanion(companion: CompanionSeat): Promise<void> {
    this.companions = this.companions.filter(({ seat_id }) => seat_id !== companion.seat_id);
    await this.takeMany([{ id: companion.seat_id, label: companion.label }]);
  }

  declineCompanions(): void {
    this.companions = [];
  }

  // Giving back -------------------------------------------------------------------------------------------------------
  async release(holdId: string): Promise<boolean> {
    const hold = this.holds.find((one) => one.holdId === holdId);
    if (!hold) return true;
    this.#changes++;
    this.#releasing.add(holdId);
    this.holds = this.holds.filter((one) => one !== hold);
    this.orphan = null;
    this.#dropCompanions();
    try {
      await this.api.delete(`/api/holds/${holdId}`);
      return true;
    } catch (error) {
      if (error instanceof Problem && (error.status === 404 || error.status === 409) && error.code !== 'checkout_paying') return true;
      this.holds = [...this.holds, hold];
      this.#refused(error, []);
      return false;
    } finally {
      this.#changes++;
      this.#releasing.delete(holdId);
    }
  }

  releaseSeat(seatId: string): Promise<boolean> {
    const hold = this.holds.find((one) => one.seatId === seatId);
    return hold ? this.release(hold.holdId) : Promise.resolve(true);
  }

  // Time --------------------------------------------------------------------------------------------------------------
  async extend(): Promise<void> {
    this.busy = true;
    try {
      const asked = this.#extendable();
      const before = this.firstEnd;
      await Promise.all(asked.map((hold) => this.#extendOne(hold)));
      if (this.firstEnd !== null && before !== null && this.firstEnd > before) this.notice = { tone: 'good', text: 'You have more time now.' };
    } finally {
      this.busy = false;
    }
  }

  async #extendOne(hold: CartHold): Promise<void> {
    try {
      const { data } = await this.api.post<Data<HoldView>>(`/api/holds/${hold.holdId}/extend`);
      this.#changes++;
      const longer = this.#heldFrom(data);
      if (longer.endsAt === null || longer.endsAt < (hold.endsAt ?? 0) + 1_000) this.atMaximum = [...this.atMaximum, hold.holdId];
      this.holds = this.holds.map((one) => (one.holdId === hold.holdId ? longer : one));
    } catch (error) {
      if (error instanceof Problem && error.code === 'max_hold_reached') this.atMaximum = [...this.atMaximum, hold.holdId];
      else this.#refused(error, []);
    }
  }

  /** What the server says of the buyer's holds. What it does not name any more, and nobody gave back, is lost. */
  async refresh(): Promise<void> {
    for (;;) {
      const changes = this.#changes;
      let told: HoldView[];
      try {
        told = (await this.api.get<Page<HoldView>>('/api/holds', { query: { event_id: this.eventId } })).data;
      } catch (error) {
        if (error instanceof Problem && error.away) this.#loseOverdue();
        return;
      }
      if (changes !== this.#changes) continue;
      this.#reconcile(told);
      return;
    }
  }

  #reconcile(told: readonly HoldView[]): void {
    const living = new Set(told.map(({ hold_id }) => hold_id));
    const gone = this.holds.filter(({ holdId }) => !living.has(holdId) && !this.#releasing.has(holdId));
    const overdue = gone.filter(({ endsAt }) => endsAt !== null && endsAt <= this.now() + SLACK_MS);
    const takenBack = gone.filter((hold) => !overdue.includes(hold));
    this.holds = told.filter(({ hold_id }) => !this.#releasing.has(hold_id)).map((hold) => this.#heldFrom(hold));
    this.#lose(overdue);
    if (takenBack.length) {
      const names = listed(takenBack.map((hold) => hold.label ?? `${countOf(hold.quantity, 'place')} in ${hold.zone}`));
      this.notice = { tone: 'sorry', text: `${names} ${takenBack.length === 1 ? 'is' : 'are'} no longer held for you.` };
    }
    this.#dropCompanions();
  }

  /** The server is away and the time is over: it will have freed them. */
  #loseOverdue(): void {
    const now = this.now();
    const overdue = this.holds.filter(({ endsAt }) => endsAt !== null && endsAt <= now);
    if (!overdue.length) return;
    this.holds = this.holds.filter((hold) => !overdue.includes(hold));
    this.#lose(overdue);
  }

  #lose(holds: readonly CartHold[]): void {
    if (!holds.length) return;
    this.lost = [...this.lost, ...holds];
    this.orphan = null;
    this.#dropCompanions();
  }

  /** Sold, or in a checkout that was cancelled: nothing to mourn. */
  forget(holdIds: readonly string[]): void {
    this.#changes++;
    this.holds = this.holds.filter(({ holdId }) => !holdIds.includes(holdId));
    this.#dropCompanions();
  }

  /** Those whose time was over, as far as they are still free. */
  async takeBack(): Promise<void> {
    const wanted = this.lost;
    let seats = wanted.flatMap(({ seatId, label }) => (seatId ? [{ id: seatId, label: label ?? 'a seat' }] : []));
    const places = new Map<string, number>();
    for (const { seatId, zoneId, quantity } of wanted) if (!seatId) places.set(zoneId, (places.get(zoneId) ?? 0) + quantity);
    const sorry: string[] = [];
    this.lost = [];
    for (;;) {
      const counted = [...places].map(([zoneId, quantity]) => ({ zoneId, quantity }));
      if (!seats.length && !counted.length) break;
      const refused = await this.#tryBack(seats, counted);
      if (!refused) break;
      const gone = seats.find(({ id }) => id === refused.facts['seat_id']);
      const zone = String(refused.facts['zone_id'] ?? '');
      if (isTaken(refused) && gone) {
        sorry.push(refusalWords(refused, gone.label));
        seats = seats.filter((seat) => seat !== gone);
      } else if (isTaken(refused) && places.has(zone)) {
        sorry.push(refused.detail);
        places.delete(zone);
      } else {
        this.lost = refused.away ? wanted : [];
        this.#refused(refused, seats);
        return;
      }
    }
    if (sorry.length) this.notice = { tone: 'sorry', text: sorry.join(' ') };
    else this.notice = { tone: 'good', text: 'They are yours again.' };
  }

  async #tryBack(seats: readonly SeatWish[], places: readonly { zoneId: string; quantity: number }[]): Promise<Problem | null> {
    this.busy = true;
    try {
      const body = { seats: seats.map(({ id }) => id), ga: places.map(({ zoneId, quantity }) => ({ zone_id: zoneId, quantity })) };
      const { data } = await this.api.ask<Data<Placement>>('POST', `/api/events/${this.eventId}/holds`, { body, idempotencyKey: newKey() });
      this.#begin();
      this.#add(data.holds);
      return null;
    } catch (error) {
      if (error instanceof Problem) return error;
      throw error;
    } finally {
      this.busy = false;
    }
  }

  chooseOthers(): void {
    this.lost = [];
  }

  // Inside ------------------------------------------------------------------------------------------------------------
  #begin(): void {
    this.notice = null;
    this.orphan = null;
    this.lost = [];
  }

  #roomFor(more: number): boolean {
    if (this.count + more <= this.maxPlaces) return true;
    this.notice = { tone: 'sorry', text: `${countOf(this.maxPlaces, 'place')} at most in one booking. Give one back first, or buy these and come again.` };
    return false;
  }

  #add(answered: readonly HoldView[]): void {
    this.#changes++;
    const added = answered.map((hold) => this.#heldFrom(hold));
    const ids = new Set(added.map(({ holdId }) => holdId));
    this.holds = [...this.holds.filter(({ holdId }) => !ids.has(holdId)), ...added];
    const offered = answered.flatMap((hold) => hold.companions ?? []).filter(({ offered }) => offered);
    if (offered.length) this.companions = [...this.companions, ...offered];
    this.#dropCompanions();
  }

  /** Not of seats that are held already, nor when nothing is held any more. */
  #dropCompanions(): void {
    if (!this.companions.length) return;
    const held = new Set(this.seatIds);
    const known = new Set<string>();
    const left = this.companions.filter(({ seat_id }) => held.size > 0 && !held.has(seat_id) && !known.has(seat_id) && known.add(seat_id));
    if (left.length !== this.companions.length) this.companions = left;
  }

  #refused(error: unknown, wanted: readonly SeatWish[]): void {
    if (!(error instanceof Problem)) throw error;
    this.orphan = orphanRefusal(error, wanted, this.maxPlaces - this.count);
    if (this.orphan) return;
    const named = wanted.find(({ id }) => id === error.facts['seat_id']) ?? (wanted.length === 1 ? wanted[0] : undefined);
    this.notice = { tone: 'sorry', text: error.away ? 'The server does not answer. Please try again in a moment.' : refusalWords(error, named?.label) };
  }

  #heldFrom(hold: HoldView): CartHold {
    const now = this.now();
    const endsAt = hold.expires_in_seconds === null ? null : now + hold.expires_in_seconds * 1000;
    // The hold's own life, by the server's clock alone; a hold that was just made has no beginning stated yet.
    const lifeMs = hold.created_at && hold.held_until ? Date.parse(hold.held_until) - Date.parse(hold.created_at) : null;
    return {
      holdId: hold.hold_id,
      seatId: hold.seat_id ?? null,
      label: hold.seat_label ?? null,
      zoneId: hold.zone_id,
      zone: hold.block_name,
      row: hold.row ?? null,
      number: hold.seat_number ?? null,
      quantity: hold.quantity ?? 1,
      endsAt,
      startedAt: endsAt !== null && lifeMs !== null ? endsAt - lifeMs : now,
      checkoutId: hold.checkout_id ?? null,
    };
  }
}
