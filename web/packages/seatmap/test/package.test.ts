import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { build } from "vite";
import { openBrowser, serve } from "../scripts/browser.mjs";

const here = fileURLToPath(new URL("..", import.meta.url));

/** The package as it would be published, installed in a folder of its own. */
describe("the packed package", () => {
  let folder: string;
  let installed: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "seatmap-package-"));
    const told = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: here, stdio: ["ignore", "pipe", "ignore"] });
    expect(told.length).toBeGreaterThan(0);
    const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"))!;
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "a-page", private: true, type: "module" }));
    execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${tarball}`], { cwd: folder, stdio: "ignore" });
    installed = join(folder, "node_modules/@holdfast/seatmap");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("has the element, its worker, types and a README, no sources and no dependencies", () => {
    expect(readdirSync(installed).sort()).toEqual(["README.md", "dist", "package.json"]);
    expect(readdirSync(join(installed, "dist")).sort()).toEqual(["seatmap.js", "types", "worker.js"]);
    expect(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["@holdfast"]);
    const { dependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    expect(dependencies).toBeUndefined();
  });

  it("can be imported where there is no page", async () => {
    const module = await import(pathToFileURL(join(installed, "dist/seatmap.js")).href);
    expect(Object.keys(module)).toEqual(expect.arrayContaining(["HoldfastSeatmap", "Feed", "decodeGeometry", "decodeSnapshot", "uuid5"]));
  });

  it("has types that a strict page compiles with", () => {
    writeFileSync(join(folder, "page.ts"), `
      import "@holdfast/seatmap";
      import type { Seat } from "@holdfast/seatmap";
      const map = document.querySelector("holdfast-seatmap")!;
      map.onSeatSelect = async (seat: Seat) => seat.priceMinor !== null;
      map.setSeatsState(["A-1", 3], "mine");
      map.zoomTo({ section: "stalls" });
    `);
    const options = {
      strict: true, noEmit: true, target: "es2022", module: "esnext", moduleResolution: "bundler", lib: ["es2023", "dom", "dom.iterable"], types: [],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["page.ts"] }));
    const tsc = join(here, "../../node_modules/typescript/bin/tsc");
    const said = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
    expect(said.stdout).toBe("");
    expect(said.status).toBe(0);
  });

  it("is built into a page by a bundler, worker and all, and without one works as it is", async () => {
    const page = `<!doctype html><html lang="en"><head><title>t</title>
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'" />
      <script type="module" src="./main.js"></script></head><body><holdfast-seatmap></holdfast-seatmap></body></html>`;
    const data = readFileSync(new URL("./fixtures/geometry.json", import.meta.url), "utf8");
    const script = (from: string) => `import "${from}";
      const map = document.querySelector("holdfast-seatmap");
      map.addEventListener("seatmapready", ({ detail }) => { document.title = detail.drawnIn; });
      map.geometry = ${data};`;
    writeFileSync(join(folder, "index.html"), page);
    writeFileSync(join(folder, "main.js"), script("@holdfast/seatmap"));
    await build({ root: folder, base: "./", logLevel: "silent", build: { outDir: "built", modulePreload: { polyfill: false } } });
    mkdirSync(join(folder, "plain"));
    writeFileSync(join(folder, "plain/index.html"), page);
    writeFileSync(join(folder, "plain/main.js"), script("/node_modules/@holdfast/seatmap/dist/seatmap.js"));

    const server = await serve(folder);
    const browser = await openBrowser();
    try {
      for (const path of ["built", "plain"]) {
        const tab = await browser.context.newPage();
        await tab.goto(`${server.url}/${path}/`);
        await expect.poll(() => tab.title(), { timeout: 10_000 }).toBe("worker");
      }
    } finally {
      await browser.close();
      await server.close();
    }
  });
});
