// Gateward built with bundles of other sizes than it ships, to see what policies cost: copies of the
// sources with a generated file of policies beside the shipped ones, built as the release is.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DEFAULT_BUILD } from "./workers.mjs";

/** Sizes of bundles, the shipped policies among them. */
const POLICIES = [10, 1_000, 10_000];

/** Git ignores it. */
const COPIES = ".gateward/bench";
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
  mkdirSync(copy, { recursive: true });
  for (const source of SOURCES) {
    rmSync(join(copy, source), { recursive: true, force: true });
    cpSync(source, join(copy, source), { recursive: true, preserveTimestamps: true });
  }
  if (!existsSync(join(copy, "node_modules"))) symlinkSync(resolve("node_modules"), join(copy, "node_modules"));
  const file = join(copy, GENERATED);
  writeFileSync(file, Array.from({ length: generated }, (_, at) => policy(at)).join("\n"));
  // Everything as old as what it was made of, directories too, so that the build sees what is new.
  ageAs(import.meta.filename, file);
  for (const source of SOURCES) {
    const inside = statSync(source).isDirectory() ? readdirSync(source, { recursive: true, encoding: "utf8" }) : [];
    const paths = [dirname(source), source, ...inside.map((inner) => join(source, inner))];
    for (const path of paths.filter((path) => statSync(path).isDirectory())) ageAs(path, join(copy, path));
  }
  const { GATEWARD_PREBUILT: _, ...environment } = process.env;
  execFileSync("scripts/build-wasm.sh", {
    cwd: copy,
    stdio: "inherit",
    // Dependencies are compiled once for all.
    env: { ...environment, GATEWARD_PROFILE: "release", CARGO_TARGET_DIR: resolve("target") },
  });
}

/**
 * @param {string} original
 * @param {string} copy
 */
function ageAs(original, copy) {
  const { mtime } = statSync(original);
  utimesSync(copy, mtime, mtime);
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
