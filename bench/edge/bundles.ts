// Builds variants of Gateward, to measure the cost of a part of it: with bundles of other sizes, or with changed files.
// It copies the sources, changes the copy, and makes a release build.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { BUILD } from "../../tests/support/miniflare.ts";

/** Sizes of bundles, the shipped policies included. */
const POLICIES = [10, 1_000, 10_000];

/** Git ignores it. */
const ROOT = ".gateward/bench";
/**
 * One copy and one target directory for all sizes. Cargo treats crates at other paths as other crates, but
 * writes the worker's Wasm of all of them to the same file.
 */
const COPY = join(ROOT, "source");
/** What a build needs. */
const SOURCES = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "package.json", "scripts", "docs/openapi.json", "policies", "worker", "bench/core", "bench/wasm"];
const GENERATED = "policies/base/generated.cedar";

/** A build, and the number of policies in its bundle. */
export interface Bundle {
  policies: number;
  build: string;
}

export function bundles(): Bundle[] {
  return POLICIES.map((policies) => ({ policies, build: buildOf(policies) }));
}

/** Builds them one after the other in the same place, and moves each result away. */
export function buildBundles(): void {
  copySources();
  const shipped = shippedPolicies();
  for (const count of POLICIES) buildBundle(count, count - shipped);
}

function buildBundle(count: number, generated: number): void {
  writeFileSync(join(COPY, GENERATED), Array.from({ length: generated }, (_, at) => policy(at)).join("\n"));
  const held = buildTo(buildOf(count)).match(/generated#generated-\d+/g) ?? [];
  if (new Set(held).size !== generated) throw new Error(`the bundle of ${count} policies has ${new Set(held).size} generated ones`);
}

function buildOf(count: number): string {
  return join(ROOT, `${count}-policies`);
}

/** The changed text of a file. */
export type Change = (text: string) => string;

/** Builds with changed files, to a directory with this name. Returns the directory. */
export function buildChanged(name: string, changes: Record<string, Change>): string {
  copySources();
  for (const [path, change] of Object.entries(changes)) {
    const text = readFileSync(path, "utf8");
    const changed = change(text);
    if (changed === text) throw new Error(`${path} does not have what is to be changed`);
    writeFileSync(join(COPY, path), changed);
  }
  const build = join(ROOT, name);
  buildTo(build);
  return build;
}

/** Copies the sources. Cargo compares times, so it builds the new copies again: the last build may have used changed ones. */
function copySources(): void {
  // Without the files that Git ignores: build results.
  const files = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...SOURCES], { encoding: "utf8" }).split("\0");
  for (const source of SOURCES) rmSync(join(COPY, source), { recursive: true, force: true });
  for (const file of files.filter((path) => existsSync(path))) cpSync(file, join(COPY, file));
  if (!existsSync(join(COPY, "node_modules"))) symlinkSync(resolve("node_modules"), join(COPY, "node_modules"));
}

/** Builds the copy, and moves the result to a directory. Returns the Wasm as text, so that callers can search for strings. */
function buildTo(build: string): string {
  const { GATEWARD_PREBUILT: _, CARGO_TARGET_DIR: __, ...environment } = process.env;
  execFileSync("scripts/build-wasm.sh", { cwd: COPY, stdio: "inherit", env: { ...environment, GATEWARD_PROFILE: "release" } });
  rmSync(build, { recursive: true, force: true });
  cpSync(join(COPY, BUILD), build, { recursive: true });
  return readFileSync(join(build, "index_bg.wasm"), "latin1");
}

/** A policy that no call of the demo's tenant can match. */
function policy(at: number): string {
  return (
    `@id("generated-${at}")\n@reason("A generated policy, one of many.")\n` +
    `permit (principal == Agent::"other/agent-${at}", action in Action::"read", resource == Server::"other/server-${at % 97}")\n` +
    `when { context.source_trust == "trusted_internal_signed" && context.velocity.calls_1m.count < ${at + 1} };\n`
  );
}

function shippedPolicies(): number {
  const files = execFileSync("git", ["ls-files", "policies/base/*.cedar", "policies/tenants/*.cedar"], { encoding: "utf8" }).trim().split("\n");
  return files.map((path) => readFileSync(path, "utf8").match(/^@id\(/gm)?.length ?? 0).reduce((sum, found) => sum + found, 0);
}
