// `node bench/run.mjs [--full]`, which is `make bench` and `make bench-full`: measures every part
// of the suite into a directory of bench/runs/, writes docs/performance.md from it and says which
// targets are met.
//
// One part after the other: two at a time would measure each other.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem, type } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../scripts/local.mjs";
import { loadPart } from "./parts.mjs";
import { buildRelease, releaseSize } from "./release.mjs";
import { writeReport } from "./report/report.mjs";
import { PARTS, readRun } from "./report/results.mjs";
import { judgeAll, printVerdicts } from "./report/thresholds.mjs";

const { full } = parseArgs({ options: { full: { type: "boolean", default: false } } }).values;

await run(async () => {
  const parts = await Promise.all(PARTS.map(loadPart));
  buildRelease();
  for (const part of parts) await part.build({ full });

  const meta = describe();
  const directory = `bench/runs/${meta.date.slice(0, 10)}-${slug(`${meta.machine.processor} ${meta.machine.cores} cores`)}`;
  mkdirSync(directory, { recursive: true });
  /** @param {string} name */
  const file = (name) => join(directory, `${name}.json`);
  /** @param {string} name @param {unknown} data */
  const write = (name, data) => writeFileSync(file(name), `${JSON.stringify(data, null, 2)}\n`);
  // What a run of the same day left is not this run's.
  for (const name of PARTS) rmSync(file(name), { force: true });
  write("meta", meta);
  const firstMs = performance.now();
  for (const { name, measure } of parts) {
    const startMs = performance.now();
    write(name, await measure({ full }));
    console.error(`gateward: measured ${name} in ${secondsSince(startMs)}`);
  }
  console.error(`gateward: measured everything in ${secondsSince(firstMs)}`);

  await writeReport(directory);
  printVerdicts(judgeAll(readRun(directory)));
  console.log(`\n${directory} and docs/performance.md say more.`);
});

/** @param {number} startMs */
function secondsSince(startMs) {
  return `${Math.round((performance.now() - startMs) / 1e3)} s`;
}

/** @returns {import("./report/results.mjs").Meta} */
function describe() {
  const processors = cpus();
  // What a run itself writes does not make the code another.
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

/**
 * What git says, and nothing outside a clone.
 * @param {string[]} args
 */
function git(...args) {
  try {
    return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

/** @param {string} name an npm package */
function installed(name) {
  return String(JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version);
}

/** @param {string} name a crate */
function locked(name) {
  return (
    new RegExp(`^name = "${name}"\nversion = "([^"]+)"`, "m").exec(readFileSync("Cargo.lock", "utf8"))?.[1] ?? "unknown"
  );
}

/** @param {string} text */
function slug(text) {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}
