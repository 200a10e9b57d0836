// What the buyer's tests stand on: a server of their own with an organization, houses and events, and a real browser.
import { spawn, execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';

const root = join(dirname(fileURLToPath(import.meta.url)), '../../..');
const holdfast = process.env.HOLDFAST ?? join(root, '.venv/bin/holdfast');
const run = promisify(execFile);

const FLAGS = [
  '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  '--disable-dev-shm-usage', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];

export const openBrowser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** A server that can be stopped and started again at the same address. */
export async function openStage() {
  const data = mkdtempSync(join(tmpdir(), 'holdfast-pages-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const environment = { ...process.env, HOLDFAST_LOG_LEVEL: 'error' };
  let server = null;

  const start = async () => {
    server = spawn(holdfast, ['serve', '--port', String(port), '--data', data], { env: environment, stdio: ['ignore', 'ignore', 'inherit'] });
    for (let tries = 0; tries < 300; tries++) {
      if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
      if (await fetch(`${url}/readyz`).then((answer) => answer.ok, () => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('the server did not start');
  };
  const stop = async () => {
    if (!server || server.exitCode !== null) return;
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    const forced = setTimeout(() => server.kill('SIGKILL'), 8_000);
    await ended;
    clearTimeout(forced);
  };

  await start();
  const { stdout } = await run(holdfast, ['bootstrap', '--organization', 'City Theatre', '--data', data, '--json'], { env: environment });
  const made = JSON.parse(stdout);
  const asAdmin = async (method, path, body) => {
    const answer = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${made.admin_token}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const said = await answer.json().catch(() => null);
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(said)}`);
    return said?.data;
  };
  return {
    url, start, stop, asAdmin, organization: made.organization_id,
    close: async () => {
      await stop();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** Stalls of curved rows with wheelchair places in the last, a balcony, and a pit to stand in. */
export function theatre({ stalls = 8, balcony = 4, pit = 60 } = {}) {
  const block = (zone_id, name, rows, width, top, prefix) => {
    const seats = [];
    const names = {};
    for (let row = 0; row < rows; row++) {
      const letter = String.fromCharCode(65 + row);
      const length = width + row;
      names[letter] = { aisles_after: [Math.floor(length / 2)] };
      for (let number = 1; number <= length; number++) {
        const from = number - (length + 1) / 2;
        const x = 500 + from * 22 + (number > Math.floor(length / 2) ? 11 : -11);
        const seat = { seat_id: `${prefix}${letter}-${number}`, row: letter, number, coordinates: { x, y: Math.round(top + row * 30 - from * from * 0.55) } };
        if (zone_id === 'stalls' && row === rows - 1 && number === 1) Object.assign(seat, { category: 'wheelchair', companion_seat_id: `${letter}-2` });
        if (zone_id === 'stalls' && row === rows - 1 && number === 2) seat.category = 'companion';
        seats.push(seat);
      }
    }
    return { zone_id, name, zone_type: 'reserved_seating', access_mode: 'public', capacity: seats.length, rows: names, seats };
  };
  return {
    focal_point: { x: 500, y: 0 },
    zones: [
      block('stalls', 'Stalls', stalls, 14, 190, ''),
      ...(balcony ? [block('balcony', 'Balcony', balcony, 22, 500, 'BAL-')] : []),
      ...(pit ? [{ zone_id: 'pit', name: 'Pit', zone_type: 'ga_standing', access_mode: 'public', capacity: pit }] : []),
    ],
  };
}

/** An organization that is ready to sell, and a maker of events. */
export async function furnish(stage) {
  await stage.asAdmin('PUT', '/api/policy', { max_holds_per_user: null });
  await stage.asAdmin('PUT', '/api/payments/providers/test', { kind: 'test' });
  const venue = await stage.asAdmin('POST', '/api/venues', { name: 'Grand Theatre' });
  const layout = await stage.asAdmin('POST', `/api/venues/${venue.id}/layouts`, { name: 'Main hall', config: theatre() });
  const event = async (name, more = {}) => {
    const made = await stage.asAdmin('POST', '/api/events', {
      name, layout_id: layout.id, currency: 'EUR', days: ['2030-05-01', '2030-05-02'],
      prices: [
        { zone_id: 'stalls', amount_minor: 8000 }, { zone_id: 'stalls', category: 'wheelchair', amount_minor: 4000 },
        { zone_id: 'balcony', amount_minor: 4500 }, { zone_id: 'pit', amount_minor: 3000 },
      ],
      ...more,
    });
    await stage.asAdmin('POST', `/api/events/${made.id}/status`, { status: 'published' });
    return made.id;
  };
  return { event };
}
