declare module "*/scripts/browser.mjs" {
  import type { BrowserContext } from "playwright-core";
  export function serve(folder: string): Promise<{ url: string; close(): Promise<void> }>;
  export function openBrowser(options?: Record<string, unknown>): Promise<{ context: BrowserContext; close(): Promise<void> }>;
}
