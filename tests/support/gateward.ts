// The built worker in workerd with real D1 and Durable Objects, and tenants to test it with. Every test has its own
// tenant, so that tests share only the worker.
import { randomBytes } from "node:crypto";
import type { Miniflare } from "miniflare";
import type { AuthorizeRequest, AuthorizeResponse } from "./api/types.gen.ts";
import { Api } from "./administration.ts";
import { Client, type Extras, type Reply } from "./client.ts";
import { expectDescribedAnswers, expectNothingMore } from "./described-answers.ts";
import { isOwn, type LogLine, readLine } from "./log.ts";
import { builtModules, type Database, scriptModule, type SqlValue, startWithStorage } from "./miniflare.ts";
import {
  type AgentRow,
  type CredentialRow,
  DEMO_SERVERS,
  DEMO_TOOLS,
  ENVIRONMENT,
  type RegistryRows,
  upserts,
} from "./registry.ts";
import { type Credential, mintAdministratorToken, mintAgentToken } from "./tokens.ts";

export const MAC_KEY = "a-mac-key-for-tests-of-40-characters-000";
/** The secret with which the first administrator is created. */
export const BOOTSTRAP_SECRET = "a-bootstrap-secret-for-tests-of-47-characters-0";
const LANE_CLASS = "GateLane";
/** How workerd's own lines about an uncaught error begin. A request that hangs is one. */
const UNCAUGHT = "uncaught exception";
/**
 * Lines about uncaught errors that are not faults of Gateward. Miniflare's module that evicts objects throws if the
 * object does not run. workerd logs a refused connection although the error is caught. It also logs each body that Gateward breaks
 * off on purpose.
 */
const NOT_OURS = /dev-control\.worker\.js|Network connection lost|exception = (.*jsg\.Error: )?refused\b/;
/**
 * Failures that tests cause: a name without an address, and a lane's storage that is locked. workerd logs each of
 * them twice, once with its cause and once as uncaught, with the same reference.
 */
const CAUSED = /failed to lookup address|SQLITE_BUSY/;
const REFERENCE = /wdErrId = (\w+)/;

/** Overrides of wrangler.toml's `[vars]`. */
export interface Vars {
  FLUSH_INTERVAL_MS?: number;
  FLUSH_BATCH_ROWS?: number;
  JOURNAL_SOFT_ROWS?: number;
  JOURNAL_HARD_ROWS?: number;
  REGISTRY_TTL_MS?: number;
  D1_MAX_BYTES?: number;
  RATE_CAPACITY?: number;
  RATE_REFILL_PER_S?: number;
  LOCAL_TARGETS?: "true" | "false";
  CONNECTING_ADDRESS_HEADER?: string;
  LOG_ORIGIN?: string;
  WITNESSES?: string;
  /** Of the tests: see clock.js. */
  CLOCK_AHEAD_MS?: number;
}

/** The faults of D1. */
export type DatabaseState = "up" | "slow" | "failing" | "losing" | "hanging" | "locked";

/** How late D1's answers are while it is slow: within every limit. */
const SLOW_DATABASE_MS = 300;

/** An interval that is longer than any test: rows stay in the journal. */
export const NEVER_MS = 3_600_000;

export interface Options {
  vars?: Vars;
  secrets?: Record<string, string>;
  /** A directory that keeps the lanes' storage and the database; unless set, they are deleted at the end. */
  state?: string;
  /** Whether to create the database's tables. Set it to false if `state` already has them. */
  migrate?: boolean;
  /** A module that wraps the built worker. The comment in the module says what it does. */
  entry?: typeof INSPECTABLE | typeof COUNTING | typeof HINDERED | typeof MEASURED;
}
export const INSPECTABLE = "tests/support/inspectable-worker.js";
export const COUNTING = "tests/support/counting-worker.js";
export const HINDERED = "tests/support/hindered-worker.js";
export const MEASURED = "tests/support/measured-worker.js";
/** What all of them but the counting one import. */
const CLOCK = "tests/support/clock.js";

