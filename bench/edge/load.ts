// Loads a worker and measures what that takes. Every answer is checked, because a figure means nothing if its calls
// had another outcome than its name says.
//
// This process generates the load on the same processors as workerd, so it does as little per answer as it
// can. It keeps each latency, because autocannon's histogram counts whole milliseconds.
import { Agent, request } from "node:http";
import autocannon from "autocannon";
import { type Expected, type Kind, KINDS } from "./kinds.ts";
import { demoHeaders, type Worker } from "./workers.ts";

export interface Call {
  body: string;
  headers: Record<string, string>;
}

export interface Round {
  /** Answered. */
  requests: number;
  throughput_per_s: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  /** Connections that failed, and calls that timed out. */
  errors: number;
  /** Of workerd, the flush of the journalled rows included. */
  cpu_ms_per_request: number;
}

export interface ClosedLoad {
  connections: number;
  seconds: number;
}

/** Seconds after which an unanswered call is an error. */
const TIMEOUT_S = 10;
/** How often autocannon looks whether its time is over; its default, each millisecond, costs. */
const SAMPLE_INTERVAL_MS = 50;
/**
 * The load that warms a worker up. V8 compiles the hot code of the Wasm in the background for some 20,000 calls, which
 * took a twentieth of the processor time of the first 6,000 (docs/performance.md).
 */
const WARM_UP = { connections: 16, seconds: 10 };
/** For each kind of forwarded call. Fewer, because most of the code is already warm. */
const WARM_UP_FORWARDED = { connections: 16, seconds: 3 };

/** A call that is journalled. Its flush shows that all rows are in D1. */
const SETTLING = KINDS.allow_read.body;

export async function warmUp(worker: Worker): Promise<void> {
  await closedLoop(worker, callsOf("allow_read"), KINDS.allow_read.expected, WARM_UP);
  await worker.settle(SETTLING);
}

/** Makes a call of a kind; it must have the expected outcome. */
export async function assertOutcome(worker: Worker, kind: Kind): Promise<void> {
  const { body, expected, forged } = KINDS[kind];
  const { status, answer } = await worker.call(body, demoHeaders(forged));
  const differs = Object.entries(expected.fields).some(([field, value]) => answer[field] !== value);
  if (status !== expected.status || differs) {
    throw new Error(`${worker.target}: ${kind} was answered ${status} ${JSON.stringify(answer)}`);
  }
}

/** One round in a closed loop: each connection sends its next request when it has its answer. */
export async function closedRound(worker: Worker, kind: Kind, load: ClosedLoad): Promise<Round> {
  await assertOutcome(worker, kind);
  return round(worker, () => closedLoop(worker, callsOf(kind), KINDS[kind].expected, load));
}

/**
 * One round in which calls with the same outcome take turns. With `flushes: false` it does not wait for the
 * flush, for workers that put it off.
 */
export function mixedRound(worker: Worker, calls: Call[], expected: Expected, load: ClosedLoad, options?: { flushes?: boolean }): Promise<Round> {
  return round(worker, () => closedLoop(worker, calls, expected, load), options);
}

/**
 * One round in an open loop: calls are sent at a rate, whether or not earlier ones were answered, and a
 * latency counts from when the call was due.
 */
export async function openRound(worker: Worker, kind: Kind, load: { ratePerS: number; seconds: number }): Promise<Round> {
  await assertOutcome(worker, kind);
  return round(worker, () => openLoop(worker, callsOf(kind), KINDS[kind].expected, load));
}

/** One round of a call through a proxy: `path` says which. */
export async function forwardedRound(worker: Worker, path: string, call: Call, expected: Expected, load: ClosedLoad): Promise<Round> {
  return round(worker, () => closedLoop(worker, [call], expected, load, path));
}

export async function warmUpForwarded(worker: Worker, path: string, call: Call, expected: Expected): Promise<void> {
  await closedLoop(worker, [call], expected, WARM_UP_FORWARDED, path);
  await worker.settle(SETTLING);
}

