// How speed and memory change with what Gateward holds: growth.json.
//
//   npx node bench/edge/growth.ts [build] [<policies>=<build>]...
//
// Each round measures all points of a curve, in a new random order, so that other load on the machine affects all
// points in the same way. The differences between the rounds of a point show the noise, which is not a trend.
import { BUILD, type Database } from "../../tests/support/miniflare.ts";
import type { Bundle } from "./bundles.ts";
import { AGENT, callBody, KINDS, TENANT } from "./kinds.ts";
import { type Call, closedLoop, mixedRound, rounded, warmUp } from "./load.ts";
import { demoHeaders, headersOf, mintCredential, programArguments, register, withWorker, withWorkers, type Worker } from "./workers.ts";

export interface Growth {
  curves: Curve[];
  memory: { after: string; rss_mb: number }[];
}

export interface Curve {
  name: "d1_rows" | "agents" | "tools" | "journal_rows" | "policies";
  x_label: string;
  y_label: string;
  points: { x: number; values: number[] }[];
}

const ROUNDS = 5;
const SECONDS = 4;
/** Decisions, each with its receipt and audit event. */
const D1_ROWS = [0, 10_000, 100_000, 1_000_000];
/** The lane keeps this many records of a kind (MAX_CACHED_RECORDS in worker/core/src/lane/registry_cache.rs). */
const AGENTS = [1, 100, 1_000, 10_000];
const TOOLS = [1, 100, 1_000, 10_000];
/** Below where writes are refused (JOURNAL_SOFT_ROWS in wrangler.toml). */
const JOURNAL_ROWS = [0, 1_000, 10_000, 40_000];
/** Decisions after which memory is measured. */
const DECISIONS = [10_000, 25_000, 50_000, 75_000, 100_000];

/** Enough that the worker is never idle, few enough that calls do not wait long. */
const CONNECTIONS = 16;
/** A flush that no round sees. */
const NO_FLUSH = { FLUSH_INTERVAL_MS: 3_600_000 };
/** Calls that warm a worker where no flush can be waited for. */
const WARMING_CALLS = 3_000;
/** Rows of one statement that seeds D1: half a second's work. */
const SEED_ROWS = 20_000;
/** A time before any run: decision ids sort by time, so seeded decisions come first. */
const SEEDED_AT_MS = 1_700_000_000_000;

const { expected } = KINDS.allow_read;
const LABEL = "decisions/s";

interface Asked {
  build?: string;
  /** To compare by their number of policies. */
  builds?: Bundle[];
}

export async function growth({ build = BUILD, builds = [] }: Asked = {}): Promise<Growth> {
  const agents = await agentsAndMemory(build);
  const curves = [agents.curve, await tools(build), await journalRows(build), await d1Rows(build)];
  if (builds.length > 0) curves.push(await policies(builds));
  return { curves, memory: agents.memory };
}

/** Memory over decisions, then agents in one lane that call in turn. */
async function agentsAndMemory(build: string): Promise<{ curve: Curve; memory: Growth["memory"] }> {
  const memory: Growth["memory"] = [];
  const curve = await withWorker("gateward", { build }, async (worker) => {
    const remember = (after: string) => memory.push({ after, rss_mb: rounded(worker.rssMb(), 1) });
    remember("start");
    let decided = 0;
    for (const decisions of DECISIONS) {
      await repeat(worker, [callOf(AGENT)], decisions - decided);
      decided = decisions;
      await worker.settle(KINDS.allow_read.body);
      remember(`${decisions} decisions`);
    }

    const most = Math.max(...AGENTS);
    // The demo's agent is one of them.
    const others = Array.from({ length: most - 1 }, (_, at) => `agent-${at + 1}`);
    const credentials = others.map((agent) => ({ credential: mintCredential(agent), agent }));
    await register(worker.db, { agents: others.map((agent) => ({ agent, groups: ["engineering"] })), credentials });
    const calls = [callOf(AGENT), ...credentials.map(({ agent, credential }) => callOf(agent, headersOf(credential.token)))];
    await callEach(worker, calls);
    await worker.settle(KINDS.allow_read.body);
    remember(`${most} agents`);
    return measure(
      { name: "agents", x_label: "agents of one lane that call in turn" },
      AGENTS.map((x) => ({ x, run: () => round(worker, firstOf(calls, x)) })),
    );
  });
  return { curve, memory };
}

/** Tools that are called in turn; as many are registered for each point. */
function tools(build: string): Promise<Curve> {
  return withWorker("gateward", { build }, async (worker) => {
    const most = Math.max(...TOOLS);
    // The demo's tool is one of them. Only this tool is described in the bundle.
    const others = Array.from({ length: most - 1 }, (_, at) => `tool-${at + 1}`);
    await register(worker.db, { tools: others.map((tool) => ({ server: "github", tool, mutates: false, risk: "low" })) });
    await warmUp(worker);
    const calls = [callOf(AGENT), ...others.map((tool) => call(callBody("github", tool, { repo: "acme/shop" })))];
    await callEach(worker, calls);
    return measure(
      { name: "tools", x_label: `tools called in turn, of ${most} registered` },
      TOOLS.map((x) => ({ x, run: () => round(worker, firstOf(calls, x)) })),
    );
  });
}

/** Rows that wait in the journal. A round adds rows, so each round has a lane of its own. */
function journalRows(build: string): Promise<Curve> {
  return withWorker("gateward", { build, vars: NO_FLUSH }, async (worker) => {
    await repeat(worker, [callOf(AGENT)], WARMING_CALLS);
    let lane = 0;
    const points = JOURNAL_ROWS.map((x) => ({
      x,
      run: async () => {
        lane += 1;
        const agent = `agent-${lane}`;
        const credential = mintCredential(agent, lane);
        await register(worker.db, {
          lanes: lane + 1,
          agents: [{ agent, lane, groups: ["engineering"] }],
          credentials: [{ credential, agent }],
        });
        const calls = [callOf(agent, headersOf(credential.token))];
        // The first also brings the registry's records into the lane.
        await repeat(worker, calls, Math.max(x, 1));
        return round(worker, calls, { flushes: false });
      },
    }));
    return measure({ name: "journal_rows", x_label: "journal rows at the start of a round, without a flush" }, points);
  });
}

