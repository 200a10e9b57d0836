import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Built into the Python package: whoever installs the wheel needs no Node.
export default defineConfig({
  plugins: [svelte()],
  root: here('.'),
  base: '/',
  build: {
    outDir: here('../../src/holdfast/pages'),
    emptyOutDir: true,
    assetsDir: 'assets',
    assetsInlineLimit: 0, // the policy of the pages allows nothing inline
    modulePreload: { polyfill: false },
    target: 'es2022',
    rolldownOptions: { input: { index: here('index.html'), dashboard: here('dashboard.html') } },
  },
  server: { proxy: { '/api': process.env.HOLDFAST_URL ?? 'http://127.0.0.1:8080' } },
});
