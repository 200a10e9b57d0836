import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Real browsers start slowly where others use the machine, too.
    testTimeout: 40_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
