import { defineConfig } from "vitest/config";

// A path to write machine-readable results to, beside the ones for people.
const report = process.env.GATEWARD_VITEST_REPORT;

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts", "bench/**/*.test.ts"],
    setupFiles: ["tests/support/described-answers-setup.ts"],
    pool: "forks",
    // Most of a test is waiting, so the processor that the default keeps free is not missed.
    maxWorkers: "100%",
    // Bounds against hanging, on a slow and busy machine; no test asserts a duration.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    env: {
      GATEWARD_PREBUILT: "1",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_LOG: "error",
    },
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
  },
});
