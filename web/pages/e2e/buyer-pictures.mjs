// Pictures of the buyer's page for the documentation, and to be looked at: node e2e/buyer-pictures.mjs [folder] [only these]
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { furnish, openBrowser, openStage } from './buyer-stage.mjs';

const folder = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '../../../docs/images/pages');
const only = process.argv[3] ?? '';
mkdirSync(folder, { recursive: true });
const stage = await openStage();
const browser = await openBrowser();
const SIZES = {
  desk: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
};

try {
  const { event } = await furnish(stage);
  await event('A Winter’s Tale', { days: ['2030-06-11'] });
  const id = await event('The Tempest');
  await others(id);
  for (const [size, options] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      if (`${size}-${colorScheme}`.includes(only)) await visit(id, size, { ...options, colorScheme, locale: 'en-GB', reducedMotion: 'reduce' });
    }
  }
} finally {
  await browser.close();
  await stage.close();
}

/** Somebody has been here before: a house that is half sold looks like one. */
async function others(id) {
  const ask = async (path, body, token) => {
    const headers = { 'Content-Type': 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(stage.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await answer.json()).data;
  };
  for (let n = 0; n < 26; n++) {
    const { token } = await ask('/api/guest-tokens', { event_id: id });
    await ask(`/api/events/${id}/best-available`, { quantity: 2 + (n % 4), zones: [n % 3 === 2 ? 'balcony' : 'stalls'] }, token);
    if (n % 4 === 3) continue;
    const checkout = await ask(`/api/events/${id}/checkouts`, {}, token);
    const { payment } = await ask(`/api/checkouts/${checkout.id}/pay`, { provider: 'test' }, token);
    await ask(`/api/payments/${payment.id}/simulate`, {}, token);
  }
}

/** A seat of the list: only what is near the screen exists, so it is scrolled to. */
async function inList(page, name) {
  const button = page.getByRole('button', { name });
  for (let top = 0; (await button.count()) === 0 && top < 6_000; top += 300) {
    await page.evaluate((at) => (document.querySelector('holdfast-seatmap').shadowRoot.querySelector('.list').scrollTop = at), top);
    await page.waitForTimeout(60);
  }
  return button;
}

async function visit(id, size, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on('pageerror', (error) => console.error(error.message));
  const shot = async (name) => {
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(folder, `buyer-${name}-${size}-${options.colorScheme}.png`) });
  };
  await page.goto(`${stage.url}/?organization=${stage.organization}`);
  await page.getByRole('link', { name: /Tempest/ }).waitFor();
  await shot('events');
  await page.getByRole('link', { name: /Tempest/ }).click();
  await page.locator('holdfast-seatmap [data-status=live]').waitFor({ state: 'attached' });
  await shot('event');
  await page.getByRole('button', { name: 'Find seats' }).click();
  await page.getByText('Not held yet').waitFor();
  if (size === 'desk') await page.evaluate(() => scrollTo(0, 0));
  await shot('best');
  await page.getByRole('button', { name: 'Hold these 2' }).click();
  await page.getByText('Held for you: 2 seats').waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await shot('held');
  await page.getByRole('button', { name: 'List', exact: true }).click();
  await (await inList(page, /^Stalls, row G, seat 2,/)).click();
  await page.getByText('would be left alone').waitFor();
  await shot('alone');
  await page.getByRole('button', { name: 'None of these' }).click();
  await page.waitForTimeout(400); // the keyboard goes back to the seat, and the list with it
  await (await inList(page, /^Stalls, row H, seat 1, wheelchair/)).click();
  await page.getByText('Does somebody come with you?').waitFor();
  await shot('companion');
  await page.getByRole('button', { name: 'No, I come alone' }).click();
  await page.getByRole('button', { name: /^Give back Stalls, Row H/ }).click();
  await page.getByRole('button', { name: size === 'phone' ? 'Checkout' : 'Go to checkout', exact: true }).click();
  await page.getByRole('button', { name: /^Pay/ }).waitFor();
  await shot('checkout');
  await page.getByRole('button', { name: /^Pay/ }).click();
  await page.locator('.ticket img').nth(1).waitFor();
  await shot('tickets');

  // Time runs out for somebody.
  await stage.asAdmin('POST', '/api/organizations/config', { holdTypes: { CART: { ttlSeconds: 5 } } });
  await page.getByRole('button', { name: 'Buy more' }).click();
  await page.waitForTimeout(1_200);
  await (await inList(page, /^Stalls, row H, seat 21,/)).click();
  await page.getByText('Held for you: 1 seat').waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await shot('soon');
  await page.getByText('Your time is over.').waitFor();
  await shot('over');
  await stage.asAdmin('POST', '/api/organizations/config', { holdTypes: { CART: { ttlSeconds: 600 } } });
  await context.close();
}
