// The worker as it is deployed: built, and how large it is.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUILD = "worker/edge/build";
const MODULES = ["index.js", "index_bg.wasm"];

/** Builds it, unless it is newer than its sources. */
export function buildRelease() {
  const { GATEWARD_PREBUILT: _, ...environment } = process.env;
  execFileSync("scripts/build-wasm.sh", { stdio: "inherit", env: { ...environment, GATEWARD_PROFILE: "release" } });
}

/** Its size as wrangler counts it: gzipped, all modules together. */
export function releaseSize() {
  const modules = MODULES.map((name) => readFileSync(`${BUILD}/${name}`));
  const bytes = modules.reduce((sum, { length }) => sum + length, 0);
  return { profile: "release", bytes, gzip_bytes: gzipSync(Buffer.concat(modules)).length };
}
