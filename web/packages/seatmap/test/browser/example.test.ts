import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openBrowser, serve } from "../../scripts/browser.mjs";
import type { HoldfastSeatmap } from "../../src/index.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const site = fileURLToPath(new URL("../../site", import.meta.url));

let server: { url: string; close(): Promise<void> };
let browser: { context: BrowserContext; close(): Promise<void> };
let page: Page;
let said: string[];

type Map = HoldfastSeatmap;
const inMap = <T, A>(act: (map: Map, argument: A) => T, argument?: A): Promise<Awaited<T>> =>
  page.evaluate(`(${act.toString()})(document.querySelector("holdfast-seatmap"), ${JSON.stringify(argument)})`) as Promise<Awaited<T>>;

async function open(query: string): Promise<void> {
  await page.goto(`${server.url}/?still&${query}`);
  // Up to the second picture: the first one has no names yet.
  await inMap((map) => new Promise<void>((resolve) => {
    let frames = 0;
    map.addEventListener("framedrawn", () => { if (++frames === 2) resolve(); });
    const listed = setInterval(() => {
      if (!map.shadowRoot!.querySelector("[data-seat]")) return;
      clearInterval(listed);
      resolve();
    }, 50);
    setTimeout(resolve, 3000);
  }));
}

/** Where a seat is on the screen. */
const placeOf = (ordinal: number) => inMap((map, seat) => {
  const { left, top } = map.shadowRoot!.querySelector(".surface")!.getBoundingClientRect();
  const { scale, x, y } = map.view!;
  return { x: left + map.geometry!.x[seat!]! * scale + x, y: top + map.geometry!.y[seat!]! * scale + y };
}, ordinal);

const pixelAt = async ({ x, y }: { x: number; y: number }) => {
  const shot = await page.screenshot({ clip: { x: Math.round(x) - 1, y: Math.round(y) - 1, width: 2, height: 2 } });
  return page.evaluate(async (bytes) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(bytes)], { type: "image/png" }));
    const context = new OffscreenCanvas(2, 2).getContext("2d")!;
    context.drawImage(bitmap, 0, 0);
    return [...context.getImageData(1, 1, 1, 1).data];
  }, [...shot]);
};

const cart = () => inMap((map) => map.cart.seats.map(({ ordinal }) => ordinal));
const drawnNext = () => page.waitForTimeout(150);

beforeAll(async () => {
  server = await serve(site);
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});
beforeEach(async () => {
  page = browser.context.pages()[0]!;
  await page.setViewportSize({ width: 1280, height: 800 });
  page.removeAllListeners();
  said = [];
  page.on("console", (message) => { if (message.type() === "error") said.push(message.text()); });
  page.on("pageerror", (error) => said.push(error.message));
});

