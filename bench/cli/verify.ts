// How long `gateward verify` takes for a million receipts, and how much memory: the data of verify.json.
import { join } from "node:path";
import type { Timing } from "../core/core.ts";
import { run, targetDirectory } from "../core/cargo.ts";

export interface Verify {
  results: Timing[];
  memory: { receipts: number; peak_mb: number }[];
}

/** The smaller export shows that memory does not grow with it. */
const RECEIPTS = [100_000, 1_000_000];

export async function buildVerify(): Promise<void> {
  await run("cargo", ["build", "--release", "--package", "gateward", "--example", "verify-million"]);
}

export async function verify(): Promise<Verify> {
  const program = join(await targetDirectory(), "release/examples/verify-million");
  const found: Verify = { results: [], memory: [] };
  for (const receipts of RECEIPTS) {
    const output = await run(program, [String(receipts)]);
    const [, seconds] = /in ([\d.]+) s$/m.exec(output) ?? [];
    const [, kilobytes] = /^peak of memory: (\d+) kB$/m.exec(output) ?? [];
    if (seconds === undefined || kilobytes === undefined) throw new Error(`the program printed: ${output}`);
    const ns = Number(seconds) * 1e9;
    found.results.push({ name: `verify_${receipts}`, of: "gateward", median_ns: ns, low_ns: ns, high_ns: ns });
    found.memory.push({ receipts, peak_mb: (Number(kilobytes) * 1_024) / 1e6 });
  }
  return found;
}
