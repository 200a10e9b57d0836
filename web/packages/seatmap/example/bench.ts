/** What `npm run bench` drives: each measurement is a function that answers milliseconds. */
import type { HoldfastSeatmap } from "@holdfast/seatmap";
import { dice, stadium } from "./houses.js";

// Before the map is loaded: the time spent in animation frames of the page's own thread.
let frameMs = 0;
const plainRequest = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (callback) => plainRequest((at) => {
  const began = performance.now();
  callback(at);
  frameMs += performance.now() - began;
});

const longTasks: number[] = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });

await import("@holdfast/seatmap");
const house = stadium();
const random = dice(77);
let map: HoldfastSeatmap;
let version = 0;

const nextFrame = () => new Promise<number>((resolve) => plainRequest(resolve));
const drawn = () => new Promise<number>((resolve) => map.addEventListener("framedrawn", (event) => resolve((event as CustomEvent<{ drawMs: number }>).detail.drawMs), { once: true }));
const surface = () => map.shadowRoot!.querySelector<HTMLElement>(".surface")!;
const pointer = (type: string, x: number, y: number) =>
  surface().dispatchEvent(new PointerEvent(type, { pointerId: 1, pointerType: "mouse", button: 0, clientX: x, clientY: y, bubbles: true }));

const bench = {
  /** One picture that fills the screen, onto a canvas of the kind the map uses, until it is really there. */
  async image(times: number): Promise<number[]> {
    const canvas = document.createElement("canvas");
    canvas.width = 1280;
    canvas.height = 800;
    const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true })!;
    const picture = new ImageData(1280, 800);
    for (let i = 0; i < picture.data.length; i++) picture.data[i] = random() * 256;
    const bitmap = await createImageBitmap(picture);
    const found: number[] = [];
    for (let n = 0; n < times; n++) {
      const began = performance.now();
      context.drawImage(bitmap, 0, 0);
      context.getImageData(n % 1280, 0, 1, 1);
      found.push(performance.now() - began);
      await nextFrame();
    }
    return found;
  },

  /** From the data to the first picture: all of it, and the drawing alone. */
  async open(draw: "worker" | "main"): Promise<{ wholeMs: number; drawMs: number }> {
    map?.remove();
    await nextFrame();
    map = document.createElement("holdfast-seatmap");
    map.setAttribute("draw", draw);
    map.setAttribute("hide", "filters modes legend minimap zoom");
    map.setAttribute("theme", "light");
    document.body.append(map);
    await nextFrame();
    await nextFrame();
    const first = new Promise<number>((resolve) => map.addEventListener("seatmapready", (event) => resolve((event as CustomEvent<{ drawMs: number }>).detail.drawMs), { once: true }));
    const began = performance.now();
    map.geometry = house.geometry;
    map.prices = house.prices;
    map.snapshot = house.snapshot;
    const drawMs = await first;
    return { wholeMs: performance.now() - began, drawMs };
  },

  seatPx(): number {
    return map.view!.scale * 0.47 * 0.84;
  },

  async zoom(factor: number): Promise<number[]> {
    const found: number[] = [];
    const target = map.view!.scale * factor;
    while (Math.abs(map.view!.scale / target - 1) > 0.02) {
      const step = Math.min(Math.max(target / map.view!.scale, 1 / 1.12), 1.12);
      const next = drawn();
      surface().dispatchEvent(new WheelEvent("wheel", { deltaY: -240 * Math.log2(step), clientX: 640, clientY: 400, cancelable: true }));
      found.push(await next);
    }
    return found;
  },

  /** Drags about for so many frames; what each took to draw, how far apart frames were, what blocked the page. */
  async pan(frames: number): Promise<{ drawMs: number[]; gapMs: number[]; longMs: number[] }> {
    const drawMs: number[] = [], gapMs: number[] = [];
    const listen = (event: Event) => drawMs.push((event as CustomEvent<{ drawMs: number }>).detail.drawMs);
    map.addEventListener("framedrawn", listen);
    longTasks.length = 0;
    let [x, y] = [640, 400];
    pointer("pointerdown", x, y);
    let last = await nextFrame();
    for (let n = 0; n < frames; n++) {
      x += Math.round(9 * Math.cos(n / 13));
      y += Math.round(9 * Math.sin(n / 13));
      pointer("pointermove", x, y);
      const now = await nextFrame();
      gapMs.push(now - last);
      last = now;
    }
    pointer("pointerup", x, y);
    map.removeEventListener("framedrawn", listen);
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { drawMs, gapMs, longMs: [...longTasks] };
  },

  /** A thousand seats change: the page's own time for it, and the drawing (which may be elsewhere). */
  async recolour(seats: number): Promise<{ pageMs: number; drawMs: number }> {
    const ordinals = Array.from({ length: seats }, () => Math.floor(random() * house.geometry.seatCount));
    version++;
    const changes = {
      ordinals, values: ordinals.map(() => Math.floor(random() * 3)), versions: ordinals.map(() => version), hold_types: [null],
    };
    await nextFrame();
    frameMs = 0;
    const next = drawn();
    const began = performance.now();
    map.applyChanges(changes);
    const applied = performance.now() - began;
    const drawMs = await next;
    return { pageMs: applied + frameMs, drawMs };
  },
};

declare global {
  interface Window {
    bench: typeof bench;
  }
}
window.bench = bench;
document.body.dataset.ready = "yes";
export {};
