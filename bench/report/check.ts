// `make bench-check`, which CI runs: counts instructions and the deployed worker's bytes, which are the same on every
// machine, and fails if a figure became worse or could not be computed.
import { run } from "../../tests/support/program.ts";
import { buildInstructions, instructions } from "../core/instructions.ts";
import { buildRelease, releaseSize } from "../release.ts";
import { assertKept, judge, type Threshold, THRESHOLDS } from "./thresholds.ts";

await run(async () => {
  buildRelease();
  await buildInstructions();
  const results = { meta: { wasm: releaseSize() }, instructions: await instructions() };
  assertKept(THRESHOLDS.filter(({ stable }) => stable).map((threshold) => judge(held(threshold), results)));
});

/** The threshold with its regression bound in place of the target. */
function held({ regression, ...threshold }: Threshold): Threshold {
  if (regression === undefined) return threshold;
  return threshold.min === undefined ? { ...threshold, max: regression } : { ...threshold, min: regression };
}
