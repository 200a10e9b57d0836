import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openBrowser, openHouse, openPage, PASSWORD, seriousFaults, signIn } from './dashboard-house.mjs';

describe('the organiser’s dashboard', { timeout: 120_000 }, () => {
  let house, browser, page, context, faults;
  const event = (tab) => `/dashboard/events/${house.eventId}/${tab}`;

  before(async () => {
    browser = await openBrowser();
    house = await openHouse();
    ({ page, context, faults } = await openPage(browser, house.url));
  });
  after(async () => {
    await browser?.close();
    await house?.close();
  });

  // Where a test failed, a picture says more than its message.
  afterEach(async (at) => {
    if (process.env.E2E_PICTURES) for (const [n, open] of (browser?.contexts() ?? []).flatMap((one) => one.pages()).entries()) {
      await open.screenshot({ path: `${process.env.E2E_PICTURES}/${at.name.slice(0, 30).replaceAll(' ', '-')}-${n}.png` }).catch(() => undefined);
    }
  });

  test('a wrong password is refused kindly, the right one opens the place that was asked for', async () => {
    await page.goto('/dashboard/hold-types');
    assert.deepEqual(await seriousFaults(page), []);
    await signIn(page, 'ann@example.org', 'not my password');
    await page.getByRole('alert').getByText('is not right').waitFor();
    assert.equal(await page.getByLabel('E-mail address').inputValue(), 'ann@example.org', 'the address stays');
    await signIn(page);
    await page.getByRole('heading', { name: 'Hold types', level: 1 }).waitFor();
  });

  test('a new type is made in the editor, and the result says which layer it comes from', async () => {
    await page.getByRole('button', { name: 'Add a type' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Comp');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('status').getByText('Saved').waitFor();
    const colour = page.getByRole('row', { name: /^Colour/ });
    assert.match(await colour.innerText(), /#7C4DBD\s+said here/);
    assert.match(await page.getByRole('row', { name: /^Sold without a hold/ }).innerText(), /no\s+default/);
  });

  test('seats inside a drawn line are held as COMP, and can be given back with one press', async () => {
    await page.goto(event('arrange'));
    const map = page.locator('holdfast-seatmap');
    await map.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Choose these' }).and(page.locator(':enabled')).waitFor();
    await map.getByRole('button', { name: 'Select by drawing' }).click();
    const box = await map.locator('.surface').boundingBox();
    const corner = ([x, y]) => [box.x + box.width * x, box.y + box.height * y];
    await page.mouse.move(...corner([0.3, 0.12]));
    await page.mouse.down();
    for (const at of [[0.75, 0.12], [0.75, 0.5], [0.3, 0.5], [0.3, 0.13]]) await page.mouse.move(...corner(at), { steps: 6 });
    await page.mouse.up();
    const heading = page.getByRole('heading', { name: /seats? chosen/ });
    await page.getByRole('heading', { name: /^\d+ seats? chosen/ }).waitFor();
    const count = Number(/\d+/.exec(await heading.innerText())[0]);
    assert.ok(count > 1, `${count} seats lie inside`);
    await page.getByLabel('Hold as').first().selectOption({ label: 'Comp' });
    await page.getByRole('button', { name: `Hold ${count}` }).click();
    await page.getByRole('status').getByText(`${count} seats held as Comp.`).waitFor();
    assert.equal((await house.ask('GET', `/api/events/${house.eventId}/occupancy`)).by_hold_type.COMP, count);

    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('status').getByText(`${count} holds released.`).waitFor();
    await page.getByLabel('Zone').first().selectOption({ label: 'Stalls' });
    await page.getByLabel('Row').selectOption('C');
    await page.getByRole('button', { name: 'Choose these' }).click();
    await page.getByRole('button', { name: 'Hold 12' }).click();
    await page.getByRole('status').getByText('12 seats held as Comp.').waitFor();
  });

  test('a colour changed in the editor shows on a map that was open, without a reload', async () => {
    const other = await openPage(browser, house.url);
    await other.page.goto(event('live'));
    await signIn(other.page, 'olga@example.org');
    const swatch = other.page.locator('[data-hold-type=COMP]');
    await swatch.waitFor();
    const shown = () => other.page.evaluate(() => document.querySelector('holdfast-seatmap').holdTypes.COMP?.displayColor);
    assert.equal(await shown(), '#7C4DBD');
    await other.page.evaluate(() => (globalThis.notReloaded = true));

    await page.goto('/dashboard/hold-types');
    await page.getByRole('button', { name: 'Comp', exact: true }).click();
    await page.getByLabel('Colour as text').fill('#00AA77');
    await page.getByLabel('Colour as text').press('Tab');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('status').getByText('Saved').waitFor();

    await other.page.waitForFunction(() => document.querySelector('holdfast-seatmap').holdTypes.COMP?.displayColor === '#00AA77');
    assert.equal(await swatch.evaluate((element) => getComputedStyle(element).backgroundColor), 'rgb(0, 170, 119)');
    assert.equal(await other.page.evaluate(() => globalThis.notReloaded), true);
    await other.page.getByRole('row', { name: /C-12/ }).waitFor();
    assert.deepEqual(other.faults, []);
    await other.context.close();
  });

  test('a row is blocked with a reason, and the charts move', async () => {
    await page.goto(event('charts'));
    const chart = page.getByRole('img', { name: /0 sold, 12 held, 0 blocked/ });
    await chart.waitFor();
    const worker = await context.newPage();
    await worker.goto(event('arrange'));
    await worker.getByRole('button', { name: 'Choose these' }).and(worker.locator(':enabled')).waitFor();
    await worker.getByLabel('Row').selectOption('A');
    await worker.getByRole('button', { name: 'Choose these' }).click();
    await worker.getByRole('heading', { name: '12 seats chosen' }).waitFor();
    await worker.getByLabel('Reason', { exact: true }).fill('camera position');
    await worker.getByRole('button', { name: 'Block', exact: true }).first().click();
    await worker.getByRole('status').getByText('12 seats blocked.').waitFor();
    const { data } = await house.ask('GET', `/api/events/${house.eventId}/occupancy`).then((counts) => ({ data: counts }));
    assert.equal(data.blocked, 12);
    await worker.close();
    await page.bringToFront();
    await page.getByRole('img', { name: /12 held, 12 blocked/ }).waitFor();
  });

  test('a file that cannot stand is refused with its problems, each where it is', async () => {
    await page.goto('/dashboard/layouts');
    const seat = (x) => ({ seat_id: 'A-1', row: 'A', number: 1, coordinates: { x, y: 10 } });
    const bad = { zones: [{ zone_id: 'a', name: 'A', zone_type: 'reserved_seating', capacity: 3, access_mode: 'public', seats: [seat(1), seat(30)] }] };
    await page.getByLabel('Layout file').setInputFiles({ name: 'bad.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(bad)) });
    await page.getByRole('alert').getByText('3 problems').waitFor();
    await page.getByText('capacity is 3, but the zone has 2 seats').waitFor();
    await page.getByRole('img', { name: '2 seats of the file; 1 seat with a problem marked' }).waitFor();
    await page.getByRole('button', { name: 'Show A-1' }).first().click();
    assert.deepEqual(await seriousFaults(page), []);
    const csv = 'zone,row,number,x,y,category\nstalls,A,1,10,50,standard\nstalls,A,2,30,50,standard\n';
    await page.getByLabel('Layout file').setInputFiles({ name: 'small.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
    await page.getByText('It can stand:').waitFor();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await page.getByRole('status').getByText('Kept: small, version 1, 2 seats.').waitFor();
  });

  test('a field of the policy is locked and counts', async () => {
    await page.goto('/dashboard/policy');
    await page.getByLabel('Places in one booking, at most', { exact: true }).fill('4');
    await page.getByLabel('Lock: Places in one booking, at most').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('status').getByText('Saved').waitFor();
    assert.match(await page.getByRole('row', { name: /max_seats_per_booking/ }).innerText(), /4\s+said here\s*locked/);
    const policy = await house.ask('GET', '/api/policy');
    assert.equal(policy.effective.max_seats_per_booking, 4);
    assert.deepEqual(policy.stored.locked_fields, ['max_seats_per_booking']);
  });

  test('a sale is taken back, and the money is noted as paid', async () => {
    await house.ask('POST', '/api/organizations/config', {
      holdTypes: { ...(await house.ask('GET', '/api/organizations/config')).stored.holdTypes, TILL: { validStates: ['SOLD'], skipLockedState: true, paymentRequired: true } },
    });
    const seats = await fetch(`${house.url}/dashboard`).then(() => house.ask('GET', `/api/events/${house.eventId}/seats?state=available&limit=1`));
    await house.ask('POST', `/api/events/${house.eventId}/sales`, { holdType: 'TILL', seats: [seats[0].id], attendees: [{ name: 'Ada' }], payment_reference: 'till 1' });
    await page.goto(event('sales'));
    await page.getByLabel('Find tickets').fill('ada');
    await page.getByRole('button', { name: /^Take back/ }).click();
    await page.getByRole('dialog').getByLabel('Reason').fill('ill');
    await page.getByRole('button', { name: 'Take the sale back' }).click();
    await page.getByRole('status').getByText('€50.00 is due back').waitFor();
    await page.getByLabel('Show').first().selectOption('done');
    await page.getByLabel('Show').first().selectOption('due');
    await page.getByRole('button', { name: 'Done …' }).click();
    await page.getByRole('dialog').getByLabel('Reference').fill('bank 7');
    await page.getByRole('button', { name: 'It is paid back' }).click();
    await page.getByRole('status').getByText('Noted: €50.00 paid back.').waitFor();
    assert.equal((await house.ask('GET', '/api/refunds?status=done')).length, 1);
  });

  test('every view can be read by everybody, on a desk by day and on a phone by night', async () => {
    const tabs = ['live', 'arrange', 'charts', 'sales', 'gates'];
    const views = ['hold-types', 'policy', 'layouts', 'webhooks', 'payments', 'people', 'audit', 'registry'];
    const phone = await openPage(browser, house.url, { viewport: { width: 390, height: 844 }, colorScheme: 'dark', reducedMotion: 'reduce' });
    await phone.page.goto('/dashboard');
    await signIn(phone.page);
    await phone.page.getByRole('heading', { name: 'Events' }).waitFor();
    const all = ['/dashboard', ...tabs.map(event), ...views.map((view) => `/dashboard/${view}`)];
    const look = async (on, name, addresses) => {
      for (const address of addresses) {
        // By the page's own links where there is one: that is how people go.
        const link = on.locator(`a[href="${address}"]`).first();
        if (await link.count()) await link.evaluate((element) => element.click());
        else await on.goto(address);
        await on.getByRole('heading', { level: 1 }).waitFor();
        await on.locator('main').getByText(/^Loading/).first().waitFor({ state: 'detached' });
        assert.deepEqual(await seriousFaults(on), [], `${address} on the ${name}`);
        assert.ok(await on.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${address} is too wide on the ${name}`);
      }
    };
    const looked = await Promise.allSettled([look(page, 'desk', all), look(phone.page, 'phone', [...all.slice(0, 4), '/dashboard/hold-types'])]);
    for (const { reason } of looked) if (reason) throw reason;
    await phone.page.getByRole('button', { name: 'Menu' }).click();
    await phone.page.getByRole('link', { name: 'Audit' }).click();
    await phone.page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
    assert.deepEqual(phone.faults, []);
    await phone.context.close();
  });

  test('without the server the page says so, and goes on by itself', async () => {
    await page.goto(event('gates'));
    await page.getByRole('heading', { name: 'Who is inside' }).waitFor();
    await context.setOffline(true);
    await page.getByText('The server does not answer').waitFor();
    await context.setOffline(false);
    await page.getByText('The server does not answer').waitFor({ state: 'detached' });
  });

  test('an ended sign-in leads to the door, and back to the same place', async () => {
    await page.goto(event('gates'));
    await page.getByRole('heading', { name: 'Who is inside' }).waitFor();
    await context.clearCookies();
    await page.getByText('You were signed out.').waitFor();
    assert.equal(new URL(page.url()).pathname, event('gates'));
    await signIn(page, 'ann@example.org', PASSWORD);
    await page.getByRole('heading', { name: 'Who is inside' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  test('no request left for elsewhere, and nothing broke the policy of the page', () => assert.deepEqual(faults, []));
});
