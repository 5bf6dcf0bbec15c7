// Loads a worker and says what it took. Every answer is looked at: a figure for another outcome
// than the one it is named for would mean nothing.
//
// The load comes from this process, on the same processors as workerd: it does as little per
// answer as it can. Latencies are kept as they are, since autocannon's histogram counts whole
// milliseconds.
import { Agent, request } from "node:http";
import autocannon from "autocannon";
import { KINDS } from "./kinds.mjs";
import { demoHeaders } from "./workers.mjs";

/**
 * @typedef {import("./workers.mjs").Worker} Worker
 * @typedef {import("./kinds.mjs").Kind} Kind
 * @typedef {import("./kinds.mjs").Expected} Expected
 * @typedef {{ body: string, headers: Record<string, string> }} Call
 * @typedef {object} Round
 * @property {number} requests answered
 * @property {number} throughput_per_s
 * @property {number} p50_ms
 * @property {number} p95_ms
 * @property {number} p99_ms
 * @property {number} errors connections that failed and calls that timed out
 * @property {number} unexpected answers of another outcome; always 0, for a round with any is an error
 * @property {number} cpu_ms_per_request of workerd, with the flush of what was journalled
 */

/** Seconds after which an unanswered call is an error. */
const TIMEOUT_S = 10;
/** How often autocannon looks whether its time is over; its default, each millisecond, costs. */
const SAMPLE_INTERVAL_MS = 100;
/** What a worker is warmed up with: enough for workerd's compilers to have settled. */
const WARM_UP = { connections: 16, seconds: 3 };

/** A call that is journalled, to settle by. */
const SETTLING = KINDS.allow_read.body;

/** @param {Worker} worker */
export async function warmUp(worker) {
  await closedLoop(worker, callsOf("allow_read"), KINDS.allow_read.expected, WARM_UP);
  await worker.settle(SETTLING);
}

/**
 * The call of a kind, once; it must have the expected outcome.
 * @param {Worker} worker
 * @param {Kind} kind
 */
export async function assertOutcome(worker, kind) {
  const { body, expected, forged } = KINDS[kind];
  const { status, answer } = await worker.call(body, demoHeaders(forged));
  const differs = Object.entries(expected.fields).some(([field, value]) => answer[field] !== value);
  if (status !== expected.status || differs) {
    throw new Error(`${worker.target}: ${kind} was answered ${status} ${JSON.stringify(answer)}`);
  }
}

/**
 * One round of a kind in a closed loop: each connection asks again as soon as it was answered.
 * @param {Worker} worker
 * @param {Kind} kind
 * @param {{ connections: number, seconds: number }} load
 * @returns {Promise<Round>}
 */
export async function closedRound(worker, kind, load) {
  await assertOutcome(worker, kind);
  return round(worker, () => closedLoop(worker, callsOf(kind), KINDS[kind].expected, load));
}

/**
 * One round in which calls take turns, all with the same outcome.
 * @param {Worker} worker
 * @param {Call[]} calls
 * @param {Expected} expected
 * @param {{ connections: number, seconds: number }} load
 * @param {{ flushes?: boolean }} [options] whether to wait for the flush; not where it is put off
 * @returns {Promise<Round>}
 */
export async function mixedRound(worker, calls, expected, load, options) {
  return round(worker, () => closedLoop(worker, calls, expected, load), options);
}

/**
 * One round of a kind in an open loop: calls come at a rate, whether or not earlier ones were
 * answered, and a latency counts from when the call was due.
 * @param {Worker} worker
 * @param {Kind} kind
 * @param {{ ratePerS: number, seconds: number }} load
 * @returns {Promise<Round>}
 */
export async function openRound(worker, kind, load) {
  await assertOutcome(worker, kind);
  return round(worker, () => openLoop(worker, callsOf(kind), KINDS[kind].expected, load));
}

/**
 * @param {Kind} kind
 * @returns {Call[]}
 */
function callsOf(kind) {
  const { body, forged } = KINDS[kind];
  return [{ body: JSON.stringify(body), headers: demoHeaders(forged) }];
}

/**
 * @typedef {object} Answers
 * @property {number[]} latenciesMs
 * @property {number} elapsedMs
 * @property {number} sent
 * @property {number} errors
 * @property {number} unexpected
 */

/**
 * @param {Worker} worker
 * @param {() => Promise<Answers>} load
 * @param {{ flushes?: boolean }} [options]
 * @returns {Promise<Round>}
 */
