/** A checkout from opening to tickets. */
import { Problem } from '../shared/api';
import type { CheckoutView, Data, Page, PaymentBegun, TicketView } from './answers';
import type { Cart } from './cart.svelte';
import { newKey, type GuestApi } from './guest';
import { refusalWords } from './refusals';

/** The demo's and everybody's first: it takes no money. */
export const PROVIDER = 'test';

export interface ShownTicket {
  readonly ticket: TicketView;
  /** Its QR code; null while it is on its way, or where the ticket is void. */
  readonly picture: string | null;
}

export class Purchase {
  checkout = $state<CheckoutView | null>(null);
  endsAt = $state<number | null>(null);
  tickets = $state<ShownTicket[]>([]);
  busy = $state<'' | 'opening' | 'paying' | 'cancelling' | 'changing'>('');
  problem = $state<string | null>(null);

  #beat: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly api: GuestApi, private readonly eventId: string, private readonly cart: Cart, private readonly now: () => number) {}

  get isOpen(): boolean {
    return this.checkout?.status === 'open' || this.checkout?.status === 'paying';
  }

  /** From its beginning to its end, by the server's clock alone. */
  get lifeS(): number {
    return this.checkout ? (Date.parse(this.checkout.expires_at) - Date.parse(this.checkout.created_at)) / 1000 : 0;
  }

  get isPaying(): boolean {
    return this.checkout?.status === 'paying';
  }

  /** The newest that still matters: open, sold, or with money on its way back. */
  async restore(): Promise<void> {
    const { data } = await this.api.get<Page<CheckoutView>>('/api/checkouts', { query: { limit: 10 } });
    const here = data.filter(({ event_id }) => event_id === this.eventId);
    const found = here.find(({ status }) => status === 'open' || status === 'paying') ?? here.find(({ status, refund_due }) => status === 'completed' || refund_due);
    if (found) this.#take(found);
    const sold = here.filter(({ status }) => status === 'completed').flatMap(({ tickets }) => tickets);
    if (sold.length) await this.#loadTickets(sold);
  }

  /** Everything that is held, into one session with one clock. */
  async open(): Promise<boolean> {
    return this.#doing('opening', async () => {
      const loose = this.cart.holds.filter(({ checkoutId }) => checkoutId === null).map(({ holdId }) => holdId);
      if (this.isOpen && !loose.length) return;
      const answer =
        this.isOpen && this.checkout
          ? await this.api.post<Data<CheckoutView>>(`/api/checkouts/${this.checkout.id}/holds`, { hold_ids: loose })
          : await this.api.post<Data<CheckoutView>>(`/api/events/${this.eventId}/checkouts`, loose.length ? { hold_ids: loose } : {});
      this.#take(answer.data);
      await this.cart.refresh();
    });
  }

  async drop(holdId: string): Promise<boolean> {
    return this.#doing('changing', async () => {
      const { id } = this.checkout!;
      const { data } = await this.api.delete<Data<CheckoutView>>(`/api/checkouts/${id}/holds/${holdId}`);
      this.cart.forget([holdId]);
      this.#take(data);
    });
  }

  async cancel(): Promise<boolean> {
    return this.#doing('cancelling', async () => {
      const { id, lines } = this.checkout!;
      if (this.isPaying) await this.api.post(`/api/checkouts/${id}/pay/cancel`);
      await this.api.post<Data<CheckoutView>>(`/api/checkouts/${id}/cancel`);
      this.cart.forget(lines.map(({ hold_id }) => hold_id));
      this.leave();
    });
  }

  /** Pays with the test provider where something is due, and completes. Every step can be repeated. */
  async pay(): Promise<boolean> {
    return this.#doing('paying', async () => {
      const { id, payment_required: due } = this.checkout!;
      if (due) {
        const begun = await this.api.ask<Data<PaymentBegun>>('POST', `/api/checkouts/${id}/pay`, { body: { provider: PROVIDER }, idempotencyKey: newKey() });
        await this.api.post(`/api/payments/${begun.data.payment.id}/simulate`, {});
      }
      const { data } = await this.api.post<Data<CheckoutView>>(`/api/checkouts/${id}/complete`, {});
      await this.#completed(data);
    });
  }

  async cancelPayment(): Promise<boolean> {
    return this.#doing('cancelling', async () => {
      const { data } = await this.api.post<Data<CheckoutView>>(`/api/checkouts/${this.checkout!.id}/pay/cancel`);
      this.#take(data);
    });
  }

  /** What has become of it: after a break, at its end, while somebody pays elsewhere. */
  async refresh(): Promise<void> {
    if (!this.checkout) return;
    try {
      const { data } = await this.api.get<Data<CheckoutView>>(`/api/checkouts/${this.checkout.id}`);
      if (data.status === 'completed' && this.checkout.status !== 'completed') await this.#completed(data);
      else this.#take(data);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }

  leave(): void {
    this.checkout = null;
    this.endsAt = null;
    this.problem = null;
    clearTimeout(this.#beat);
  }

  close(): void {
    clearTimeout(this.#beat);
  }

  async #completed(checkout: CheckoutView): Promise<void> {
    this.#take(checkout);
    this.cart.forget(checkout.lines.map(({ hold_id }) => hold_id));
    if (checkout.status === 'completed') await this.#loadTickets([...checkout.tickets, ...this.tickets.map(({ ticket }) => ticket.id)]);
  }

  async #loadTickets(ids: readonly string[]): Promise<void> {
    const wanted = [...new Set(ids)];
    const loaded = await Promise.all(wanted.map((id) => this.api.get<Data<TicketView>>(`/api/tickets/${id}`)));
    this.tickets = loaded.map(({ data }) => ({ ticket: data, picture: null }));
    await Promise.all(this.tickets.map(async ({ ticket }) => {
      if (ticket.status !== 'valid') return;
      const picture = await this.api.picture(ticket.links['svg'] ?? `/api/tickets/${ticket.id}.svg`).catch(() => null);
      this.tickets = this.tickets.map((one) => (one.ticket.id === ticket.id ? { ...one, picture } : one));
    }));
  }

  #take(checkout: CheckoutView): void {
    this.checkout = checkout;
    const heartbeat = checkout.heartbeat;
    this.endsAt = this.isOpen ? this.now() + checkout.expires_in_seconds * 1000 : null;
    clearTimeout(this.#beat);
    if (heartbeat && this.isOpen) this.#beat = setTimeout(() => void this.#sendBeat(checkout.id), heartbeat.every_seconds * 900);
  }

  /** "Still here": the holds live on. */
  async #sendBeat(id: string): Promise<void> {
    try {
      const { data } = await this.api.post<Data<CheckoutView>>(`/api/checkouts/${id}/heartbeat`);
      if (this.checkout?.id === id) this.#take(data);
      await this.cart.refresh();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (this.checkout?.id === id && error.away) this.#beat = setTimeout(() => void this.#sendBeat(id), 5_000);
    }
  }

  async #doing(what: typeof this.busy, work: () => Promise<void>): Promise<boolean> {
    if (this.busy) return false;
    this.busy = what;
    this.problem = null;
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.problem = error.away ? 'The server does not answer. Please try again in a moment; nothing is lost.' : refusalWords(error);
      await Promise.all([this.refresh(), this.cart.refresh()]);
      return false;
    } finally {
      this.busy = '';
    }
  }
}
