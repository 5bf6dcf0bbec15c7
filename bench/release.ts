// The worker as it is deployed: its build, and its size.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { BUILD } from "../tests/support/miniflare.ts";

const MODULES = ["index.js", "index_bg.wasm"];

/** Builds it, unless the build is newer than its sources. */
export function buildRelease(): void {
  const { GATEWARD_PREBUILT: _, ...environment } = process.env;
  execFileSync("scripts/build-wasm.sh", { stdio: "inherit", env: { ...environment, GATEWARD_PROFILE: "release" } });
}

/** The size as wrangler counts it: gzipped, all modules together. */
export function releaseSize() {
  const modules = MODULES.map((name) => readFileSync(`${BUILD}/${name}`));
  const bytes = modules.reduce((sum, { length }) => sum + length, 0);
  return { profile: "release", bytes, gzip_bytes: gzipSync(Buffer.concat(modules)).length };
}
