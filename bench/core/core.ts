// The core's operations, native, under criterion: the data of core.json.
//
//   npx node bench/core/core.ts [--full]
import { globSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run, targetDirectory } from "./cargo.ts";

export interface Timing {
  name: string;
  of: string;
  median_ns: number;
  /** The bounds of the median's 95% confidence interval; in wasm.json, the 10th and 90th percentiles. */
  low_ns: number;
  high_ns: number;
}

/** Seconds. They are enough for 20 samples of the slowest operation, which takes some 50 ms. */
const SHORT = ["--warm-up-time", "0.2", "--measurement-time", "0.7", "--sample-size", "20", "--nresamples", "5000"];
const FULL = ["--warm-up-time", "1", "--measurement-time", "2"];

const CARGO_BENCH = ["bench", "--package", "gateward-bench", "--bench", "core"];

/** Builds before anything is measured. */
export async function buildCore(): Promise<void> {
  await run("cargo", [...CARGO_BENCH, "--no-run"]);
}

interface Asked {
  /** Takes longer, and criterion's own number of samples. */
  full?: boolean;
  /** As `<name>/<of>`; all unless set. */
  operations?: string[];
}

export async function core({ full = false, operations }: Asked = {}): Promise<{ results: Timing[] }> {
  // A new directory, so that results of an earlier run are not taken for results of this one.
  const home = join(await targetDirectory(), "criterion-of-run");
  rmSync(home, { recursive: true, force: true });
  const only = operations === undefined ? [] : [`^(${operations.join("|")})$`];
  const args = [...CARGO_BENCH, "--", "--noplot", ...(full ? FULL : SHORT), ...only];
  await run("cargo", args, { ...process.env, CRITERION_HOME: home });

  const results = globSync(join(home, "**/new/estimates.json")).map((file) => {
    const { full_id } = read<{ full_id: string }>(join(file, "../benchmark.json"));
    const [name = "", of = ""] = full_id.split("/");
    const { median } = read<{ median: Estimate }>(file);
    const { lower_bound, upper_bound } = median.confidence_interval;
    return { name, of, median_ns: median.point_estimate, low_ns: lower_bound, high_ns: upper_bound };
  });
  if (results.length === 0) throw new Error(`criterion left no results in \`${home}\``);
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  return { results: results.sort((a, b) => compare(a.name, b.name) || compare(a.of, b.of)) };
}

interface Estimate {
  point_estimate: number;
  confidence_interval: { lower_bound: number; upper_bound: number };
}

function read<T>(file: string): T {
  return JSON.parse(readFileSync(file, "utf8")) as T;
}

if (import.meta.main) {
  await buildCore();
  console.log(JSON.stringify(await core({ full: process.argv.includes("--full") }), null, 2));
}