export class Gateward extends Client {
  readonly db: Database;
  readonly #miniflare: Miniflare;
  readonly #name: string;
  readonly #logs: string[];
  #snapshotQuery?: Promise<string>;

  private constructor(url: URL, db: Database, miniflare: Miniflare, name: string, logs: string[]) {
    super(url);
    this.db = db;
    this.#miniflare = miniflare;
    this.#name = name;
    this.#logs = logs;
  }

  static async start({ vars = {}, secrets = { TOKEN_MAC_KEY: MAC_KEY, BOOTSTRAP_SECRET }, entry, state, migrate = true }: Options = {}): Promise<Gateward> {
    const logs: string[] = [];
    const { name, url, db, miniflare } = await startWithStorage({
      modules: [
        ...(entry === undefined ? [] : [scriptModule(entry)]),
        ...(entry === MEASURED ? [scriptModule(HINDERED)] : []),
        ...(entry === undefined || entry === COUNTING ? [] : [scriptModule(CLOCK)]),
        ...builtModules(),
      ],
      bindings: { LOCAL_TARGETS: "true", ...vars, ...secrets },
      ...(state === undefined ? {} : { state }),
      migrate,
      miniflare: {
        unsafeInspectDurableObjects: true,
        // Only then does workerd log uncaught errors.
        verbose: true,
        handleStructuredLogs: ({ message }: { message: string }) => logs.push(message),
      },
    });
    expectDescribedAnswers(url);
    return new Gateward(url, db, miniflare, name, logs);
  }

  /**
   * Stops it. It fails if the runtime logged an uncaught error, or Gateward a line of another form, so that every test
   * of the suite looks for them.
   */
  async close(): Promise<void> {
    await this.#miniflare.dispose();
    expectNothingMore(this.url);
    this.lines();
    const caused = this.#logs.filter((line) => CAUSED.test(line)).map((line) => REFERENCE.exec(line)?.[1] ?? line);
    const isOurs = (line: string) => !NOT_OURS.test(line) && !caused.some((reference) => line.includes(reference));
    const uncaught = this.#logs.filter((line) => line.startsWith(UNCAUGHT) && isOurs(line));
    if (uncaught.length > 0) throw new Error(`the runtime logged ${uncaught.length} uncaught errors:\n${[...new Set(uncaught)].join("\n")}`);
  }

  /** A new tenant with the demo's servers and tools, those in `rows` too, and an administrator. */
  async tenant(
    { servers = [], tools = [], ...rows }: Omit<RegistryRows, "tenant"> = {},
    name = `t-${randomBytes(5).toString("hex")}`,
  ): Promise<Tenant> {
    const tenant = new Tenant(this, name);
    await tenant.register({
      ...rows,
      servers: [...DEMO_SERVERS, ...servers],
      tools: [...DEMO_TOOLS, ...tools],
      credentials: [{ credential: tenant.administrator }],
    });
    return tenant;
  }

  async rows<Row = Record<string, SqlValue>>(sql: string, ...values: SqlValue[]): Promise<Row[]> {
    return (await this.db.prepare(sql).bind(...values).all<Row>()).results;
  }

