import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

// A path to write machine-readable results to, beside the ones for people.
const report = process.env.GATEWARD_VITEST_REPORT;

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts", "bench/**/*.test.ts", "scripts/**/*.test.ts"],
    setupFiles: ["tests/support/described-answers-setup.ts"],
    pool: "forks",
    // Files that run in one process share its modules. Loading them anew takes a sixth of the processor time.
    isolate: false,
    // A third of a test is waiting, so more of them run at once than there are processors.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // Bounds against hanging, on a slow and busy machine; no test asserts a duration.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    env: {
      GATEWARD_PREBUILT: "1",
      // V8 also has a compiler that optimises. It takes a tenth of the processor time, and most tests are over before
      // that pays.
      MINIFLARE_WORKERD_V8_FLAGS: "--liftoff-only",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_LOG: "error",
    },
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
  },
});
