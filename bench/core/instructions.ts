// How many instructions and allocations an operation takes, counted by callgrind: the data of
// instructions.json. Counts hardly depend on the machine or its load, so CI can hold them to ratios.
//
//   npx node bench/core/instructions.ts [<name>/<of>…]
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, targetDirectory } from "./cargo.ts";

export interface Count {
  name: string;
  of: string;
  instructions: number;
  allocations: number;
}

/** Beside its peer. */
const both = (name: string, peer: string) => [`${name}/gateward`, `${name}/${peer}`];

/**
 * What CI counts, as `<name>/<of>`. The 10,000 policies come first: compiling them under callgrind
 * takes half a minute. Meanwhile the other worker does the rest.
 */
export const STABLE = [
  "policy_eval_10000_policies/gateward",
  ...both("policy_eval_10_policies", "plain_cedar"),
  ...["allow_read", "allow_write", "deny_policy", "require_approval", "redact"].map((kind) => `decide_${kind}/gateward`),
  ...["allow_read", "allow_write", "require_approval"].flatMap((kind) => both(`policy_step_${kind}`, "plain_cedar")),
  ...["flat", "nested", "array200"].flatMap((shape) => both(`canonicalize_${shape}`, "sorted_value")),
  "deny_malformed_token/gateward",
  "deny_forged_token/gateward",
  "deny_unknown_tool/gateward",
];

/** Enough to even out what differs between runs: hash seeds, and when the allocator merges free memory. */
const TIMES = 200;
const PARALLEL = 2;

/** Builds as the native benches are built, so that one build of the libraries serves both. */
export async function buildInstructions(): Promise<void> {
  await run("cargo", ["build", "--release", "--package", "gateward-bench", "--bin", "instructions"]);
}

/** Counts operations, each named `<name>/<of>`. */
export async function instructions(operations = STABLE): Promise<{ results: Count[] }> {
  requireValgrind();
  const program = join(await targetDirectory(), "release/instructions");
  const directory = mkdtempSync(join(tmpdir(), "gateward-callgrind-"));
  try {
    const results = new Array<Count>(operations.length);
    const waiting = operations.entries();
    const worker = async () => {
      for (const [at, operation] of waiting) {
        results[at] = await count(program, operation, join(directory, `${at}.out`));
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    return { results };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function requireValgrind(): void {
  try {
    execFileSync("valgrind", ["--version"]);
  } catch {
    throw new Error("valgrind is missing: install the Debian package `valgrind`, then try again");
  }
}

async function count(program: string, operation: string, out: string): Promise<Count> {
  const [name = "", of = ""] = operation.split("/");
  // Only what happens inside `measured` (src/bin/instructions.rs) is counted.
  const callgrind = ["--tool=callgrind", "--toggle-collect=instructions::measured*", `--callgrind-out-file=${out}`];
  const output = await run("valgrind", ["--quiet", ...callgrind, program, name, of, String(TIMES)]);
  const total = Number(/^totals: (\d+)$/m.exec(readFileSync(out, "utf8"))?.[1]);
  if (!(total >= TIMES)) throw new Error(`callgrind counted nothing of \`${operation}\``);
  const each = (count: number) => Math.round(count / TIMES);
  return { name, of, instructions: each(total), allocations: each(Number(output)) };
}

if (import.meta.main) {
  await buildInstructions();
  const asked = process.argv.slice(2);
  console.log(JSON.stringify(await instructions(asked.length > 0 ? asked : STABLE), null, 2));
}
