// Gateward's throughput, latency and processor time over HTTP, beside the floor's: edge.json.
//
//   npx node bench/edge/edge.mjs [build] [--full]
//
// Both workers run during all of it and are loaded in turn, in pairs of rounds that lie seconds
// apart, so that a ratio is one of equals: machines differ, and so do a machine's minutes.
import { pathToFileURL } from "node:url";
import { KIND_NAMES } from "./kinds.mjs";
import { assertOutcome, closedRound, openRound, warmUp } from "./load.mjs";
import { assertSameIo } from "./same-io.mjs";
import { programArguments, withWorkers } from "./workers.mjs";

/**
 * @typedef {import("./workers.mjs").Worker} Worker
 * @typedef {import("./kinds.mjs").Kind} Kind
 * @typedef {import("./load.mjs").Round} Round
 * @typedef {{ target: "gateward" | "floor", kind: Kind | "floor", round: number }} Origin
 * @typedef {object} Edge
 * @property {number} rounds
 * @property {number} seconds_per_round
 * @property {(Origin & { connections: number } & Round)[]} closed_loop
 * @property {(Origin & { rate_per_s: number } & Round)[]} open_loop
 * @typedef {{ rounds: number, seconds: number, connections: number[], otherKinds: { rounds: number, connections: number[] }, rates: number[] }} Form
 */

/** All of it in about 100 s: 18 + 6 rounds, each with a second or more until the flush is over. */
/** @type {Form} */
const SHORT = { rounds: 3, seconds: 2.5, connections: [1, 16, 50], otherKinds: { rounds: 1, connections: [16] }, rates: [] };
/** @type {Form} */
const FULL = {
  rounds: 5,
  seconds: 4,
  connections: [1, 16, 50, 100, 200],
  otherKinds: { rounds: 2, connections: [1, 16, 50, 100, 200] },
  // From a light load up to near what one lane can do here.
  rates: [100, 200, 400, 800],
};

/** The floor answers as an allowed read is answered, so it is sent one. */
const FLOOR_KIND = "allow_read";

/**
 * @param {{ full?: boolean, build?: string }} [options]
 * @returns {Promise<Edge>}
 */
export async function edge({ full = false, build } = {}) {
  const form = full ? FULL : SHORT;
  const options = build === undefined ? {} : { build };
  await assertSameIo(options);
  return withWorkers([{ target: "gateward", options }, { target: "floor" }], async (workers) => {
    const gateward = /** @type {Worker} */ (workers[0]);
    for (const worker of workers) await warmUp(worker);
    for (const kind of KIND_NAMES) await assertOutcome(gateward, kind);

    /** @type {Edge} */
    const result = { rounds: form.rounds, seconds_per_round: form.seconds, closed_loop: [], open_loop: [] };
    const { seconds } = form;
    for (const connections of form.connections) {
      for (let round = 1; round <= form.rounds; round += 1) {
        for (const worker of turn(workers, round)) {
          const measured = await closedRound(worker, FLOOR_KIND, { connections, seconds });
          result.closed_loop.push({ ...origin(worker, FLOOR_KIND, round), connections, ...measured });
        }
      }
    }
    for (const kind of KIND_NAMES.filter((kind) => kind !== FLOOR_KIND)) {
      for (const connections of form.otherKinds.connections) {
        for (let round = 1; round <= form.otherKinds.rounds; round += 1) {
          const measured = await closedRound(gateward, kind, { connections, seconds });
          result.closed_loop.push({ ...origin(gateward, kind, round), connections, ...measured });
        }
      }
    }
    for (const ratePerS of form.rates) {
      for (let round = 1; round <= form.rounds; round += 1) {
        for (const worker of turn(workers, round)) {
          const measured = await openRound(worker, FLOOR_KIND, { ratePerS, seconds });
          result.open_loop.push({ ...origin(worker, FLOOR_KIND, round), rate_per_s: ratePerS, ...measured });
        }
      }
    }
    return result;
  });
}

/**
 * Who goes first changes from round to round, so that being second favours neither.
 * @param {Worker[]} workers
 * @param {number} round
 */
function turn(workers, round) {
  return round % 2 === 1 ? workers : workers.toReversed();
}

/**
 * @param {Worker} worker
 * @param {Kind} kind
 * @param {number} round
 * @returns {Origin}
 */
function origin({ target }, kind, round) {
  return { target, kind: target === "floor" ? "floor" : kind, round };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  console.log(JSON.stringify(await edge(programArguments()), null, 2));
}