async function round(worker, load, { flushes = true } = {}) {
  const before = worker.cpuMs();
  const { latenciesMs, elapsedMs, sent, errors, unexpected } = await load();
  if (flushes) await worker.settle(SETTLING);
  const cpuMs = worker.cpuMs() - before;
  if (unexpected > 0) throw new Error(`${worker.target}: ${unexpected} answers were not of the outcome that was measured`);
  latenciesMs.sort((a, b) => a - b);
  return {
    requests: latenciesMs.length,
    throughput_per_s: rounded((latenciesMs.length * 1_000) / elapsedMs, 1),
    p50_ms: percentile(latenciesMs, 0.5),
    p95_ms: percentile(latenciesMs, 0.95),
    p99_ms: percentile(latenciesMs, 0.99),
    errors,
    unexpected,
    // Calls that were under way at the end cost as much as those that were answered.
    cpu_ms_per_request: rounded(cpuMs / Math.max(sent, 1), 4),
  };
}

/**
 * @param {number[]} sorted
 * @param {number} part
 */
function percentile(sorted, part) {
  return rounded(sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0, 3);
}

/**
 * @param {number} value
 * @param {number} digits after the point
 */
export function rounded(value, digits) {
  return Number(value.toFixed(digits));
}

/**
 * @param {Worker} worker
 * @param {Call[]} calls
 * @param {Expected} expected
 * @param {{ connections: number, seconds?: number, amount?: number }} load
 * @returns {Promise<Answers>}
 */
export async function closedLoop(worker, calls, expected, { connections, seconds = 0, amount }) {
  /** @type {number[]} */
  const latenciesMs = [];
  let wrongStatus = 0;
  /** @type {autocannon.Result} */
  const { duration, errors, mismatches, requests } = await new Promise((resolve, reject) => {
    const run = autocannon(
      {
        url: worker.url.href,
        method: "POST",
        connections,
        ...(amount === undefined ? { duration: seconds } : { amount }),
        timeout: TIMEOUT_S,
        sampleInt: SAMPLE_INTERVAL_MS,
        ...calls[0],
        verifyBody: (body) => String(body).includes(expected.text),
        ...(calls.length === 1 ? {} : { setupClient: turns(calls) }),
      },
      (error, result) => (error ? reject(error) : resolve(result)),
    );
    run.on("response", (_, status, __, latencyMs) => {
      latenciesMs.push(latencyMs);
      if (status !== expected.status) wrongStatus += 1;
    });
  });
  // An answer with another status has another body too.
  const unexpected = Math.max(wrongStatus, mismatches);
  return { latenciesMs, elapsedMs: duration * 1_000, sent: requests.sent, errors, unexpected };
}

/**
 * Gives the calls out in turn, whichever connection is ready.
 * @param {Call[]} calls
 */
function turns(calls) {
  let next = 0;
  /** @param {autocannon.Client} client */
  return (client) => {
    const take = () => {
      const call = /** @type {Call} */ (calls[next]);
      next = (next + 1) % calls.length;
      client.setHeadersAndBody(call.headers, call.body);
    };
    take();
    client.on("response", take);
  };
}

/** The most calls that wait for their answers in an open loop; beyond it the worker is drowned. */
const MAX_OPEN_CALLS = 512;

/**
 * autocannon's `overallRate` sends each second's calls in one burst; here they are spread evenly.
 * @param {Worker} worker
 * @param {Call[]} calls
 * @param {Expected} expected
 * @param {{ ratePerS: number, seconds: number }} load
 * @returns {Promise<Answers>}
 */
async function openLoop(worker, calls, expected, { ratePerS, seconds }) {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_OPEN_CALLS });
  const total = Math.round(ratePerS * seconds);
  /** @type {number[]} */
  const latenciesMs = [];
  let [sent, errors, unexpected, end] = [0, 0, 0, 0];
  const start = performance.now();
  await /** @type {Promise<void>} */ (
    new Promise((resolve) => {
      let closed = 0;
      const close = () => {
        closed += 1;
        if (closed === total) resolve();
      };
      /** @param {number} dueMs */
      const send = (dueMs) => {
        const { body, headers } = /** @type {Call} */ (calls[sent % calls.length]);
        const sending = request(
          worker.url,
          { agent, method: "POST", headers: { ...headers, "content-length": Buffer.byteLength(body) }, timeout: TIMEOUT_S * 1_000 },
          (response) => {
            let text = "";
            response.setEncoding("utf8");
            response.on("data", (chunk) => (text += chunk));
            response.on("end", () => {
              end = performance.now();
              latenciesMs.push(end - dueMs);
              if (response.statusCode !== expected.status || !text.includes(expected.text)) unexpected += 1;
              close();
            });
          },
        );
        sending.on("timeout", () => sending.destroy(new Error("timed out")));
        sending.on("error", () => {
          errors += 1;
          close();
        });
        sending.end(body);
        sent += 1;
      };
      const tick = () => {
        const due = Math.min(total, Math.floor(((performance.now() - start) * ratePerS) / 1_000) + 1);
        while (sent < due) send(start + (sent * 1_000) / ratePerS);
        if (sent < total) setTimeout(tick, 1);
      };
      tick();
    })
  );
  agent.destroy();
  return { latenciesMs, elapsedMs: end - start, sent, errors, unexpected };
}
