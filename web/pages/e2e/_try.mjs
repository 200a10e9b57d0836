import { openBrowser, openStage, furnish } from './buyer-stage.mjs';
const stage = await openStage();
try {
const { event } = await furnish(stage);
const id = await event('X');
const browser = await openBrowser();
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
page.on('console', (m) => console.log(m.type(), m.text()));
page.on('pageerror', (e) => console.log('PAGE', e.message, e.stack?.slice(0, 400)));
await page.goto(`${stage.url}/e/${id}`);
await page.getByRole('button', { name: 'Find seats' }).click();
await page.getByRole('button', { name: 'Hold these 2' }).click();
await page.getByRole('button', { name: 'Go to checkout' }).click();
await page.getByRole('button', { name: /Pay/ }).click();
await page.locator('.ticket img').nth(1).waitFor();
page.on('response', (r) => console.log(r.status(), r.url()));
page.on('requestfailed', (r) => console.log('FAILED', r.url(), r.failure()?.errorText));
await page.reload();
await page.waitForTimeout(3000);
console.log(await page.evaluate(() => document.body.outerHTML.slice(0, 800)));
console.log(page.url());
await browser.close();
} finally { await stage.close(); }
