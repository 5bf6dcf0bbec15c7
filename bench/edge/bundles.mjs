// Gateward built with bundles of other sizes than it ships, to see what policies cost: copies of the
// sources with a generated file of policies beside the shipped ones, built as the release is.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DEFAULT_BUILD } from "./workers.mjs";

/** Sizes of bundles, the shipped policies among them. */
const POLICIES = [10, 1_000, 10_000];

/** Git ignores it. */
const ROOT = ".gateward/bench";
/** One copy and one target directory for all: cargo takes crates of other paths for other crates, and yet writes the worker's Wasm of all to one file. */
const COPY = join(ROOT, "source");
/** All of the workspace, and nothing that is built. */
const SOURCES = [
  "Cargo.toml",
  "Cargo.lock",
  "rust-toolchain.toml",
  "package.json",
  "scripts",
  "policies",
  "worker/core",
  "worker/edge/Cargo.toml",
  "worker/edge/src",
  "bench/core",
  "bench/wasm/Cargo.toml",
  "bench/wasm/src",
];
const GENERATED = "policies/base/generated.cedar";

/** @returns {{ policies: number, build: string }[]} */
export function bundles() {
  return POLICIES.map((policies) => ({ policies, build: buildOf(policies) }));
}

/** Builds them, one after the other in the same place, and takes each away. */
export function buildBundles() {
  for (const source of SOURCES) {
    rmSync(join(COPY, source), { recursive: true, force: true });
    cpSync(source, join(COPY, source), { recursive: true, preserveTimestamps: true });
  }
  if (!existsSync(join(COPY, "node_modules"))) symlinkSync(resolve("node_modules"), join(COPY, "node_modules"));
  const shipped = shippedPolicies();
  for (const count of POLICIES) buildBundle(count, count - shipped);
}

/**
 * @param {number} count
 * @param {number} generated
 */
function buildBundle(count, generated) {
  writeFileSync(join(COPY, GENERATED), Array.from({ length: generated }, (_, at) => policy(at)).join("\n"));
  const { GATEWARD_PREBUILT: _, CARGO_TARGET_DIR: __, ...environment } = process.env;
  execFileSync("scripts/build-wasm.sh", { cwd: COPY, stdio: "inherit", env: { ...environment, GATEWARD_PROFILE: "release" } });
  const wasm = readFileSync(join(COPY, DEFAULT_BUILD, "index_bg.wasm"));
  const held = wasm.toString("latin1").match(/generated#generated-\d+/g) ?? [];
  if (new Set(held).size !== generated) throw new Error(`the bundle of ${count} policies has ${new Set(held).size} generated ones`);
  rmSync(buildOf(count), { recursive: true, force: true });
  cpSync(join(COPY, DEFAULT_BUILD), buildOf(count), { recursive: true });
}

/** @param {number} count */
function buildOf(count) {
  return join(ROOT, `${count}-policies`);
}

/**
 * One that no call of the demo's tenant can match.
 * @param {number} at
 */
function policy(at) {
  return (
    `@id("generated-${at}")\n@reason("A generated policy, one of many.")\n` +
    `permit (principal == Agent::"other/agent-${at}", action in Action::"read", resource == Server::"other/server-${at % 97}")\n` +
    `when { context.source_trust == "trusted_internal_signed" && context.velocity.calls_1m < ${at + 1} };\n`
  );
}

function shippedPolicies() {
  const files = execFileSync("git", ["ls-files", "policies/base/*.cedar", "policies/tenants/*.cedar"], { encoding: "utf8" }).trim().split("\n");
  return files.map((path) => readFileSync(path, "utf8").match(/^@id\(/gm)?.length ?? 0).reduce((sum, found) => sum + found, 0);
}