function callsOf(kind: Kind): Call[] {
  const { body, forged } = KINDS[kind];
  return [{ body: JSON.stringify(body), headers: demoHeaders(forged) }];
}

interface Answers {
  latenciesMs: number[];
  elapsedMs: number;
  sent: number;
  errors: number;
  /** Answers with another outcome than the expected one. */
  unexpected: number;
}

async function round(worker: Worker, load: () => Promise<Answers>, { flushes = true } = {}): Promise<Round> {
  const before = worker.cpuMs();
  const { latenciesMs, elapsedMs, sent, errors, unexpected } = await load();
  if (flushes) await worker.settle(SETTLING);
  const cpuMs = worker.cpuMs() - before;
  if (unexpected > 0) throw new Error(`${worker.target}: ${unexpected} answers had another outcome than the measured one`);
  latenciesMs.sort((a, b) => a - b);
  return {
    requests: latenciesMs.length,
    throughput_per_s: rounded((latenciesMs.length * 1_000) / elapsedMs, 1),
    p50_ms: percentile(latenciesMs, 0.5),
    p95_ms: percentile(latenciesMs, 0.95),
    p99_ms: percentile(latenciesMs, 0.99),
    errors,
    // Calls that were in progress at the end cost as much as answered ones.
    cpu_ms_per_request: rounded(cpuMs / Math.max(sent, 1), 4),
  };
}

function percentile(sorted: number[], part: number): number {
  return rounded(sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0, 3);
}

export function rounded(value: number, digitsAfterPoint: number): number {
  return Number(value.toFixed(digitsAfterPoint));
}

export async function closedLoop(
  worker: Worker,
  calls: Call[],
  expected: Expected,
  { connections, seconds = 0, amount }: { connections: number; seconds?: number; amount?: number },
  path?: string,
): Promise<Answers> {
  const latenciesMs: number[] = [];
  let wrongStatus = 0;
  const start = performance.now();
  let end = start;
  const { errors, mismatches, requests } = await new Promise<autocannon.Result>((resolve, reject) => {
    const run = autocannon(
      {
        url: path === undefined ? worker.url.href : new URL(path, worker.url).href,
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
      end = performance.now();
      latenciesMs.push(latencyMs);
      if (status !== expected.status) wrongStatus += 1;
    });
  });
  // An answer with another status has another body too.
  const unexpected = Math.max(wrongStatus, mismatches);
  return { latenciesMs, elapsedMs: end - start, sent: requests.sent, errors, unexpected };
}

/** Sends the calls in turn, whichever connection is ready. */
function turns(calls: Call[]): (client: autocannon.Client) => void {
  let next = 0;
  return (client) => {
    const take = () => {
      const call = calls[next] as Call;
      next = (next + 1) % calls.length;
      client.setHeadersAndBody(call.headers, call.body);
    };
    take();
    client.on("response", take);
  };
}

/** The most calls that wait for their answers in an open loop; beyond it the worker is overloaded. */
const MAX_OPEN_CALLS = 512;

/** autocannon's `overallRate` sends each second's calls in one burst; here they are spread evenly. */
async function openLoop(worker: Worker, calls: Call[], expected: Expected, { ratePerS, seconds }: { ratePerS: number; seconds: number }): Promise<Answers> {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_OPEN_CALLS });
  const total = Math.round(ratePerS * seconds);
  const latenciesMs: number[] = [];
  let [sent, errors, unexpected, end] = [0, 0, 0, 0];
  const start = performance.now();
  await new Promise<void>((resolve) => {
    let closed = 0;
    const close = () => {
      closed += 1;
      if (closed === total) resolve();
    };
    const send = (dueMs: number) => {
      const { body, headers } = calls[sent % calls.length] as Call;
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
  });
  agent.destroy();
  return { latenciesMs, elapsedMs: end - start, sent, errors, unexpected };
}
