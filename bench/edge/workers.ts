// Starts Gateward or a floor in workerd, with the demo's registry, and reads what its process uses.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Miniflare } from "miniflare";
import { BUILD, builtModules, type Database, scriptModule, startWithProcess } from "../../tests/support/miniflare.ts";
import { DEMO_SERVERS, DEMO_TOOLS, type RegistryRows, toSqlText, upserts } from "../../tests/support/registry.ts";
import { mintAgentToken, withWrongMac } from "../../tests/support/tokens.ts";
import { AGENT, TENANT } from "./kinds.ts";

export type Target = "gateward" | "floor";

export interface Options {
  /** The directory of Gateward's build. */
  build?: string;
  /** Added to `[vars]` of wrangler.toml; of two with the same name, these count. */
  vars?: Record<string, string | number>;
  inspectorPort?: number;
  /** Which floor: that of `/v1/authorize`, or that of the proxies. */
  floor?: keyof typeof FLOORS;
  /** A directory that keeps storage and database; unless set, they are deleted at the end. */
  state?: string;
  /** The port of workerd's socket; any free one unless set. */
  port?: number;
  /** Whether to write the tables and the demo's registry. Set it to false if `state` already has them. */
  seed?: boolean;
  /** Called when workerd's process is created, before it runs. */
  onSpawn?: () => void;
}

const STATEMENTS = { d1: ["records", "flush", "metrics"].map((file) => `worker/core/src/sql/d1/${file}.rs`), lane: ["worker/core/src/sql/lane.rs"] };
const FLOOR = "bench/edge/floor-worker.js";
/** Modules of the floors; the entry is the first. */
const FLOORS = { authorize: [FLOOR], proxied: ["bench/edge/proxied-floor-worker.js", FLOOR] };
export const CALL_PATH = "/v1/authorize";
const MAC_KEY = "a-mac-key-for-benches-of-40-characters-0";

/** A bucket that no load empties: the most that worker/core/src/bucket.rs takes. */
const NO_RATE_LIMIT = { RATE_CAPACITY: 1_000_000, RATE_REFILL_PER_S: 1_000_000 };

/** Bounds that no run reaches: the most that a tenant can have. */
const NO_DAILY_LIMIT = { rows_per_day: 2 ** 32 - 1, bytes_per_day: 2 ** 32 - 1 };

/** Statements of one batch to D1: a large registry is written in bounded pieces. */
const MAX_BATCH_STATEMENTS = 500;

/** How long journalled rows may take to arrive in D1 after the load has ended. */
const SETTLE_LIMIT_MS = 60_000;
/** Each query costs workerd processor time, which counts as the round's. */
const SETTLE_POLL_MS = 100;

/**
 * The arguments of the programs here: `--full`, the directory of a build, and builds to compare by the
 * number of policies in their bundles, each as `<policies>=<directory>`.
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
  return { full: values.full, build: positionals.find((text) => !text.includes("=")) ?? BUILD, compared };
}

/** A running worker. */
export class Worker {
  readonly target: Target;
  /** Where calls are sent. */
  readonly url: URL;
  readonly pid: number;
  readonly db: Database;
  readonly #miniflare: Miniflare;

  constructor(target: Target, miniflare: Miniflare, url: URL, pid: number, db: Database) {
    this.target = target;
    this.#miniflare = miniflare;
    this.url = new URL(CALL_PATH, url);
    this.pid = pid;
    this.db = db;
  }

  /** Milliseconds that all threads of workerd's process have spent on processors. */
  cpuMs(): number {
    // The scheduler's own account, in nanoseconds: /proc/<pid>/stat counts ticks of 10 ms, too coarse for
    // short rounds. Threads that ended are in stat alone; workerd keeps its threads.
    const tasks = readdirSync(`/proc/${this.pid}/task`);
    return tasks.reduce((sum, task) => sum + onProcessorNs(`/proc/${this.pid}/task/${task}/schedstat`), 0) / 1e6;
  }

  /** Megabytes of memory that workerd's process holds. */
  rssMb(): number {
    const kilobytes = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))?.[1];
    if (kilobytes === undefined) throw new Error("the process does not say how much memory it holds");
    return Number(kilobytes) / 1_024;
  }

  /** Makes one call. */
  async call(body: unknown, headers: Record<string, string> = demoHeaders()): Promise<{ status: number; answer: any }> {
    const response = await fetch(this.url, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, answer: await response.json() };
  }

  /**
   * Waits until everything that was journalled is in D1, so that the flush counts as the round's. Makes one
   * call, whose sequence number is the one to wait for.
   */
  async settle(body: unknown, headers?: Record<string, string>): Promise<void> {
    const { receipt } = (await this.call(body, headers)).answer;
    const deadline = Date.now() + SETTLE_LIMIT_MS;
    for (;;) {
      const flushes = this.db.prepare("SELECT seq FROM lane_flushes WHERE tenant = ?1 AND lane = ?2").bind(TENANT, receipt.lane);
      const flushed = (await flushes.all<{ seq: number }>()).results[0]?.seq ?? 0;
      if (flushed >= receipt.seq) return;
      if (Date.now() > deadline) throw new Error(`${this.target}: receipt ${receipt.seq} did not arrive in D1, receipt ${flushed} did`);
      await sleep(SETTLE_POLL_MS);
    }
  }

  /** Where workerd's inspector listens, if it was asked to. */
  inspectorUrl(): Promise<URL> {
    return this.#miniflare.getInspectorURL();
  }

  dispose(): Promise<void> {
    return this.#miniflare.dispose();
  }
}

