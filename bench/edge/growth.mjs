// How speed and memory change with what Gateward holds: growth.json.
//
//   npx node bench/edge/growth.mjs [build] [--full] [<policies>=<build>]...
//
// A curve's points are measured in turn, in another random order each round, so that what else the
// machine does falls on all of them alike, and so that a trend can be told from the noise: the
// rounds of a point show how much that is. Without --full everything is small: that shows that it
// runs, not how it grows.
import { pathToFileURL } from "node:url";
import { AGENT, callBody, KINDS, TENANT } from "./kinds.mjs";
import { closedLoop, mixedRound, rounded, warmUp } from "./load.mjs";
import { DEFAULT_BUILD, demoHeaders, headersOf, mintCredential, programArguments, register, withWorker, withWorkers } from "./workers.mjs";

/**
 * @typedef {import("./workers.mjs").Worker} Worker
 * @typedef {import("./workers.mjs").Database} Database
 * @typedef {import("./load.mjs").Call} Call
 * @typedef {{ name: "d1_rows" | "agents" | "tools" | "journal_rows" | "policies", x_label: string, y_label: string, points: { x: number, values: number[] }[] }} Curve
 * @typedef {{ curves: Curve[], memory: { after: string, rss_mb: number }[] }} Growth
 * @typedef {object} Form
 * @property {number} rounds
 * @property {number} seconds
 * @property {number[]} d1Rows decisions, each with its receipt and audit event
 * @property {number[]} agents
 * @property {number[]} tools
 * @property {number[]} journalRows
 * @property {number[]} decisions after which memory is looked at
 */

/** @type {Form} */
const SHORT = {
  rounds: 1,
  seconds: 1,
  d1Rows: [0, 10_000],
  agents: [1, 100],
  tools: [1, 100],
  journalRows: [0, 1_000],
  decisions: [1_000, 2_000],
};
/** @type {Form} */
const FULL = {
  rounds: 5,
  seconds: 4,
  d1Rows: [0, 10_000, 100_000, 1_000_000],
  // The lane keeps as many records of a sort (MAX_CACHED_RECORDS in worker/core/src/registry.rs).
  agents: [1, 100, 1_000, 10_000],
  tools: [1, 100, 1_000, 10_000],
  // Below where writes are refused (JOURNAL_SOFT_ROWS in wrangler.toml).
  journalRows: [0, 1_000, 10_000, 40_000],
  decisions: [10_000, 25_000, 50_000, 75_000, 100_000],
};

/** Enough that the worker is never idle, few enough that calls do not wait long. */
const CONNECTIONS = 16;
/** A flush that no round sees. */
const NO_FLUSH = { FLUSH_INTERVAL_MS: 3_600_000 };
/** Calls that warm a worker where no flush can be waited for. */
const WARMING_CALLS = 3_000;
/** Rows of one statement that seeds D1: half a second's work. */
const SEED_ROWS = 20_000;
/** A millisecond before any run: decision ids sort by time, so what is seeded lies before. */
const SEEDED_AT_MS = 1_700_000_000_000;

const { expected } = KINDS.allow_read;
const LABEL = "decisions/s";

/**
 * @param {{ full?: boolean, build?: string, builds?: { policies: number, build: string }[] }} [options]
 *   `builds` are those to compare by their number of policies
 * @returns {Promise<Growth>}
 */
export async function growth({ full = false, build = DEFAULT_BUILD, builds = [] } = {}) {
  const form = full ? FULL : SHORT;
  const agents = await agentsAndMemory(form, build);
  const curves = [agents.curve, await tools(form, build), await journalRows(form, build), await d1Rows(form, build)];
  if (builds.length > 0) curves.push(await policies(form, builds));
  return { curves, memory: agents.memory };
}

/**
 * Memory over decisions, then agents in one lane that call in turn.
 * @param {Form} form
 * @param {string} build
 */
async function agentsAndMemory(form, build) {
  /** @type {Growth["memory"]} */
  const memory = [];
  const curve = await withWorker("gateward", { build }, async (worker) => {
    /** @param {string} after */
    const remember = (after) => memory.push({ after, rss_mb: rounded(worker.rssMb(), 1) });
    remember("start");
    let decided = 0;
    for (const decisions of form.decisions) {
      await repeat(worker, [callOf(AGENT)], decisions - decided);
      decided = decisions;
      await worker.settle(KINDS.allow_read.body);
      remember(`${decisions} decisions`);
    }

    const most = Math.max(...form.agents);
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
      form,
      form.agents.map((x) => ({ x, run: () => round(worker, firstOf(calls, x), form) })),
    );
  });
  return { curve, memory };
}

/**
 * Tools that are called in turn, of as many registered ones.
 * @param {Form} form
 * @param {string} build
 */
function tools(form, build) {
  return withWorker("gateward", { build }, async (worker) => {
    const most = Math.max(...form.tools);
    // The demo's is one of them, and it alone is described in the bundle.
    const others = Array.from({ length: most - 1 }, (_, at) => `tool-${at + 1}`);
    await register(worker.db, { tools: others.map((tool) => ({ server: "github", tool, mutates: false, risk: "low" })) });
    await warmUp(worker);
    const calls = [callOf(AGENT), ...others.map((tool) => call(callBody("github", tool, { repo: "acme/shop" })))];
    await callEach(worker, calls);
    return measure(
      { name: "tools", x_label: `tools called in turn, of ${most} registered` },
      form,
      form.tools.map((x) => ({ x, run: () => round(worker, firstOf(calls, x), form) })),
    );
  });
}

