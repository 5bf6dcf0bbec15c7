// `make bench-check`, which CI runs: counts the instructions and the deployed worker's bytes, and
// fails where a figure that is the same on every machine stepped back. What could not be computed
// is a failure too.
import { run } from "../../scripts/local.ts";
import { buildInstructions, instructions as count } from "../core/instructions.ts";
import { buildRelease, releaseSize } from "../release.ts";
import { judge, printVerdicts, THRESHOLDS } from "./thresholds.mjs";

await run(async () => {
  buildRelease();
  await buildInstructions();
  const instructions = await count();

  const verdicts = THRESHOLDS.filter(({ stable }) => stable).map((threshold) =>
    judge(held(threshold), { meta: { wasm: releaseSize() }, instructions }),
  );
  printVerdicts(verdicts);
  const missed = verdicts.filter(({ met }) => met !== true);
  if (missed.length > 0) throw new Error(`thresholds not kept: ${missed.map(({ name }) => name).join(", ")}`);
});

/** @param {import("./thresholds.mjs").Threshold} threshold */
function held(threshold) {
  const { regression, min } = threshold;
  if (regression === undefined) return threshold;
  return min === undefined ? { ...threshold, max: regression } : { ...threshold, min: regression };
}
