// The same operations as Wasm inside workerd: the data of wasm.json.
//
//   npx node bench/wasm/wasm.mjs [<name>/<of>…]
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_readConfig } from "wrangler";
import { run } from "../core/cargo.mjs";

const BUILD = resolve(import.meta.dirname, "build");

/**
 * An operation is warm when it got no faster for so long: V8 takes up to a second to find that
 * code is hot and to compile it anew, in the background.
 */
const SETTLED_MS = 1_000;
/** What counts as faster, and not as noise. */
const FASTER = 0.95;
/** Milliseconds that a sample takes: a hundred times what a request by itself takes. */
const SAMPLE_MS = 50;
const SAMPLES = { short: 7, full: 21 };
/** Runs a request, at most: the worker counts in 32 bits. */
const MAX_TIMES = 2 ** 31;

/** Builds as the worker that ships is built: profile release, optimised by wasm-opt. */
export async function buildWasm() {
  const env = { ...process.env, GATEWARD_PROFILE: "release", GATEWARD_PREBUILT: "" };
  await run("scripts/build-wasm.sh", ["bench/wasm"], env);
}

/**
 * @param {{ full?: boolean, operations?: string[] }} [options] `operations` as `<name>/<of>`; without
 * it all, in the short form those of Gateward
 * @returns {Promise<{ results: import("../core/core.mjs").Timing[] }>}
 */
export async function wasm({ full = false, operations } = {}) {
  const contents = (/** @type {string} */ file) => readFileSync(resolve(BUILD, file));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      cf: false,
      modules: [
        { type: "ESModule", path: "index.js", contents: contents("index.js").toString() },
        { type: "CompiledWasm", path: "index_bg.wasm", contents: contents("index_bg.wasm") },
      ],
      compatibilityDate: unstable_readConfig({ config: "wrangler.toml" }).compatibility_date,
      // To workerd itself: Miniflare's entry worker would be timed as well.
      unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
    }),
  );
  try {
    const url = await miniflare.unsafeGetDirectURL();
    const list = (await (await fetch(url)).text()).trim().split("\n");
    const asked = operations ?? (full ? list : list.filter((operation) => operation.endsWith("/gateward")));
    const results = [];
    for (const operation of asked) {
      results.push(await time(new URL(operation, url), operation, full ? SAMPLES.full : SAMPLES.short));
    }
    return { results };
  } finally {
    await miniflare.dispose();
  }
}

/**
 * Finds how many runs fill a sample, while the code warms up, then takes the samples.
 * @param {URL} url
 * @param {string} operation
 * @param {number} samples
 */
async function time(url, operation, samples) {
  const [name = "", of = ""] = operation.split("/");
  // The first request prepares the operation.
  await requestMs(url, 0);
  let times = 1;
  let fastestMs = Number.POSITIVE_INFINITY;
  for (let since = performance.now(); performance.now() - since < SETTLED_MS; ) {
    const ms = await requestMs(url, times);
    if (ms / times < FASTER * fastestMs) {
      fastestMs = ms / times;
      since = performance.now();
    }
    const growth = Math.min(10, Math.max(0.1, SAMPLE_MS / ms));
    times = Math.min(MAX_TIMES, Math.max(1, Math.round(times * growth)));
  }
  /** @type {number[]} */
  const ns = [];
  for (let sample = 0; sample < samples; sample += 1) {
    // Beside each other, so that both meet the same machine.
    const empty = await requestMs(url, 0);
    ns.push(((await requestMs(url, times)) - empty) * 1e6 / times);
  }
  ns.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => ns[Math.round(share * (ns.length - 1))] ?? Number.NaN;
  return { name, of, median_ns: at(0.5), low_ns: at(0.1), high_ns: at(0.9) };
}

/**
 * How long a request takes that runs the operation so many times.
 * @param {URL} url
 * @param {number} times
 */
async function requestMs(url, times) {
  const start = performance.now();
  const response = await fetch(new URL(`?n=${times}`, url));
  const text = await response.text();
  const ms = performance.now() - start;
  if (!response.ok) throw new Error(`${url.pathname} answered ${response.status}: ${text}`);
  return ms;
}

if (process.argv[1] === import.meta.filename) {
  await buildWasm();
  const operations = process.argv.slice(2);
  console.log(JSON.stringify(await wasm(operations.length > 0 ? { operations } : {}), null, 2));
}
