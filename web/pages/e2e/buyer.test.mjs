// The buyer's page in a real browser, against a server of its own. `npm run build` first: the server serves what was built.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { furnish, openBrowser, openStage } from './buyer-stage.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const DESK = { viewport: { width: 1280, height: 800 }, locale: 'en-GB', reducedMotion: 'reduce' };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, locale: 'en-GB', reducedMotion: 'reduce' };

let stage, browser, make;

before(async () => {
  [stage, browser] = await Promise.all([openStage(), openBrowser()]);
  make = await furnish(stage);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

/** A buyer with a browser of their own. Errors of the page fail the test, and so does a policy that stops something. */
async function buyer(t, address, options = DESK) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(stage.url) && !request.url().startsWith('data:')) faults.push(`asked elsewhere: ${request.url()}`);
  });
  t.after(async () => {
    if (process.env.SHOTS_OF_FAILURES) await page.screenshot({ path: `${process.env.SHOTS_OF_FAILURES}/${t.name.slice(0, 30).replaceAll(/\W+/g, '-')}.png` });
    await context.close();
    assert.deepEqual(faults, []);
  });
  page.setDefaultTimeout(12_000);
  await page.goto(stage.url + address);
  return page;
}

async function atEvent(t, id, options) {
  const page = await buyer(t, `/e/${id}`, options);
  await page.locator('holdfast-seatmap [data-status=live]').waitFor({ state: 'attached' });
  return page;
}

/** No serious fault of accessibility on what is shown now. */
async function accessible(page, view) {
  const result = await page.evaluate(`(async () => { ${axe}; return await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations'] }); })()`);
  const serious = result.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious.map(({ id, nodes }) => `${view}: ${id} ${nodes.map(({ target }) => target.flat().join(' ')).slice(0, 3).join(' | ')}`), []);
}

const inList = (page, seat) => page.getByRole('button', { name: new RegExp(`^${seat},`) });
const toList = (page) => page.getByRole('button', { name: 'List', exact: true }).click();
const heldNow = (page, words) => page.getByRole('heading', { name: `Held for you: ${words}` }).waitFor();
const clock = (page) => page.locator('.cart .countdown strong').textContent();
const seconds = (face) => face.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
const lives = (ttlSeconds) => stage.asAdmin('POST', '/api/organizations/config', { holdTypes: { CART: { ttlSeconds } } });

/** Where a seat is on the screen. */
const seatAt = (page, seatId) =>
  page.evaluate((name) => {
    const map = document.querySelector('holdfast-seatmap');
    const { ordinal } = map.seat(name);
    const { geometry, view } = map;
    const box = map.shadowRoot.querySelector('.surface').getBoundingClientRect();
    return { x: box.x + geometry.x[ordinal] * view.scale + view.x, y: box.y + geometry.y[ordinal] * view.scale + view.y };
  }, seatId);
const stateOf = (page, seatId) => page.evaluate((name) => document.querySelector('holdfast-seatmap').seat(name).state, seatId);
const until = async (what, holds) => {
  for (let tries = 0; tries < 80; tries++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`never came true: ${what}`);
};

