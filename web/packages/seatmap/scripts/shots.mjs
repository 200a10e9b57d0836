// Pictures of the example page, to be looked at: node scripts/shots.mjs [folder]
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser, serve } from "./browser.mjs";

const here = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = process.argv[2] ?? join(here, "shots");
const only = process.argv[3];
mkdirSync(folder, { recursive: true });
const site = await serve(join(here, "site"));

const DESK = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

async function shot(name, options, query, act = async () => {}) {
  if (only && !name.includes(only)) return;
  const browser = await openBrowser(options);
  const page = browser.context.pages()[0] ?? (await browser.context.newPage());
  page.on("console", (message) => { if (message.type() === "error") console.log(name, message.text()); });
  page.on("pageerror", (error) => console.log(name, error.message));
  await page.goto(`${site.url}/?still&${query}`);
  await page.waitForTimeout(900);
  await act(page);
  await page.waitForTimeout(900);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await browser.close();
}

const middleOf = async (page) => {
  const box = await page.locator("holdfast-seatmap").boundingBox();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
};
const zoom = async (page, times, dx = 0, dy = 0) => {
  const { x, y } = await middleOf(page);
  await page.mouse.move(x + dx, y + dy);
  for (let n = 0; n < times; n++) {
    await page.mouse.wheel(0, -120);
    await page.waitForTimeout(40);
  }
};
const select = (page, seats) => page.evaluate((names) => document.querySelector("holdfast-seatmap").selectSeats(names), seats);

await shot("theatre-light", DESK, "house=theatre&theme=light", async (page) => { await select(page, [40, 41, 42]); });
await shot("theatre-dark", DESK, "house=theatre&theme=dark", async (page) => { await select(page, [40, 41, 42]); });
await shot("theatre-near", DESK, "house=theatre&theme=light", async (page) => {
  await select(page, [385, 386, 387]);
  await zoom(page, 5, 0, 60);
  const { x, y } = await middleOf(page);
  await page.mouse.move(x + 40, y + 60);
});
await shot("theatre-price", DESK, "house=theatre&theme=light&color-by=price");
await shot("theatre-filter", DESK, "house=theatre&theme=light", async (page) => { await page.getByRole("button", { name: "Wheelchair places" }).click(); await zoom(page, 3, -100, 120); });
await shot("stadium-far", DESK, "house=stadium&theme=light");
await shot("stadium-dark", DESK, "house=stadium&theme=dark");
await shot("stadium-middle", DESK, "house=stadium&theme=light", async (page) => { await zoom(page, 6, 200, 120); });
await shot("stadium-near", DESK, "house=stadium&theme=dark", async (page) => { await zoom(page, 12, 200, 120); });
await shot("stadium-phone-far", PHONE, "house=stadium&theme=light");
await shot("theatre-phone", PHONE, "house=theatre&theme=light", async (page) => { await select(page, [40, 41]); });
await shot("theatre-phone-list", PHONE, "house=theatre&theme=dark&mode=list");
await shot("list", DESK, "house=theatre&theme=light&mode=list", async (page) => { await select(page, [3, 4, 5]); });
await shot("list-organiser", DESK, "house=stadium&theme=light&mode=list&lasso=&selection=any");
await shot("lasso", DESK, "house=theatre&theme=light&lasso=&selection=any", async (page) => {
  await page.getByRole("button", { name: "Select by drawing" }).click();
  const { x, y } = await middleOf(page);
  await page.mouse.move(x - 160, y - 80);
  await page.mouse.down();
  for (const [dx, dy] of [[-60, -120], [80, -110], [170, -30], [120, 60], [0, 90], [-120, 50]]) await page.mouse.move(x + dx, y + dy, { steps: 4 });
});
await shot("keyboard", DESK, "house=theatre&theme=light", async (page) => {
  await page.locator("holdfast-seatmap .surface").focus();
  for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowDown", "Enter", "ArrowRight"]) await page.keyboard.press(key);
});
await shot("contrast", { ...DESK, contrast: "more", colorScheme: "light" }, "house=theatre");
await site.close();
