// The parts of the suite: how each is built, before anything is measured, and how it is measured. Each returns
// what its file of a run holds.
import { buildVerify, verify } from "./cli/verify.ts";
import { buildCore, core } from "./core/core.ts";
import { buildInstructions, instructions } from "./core/instructions.ts";
import { buildBundles, bundles } from "./edge/bundles.ts";
import { coldStart } from "./edge/cold-start.ts";
import { edge } from "./edge/edge.ts";
import { growth } from "./edge/growth.ts";
import { limits } from "./edge/limits.ts";
import { proxied } from "./edge/proxied.ts";
import type { FILES } from "./report/results.ts";
import { judgedOperations } from "./report/thresholds.ts";
import { buildWasm, wasm } from "./wasm/wasm.ts";

interface Options {
  /** Whether to measure everything, and not only what the targets name. */
  full: boolean;
}

export interface Part {
  /** Only the full form has it. */
  full?: true;
  build?(options: Options): Promise<void> | void;
  measure(options: Options): Promise<unknown>;
}

/** By the names of their files, in the order in which they are measured. */
export const PARTS: Record<(typeof FILES)[number], Part> = {
  core: { build: buildCore, measure: ({ full }) => core(full ? { full } : { operations: judgedOperations() }) },
  // The same in both forms, because counts have no noise that longer runs could reduce.
  instructions: { build: buildInstructions, measure: () => instructions() },
  wasm: { full: true, build: buildWasm, measure: () => wasm() },
  verify: { full: true, build: buildVerify, measure: verify },
  edge: { measure: edge },
  proxied: { measure: proxied },
  limits: { full: true, measure: limits },
  // Only the full form builds bundles to compare.
  "cold-start": {
    build({ full }) {
      if (full) buildBundles();
    },
    measure: ({ full }) => coldStart(full ? { full, builds: bundles() } : {}),
  },
  growth: { full: true, measure: () => growth({ builds: bundles() }) },
};