/** Nanoseconds that a thread spent on processors: the first field of its schedstat. */
function onProcessorNs(schedstat: string): number {
  try {
    return Number(readFileSync(schedstat, "utf8").split(" ")[0]);
  } catch (error) {
    // It ended since the directory was read.
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return 0;
    throw error;
  }
}

/** Headers of a call by the demo's agent, or of one with a forged token. */
export function demoHeaders(forged = false): Record<string, string> {
  const { token } = demoCredential;
  return headersOf(forged ? withWrongMac(token) : token);
}

export function headersOf(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, "content-type": "application/json" };
}

/** A credential of the demo's tenant. */
export function mintCredential(agent: string, lane = 0) {
  return mintAgentToken(MAC_KEY, TENANT, agent, lane);
}

/** The same for every worker of this process, so that one worker's state fits the next. */
const demoCredential = mintCredential(AGENT);

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Writes registry rows of the demo's tenant. */
export async function register(db: Database, rows: Omit<RegistryRows, "tenant">): Promise<void> {
  const statements = upserts({ tenant: TENANT, settings: NO_DAILY_LIMIT, ...rows });
  // As text: from here, each prepared statement would take two round trips of its own.
  for (let from = 0; from < statements.length; from += MAX_BATCH_STATEMENTS) {
    await db.exec(toSqlText(statements.slice(from, from + MAX_BATCH_STATEMENTS)));
  }
}

/** Starts a worker, and writes the demo's registry. Start one at a time, as `startWithProcess` says. */
export async function startWorker(target: Target, options: Options = {}): Promise<Worker> {
  const { build = BUILD, floor = "authorize", vars = {}, inspectorPort, state, port, seed = true, onSpawn } = options;
  const start = {
    modules: target === "floor" ? FLOORS[floor].map(scriptModule) : builtModules(build),
    bindings: { ...NO_RATE_LIMIT, ...vars, TOKEN_MAC_KEY: MAC_KEY, ...(target === "floor" && { STATEMENTS: readStatements() }) },
    migrate: seed,
    ...(port !== undefined && { port }),
    ...(state !== undefined && { state }),
    ...(inspectorPort !== undefined && { miniflare: { inspectorPort } }),
  };
  const { miniflare, url, db, workerd } = await startWithProcess(start, onSpawn);
  try {
    if (seed) {
      await register(db, {
        agents: [{ agent: AGENT, groups: ["engineering"] }],
        credentials: [{ credential: demoCredential, agent: AGENT }],
        servers: DEMO_SERVERS,
        tools: DEMO_TOOLS,
      });
    }
    return new Worker(target, miniflare, url, workerd.pid as number, db);
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

/** Runs with a directory for state, and deletes it afterwards. */
export async function withState<T>(run: (state: string) => Promise<T>): Promise<T> {
  const state = mkdtempSync(join(tmpdir(), "gateward-bench-"));
  try {
    return await run(state);
  } finally {
    rmSync(state, { recursive: true });
  }
}

/** Runs with workers, and stops them afterwards. */
export async function withWorkers<T>(wanted: { target: Target; options?: Options }[], run: (workers: Worker[]) => Promise<T>): Promise<T> {
  const workers: Worker[] = [];
  try {
    for (const { target, options } of wanted) workers.push(await startWorker(target, options));
    return await run(workers);
  } finally {
    for (const worker of workers) await worker.dispose();
  }
}

export function withWorker<T>(target: Target, options: Options, run: (worker: Worker) => Promise<T>): Promise<T> {
  return withWorkers([{ target, options }], ([worker]) => run(worker as Worker));
}

type Statements = Record<string, string | string[]>;

/** Gateward's SQL, read from its source, so that the floor runs the same statements. */
export function readStatements(): { lane: Statements; d1: Statements } {
  const read = (files: string[]) => constantsIn(files.map((file) => readFileSync(file, "utf8")).join("\n"));
  const statements = { d1: read(STATEMENTS.d1), lane: read(STATEMENTS.lane) };
  // The floor binds its values by position.
  if ((String(statements.lane.INSERT).match(/\?\d+/g) ?? []).length !== 10) {
    throw new Error(`${STATEMENTS.lane}: the journal's columns changed; change ${FLOOR} with them`);
  }
  return statements;
}

function constantsIn(source: string): Statements {
  const constants: Statements = {};
  for (const [, name = "", type = "", value = ""] of source.matchAll(/pub const (\w+): ([^=]+) =\s*([\s\S]*?);$/gm)) {
    const texts = [...value.matchAll(/"((?:[^"\\]|\\[\s\S])*)"/g)].map(([, text = ""]) => text.replace(/\\\n\s*/g, ""));
    constants[name] = type === "&str" ? (texts[0] ?? "") : texts;
  }
  return constants;
}