/**
 * Rows that wait in the journal. A round adds rows, so each has a lane of its own.
 * @param {Form} form
 * @param {string} build
 */
function journalRows(form, build) {
  return withWorker("gateward", { build, vars: NO_FLUSH }, async (worker) => {
    await repeat(worker, [callOf(AGENT)], WARMING_CALLS);
    let lane = 0;
    const points = form.journalRows.map((x) => ({
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
        return round(worker, calls, form, { flushes: false });
      },
    }));
    return measure({ name: "journal_rows", x_label: "journal rows at the start of a round, without a flush" }, form, points);
  });
}

/**
 * Decisions that D1 holds, a worker with a database for each number.
 * @param {Form} form
 * @param {string} build
 */
function d1Rows(form, build) {
  return withWorkers(
    form.d1Rows.map(() => ({ target: /** @type {const} */ ("gateward"), options: { build } })),
    async (workers) => {
      for (const [at, worker] of workers.entries()) {
        await seedRecords(worker.db, form.d1Rows[at] ?? 0);
        await warmUp(worker);
      }
      const points = workers.map((worker, at) => ({ x: form.d1Rows[at] ?? 0, run: () => round(worker, [callOf(AGENT)], form) }));
      return measure({ name: "d1_rows", x_label: "decisions in D1, each with its receipt and audit event" }, form, points);
    },
  );
}

/**
 * Policies in the bundle, a build for each number.
 * @param {Form} form
 * @param {{ policies: number, build: string }[]} builds
 */
function policies(form, builds) {
  return withWorkers(
    builds.map(({ build }) => ({ target: /** @type {const} */ ("gateward"), options: { build } })),
    async (workers) => {
      for (const worker of workers) await warmUp(worker);
      const points = workers.map((worker, at) => ({
        x: builds[at]?.policies ?? 0,
        run: () => round(worker, [callOf(AGENT)], form),
      }));
      return measure({ name: "policies", x_label: "policies in the bundle" }, form, points);
    },
  );
}

/**
 * Runs each point once a round, in random order.
 * @param {{ name: Curve["name"], x_label: string }} curve
 * @param {Form} form
 * @param {{ x: number, run: () => Promise<number> }[]} points
 * @returns {Promise<Curve>}
 */
async function measure(curve, form, points) {
  const measured = points.map(({ x, run }) => ({ x, run, values: /** @type {number[]} */ ([]) }));
  for (let at = 0; at < form.rounds; at += 1) {
    for (const { run, values } of shuffled(measured)) values.push(await run());
  }
  return { ...curve, y_label: LABEL, points: measured.map(({ x, values }) => ({ x, values })) };
}

/**
 * Decisions per second; every one as expected.
 * @param {Worker} worker
 * @param {Call[]} calls
 * @param {Form} form
 * @param {{ flushes?: boolean }} [options]
 */
async function round(worker, calls, { seconds }, options) {
  const load = { connections: CONNECTIONS, seconds };
  const { throughput_per_s, errors, unexpected } = await mixedRound(worker, calls, expected, load, options);
  if (errors + unexpected > 0) throw new Error(`${errors} errors and ${unexpected} unexpected answers`);
  return throughput_per_s;
}

/**
 * Makes a number of calls, taking turns.
 * @param {Worker} worker
 * @param {Call[]} calls
 * @param {number} amount
 */
async function repeat(worker, calls, amount) {
  const load = { connections: Math.min(CONNECTIONS, amount), amount };
  const { errors, unexpected } = await closedLoop(worker, calls, expected, load);
  if (errors + unexpected > 0) throw new Error(`${errors} errors and ${unexpected} unexpected answers`);
}

/**
 * Each call once at least, so that no round waits for the registry. The last ones may be held by
 * connections that are done already: a second turn begins.
 * @param {Worker} worker
 * @param {Call[]} calls
 */
function callEach(worker, calls) {
  return repeat(worker, calls, calls.length + CONNECTIONS);
}

/**
 * As many calls, of which the first `x` take turns: so the load generator does the same work,
 * whatever `x` is.
 * @param {Call[]} calls
 * @param {number} x
 * @returns {Call[]}
 */
function firstOf(calls, x) {
  return calls.map((call, at) => calls[at % x] ?? call);
}

/**
 * @param {string} agent
 * @param {Record<string, string>} [headers]
 */
function callOf(agent, headers) {
  return call(callBody("github", "list_issues", { repo: "acme/shop" }, { agent }), headers);
}

/**
 * @param {unknown} body
 * @param {Record<string, string>} [headers]
 * @returns {Call}
 */
function call(body, headers = demoHeaders()) {
  return { body: JSON.stringify(body), headers };
}

/**
 * Writes records as the flush does, of the same tenant, another lane and earlier times, with
 * texts as long as an allowed read's.
 * @param {Database} db
 * @param {number} rows
 */
async function seedRecords(db, rows) {
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

/**
 * @template T
 * @param {T[]} items
 */
function shuffled(items) {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { full, build, compared } = programArguments();
  console.log(JSON.stringify(await growth({ full, build, builds: compared }), null, 2));
}