// Each has an event of its own, so they need not wait for each other.
describe('a buyer', { concurrency: 3 }, () => {
  test('two seats from the map: held at once, one countdown, gone for others, and a kind word for whoever was slower', async (t) => {
    const id = await make.event('The Tempest');
    const page = await buyer(t, `/?organization=${stage.organization}`);
    await page.getByRole('link', { name: /The Tempest/ }).waitFor();
    await accessible(page, 'events');
    const other = await atEvent(t, id);
    await page.getByRole('link', { name: /The Tempest/ }).click();
    await page.locator('holdfast-seatmap [data-status=live]').waitFor({ state: 'attached' });
    await until('the plan is drawn', () => page.evaluate(() => document.querySelector('holdfast-seatmap').view !== null));
    await accessible(page, 'event');

    for (const seat of ['C-3', 'C-4']) {
      const { x, y } = await seatAt(page, seat);
      await page.mouse.click(x, y);
      await until(`${seat} is held`, () => page.evaluate((name) => document.querySelector('holdfast-seatmap').seat(name).selected, seat));
    }
    await heldNow(page, '2 seats');
    await page.getByText('€160.00').first().waitFor();
    const first = seconds(await clock(page));
    assert.ok(first > 590 && first <= 600, `the countdown begins with the hold's life: ${first}`);
    await until('it counts', async () => seconds(await clock(page)) < first);

    // The other sees them go without doing anything.
    await until('gone for the other', async () => (await stateOf(other, 'C-3')) === 'held' && (await stateOf(other, 'C-4')) === 'held');

    // And where both want one at once, the slower is told kindly.
    await toList(other);
    await other.route('**/reserve', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 900));
      await route.continue();
    });
    await inList(other, 'Stalls, row C, seat 5').click();
    const { x, y } = await seatAt(page, 'C-5');
    await page.mouse.click(x, y);
    await heldNow(page, '3 seats');
    await other.getByText(/Somebody was faster: C-5 is held\. It may come free in (9:5\d|10:00)\./).waitFor();
    await accessible(other, 'a refusal');

    // Another tap gives one back.
    await page.mouse.click(x, y);
    await heldNow(page, '2 seats');
    await until('free for the other again', async () => (await stateOf(other, 'C-5')) === 'available');
  });

  test('best available for four: proposed first, then held', async (t) => {
    const page = await atEvent(t, await make.event('Hamlet'));
    await page.getByRole('button', { name: 'One more' }).first().click();
    await page.getByRole('button', { name: 'One more' }).first().click();
    await page.getByRole('button', { name: 'Find seats' }).click();
    await page.getByText(/4 seats together in Stalls, row A/).waitFor();
    await page.getByText('€320.00 in all. Not held yet.').waitFor();
    await accessible(page, 'a proposal');
    await page.getByRole('button', { name: 'Hold these 4' }).click();
    await heldNow(page, '4 seats');
    await page.getByText(/Held: 4 seats together/).waitFor();
  });

  test('a seat that would be left alone: said why, and another by one click', async (t) => {
    const page = await atEvent(t, await make.event('Macbeth'));
    await toList(page);
    await inList(page, 'Stalls, row B, seat 2').click();
    await page.getByRole('heading', { name: 'B-1 would be left alone' }).waitFor();
    await accessible(page, 'a seat left alone');
    await page.getByRole('button', { name: 'Stalls, row B, seat 1', exact: true }).click();
    await heldNow(page, '1 seat');
    await page.getByText('Row B, seat 1').waitFor();
  });

  test('a wheelchair place: the seat beside it is offered for a companion', async (t) => {
    const page = await atEvent(t, await make.event('King Lear'));
    await page.getByRole('checkbox', { name: /wheelchair/ }).check();
    await page.getByRole('button', { name: 'One fewer' }).first().click();
    await page.getByRole('button', { name: 'Find seats' }).click();
    await page.getByRole('button', { name: 'Hold this seat' }).click();
    await page.getByRole('heading', { name: 'Does somebody come with you?' }).waitFor();
    await accessible(page, 'a companion');
    await page.getByRole('button', { name: 'Hold H-2 for my companion' }).click();
    await heldNow(page, '2 seats');
  });

  test('places to stand: a quantity, changed up and down', async (t) => {
    const page = await atEvent(t, await make.event('Twelfth Night'));
    const pit = page.getByRole('region', { name: 'Pit' });
    for (let n = 0; n < 3; n++) await pit.getByRole('button', { name: 'One more' }).click();
    await pit.getByRole('button', { name: 'Hold 3 places' }).click();
    await heldNow(page, '3 places');
    await pit.getByRole('button', { name: 'One fewer' }).click();
    await pit.getByRole('button', { name: 'Hold 2 places' }).click();
    await heldNow(page, '2 places');
    await page.getByText('€60.00').first().waitFor();
  });

  test('checkout to tickets with their codes, and they are there after a reload', async (t) => {
    const page = await atEvent(t, await make.event('The Winter’s Tale'));
    await page.getByRole('button', { name: 'Find seats' }).click();
    await page.getByRole('button', { name: 'Hold these 2' }).click();
    await heldNow(page, '2 seats');
    await page.getByRole('button', { name: 'Go to checkout' }).click();
    await page.getByRole('heading', { name: 'Checkout' }).waitFor();
    assert.match(await page.locator('.checkout .countdown strong').textContent(), /^(30:00|29:5\d)$/);
    await accessible(page, 'checkout');

    // One is too many after all; then back to the seats for another, which joins the same checkout.
    await page.getByRole('button', { name: /^Remove Stalls/ }).first().click();
    await page.getByRole('button', { name: 'Pay €80.00 (test)' }).waitFor();
    await page.getByRole('button', { name: 'Back to the seats' }).click();
    await toList(page);
    await inList(page, 'Balcony, row A, seat 1').or(page.getByRole('button', { name: /^Balcony/ })).first().click();
    await inList(page, 'Balcony, row A, seat 1').click();
    await heldNow(page, '2 seats');
    await page.getByRole('button', { name: 'Back to checkout' }).click();
    await page.getByRole('button', { name: 'Pay €125.00 (test)' }).click();

    await page.getByRole('heading', { name: 'Your 2 tickets' }).waitFor();
    await page.locator('.ticket img').nth(1).waitFor();
    const drawn = await page.locator('.ticket img').evaluateAll((images) => images.map(({ src, naturalWidth }) => src.startsWith('data:image/svg+xml') && naturalWidth > 100));
    assert.deepEqual(drawn, [true, true]);
    await accessible(page, 'tickets');
    await page.reload();
    await page.locator('.ticket img').nth(1).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Show tickets' }).first().waitFor();
  });

  test('a checkout that is cancelled gives everything back', async (t) => {
    const page = await atEvent(t, await make.event('As You Like It'));
    await page.getByRole('button', { name: 'Find seats' }).click();
    await page.getByRole('button', { name: 'Hold these 2' }).click();
    await page.getByRole('button', { name: 'Go to checkout' }).click();
    await page.getByRole('button', { name: 'Cancel and give all back' }).click();
    await page.getByText(/Cancelled\. The seats are free again/).waitFor();
    await page.getByRole('heading', { name: 'Your seats' }).waitFor();
  });

  test('all of it with the keyboard alone, in the list', async (t) => {
    const page = await atEvent(t, await make.event('Much Ado About Nothing'));
    /** Presses Tab until something with this name has the focus, in the map's own tree, too. */
    const tabTo = async (name) => {
      for (let presses = 0; presses < 80; presses++) {
        await page.keyboard.press('Tab');
        const focused = await page.evaluate(() => {
          let element = document.activeElement;
          while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
          return element?.getAttribute('aria-label') ?? element?.textContent?.trim() ?? '';
        });
        if (name.test(focused)) return;
      }
      assert.fail(`never reached ${name}`);
    };
    await tabTo(/^List$/);
    await page.keyboard.press('Enter');
    await tabTo(/^Stalls, row A, seat 1,/);
    await page.keyboard.press('Enter');
    await heldNow(page, '1 seat');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await heldNow(page, '2 seats');
    // A seat that leaves another alone: the question has the keyboard, and its answer gives it back to the list.
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'A-3 would be left alone' }).waitFor();
    await tabTo(/^Stalls, row A, seat 3$/);
    await page.keyboard.press('Enter');
    await heldNow(page, '3 seats');
    await tabTo(/^Go to checkout$/);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Checkout' }).waitFor();
    await tabTo(/^Pay €240\.00 \(test\)$/);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Your 3 tickets' }).waitFor();
  });

  test('on a phone: everything fits, and the bar at the bottom has time and way', async (t) => {
    const page = await atEvent(t, await make.event('Romeo and Juliet'), { ...PHONE, colorScheme: 'dark' });
    await until('the plan is drawn', () => page.evaluate(() => document.querySelector('holdfast-seatmap').view !== null));
    const { x, y } = await seatAt(page, 'D-5');
    await page.touchscreen.tap(x, y);
    await page.locator('.bar').getByText('1 place').waitFor();
    assert.match(await page.locator('.bar strong').textContent(), /^(10:00|9:5\d)$/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing is wider than the screen');
    await accessible(page, 'phone, dark');
    await page.locator('.bar').getByRole('button', { name: 'Checkout' }).click();
    await page.getByRole('button', { name: 'Pay €80.00 (test)' }).click();
    await page.getByRole('heading', { name: 'Your ticket' }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nor are the tickets');
  });

  test('an address that leads nowhere says so', async (t) => {
    const page = await buyer(t, '/e/01a1e02d-93e5-7d5a-a9b0-000000000000');
    await page.getByRole('heading', { name: 'This event is not on sale' }).waitFor();
    await page.goto(`${stage.url}/`);
    await page.getByRole('heading', { name: 'Which event?' }).waitFor();
    await accessible(page, 'nowhere');
  });
});

