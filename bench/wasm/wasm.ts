// The same operations as Wasm inside workerd: the data of wasm.json.
//
//   npx node bench/wasm/wasm.ts [<name>/<of>…]
import { builtModules, start } from "../../tests/support/miniflare.ts";
import { run } from "../core/cargo.ts";
import type { Timing } from "../core/core.ts";

const CRATE = "bench/wasm";

/**
 * An operation is warm if it did not get faster for this long: V8 takes up to a second to notice hot code and to
 * compile it again, in the background.
 */
const SETTLED_MS = 1_000;
/** A larger part of the fastest time so far is noise. */
const FASTER = 0.95;
/** Milliseconds that a sample takes: a hundred times what a request by itself takes. */
const SAMPLE_MS = 50;
const SAMPLES = 21;
/** The most runs of one request: the worker counts in 32 bits. */
const MAX_TIMES = 2 ** 31;

/** Builds as the deployed worker is built: profile release, optimised by wasm-opt. */
export async function buildWasm(): Promise<void> {
  const env = { ...process.env, GATEWARD_PROFILE: "release", GATEWARD_PREBUILT: "" };
  await run("scripts/build-wasm.sh", [CRATE], env);
}

/** Times operations, each named `<name>/<of>`; all unless set. */
export async function wasm(operations?: string[]): Promise<{ results: Timing[] }> {
  const { url, miniflare } = await start({ modules: builtModules(`${CRATE}/build`) });
  try {
    const list = (await (await fetch(url)).text()).trim().split("\n");
    const results: Timing[] = [];
    for (const operation of operations ?? list) {
      results.push(await time(new URL(operation, url), operation));
    }
    return { results };
  } finally {
    await miniflare.dispose();
  }
}

/** Finds how many runs fill a sample, while the code warms up, then takes the samples. */
async function time(url: URL, operation: string): Promise<Timing> {
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
  const ns: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    // One after the other, so that both run under the same conditions.
    const empty = await requestMs(url, 0);
    ns.push(((await requestMs(url, times)) - empty) * 1e6 / times);
  }
  ns.sort((a, b) => a - b);
  const at = (share: number) => ns[Math.round(share * (ns.length - 1))] ?? Number.NaN;
  return { name, of, median_ns: at(0.5), low_ns: at(0.1), high_ns: at(0.9) };
}

/** How long a request takes that runs the operation so many times. */
async function requestMs(url: URL, times: number): Promise<number> {
  const start = performance.now();
  const response = await fetch(new URL(`?n=${times}`, url));
  const text = await response.text();
  const ms = performance.now() - start;
  if (!response.ok) throw new Error(`${url.pathname} answered ${response.status}: ${text}`);
  return ms;
}

if (import.meta.main) {
  await buildWasm();
  const operations = process.argv.slice(2);
  console.log(JSON.stringify(await wasm(operations.length > 0 ? operations : undefined), null, 2));
}
