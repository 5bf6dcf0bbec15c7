// Starts Gateward or the floor in workerd, with the demo's registry, and tells what its process
// uses. Miniflare puts an entry worker in front of a worker; the direct socket goes around it, so
// that what is measured is workerd and the worker alone.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_readConfig } from "wrangler";
import { DEMO_SERVERS, DEMO_TOOLS, toSqlText, upserts } from "../../tests/support/registry.ts";
import { mintAgentToken, withWrongMac } from "../../tests/support/tokens.ts";
import { AGENT, TENANT } from "./kinds.mjs";

/**
 * @typedef {"gateward" | "floor"} Target
 * @typedef {Awaited<ReturnType<Miniflare["getD1Database"]>>} Database
 * @typedef {object} Options
 * @property {string} [build] the directory of Gateward's build
 * @property {Record<string, string | number>} [vars] in place of wrangler.toml's
 * @property {number} [inspectorPort]
 * @property {string} [state] a directory that keeps storage and database; else they are gone at the end
 * @property {number} [port] of the direct socket; any free one if absent
 * @property {boolean} [seed] whether to write the demo's registry; not where `state` holds it already
 * @property {(child: import("node:child_process").ChildProcess) => void} [onSpawn] as workerd's process is made
 */

/**
 * What is used of wrangler.toml.
 * @typedef {object} Configuration
 * @property {string} compatibility_date
 * @property {string[]} compatibility_flags
 * @property {Record<string, string | number>} vars
 * @property {{ bindings: { name: string, class_name: string }[] }} durable_objects
 * @property {{ binding: string, migrations_dir: string }[]} d1_databases
 */

export const DEFAULT_BUILD = "worker/edge/build";
const CONFIG = "wrangler.toml";
const STATEMENTS = { d1: "worker/core/src/sql/d1.rs", lane: "worker/core/src/sql/lane.rs" };
const FLOOR = "bench/edge/floor-worker.js";
export const HOST = "127.0.0.1";
export const CALL_PATH = "/v1/authorize";
const MAC_KEY = "a-mac-key-for-benches-of-40-characters-0";

/** A bucket that no load empties: the most that worker/core/src/bucket.rs takes. */
const NO_RATE_LIMIT = { RATE_CAPACITY: 1_000_000, RATE_REFILL_PER_S: 1_000_000 };

/** Bounds that no run reaches: the most that a tenant can have. */
const NO_DAILY_LIMIT = { rows_per_day: 2 ** 32 - 1, bytes_per_day: 2 ** 32 - 1 };

/** Where one statement of a migration ends and the next begins: at the start of a line. */
const STATEMENT_END = /;\s*^(?=(?:ALTER|CREATE|DROP|INSERT|UPDATE) )/m;

/** Statements of one batch to D1, so that a large registry is written in bounded pieces. */
const MAX_BATCH_STATEMENTS = 500;

/** How long what was journalled may take to arrive in D1 after load has ended. */
const SETTLE_LIMIT_MS = 60_000;
/** Asking costs workerd too, and counts as a round's. */
const SETTLE_POLL_MS = 200;

/**
 * The arguments of the programs here: `--full`, the directory of a build, and, as
 * `<policies>=<directory>`, builds to compare by the number of policies in their bundles.
 */