  /** Reads what every table has of a tenant, in one query, because each takes three round trips here. The rows' values are SQL literals. */
  async snapshotQuery(): Promise<string> {
    const columns = `SELECT group_concat('quote("' || name || '")') FROM pragma_table_info(tables.name)`;
    this.#snapshotQuery ??= this.rows<{ name: string; sql: string; columns: string }>(`SELECT name, sql, (${columns}) AS columns FROM sqlite_master AS tables WHERE type = 'table'`).then((tables) => {
      const ofTenants = tables.filter(({ name, sql }) => /\btenant\s+TEXT\b/.test(sql) && !["metric_counters", "lane_flushes"].includes(name));
      return `SELECT ${ofTenants.map(({ name, columns }) => `(SELECT json_group_array(json_array(${columns})) FROM ${name} WHERE tenant = ?1) AS ${name}`).join(", ")}`;
    });
    return await this.#snapshotQuery;
  }

  async execute(sql: string, ...values: SqlValue[]): Promise<void> {
    await this.db.prepare(sql).bind(...values).run();
  }

  /** Ids of the lanes that have ever stored anything. */
  laneIds(): Promise<string[]> {
    return this.#miniflare.listDurableObjectIds("LANES");
  }

  evict(name: string): Promise<void> {
    return this.#miniflare.unsafeEvictDurableObject(this.#name, LANE_CLASS, { name });
  }

  /** Sets the state of D1 for the worker and its lanes. Tests still reach D1. Only for a hindered worker. */
  databaseIs(state: DatabaseState, matches?: RegExp): Promise<unknown> {
    const body = JSON.stringify({ state, delay_ms: SLOW_DATABASE_MS, matches: matches?.source });
    return this.request("/_test/database", { method: "POST", body });
  }

  /** The number of loads of records that D1 got so far. Only for a hindered worker. */
  async loads(): Promise<number> {
    return (await this.request<{ loads: number }>("/_test/state")).body.loads;
  }

  /** Sets how far the clock of the worker and its lanes is ahead. Only for a hindered or an inspectable worker. */
  clockIsAhead(ms: number): Promise<unknown> {
    return this.request("/_test/clock", { method: "POST", body: String(ms) });
  }

  /** Calls `run` while the clock of the worker and its lanes is this far behind. */
  async ago<T>(ms: number, run: () => Promise<T>): Promise<T> {
    await this.clockIsAhead(-ms);
    try {
      return await run();
    } finally {
      await this.clockIsAhead(0);
    }
  }

  /** Deletes the alarm of `<tenant>/<lane>`. Only for a hindered worker. */
  loseAlarm(lane: string): Promise<unknown> {
    return this.request("/_test/lose-alarm", { method: "POST", body: lane });
  }

  /** Lets the alarm of `<tenant>/<lane>` run now. Only for a hindered worker. */
  ringAlarm(lane: string): Promise<unknown> {
    return this.request("/_test/ring-alarm", { method: "POST", body: lane });
  }

  /** Bytes of linear memory, which never shrinks. Only for a measured worker. */
  async linearMemory(): Promise<number> {
    return (await this.request<{ bytes: number }>("/_test/memory")).body.bytes;
  }

  /** The number of loads of records that wait for D1's answer. Only for a hindered worker. */
  async loadsWaiting(): Promise<number> {
    return (await this.request<{ loads_waiting: number }>("/_test/state")).body.loads_waiting;
  }

  /** Delays D1's answers to loads of records from now on. Only for a hindered worker. */
  delayLoads(ms: number): Promise<unknown> {
    return this.request("/_test/load-delay", { method: "POST", body: String(ms) });
  }

  /** From now on, pushes of new epochs do not reach these lanes, and reach all others. Only for a hindered worker. */
  deafen(lanes: string[]): Promise<unknown> {
    return this.request("/_test/deaf-lanes", { method: "POST", body: JSON.stringify(lanes) });
  }

  /** From now on, requests to lanes, or the replies, have another version of the protocol. Only for a hindered worker. */
  skew(skewed: { requests?: boolean; replies?: boolean }): Promise<unknown> {
    return this.request("/_test/skew", { method: "POST", body: JSON.stringify(skewed) });
  }

  /** From now on, requests of this kind wait before they reach their lanes. Only for a hindered worker. */
  hold(operation: "calls" | "decisions" | "outcomes" | "leases" | "windows" | "lists"): Promise<unknown> {
    return this.request("/_test/hold", { method: "POST", body: operation });
  }

  /** The number of requests that had to wait so far. Only for a hindered worker. */
  async held(): Promise<number> {
    return (await this.request<{ held: number }>("/_test/state")).body.held;
  }

  /** Lets the waiting requests go on. With `all`, later requests do not wait either. Only for a hindered worker. */
  release(all = true): Promise<unknown> {
    return this.request("/_test/release", { method: "POST", body: JSON.stringify(all) });
  }

  /** What the worker and its lanes logged so far. */
  logs(): string[] {
    return [...this.#logs];
  }

  /** The lines of it that are Gateward's own. */
  lines(): LogLine[] {
    return this.#logs.filter(isOwn).map(readLine);
  }

  /** Runs a statement on a lane's own SQLite, and returns its rows. Only for an inspectable worker. */
  async laneRows<Row extends Record<string, SqlValue>>(name: string, sql: string, ...values: SqlValue[]): Promise<Row[]> {
    const storage = await this.#miniflare.unsafeGetDurableObjectStorage(this.#name, LANE_CLASS, { name });
    return storage.exec<Row>(sql, ...values);
  }
}