/** Decisions that D1 holds; each number has a worker with a database of its own. */
function d1Rows(build: string): Promise<Curve> {
  return withWorkers(
    D1_ROWS.map(() => ({ target: "gateward", options: { build } })),
    async (workers) => {
      for (const [at, worker] of workers.entries()) {
        await seedRecords(worker.db, D1_ROWS[at] ?? 0);
        await warmUp(worker);
      }
      const points = workers.map((worker, at) => ({ x: D1_ROWS[at] ?? 0, run: () => round(worker, [callOf(AGENT)]) }));
      return measure({ name: "d1_rows", x_label: "decisions in D1, each with its receipt and audit event" }, points);
    },
  );
}

/** Policies in the bundle; each number has a build of its own. */
function policies(builds: Bundle[]): Promise<Curve> {
  return withWorkers(
    builds.map(({ build }) => ({ target: "gateward", options: { build } })),
    async (workers) => {
      for (const worker of workers) await warmUp(worker);
      const points = workers.map((worker, at) => ({
        x: builds[at]?.policies ?? 0,
        run: () => round(worker, [callOf(AGENT)]),
      }));
      return measure({ name: "policies", x_label: "policies in the bundle" }, points);
    },
  );
}

/** Runs each point once a round, in random order. */
async function measure(curve: Pick<Curve, "name" | "x_label">, points: { x: number; run: () => Promise<number> }[]): Promise<Curve> {
  const measured = points.map(({ x, run }) => ({ x, run, values: [] as number[] }));
  for (let at = 0; at < ROUNDS; at += 1) {
    for (const { run, values } of shuffled(measured)) values.push(await run());
  }
  return { ...curve, y_label: LABEL, points: measured.map(({ x, values }) => ({ x, values })) };
}

/** Decisions per second; every one as expected. */
async function round(worker: Worker, calls: Call[], options?: { flushes?: boolean }): Promise<number> {
  const load = { connections: CONNECTIONS, seconds: SECONDS };
  const { throughput_per_s, errors } = await mixedRound(worker, calls, expected, load, options);
  if (errors > 0) throw new Error(`${errors} errors`);
  return throughput_per_s;
}

/** Makes a number of calls, which take turns. */
async function repeat(worker: Worker, calls: Call[], amount: number): Promise<void> {
  const load = { connections: Math.min(CONNECTIONS, amount), amount };
  const { errors, unexpected } = await closedLoop(worker, calls, expected, load);
  if (errors + unexpected > 0) throw new Error(`${errors} errors and ${unexpected} unexpected answers`);
}

/**
 * Makes each call at least once, so that no round waits for the registry. The last calls may have been given
 * to connections that are done already, so a second turn begins.
 */
function callEach(worker: Worker, calls: Call[]): Promise<void> {
  return repeat(worker, calls, calls.length + CONNECTIONS);
}

/**
 * The same number of calls for each `x`, so that the load generator does the same work. The first `x` of them take
 * turns.
 */
function firstOf(calls: Call[], x: number): Call[] {
  return calls.map((call, at) => calls[at % x] ?? call);
}

function callOf(agent: string, headers?: Record<string, string>): Call {
  return call(callBody("github", "list_issues", { repo: "acme/shop" }, { agent }), headers);
}

function call(body: unknown, headers = demoHeaders()): Call {
  return { body: JSON.stringify(body), headers };
}

/** Writes records as the flush does: of the same tenant, another lane and earlier times, with texts as long as an allowed read's. */
async function seedRecords(db: Database, rows: number): Promise<void> {
  const numbers = "WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)";
  const id = `printf('%08x-%04x-7000-8000-%012x', (${SEEDED_AT_MS} + n) >> 16, (${SEEDED_AT_MS} + n) & 65535, n)`;
  const statements = [
    `${numbers} INSERT INTO decisions (tenant, decision_id, lane, seq, at_ms, agent, server, tool, decision, reason_code, response)
       SELECT '${TENANT}', ${id}, 1, n, ${SEEDED_AT_MS} + n, 'agent-' || (n % 1000), 'github', 'list_issues',
         iif(n % 10, 'allow', 'deny'), 'policy_allow', printf('%.*c', 698, 'x') FROM numbers`,
    `${numbers} INSERT INTO receipts (tenant, lane, seq, kind, decision_id, at_ms, receipt_hash, prev_receipt_hash, body)
       SELECT '${TENANT}', 1, n, 'decision', ${id}, ${SEEDED_AT_MS} + n, printf('%064x', n), printf('%064x', n - 1),
         printf('%.*c', 728, 'x') FROM numbers`,
    `${numbers} INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, source, decision_id, detail)
       SELECT '${TENANT}', ${id}, ${SEEDED_AT_MS} + n, 1, 'decision', 'agent-' || (n % 1000), ${id},
         printf('%.*c', 88, 'x') FROM numbers`,
  ];
  for (let from = 1; from <= rows; from += SEED_ROWS) {
    const to = Math.min(from + SEED_ROWS - 1, rows);
    await db.batch(statements.map((sql) => db.prepare(sql).bind(from, to)));
  }
}

function shuffled<T>(items: T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

if (import.meta.main) {
  const { build, compared } = programArguments();
  console.log(JSON.stringify(await growth({ build, builds: compared }), null, 2));
}
