// From the start of workerd's process to the answer to its first call: cold-start.json.
//
//   npx node bench/edge/cold-start.mjs [--full] [build | <policies>=<build>...]
//
// Builds to compare are given with how many policies their bundles have; the floor starts beside
// them. The state of a sample is that of a lane that has decided before: registry in D1,
// schema in the lane. Included are workerd's own start, compiling the Wasm, loading the bundle, the
// lane's start, and the registry's load from D1.
import { once } from "node:events";
import { request } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { KINDS } from "./kinds.mjs";
import { assertOutcome, rounded } from "./load.mjs";
import { CALL_PATH, DEFAULT_BUILD, demoHeaders, HOST, programArguments, sleep, startWorker, withState, withWorker } from "./workers.mjs";

/**
 * @typedef {import("./workers.mjs").Target} Target
 * @typedef {{ build: string, policies: number | null }} Build
 * @typedef {{ results: { target: Target, policies: number | null, first_decision_ms: number[] }[] }} ColdStart
 */

const SAMPLES = { short: 5, full: 15 };
const KIND = "allow_read";
/** An alarm that no sample sees, nor the one after it: a flush would run beside the first call. */
const NO_FLUSH = { FLUSH_INTERVAL_MS: 3_600_000 };
/** Pause between attempts to reach a process that does not listen yet; the error of a sample. */
const POLL_MS = 2;
const START_LIMIT_MS = 60_000;

/**
 * @param {{ full?: boolean, builds?: Build[] }} [options]
 * @returns {Promise<ColdStart>}
 */
export async function coldStart({ full = false, builds = [{ build: DEFAULT_BUILD, policies: null }] } = {}) {
  /** @type {{ target: Target, policies: number | null, build: string, first_decision_ms: number[] }[]} */
  const measured = [
    ...builds.map((build) => ({ target: /** @type {Target} */ ("gateward"), ...build, first_decision_ms: [] })),
    { target: "floor", policies: null, build: "", first_decision_ms: [] },
  ];
  return withState(async (root) => {
    const states = measured.map((_, at) => join(root, String(at)));
    for (const [at, { target, build }] of measured.entries()) {
      await withWorker(target, { build, state: /** @type {string} */ (states[at]), vars: NO_FLUSH }, (worker) => assertOutcome(worker, KIND));
    }
    for (let sample = 0; sample < (full ? SAMPLES.full : SAMPLES.short); sample += 1) {
      for (const [at, { target, build, first_decision_ms }] of measured.entries()) {
        first_decision_ms.push(await firstDecisionMs(target, build, /** @type {string} */ (states[at])));
      }
    }
    return { results: measured.map(({ build, ...result }) => result) };
  });
}

/**
 * @param {Target} target
 * @param {string} build
 * @param {string} state
 */
async function firstDecisionMs(target, build, state) {
  const port = await freePort();
  /** @type {(startedAt: number) => void} */
  let spawned = () => {};
  /** @type {Promise<number>} */
  const spawning = new Promise((resolve) => (spawned = resolve));
  const answered = spawning.then((startedAt) => firstAnswerMs(port, startedAt));
  const worker = await startWorker(target, { build, state, port, seed: false, vars: NO_FLUSH, onSpawn: () => spawned(performance.now()) });
  try {
    return await answered;
  } finally {
    await worker.dispose();
  }
}

/**
 * @param {number} port
 * @param {number} startedAt
 */
async function firstAnswerMs(port, startedAt) {
  const { body, expected } = KINDS[KIND];
  for (;;) {
    const answer = await attempt(port, JSON.stringify(body));
    const elapsedMs = performance.now() - startedAt;
    if (answer?.includes(expected.text)) return rounded(elapsedMs, 1);
    if (answer !== null) throw new Error(`the first answer is ${answer}`);
    if (elapsedMs > START_LIMIT_MS) throw new Error("the worker did not start");
    await sleep(POLL_MS);
  }
}

/**
 * The answer's body; `null` when nobody listens yet.
 * @param {number} port
 * @param {string} body
 * @returns {Promise<string | null>}
 */
async function attempt(port, body) {
  const sending = request({ host: HOST, port, path: CALL_PATH, method: "POST", headers: demoHeaders(), agent: false });
  sending.end(body);
  try {
    const [response] = await once(sending, "response");
    return await text(response);
  } catch (error) {
    // Refused before it listens, reset while it begins to.
    if (["ECONNREFUSED", "ECONNRESET"].includes(/** @type {NodeJS.ErrnoException} */ (error).code ?? "")) return null;
    throw error;
  }
}

async function freePort() {
  const server = createServer().listen(0, HOST);
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { full, build, compared } = programArguments();
  const builds = compared.length > 0 ? compared : [{ build, policies: null }];
  console.log(JSON.stringify(await coldStart({ full, builds }), null, 2));
}