export function programArguments() {
  const { values, positionals } = parseArgs({
    options: { full: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const compared = positionals.flatMap((text) => {
    const [, policies, build] = /^(\d+)=(.+)$/.exec(text) ?? [];
    return policies === undefined || build === undefined ? [] : [{ policies: Number(policies), build }];
  });
  return { full: values.full, build: positionals.find((text) => !text.includes("=")) ?? DEFAULT_BUILD, compared };
}

/** A running worker. */
export class Worker {
  /** @type {Target} */
  target;
  /** Where calls are sent. */
  url;
  pid;
  /** @type {Database} */
  db;
  #miniflare;

  /**
   * @param {Target} target
   * @param {Miniflare} miniflare
   * @param {URL} url
   * @param {number} pid
   * @param {Database} db
   */
  constructor(target, miniflare, url, pid, db) {
    this.target = target;
    this.#miniflare = miniflare;
    this.url = new URL(CALL_PATH, url);
    this.pid = pid;
    this.db = db;
  }

  /** Milliseconds that workerd's process, all its threads, has spent on processors. */
  cpuMs() {
    // The second field is a name in parentheses that may hold anything; utime and stime are the
    // 14th and 15th.
    const stat = readFileSync(`/proc/${this.pid}/stat`, "utf8");
    const [utime, stime] = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 13);
    return ((Number(utime) + Number(stime)) * 1_000) / clockTicksPerSecond();
  }

  /** Megabytes of memory that workerd's process holds. */
  rssMb() {
    const kilobytes = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))?.[1];
    if (kilobytes === undefined) throw new Error("the process does not say how much memory it holds");
    return Number(kilobytes) / 1_024;
  }

  /**
   * Makes one call and gives its answer.
   * @param {unknown} body
   * @param {Record<string, string>} [headers]
   * @returns {Promise<{ status: number, answer: any }>}
   */
  async call(body, headers = demoHeaders()) {
    const response = await fetch(this.url, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, answer: await response.json() };
  }

  /**
   * Waits until all that was journalled is in D1, so that what a round caused is over when the
   * round is. Makes one call, whose sequence number says how far that is.
   * @param {unknown} body a call that is journalled
   * @param {Record<string, string>} [headers]
   */
  async settle(body, headers) {
    const { receipt } = (await this.call(body, headers)).answer;
    const deadline = Date.now() + SETTLE_LIMIT_MS;
    for (;;) {
      const flushed = await this.db
        .prepare("SELECT seq FROM lane_flushes WHERE tenant = ?1 AND lane = ?2")
        .bind(TENANT, receipt.lane)
        .first("seq");
      if (Number(flushed) >= receipt.seq) return;
      if (Date.now() > deadline) throw new Error(`${this.target}: receipt ${receipt.seq} did not arrive in D1 (${flushed} did)`);
      await sleep(SETTLE_POLL_MS);
    }
  }

  /** Where workerd's inspector listens, if it was asked to. */
  inspectorUrl() {
    return this.#miniflare.getInspectorURL();
  }

  dispose() {
    return this.#miniflare.dispose();
  }
}

/** Headers of a call by the demo's agent, or of one whose token was forged. */
export function demoHeaders(forged = false) {
  const { token } = demoCredential;
  return headersOf(forged ? withWrongMac(token) : token);
}

/** @param {string} token */
export function headersOf(token) {
  return { authorization: `Bearer ${token}`, "content-type": "application/json" };
}

/**
 * A credential of the demo's tenant.
 * @param {string} agent
 * @param {number} [lane]
 */
export function mintCredential(agent, lane = 0) {
  return mintAgentToken(MAC_KEY, TENANT, agent, lane);
}

/** @param {number} ms */
export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Writes registry rows of the demo's tenant.
 * @param {Database} db
 * @param {Omit<import("../../tests/support/registry.ts").RegistryRows, "tenant">} rows
 */
export async function register(db, rows) {
  const statements = upserts({ tenant: TENANT, limits: NO_DAILY_LIMIT, ...rows });
  // As text: from here, each prepared statement would take two round trips of its own.
  for (let from = 0; from < statements.length; from += MAX_BATCH_STATEMENTS) {
    await db.exec(toSqlText(statements.slice(from, from + MAX_BATCH_STATEMENTS)));
  }
}

/**
 * Starts a worker, and writes the demo's registry. One at a time: whose process is whose is known
 * by when it was started.
 * @param {Target} target
 * @param {Options} [options]
 * @returns {Promise<Worker>}
 */
