import { beforeEach, describe, expect, it } from 'vitest';
import { Problem, type Api } from '../src/shared/api';
import { Cart } from '../src/buyer/cart.svelte';

/** A server that answers what the test put down for a request. */
class Scripted {
  readonly asked: string[] = [];
  readonly answers = new Map<string, unknown[]>();

  on(request: string, ...answers: unknown[]): this {
    this.answers.set(request, answers);
    return this;
  }

  ask = (method: string, path: string, asking: { body?: unknown } = {}): Promise<unknown> => {
    const request = `${method} ${path}`;
    this.asked.push(asking.body === undefined ? request : `${request} ${JSON.stringify(asking.body)}`);
    const answers = this.answers.get(request) ?? [];
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve({ data: answer ?? {} });
  };
  get = (path: string) => this.ask('GET', path);
  post = (path: string, body?: unknown) => this.ask('POST', path, { body });
  delete = (path: string) => this.ask('DELETE', path);
}

const EVENT = 'e1';
const hold = (n: number, more: object = {}) => ({
  hold_id: `h${n}`, seat_id: `s${n}`, seat_label: `A-${n}`, zone_id: 'stalls', block_name: 'Stalls', row: 'A', seat_number: n, quantity: 1,
  expires_in_seconds: 300, held_until: '2030-01-01T00:05:00Z', created_at: '2030-01-01T00:00:00Z', checkout_id: null, ...more,
});

let server: Scripted;
let now: number;
let cart: Cart;

beforeEach(() => {
  server = new Scripted();
  now = 0;
  cart = new Cart(server as unknown as Api, EVENT, () => now);
});

describe('the cart', () => {
  it('holds a seat, and counts from the server’s seconds', async () => {
    server.on('POST /api/events/e1/seats/s1/reserve', hold(1, { created_at: null }));
    expect(await cart.take({ id: 's1', label: 'A-1' })).toBe(true);
    expect([cart.count, cart.firstEnd, cart.firstLifeS]).toEqual([1, 300_000, 300]);
  });

  it('says kindly that somebody was faster', async () => {
    server.on('POST /api/events/e1/seats/s1/reserve', new Problem(409, 'seat_held_by_another_user', 'Someone else …', { expires_in: 90 }));
    expect(await cart.take({ id: 's1', label: 'A-1' })).toBe(false);
    expect(cart.notice?.text).toBe('Somebody was faster: A-1 is held. It may come free in 1:30.');
  });

  it('asks for no more than one booking may have', async () => {
    cart.maxPlaces = 1;
    cart.add([hold(1)] as never);
    expect(await cart.take({ id: 's2', label: 'A-2' })).toBe(false);
    expect(server.asked).toEqual([]);
    expect(cart.notice?.text).toContain('1 place at most');
  });

  it('takes a seat out at once, and puts it back where the server did not hear of it', async () => {
    cart.add([hold(1)] as never);
    server.on('DELETE /api/holds/h1', new Problem(0, 'unreachable', ''));
    const released = cart.release('h1');
    expect(cart.holds).toEqual([]);
    expect(await released).toBe(false);
    expect(cart.holds.map(({ holdId }) => holdId)).toEqual(['h1']);
  });

  it('tells what ran out from what was taken back', async () => {
    cart.add([hold(1, { expires_in_seconds: 10 }), hold(2), hold(3)] as never);
    now = 10_000;
    server.on('GET /api/holds', [hold(3)]);
    await cart.refresh();
    expect(cart.lost.map(({ label }) => label)).toEqual(['A-1']);
    expect(cart.notice?.text).toBe('A-2 is no longer held for you.');
    expect(cart.seatIds).toEqual(['s3']);
  });

  it('believes its own clock while the server is away', async () => {
    cart.add([hold(1, { expires_in_seconds: 10 }), hold(2)] as never);
    now = 11_000;
    server.on('GET /api/holds', new Problem(0, 'unreachable', ''));
    await cart.refresh();
    expect([cart.lost.map(({ label }) => label), cart.seatIds]).toEqual([['A-1'], ['s2']]);
  });

  it('gets back what is still free', async () => {
    cart.add([hold(1), hold(2)] as never);
    now = 300_000;
    server.on('GET /api/holds', []);
    await cart.refresh();
    expect(cart.lost).toHaveLength(2);
    server.on('POST /api/events/e1/holds', new Problem(409, 'seat_not_available', 'This seat is sold.', { seat_id: 's1', current_status: 'sold' }), {
      holds: [hold(2)],
    });
    await cart.takeBack();
    expect(cart.seatIds).toEqual(['s2']);
    expect(cart.lost).toEqual([]);
    expect(cart.notice?.text).toBe('Somebody was faster: A-1 is sold.');
    expect(server.asked.at(-1)).toContain('{"seats":["s2"],"ga":[]}');
  });

  it('offers more time until the most is reached', async () => {
    cart.maxHoldS = 600;
    cart.add([hold(1)] as never);
    expect(cart.canExtend).toBe(true);
    now = 200_000;
    server.on('POST /api/holds/h1/extend', hold(1, { expires_in_seconds: 400, held_until: '2030-01-01T00:10:00Z' }));
    await cart.extend();
    expect(cart.firstEnd).toBe(600_000);
    expect(cart.canExtend).toBe(false);
  });

  it('leaves what is in a checkout to the checkout', () => {
    cart.add([hold(1, { checkout_id: 'c1' })] as never);
    expect([cart.canExtend, cart.firstEnd]).toEqual([false, null]);
  });

  it('offers a companion’s seat until it is held, or the wheelchair place is given back', async () => {
    const companion = { seat_id: 's2', label: 'A-2', row: 'A', number: 2, offered: true, kept_until: null, words: '' };
    server.on('POST /api/events/e1/seats/s1/reserve', hold(1, { companions: [companion] }));
    await cart.take({ id: 's1', label: 'A-1' });
    expect(cart.companions).toEqual([companion]);
    server.on('POST /api/events/e1/holds', { holds: [hold(2)] });
    await cart.takeCompanion(companion);
    expect([cart.companions, cart.seatIds]).toEqual([[], ['s1', 's2']]);
  });
});
