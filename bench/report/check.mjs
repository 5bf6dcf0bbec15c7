// `make bench-check`, which CI runs: counts the instructions and the deployed worker's bytes, and
// fails where a figure that is the same on every machine stepped back. What could not be computed
// is a failure too.
import { run } from "../../scripts/local.mjs";
import { loadPart } from "../parts.mjs";
import { buildRelease, releaseSize } from "../release.mjs";
import { judge, printVerdicts, THRESHOLDS } from "./thresholds.mjs";

await run(async () => {
  const part = await loadPart("instructions");
  buildRelease();
  await part.build({ full: false });
  const instructions = /** @type {import("./results.mjs").Results["instructions"] & {}} */ (
    await part.measure({ full: false })
  );

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
