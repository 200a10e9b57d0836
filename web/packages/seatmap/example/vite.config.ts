import { defineConfig } from "vite";

// The example uses the package as anybody else would: built, by its name.
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  build: { outDir: "../site", emptyOutDir: true, modulePreload: { polyfill: false }, rolldownOptions: { input: ["index.html", "bench.html"].map((page) => `${import.meta.dirname}/${page}`) } },
  optimizeDeps: { exclude: ["@holdfast/seatmap"] },
});