// These change what all would notice.
test('time runs out: a warning, the end in words, and the way back', async (t) => {
  await lives(32);
  t.after(() => lives(600));
  const id = await make.event('Othello');
  const page = await atEvent(t, id);
  await toList(page);
  await inList(page, 'Stalls, row A, seat 1').click();
  await heldNow(page, '1 seat');
  await page.locator('.cart .countdown.calm').waitFor();
  await page.locator('.cart .countdown.soon').waitFor();
  await page.getByText('30 seconds left.').waitFor({ state: 'attached' });
  await page.getByRole('button', { name: /^Give back Stalls, Row A, seat 1/ }).click();

  await lives(3);
  await until('the short life counts', async () => {
    await inList(page, 'Stalls, row A, seat 1').click();
    await heldNow(page, '1 seat');
    if (seconds(await clock(page)) <= 3) return true;
    await page.getByRole('button', { name: /^Give back/ }).click();
    return false;
  });
  await page.getByRole('heading', { name: 'Your time is over.' }).waitFor();
  await page.getByText('The seats are free again.').waitFor();
  await accessible(page, 'time over');
  await lives(600);
  await page.getByRole('button', { name: 'Try to get them back' }).click();
  await heldNow(page, '1 seat');
  await page.getByText('They are yours again.').waitFor();

  // More time, as long as there is any to have.
  await page.getByRole('button', { name: 'More time' }).click();
});

test('the server is stopped and started again: the page says so, and recovers by itself', async (t) => {
  const page = await atEvent(t, await make.event('The Comedy of Errors'));
  await page.getByRole('button', { name: 'Find seats' }).click();
  await page.getByRole('button', { name: 'Hold these 2' }).click();
  await heldNow(page, '2 seats');
  await stage.stop();
  await page.getByText('Connection lost.').waitFor();
  await accessible(page, 'connection lost');
  await stage.start();
  await page.getByText('Connection lost.').waitFor({ state: 'detached', timeout: 20_000 });
  await heldNow(page, '2 seats');
  await page.getByRole('button', { name: 'Go to checkout' }).click();
  await page.getByRole('button', { name: 'Pay €160.00 (test)' }).waitFor();
});
