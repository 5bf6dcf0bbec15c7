// How long a worker takes to start: cold-start.json.
//
//   npx node bench/edge/cold-start.ts [--full] [build | <policies>=<build>...]
//
// A sample has two figures. The first is the time from the start of workerd's process to the answer to its first call.
// The second is the part of it after the modules are ready: the first use of the bundle, the lane's start and the
// registry's load from D1. A request that needs only the modules shows when they are ready. The lane has decided before: its storage
// has its tables, and D1 holds the registry. The floor starts beside the builds.
import { once } from "node:events";
import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { BUILD, HOST } from "../../tests/support/miniflare.ts";
import { KINDS } from "./kinds.ts";
import { assertOutcome, rounded } from "./load.ts";
import { CALL_PATH, demoHeaders, programArguments, sleep, startWorker, type Target, withState, withWorker } from "./workers.ts";

export interface ColdStart {
  results: Started[];
}

export interface Started {
  target: Target;
  /** In the bundle; `null` for the floor, and for the build as it is. */
  policies: number | null;
  /** From the start of the process to the first answer. */
  first_decision_ms: number[];
  /** From when the modules are ready to the first answer. */
  isolate_start_ms: number[];
}

const SAMPLES = { short: 9, full: 15 };
const KIND = "allow_read";
/** Both workers answer it without their lanes. */
const READY_PATH = "/healthz";
/** No flush runs beside a sample. */
const NO_FLUSH = { FLUSH_INTERVAL_MS: 3_600_000 };
/** Pause between attempts to reach a process that does not listen yet; the error of a sample. */
const POLL_MS = 2;
const START_LIMIT_MS = 60_000;

interface Asked {
  full?: boolean;
  builds?: { build: string; policies: number | null }[];
}

export async function coldStart({ full = false, builds = [{ build: BUILD, policies: null }] }: Asked = {}): Promise<ColdStart> {
  const started = (target: Target, build: string, policies: number | null) => ({ build, result: { target, policies, first_decision_ms: [], isolate_start_ms: [] } as Started });
  const measured = [...builds.map(({ build, policies }) => started("gateward", build, policies)), started("floor", "", null)];
  return withState(async (root) => {
    const state = (at: number) => join(root, String(at));
    for (const [at, { build, result }] of measured.entries()) {
      await withWorker(result.target, { build, state: state(at), vars: NO_FLUSH }, (worker) => assertOutcome(worker, KIND));
    }
    for (let sample = 0; sample < (full ? SAMPLES.full : SAMPLES.short); sample += 1) {
      for (const [at, { build, result }] of measured.entries()) {
        const { firstDecisionMs, isolateStartMs } = await firstDecision(result.target, build, state(at));
        result.first_decision_ms.push(firstDecisionMs);
        result.isolate_start_ms.push(isolateStartMs);
      }
    }
    return { results: measured.map(({ result }) => result) };
  });
}

async function firstDecision(target: Target, build: string, state: string) {
  const port = await freePort();
  let spawned: (startedAt: number) => void = () => {};
  const spawning = new Promise<number>((resolve) => (spawned = resolve));
  const answered = spawning.then((startedAt) => firstAnswer(port, startedAt));
  const worker = await startWorker(target, { build, state, port, seed: false, vars: NO_FLUSH, onSpawn: () => spawned(performance.now()) });
  try {
    return await answered;
  } finally {
    await worker.dispose();
  }
}

async function firstAnswer(port: number, startedAt: number) {
  while ((await answerOf(port, "GET", READY_PATH)) === null) {
    if (performance.now() - startedAt > START_LIMIT_MS) throw new Error("the worker did not start");
    await sleep(POLL_MS);
  }
  const { body, expected } = KINDS[KIND];
  const readyAt = performance.now();
  const answer = await answerOf(port, "POST", CALL_PATH, JSON.stringify(body));
  const now = performance.now();
  if (!answer?.includes(expected.text)) throw new Error(`the first answer is ${answer}`);
  return { firstDecisionMs: rounded(now - startedAt, 1), isolateStartMs: rounded(now - readyAt, 1) };
}

/** The answer's body; `null` while nothing listens on the port. */
async function answerOf(port: number, method: string, path: string, body?: string): Promise<string | null> {
  const sending = request({ host: HOST, port, path, method, headers: demoHeaders(), agent: false });
  sending.end(body);
  try {
    const [response] = await once(sending, "response");
    return await text(response);
  } catch (error) {
    // The connection is refused before the worker listens, and can be reset while it begins to
    // listen.
    if (["ECONNREFUSED", "ECONNRESET"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOST);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

if (import.meta.main) {
  const { full, build, compared } = programArguments();
  const builds = compared.length > 0 ? compared : [{ build, policies: null }];
  console.log(JSON.stringify(await coldStart({ full, builds }), null, 2));
}
