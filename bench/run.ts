// `node bench/run.ts [--full]`, which is `make bench` and `make bench-full`: measures every part of the suite
// into a directory of bench/runs/, writes docs/performance.md from it, and fails if a target is missed.
//
// One part after the other: two at a time would slow each other down.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem, type } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../tests/support/program.ts";
import { PARTS } from "./parts.ts";
import { buildRelease, releaseSize } from "./release.ts";
import { writeReport } from "./report/generate.ts";
import { type Meta, readRun } from "./report/results.ts";
import { assertKept, judgeAll } from "./report/thresholds.ts";

const { full } = parseArgs({ options: { full: { type: "boolean", default: false } } }).values;

await run(async () => {
  const parts = Object.entries(PARTS).filter(([, part]) => full || !part.full);
  buildRelease();
  for (const [, { build }] of parts) await build?.({ full });

  const meta = describe();
  const directory = `bench/runs/${meta.date.slice(0, 10)}-${slug(`${meta.machine.processor} ${meta.machine.cores} cores`)}`;
  mkdirSync(directory, { recursive: true });
  const file = (name: string) => join(directory, `${name}.json`);
  const write = (name: string, data: unknown) => writeFileSync(file(name), `${JSON.stringify(data, null, 2)}\n`);
  // An earlier run of the same day may have left files.
  for (const name of Object.keys(PARTS)) rmSync(file(name), { force: true });
  write("meta", meta);
  const firstMs = performance.now();
  for (const [name, { measure }] of parts) {
    const startMs = performance.now();
    write(name, await measure({ full }));
    console.error(`gateward: measured ${name} in ${secondsSince(startMs)}`);
  }
  console.error(`gateward: measured everything in ${secondsSince(firstMs)}`);

  await writeReport(directory);
  console.log(`The run is in ${directory}; docs/performance.md shows it.`);
  assertKept(judgeAll(readRun(directory), { full }));
});

function secondsSince(startMs: number): string {
  return `${Math.round((performance.now() - startMs) / 1e3)} s`;
}

function describe(): Meta {
  const processors = cpus();
  // The files that a run writes do not count as a change of the code.
  const changed = git("status", "--porcelain", "--", ".", ":!bench/runs", ":!docs/performance.md");
  return {
    date: new Date().toISOString(),
    command: full ? "make bench-full" : "make bench",
    form: full ? "full" : "short",
    commit: git("rev-parse", "HEAD") ?? "unknown",
    dirty: (changed ?? "") !== "",
    machine: {
      processor: processors[0]?.model.trim() ?? "unknown",
      cores: processors.length,
      memory_mb: Math.round(totalmem() / 1e6),
      kernel: `${type()} ${release()}`,
    },
    versions: {
      rustc: execFileSync("rustc", ["--version"], { encoding: "utf8" }).split(" ")[1] ?? "unknown",
      node: process.versions.node,
      workerd: installed("workerd"),
      wrangler: installed("wrangler"),
      autocannon: installed("autocannon"),
      "cedar-policy-core": locked("cedar-policy-core"),
      worker: locked("worker"),
    },
    wasm: releaseSize(),
  };
}

/** What git prints; `undefined` outside a clone. */
function git(...args: string[]): string | undefined {
  try {
    return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

/** The version of an npm package. */
function installed(name: string): string {
  return String(JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version);
}

/** The version of a crate. */
function locked(name: string): string {
  return (
    new RegExp(`^name = "${name}"\nversion = "([^"]+)"`, "m").exec(readFileSync("Cargo.lock", "utf8"))?.[1] ?? "unknown"
  );
}

function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}