/** An agent with its credential. */
export interface TestAgent {
  name: string;
  token: string;
  credential: Credential;
}

export class Tenant {
  readonly name: string;
  readonly administrator: Credential;
  readonly #gateward: Gateward;

  /** `administrator`: of a tenant that exists already. */
  constructor(gateward: Gateward, name: string, administrator = mintAdministratorToken(MAC_KEY, name)) {
    this.#gateward = gateward;
    this.name = name;
    this.administrator = administrator;
  }

  get admin(): string {
    return this.administrator.token;
  }

  /** The administration API with the administrator's credential. */
  get api(): Api {
    return new Api(this.#gateward, this.admin);
  }

  /** The same with the credential of another administrator, which has these scopes. */
  async apiWith(scopes: string[], row: Omit<CredentialRow, "credential" | "agent" | "scopes"> = {}): Promise<Api> {
    const credential = mintAdministratorToken(MAC_KEY, this.name);
    await this.register({ credentials: [{ credential, scopes, administrator: "second", ...row }] });
    return new Api(this.#gateward, credential.token);
  }

  /** An administrator who decides on approvals, a member of these groups. */
  async approver(name: string, ...groups: string[]): Promise<Api> {
    const { token } = await this.api.administrator(name, ["approvals:decide"]);
    for (const group of groups) {
      const { status } = await this.api.post("/v1/groups", { group });
      if (status !== 201 && status !== 409) throw new Error(`the group ${group} was answered ${status}`);
      await this.api.change("PUT", `/v1/groups/${group}/members/administrators/${name}`);
    }
    return new Api(this.#gateward, token);
  }

  async register(rows: Omit<RegistryRows, "tenant">): Promise<void> {
    const { db } = this.#gateward;
    const statements = upserts({ tenant: this.name, ...rows });
    await db.batch(statements.map(({ sql, values }) => db.prepare(sql).bind(...values)));
  }

  async agent(
    name = "coder",
    row: Omit<AgentRow, "agent"> = {},
    credentialRow: Omit<CredentialRow, "credential" | "agent"> = {},
  ): Promise<TestAgent> {
    const credential = mintAgentToken(MAC_KEY, this.name, name, row.lane);
    await this.register({
      agents: [{ agent: name, groups: ["engineering"], ...row }],
      credentials: [{ credential, agent: name, ...credentialRow }],
    });
    return { name, token: credential.token, credential };
  }

  /** Registers a change and drops what the lane remembers, so that the next call sees it. */
  async change(rows: Omit<RegistryRows, "tenant">, lane = 0): Promise<void> {
    await this.register(rows);
    await this.evict(lane);
  }

  evict(lane = 0): Promise<void> {
    return this.#gateward.evict(`${this.name}/${lane}`);
  }

  /** The sequence numbers of the rows in the lane's journal that are not yet flushed. */
  async journal(lane = 0): Promise<number[]> {
    const rows = await this.#gateward.laneRows<{ seq: number }>(
      `${this.name}/${lane}`,
      "SELECT seq FROM journal WHERE seq > (SELECT coalesce(max(through), 0) FROM flushes) ORDER BY seq",
    );
    return rows.map(({ seq }) => seq);
  }

  /** Moves the end of an approval's time, as its lane stores it. */
  async endsAt(approvalId: string, atMs: number, lane = 0): Promise<void> {
    await this.#gateward.laneRows(
      `${this.name}/${lane}`,
      // A JavaScript number is bound as a floating-point number.
      "UPDATE approvals SET expires_at_ms = CAST(?1 AS INTEGER), record = json_set(record, '$.expires_at_ms', CAST(?1 AS INTEGER)) WHERE approval_id = ?2",
      atMs,
      approvalId,
    );
  }

  /** Waits until everything that the lane wrote is in D1 and pruned from its journal. */
  async flushed(lane = 0): Promise<void> {
    await eventually(`the journal of ${this.name}/${lane} is empty`, async () => (await this.journal(lane)).length === 0);
  }

  /** All rows of this tenant in D1, by table, as texts, except the counts and reports that lanes write with each flush. */
  async snapshot(): Promise<Record<string, string>> {
    const [snapshot] = await this.#gateward.rows<Record<string, string>>(await this.#gateward.snapshotQuery(), this.name);
    return snapshot ?? {};
  }

  /** The bodies of the decision's receipt and its outcome's, from D1. */
  async receiptsOf(decisionId: unknown): Promise<Record<string, unknown>[]> {
    let rows: { body: string }[] = [];
    await eventually("the outcome is in D1", async () => {
      rows = await this.#gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND decision_id = ?2 ORDER BY seq", this.name, String(decisionId));
      return rows.length === 2;
    });
    return rows.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  }

  /** This tenant's rows of a table of records. */
  records<Row = Record<string, SqlValue>>(table: "decisions" | "receipts" | "audit_events" | "approvals"): Promise<Row[]> {
    return this.#gateward.rows<Row>(`SELECT * FROM ${table} WHERE tenant = ?1`, this.name);
  }
}

const POLL_INTERVAL_MS = 50;
const POLL_LIMIT_MS = 30_000;

/** Polls until `holds` is true. Fails after a time that is far longer than it ever takes if nothing is broken. */
export async function eventually(what: string, holds: () => Promise<boolean>, limitMs = POLL_LIMIT_MS): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/** The result of a call: its decision, or the status and code of the problem. */
export function outcomeOf({ status, body }: Reply<Partial<AuthorizeResponse> & { code?: string }>): string {
  return status === 200 ? String(body.decision) : `${status} ${body.code}`;
}

/** Whether a call is allowed. If not, it must be refused with an answer; a missing answer fails the test. */
export async function passes(client: Client, token: string, body: AuthorizeRequest, extras?: Extras): Promise<boolean> {
  const reply = await client.post<Partial<AuthorizeResponse> & { code?: string }>(token, "/v1/authorize", body, extras);
  const outcome = outcomeOf(reply);
  if (outcome === "allow") return true;
  if (outcome === "deny" || reply.status === 401 || reply.status === 403) return false;
  throw new Error(`neither allowed nor refused: ${outcome} ${JSON.stringify(reply.body)}`);
}

/** A body for `/v1/authorize`, with defaults for the fields that a test does not set. */
export interface Changes extends Omit<Partial<AuthorizeRequest>, "agent" | "tool_call" | "context"> {
  agent?: Partial<AuthorizeRequest["agent"]>;
  tool_call?: Partial<AuthorizeRequest["tool_call"]>;
  context?: Partial<AuthorizeRequest["context"]>;
}

/** A read of github/list_issues, which the base policies allow, with changes. */
export function readCall(changes: Changes = {}): AuthorizeRequest {
  const { agent, tool_call, context, ...rest } = changes;
  return {
    agent: { id: "coder", environment: ENVIRONMENT, ...agent },
    tool_call: {
      tool: "github",
      action: "list_issues",
      mutates_state: false,
      parameters: { repo: "acme/shop" },
      ...tool_call,
    },
    context: { source_trust: "trusted_internal_signed", contains_sensitive_data: false, ...context },
    ...rest,
  };
}

/** A merge to a feature branch, which trusted provenance allows and any other does not. */
export function writeCall(changes: Changes = {}): AuthorizeRequest {
  return readCall({
    ...changes,
    tool_call: {
      action: "merge_pull_request",
      mutates_state: true,
      parameters: { repo: "acme/shop", number: 42, base: "feature/search" },
      ...changes.tool_call,
    },
  });
}

/** A call that the canary policy quarantines for. */
export function canaryCall(changes: Changes = {}): AuthorizeRequest {
  return readCall({ ...changes, tool_call: { tool: "vault", action: "read_root_key", parameters: {} } });
}