describe("the map in a browser", () => {
  it("draws in a worker, under a policy that forbids inline scripts and styles", async () => {
    await open("house=theatre&theme=light");
    const kind = await inMap((map) => new Promise<string>((resolve) => {
      map.addEventListener("framedrawn", (event) => resolve((event as CustomEvent).detail.drawnIn), { once: true });
      map.setAttribute("theme", "dark");
    }));
    expect(kind).toBe("worker");
    expect(said).toEqual([]);
  });

  it("draws the same without a worker, and when the worker cannot be had", async () => {
    await open("house=theatre&theme=light");
    const free = await inMap((map) => map.geometry!.x.findIndex((_, n) => map.seat(n)!.offered && map.seat(n)!.category === "standard"));
    const green = [22, 128, 90, 255];
    const edge = async () => {
      const place = await placeOf(free);
      return pixelAt({ x: place.x, y: place.y });
    };
    expect(await edge()).toEqual(green);
    await inMap((map) => map.setAttribute("draw", "main"));
    await drawnNext();
    expect(await edge()).toEqual(green);
    await inMap((map) => {
      map.setAttribute("draw", "auto");
      map.setAttribute("worker-url", "/nothing-here.js");
    });
    await page.waitForTimeout(700);
    expect(await edge()).toEqual(green);
  });

  it("selects what is clicked, tells the cart, and lets go again", async () => {
    await open("house=theatre&theme=light");
    const seat = await inMap((map) => map.geometry!.x.findIndex((_, n) => map.seat(n)!.offered));
    const { x, y } = await placeOf(seat);
    await page.mouse.click(x, y);
    expect(await cart()).toEqual([seat]);
    await expect.poll(() => page.locator("#cart li").count()).toBe(1);
    await page.mouse.click(x, y);
    expect(await cart()).toEqual([]);
    const taken = await inMap((map) => map.geometry!.x.findIndex((_, n) => map.seat(n)!.state === "sold"));
    const gone = await placeOf(taken);
    await page.mouse.click(gone.x, gone.y);
    expect(await cart()).toEqual([]);
  });

  it("heeds a veto by event and by callback, and waits for an answer", async () => {
    await open("house=theatre&theme=light");
    const seat = await inMap((map) => map.geometry!.x.findIndex((_, n) => map.seat(n)!.offered));
    const { x, y } = await placeOf(seat);
    await inMap((map) => map.addEventListener("seatselect", (event) => event.preventDefault(), { once: true }));
    await page.mouse.click(x, y);
    expect(await cart()).toEqual([]);
    await inMap((map) => { map.onSeatSelect = () => new Promise((resolve) => setTimeout(() => resolve(true), 300)); });
    await page.mouse.click(x, y);
    expect(await cart()).toEqual([]);
    await expect.poll(cart).toEqual([seat]);
  });

  it("lets a seat go that somebody else took, unless the page holds it", async () => {
    await open("house=theatre&theme=light");
    const [one, other] = await inMap((map) => [...map.geometry!.x.keys()].filter((n) => map.seat(n)!.offered).slice(0, 2)) as [number, number];
    const lost = await inMap((map, seat) => {
      const found: number[] = [];
      map.addEventListener("seatlost", (event) => found.push((event as CustomEvent).detail.seat.ordinal));
      map.selectSeats([seat!]);
      map.applyChanges({ ordinals: [seat!], values: [1], versions: [99] });
      return found;
    }, one);
    expect(lost).toEqual([one]);
    expect(await cart()).toEqual([]);
    await inMap((map, seat) => {
      map.setAttribute("hold-on-select", "");
      map.selectSeats([seat!]);
      map.applyChanges({ ordinals: [seat!], values: [1], versions: [99] });
    }, other);
    expect(await cart()).toEqual([other]);
  });

  it("pans by dragging, zooms by wheel about the pointer, and never selects by it", async () => {
    await open("house=theatre&theme=light");
    const before = await inMap((map) => map.view!);
    await page.mouse.move(400, 300);
    await page.mouse.wheel(0, -300);
    await expect.poll(async () => (await inMap((map) => map.view!)).scale).toBeGreaterThan(before.scale * 1.3);
    const zoomed = await inMap((map) => map.view!);
    const under = (view: typeof before) => inMap((map, v) => {
      const { left } = map.shadowRoot!.querySelector(".surface")!.getBoundingClientRect();
      return (400 - left - v!.x) / v!.scale;
    }, view);
    expect(await under(zoomed)).toBeCloseTo(await under(before), 3);
    await page.mouse.move(500, 400);
    await page.mouse.down();
    await page.mouse.move(440, 370, { steps: 5 });
    await page.mouse.up();
    const panned = await inMap((map) => map.view!);
    expect(panned.x).toBeCloseTo(zoomed.x - 60, 0);
    expect(panned.y).toBeCloseTo(zoomed.y - 30, 0);
    expect(await cart()).toEqual([]);
  });

  it("pinches with two fingers about their middle, and selects by a tap", async () => {
    await open("house=theatre&theme=light");
    const before = await inMap((map) => map.view!);
    await inMap((map) => {
      const surface = map.shadowRoot!.querySelector(".surface")!;
      const { left, top } = surface.getBoundingClientRect();
      const send = (type: string, pointerId: number, x: number, y: number) =>
        surface.dispatchEvent(new PointerEvent(type, { pointerId, pointerType: "touch", clientX: left + x, clientY: top + y, bubbles: true }));
      send("pointerdown", 1, 300, 200);
      send("pointerdown", 2, 400, 200);
      for (let n = 1; n <= 10; n++) {
        send("pointermove", 1, 300 - 5 * n, 200);
        send("pointermove", 2, 400 + 5 * n, 200);
      }
      send("pointerup", 1, 250, 200);
      send("pointerup", 2, 450, 200);
    });
    const after = await inMap((map) => map.view!);
    expect(after.scale / before.scale).toBeCloseTo(2, 2);
    expect((350 - after.x) / after.scale).toBeCloseTo((350 - before.x) / before.scale, 0);
    const seat = await inMap((map) => map.geometry!.x.findIndex((_, n) => map.seat(n)!.offered));
    await inMap((map, n) => {
      const surface = map.shadowRoot!.querySelector(".surface")!;
      const { left, top } = surface.getBoundingClientRect();
      const { scale, x, y } = map.view!;
      // A finger is not as exact as a mouse.
      const at = { clientX: left + map.geometry!.x[n!]! * scale + x + 3, clientY: top + map.geometry!.y[n!]! * scale + y - 3 };
      for (const type of ["pointerdown", "pointerup"]) surface.dispatchEvent(new PointerEvent(type, { pointerId: 1, pointerType: "touch", ...at }));
    }, seat);
    expect(await cart()).toEqual([seat]);
  });

  it("fills the element when everything around the map is hidden", async () => {
    await open("house=theatre&theme=light");
    await inMap((map) => map.setAttribute("hide", "filters modes legend minimap zoom"));
    const heights = await inMap((map) => [map.clientHeight, map.shadowRoot!.querySelector(".surface")!.clientHeight]) as [number, number];
    expect(heights[1]).toBeGreaterThan(heights[0] - 6);
  });

  it("keeps what the page set before the element was there", async () => {
    await open("house=theatre&theme=light");
    const kept = await page.evaluate(() => {
      const Seatmap = customElements.get("holdfast-seatmap")!;
      const later = document.createElement("holdfast-later") as HTMLElement & { onCartChange: unknown; token: unknown; holdTypes: object };
      const [callback, token] = [() => undefined, () => "t"];
      Object.assign(later, { onCartChange: callback, token, holdTypes: { X: {} } });
      document.body.append(later);
      customElements.define("holdfast-later", class extends Seatmap {});
      return [later.onCartChange === callback, later.token === token, Object.keys(later.holdTypes)];
    });
    expect(kept).toEqual([true, true, ["X"]]);
  });

  it("is used by keyboard alone, and says where one is", async () => {
    await open("house=theatre&theme=light");
    await page.locator("holdfast-seatmap .surface").focus();
    await page.keyboard.press("ArrowRight");
    const words = () => inMap((map) => map.shadowRoot!.querySelector("[aria-live]")!.textContent!);
    await expect.poll(words).toMatch(/^(Stalls|Dress circle), row \w+, seat \d+, .*EUR, /);
    for (let n = 0; n < 30 && (await cart()).length === 0; n++) {
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
    }
    expect(await cart()).toHaveLength(1);
    await expect.poll(words).toContain("selected");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    const focused = await inMap((map) => map.shadowRoot!.activeElement!.textContent);
    expect(focused).toBe("List");
  });

  it("selects for an organiser what a drawn line goes around", async () => {
    await open("house=theatre&theme=light&lasso=&selection=any");
    await page.getByRole("button", { name: "Select by drawing" }).click();
    const box = (await page.locator("holdfast-seatmap .surface").boundingBox())!;
    await page.mouse.move(box.x + 20, box.y + 20);
    await page.mouse.down();
    for (const [x, y] of [[box.width - 90, 20], [box.width - 90, box.height / 2], [20, box.height / 2]] as const) await page.mouse.move(box.x + x, box.y + y, { steps: 6 });
    await page.mouse.up();
    const chosen = await cart();
    expect(chosen.length).toBeGreaterThan(200);
    const inside = await inMap((map) => {
      const { scale, y } = map.view!;
      const half = map.shadowRoot!.querySelector(".surface")!.clientHeight / 2;
      return map.cart.seats.every(({ ordinal }) => map.geometry!.y[ordinal]! * scale + y <= half + 1);
    });
    expect(inside).toBe(true);
  });

  it("has the page's own states, section states and drawing callback", async () => {
    await open("house=theatre&theme=light");
    const seat = await inMap((map) => map.geometry!.x.findIndex((_, n) => map.seat(n)!.offered));
    await inMap((map, n) => {
      map.ownStates = { mine: { label: "yours", look: { fill: "#ff0000", mark: "none", numbered: false, shape: "square", size: 1 } } };
      map.setSeatsState([n!], "mine");
    }, seat);
    await drawnNext();
    expect(await pixelAt(await placeOf(seat))).toEqual([255, 0, 0, 255]);
    expect(await inMap((map, n) => map.seat(n!)!.label, seat)).toContain("yours");
    await inMap((map) => map.clearSeatsState());
    await inMap((map, n) => { map.onBeforeSeatDraw = ({ seat: { ordinal } }) => (ordinal === n! ? { fill: "#0000ff", mark: "none" } : undefined); }, seat);
    await expect.poll(async () => pixelAt(await placeOf(seat))).toEqual([0, 0, 255, 255]);
    await inMap((map) => map.setSectionState("stalls", "unavailable"));
    expect(await inMap((map, n) => map.seat(n!)!.label, seat)).toContain("not for sale");
  });

  it("goes to a section that is clicked from far away, unless the page keeps it", async () => {
    await open("house=stadium&theme=light");
    const scale = () => inMap((map) => map.view!.scale);
    const before = await scale();
    const { x, y } = await placeOf(20_000);
    await inMap((map) => { map.onSectionClick = () => false; });
    await page.mouse.click(x, y);
    await page.waitForTimeout(400);
    expect(await scale()).toBe(before);
    await inMap((map) => { map.onSectionClick = null; });
    await page.mouse.click(x, y);
    await expect.poll(scale).toBeGreaterThan(before * 2);
    expect(said).toEqual([]);
  });
});