export async function startWorker(target, options = {}) {
  const { build = DEFAULT_BUILD, vars = {}, inspectorPort, state, port = 0, seed = true, onSpawn } = options;
  /** @type {Configuration} */
  const { compatibility_date, compatibility_flags, vars: configured, durable_objects, d1_databases } = unstable_readConfig({ config: CONFIG });
  /** @type {number | undefined} */
  let pid;
  /** @param {unknown} message */
  const spawned = (message) => {
    const child = /** @type {{ process: import("node:child_process").ChildProcess }} */ (message).process;
    onSpawn?.(child);
    child.once("spawn", () => (pid = child.pid));
  };
  // Miniflare does not say which process it starts; Node does.
  subscribe("child_process", spawned);
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      cf: false,
      modules: modulesOf(target, build),
      compatibilityDate: compatibility_date,
      compatibilityFlags: compatibility_flags,
      durableObjects: Object.fromEntries(
        durable_objects.bindings.map(({ name, class_name }) => [name, { className: class_name, useSQLite: true }]),
      ),
      d1Databases: Object.fromEntries(d1_databases.map(({ binding }) => [binding, binding])),
      unsafeDirectSockets: [{ host: HOST, port }],
      bindings: {
        ...configured,
        ...NO_RATE_LIMIT,
        ...vars,
        TOKEN_MAC_KEY: MAC_KEY,
        ...(target === "floor" ? { STATEMENTS: readStatements() } : {}),
      },
      ...(inspectorPort === undefined ? {} : { inspectorPort }),
      ...(state === undefined ? {} : { resourcePersistencePath: state, defaultPersistRoot: state }),
    }),
  );
  try {
    await miniflare.ready;
    unsubscribe("child_process", spawned);
    if (pid === undefined) throw new Error("workerd's process is not known");
    const url = await miniflare.unsafeGetDirectURL();
    const db = await miniflare.getD1Database("DB");
    if (seed) {
      for (const { migrations_dir } of d1_databases) await migrate(db, migrations_dir);
      await register(db, {
        agents: [{ agent: AGENT, groups: ["engineering"] }],
        credentials: [{ credential: demoCredential, agent: AGENT }],
        servers: DEMO_SERVERS,
        tools: DEMO_TOOLS,
      });
    }
    return new Worker(target, miniflare, url, pid, db);
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

/** The same for each worker of this process, so that a state that one wrote fits the next. */
const demoCredential = mintCredential(AGENT);

/**
 * Runs with a directory for state that is gone afterwards.
 * @template T
 * @param {(state: string) => Promise<T>} run
 */
export async function withState(run) {
  const state = mkdtempSync(join(tmpdir(), "gateward-bench-"));
  try {
    return await run(state);
  } finally {
    rmSync(state, { recursive: true });
  }
}

/**
 * Runs with workers, and ends them whatever happens.
 * @template T
 * @param {{ target: Target, options?: Options }[]} wanted
 * @param {(workers: Worker[]) => Promise<T>} run
 */
export async function withWorkers(wanted, run) {
  /** @type {Worker[]} */
  const workers = [];
  try {
    for (const { target, options } of wanted) workers.push(await startWorker(target, options));
    return await run(workers);
  } finally {
    for (const worker of workers) await worker.dispose();
  }
}

/**
 * @template T
 * @param {Target} target
 * @param {Options} options
 * @param {(worker: Worker) => Promise<T>} run
 */
export function withWorker(target, options, run) {
  return withWorkers([{ target, options }], ([worker]) => run(/** @type {Worker} */ (worker)));
}

/**
 * @param {Target} target
 * @param {string} build
 * @returns {({ type: "ESModule", path: string, contents: string } | { type: "CompiledWasm", path: string, contents: Uint8Array<ArrayBuffer> })[]}
 */
function modulesOf(target, build) {
  if (target === "floor") return [{ type: "ESModule", path: "floor-worker.js", contents: readFileSync(FLOOR, "utf8") }];
  return [
    { type: "ESModule", path: "index.js", contents: readFileSync(join(build, "index.js"), "utf8") },
    { type: "CompiledWasm", path: "index_bg.wasm", contents: new Uint8Array(readFileSync(join(build, "index_bg.wasm"))) },
  ];
}

/**
 * @param {Database} db
 * @param {string} directory
 */
async function migrate(db, directory) {
  for (const file of readdirSync(directory).sort()) {
    // A trigger's own statements are indented.
    const statements = readFileSync(join(directory, file), "utf8").replace(/--.*$/gm, "").split(STATEMENT_END);
    await db.batch(statements.filter((text) => text.trim() !== "").map((text) => db.prepare(text)));
  }
}

/**
 * Gateward's SQL, read from its source so that the floor runs the very same statements.
 * @returns {Record<"lane" | "d1", Record<string, string | string[]>>}
 */
function readStatements() {
  const statements = {
    d1: constantsIn(readFileSync(STATEMENTS.d1, "utf8")),
    lane: constantsIn(readFileSync(STATEMENTS.lane, "utf8")),
  };
  // What the floor gives values to, by position.
  if ((String(statements.lane.INSERT).match(/\?\d+/g) ?? []).length !== 9) {
    throw new Error(`${STATEMENTS.lane}: the journal's columns changed; change ${FLOOR} with them`);
  }
  return statements;
}

/** @param {string} source */
function constantsIn(source) {
  /** @type {Record<string, string | string[]>} */
  const constants = {};
  for (const [, name = "", type = "", value = ""] of source.matchAll(/pub const (\w+): ([^=]+) =\s*([\s\S]*?);$/gm)) {
    const texts = [...value.matchAll(/"((?:[^"\\]|\\[\s\S])*)"/g)].map(([, text = ""]) => text.replace(/\\\n\s*/g, ""));
    constants[name] = type === "&str" ? (texts[0] ?? "") : texts;
  }
  return constants;
}

/** @type {number | undefined} */
let ticks;
function clockTicksPerSecond() {
  ticks ??= Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));
  return ticks;
}
