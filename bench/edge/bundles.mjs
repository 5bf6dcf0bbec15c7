// Gateward built with bundles of other sizes than it ships, to see what policies cost: copies of the
// sources with a generated file of policies beside the shipped ones, built as the release is.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DEFAULT_BUILD } from "./workers.mjs";

/** Sizes of bundles, the shipped policies among them. */
const POLICIES = [10, 1_000, 10_000];

/** Git ignores it. */
const COPIES = ".gateward/bench";
const SOURCES = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "package.json", "scripts", "policies", "worker", "bench/core", "bench/wasm"];
const GENERATED = "policies/base/generated.cedar";
/** Built things in what is copied. */
const BUILT = /^(worker\/edge|bench\/wasm)\/build$/;

/** @returns {{ policies: number, build: string }[]} */
export function bundles() {
  return POLICIES.map((policies) => ({ policies, build: join(copyOf(policies), DEFAULT_BUILD) }));
}

/** Builds them; what has not changed is not built again. */
export function buildBundles() {
  const shipped = shippedPolicies();
  for (const count of POLICIES) buildBundle(count, count - shipped);
}

/**
 * @param {number} count
 * @param {number} generated
 */
function buildBundle(count, generated) {
  const copy = copyOf(count);
  mkdirSync(join(copy, "bench"), { recursive: true });
  for (const source of SOURCES) {
    rmSync(join(copy, source, "src"), { recursive: true, force: true });
    cpSync(source, join(copy, source), { recursive: true, preserveTimestamps: true, filter: (path) => !BUILT.test(path) });
  }
  if (!existsSync(join(copy, "node_modules"))) symlinkSync(resolve("node_modules"), join(copy, "node_modules"));
  const text = Array.from({ length: generated }, (_, at) => policy(at)).join("\n");
  const file = join(copy, GENERATED);
  if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileSync(file, text);
  const { GATEWARD_PREBUILT: _, ...environment } = process.env;
  execFileSync("scripts/build-wasm.sh", {
    cwd: copy,
    stdio: "inherit",
    // Dependencies are compiled once for all.
    env: { ...environment, GATEWARD_PROFILE: "release", CARGO_TARGET_DIR: resolve("target") },
  });
}

/** @param {number} count */
function copyOf(count) {
  return join(COPIES, `${count}-policies`);
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