describe("the list in a browser", () => {
  it("has buttons with full names, selects by keyboard, and is the same cart", async () => {
    await open("house=theatre&theme=light&mode=list");
    const first = page.getByRole("button", { name: /^Stalls, row A, seat 1, 80\.00 EUR, available$/ });
    await first.focus();
    await page.keyboard.press("Enter");
    expect(await cart()).toEqual([0]);
    await expect.poll(() => page.getByRole("button", { name: "Stalls, row A, seat 1, 80.00 EUR, selected" }).getAttribute("aria-pressed")).toBe("true");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    const name = await inMap((map) => map.shadowRoot!.activeElement!.getAttribute("aria-label"));
    expect(name).toContain("row B, seat 2");
  });

  it("keeps only what is near the screen, of a hundred thousand seats", async () => {
    await open("house=stadium&theme=light&mode=list");
    const count = () => inMap((map) => map.shadowRoot!.querySelectorAll("[data-seat]").length);
    expect(await count()).toBeGreaterThan(50);
    expect(await count()).toBeLessThan(900);
    await expect.poll(async () => {
      await inMap((map) => { map.shadowRoot!.querySelector(".list")!.scrollTop = 1e7; });
      return page.getByRole("button", { name: /^336/ }).count();
    }).toBe(1);
    await page.getByRole("button", { name: /^336/ }).click();
    await expect.poll(() => page.getByRole("button", { name: /^336, row 1, seat 1,/ }).count()).toBe(1);
  });

  it("shows what others take, and leaves out what filters leave out", async () => {
    await open("house=theatre&theme=light&mode=list");
    await inMap((map) => map.applyChanges({ ordinals: [0], values: [2], versions: [9] }));
    const first = page.getByRole("button", { name: "Stalls, row A, seat 1, 80.00 EUR, sold" });
    await expect.poll(() => first.getAttribute("aria-disabled")).toBe("true");
    await page.getByRole("button", { name: "Wheelchair places" }).click();
    await expect.poll(() => page.getByRole("button", { name: /seat \d+/ }).count()).toBe(4 * 2);
  });
});

describe("accessibility", () => {
  for (const theme of ["light", "dark"]) {
    for (const mode of ["map", "list"]) {
      it(`finds nothing serious in ${mode} mode, ${theme}`, async () => {
        await open(`house=theatre&theme=${theme}&mode=${mode}`);
        await page.waitForTimeout(500);
        // Through the debugger: the page's policy does not let a test's script in.
        await page.evaluate(axe);
        const found = await page.evaluate(async () => {
          const { axe } = window as unknown as { axe: { run(options: object): Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> } };
          const { violations } = await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
          return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]!.html.slice(0, 120)}`);
        });
        expect(found.filter((line) => /^(serious|critical)/.test(line))).toEqual([]);
      });
    }
  }
});
