// Two files beside each other, the element and its drawing worker, and the types. Not Vite's library mode: it would carry
// the worker as text inside the element, which a strict content policy does not run.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const here = join(dirname(fileURLToPath(import.meta.url)), "..");
rmSync(join(here, "dist"), { recursive: true, force: true });
for (const [input, file] of [["src/index.ts", "seatmap.js"], ["src/draw/worker.ts", "worker.js"]]) {
  const bundle = await rolldown({ input: join(here, input), platform: "browser" });
  await bundle.write({ file: join(here, "dist", file), format: "esm", minify: true, sourcemap: false });
  await bundle.close();
}
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
execFileSync(process.execPath, [tsc, "-p", join(here, "tsconfig.types.json")], { stdio: "inherit" });
