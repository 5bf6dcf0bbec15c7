// Agents, administrators and the journal while D1 is away: the table in docs/operations.md.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeRequest, AuthorizeResponse, PendingLanes, Problem } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import { expectCode, SECURITY } from "../support/approvals.ts";
import type { Reply } from "../support/client.ts";
import { type DatabaseState, eventually, Gateward, HINDERED, outcomeOf, readCall, type Tenant, type TestAgent, writeCall } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";

const TTL_MS = 800;
/** After this time, records are no longer confirmed, unless D1 confirmed them meanwhile. */
const pastTtl = () => new Promise((resolve) => setTimeout(resolve, 2 * TTL_MS));

type Mode = AuthorizeResponse & { code?: string };

let gateward: Gateward;
let state: string;
beforeAll(async () => {
  state = mkdtempSync(join(tmpdir(), "gateward-outage-"));
  gateward = await Gateward.start({
    entry: HINDERED,
    state,
    vars: { FLUSH_INTERVAL_MS: 100, REGISTRY_TTL_MS: TTL_MS, RATE_CAPACITY: 100_000, JOURNAL_SOFT_ROWS: 90, JOURNAL_HARD_ROWS: 100 },
  });
});
afterEach(async () => {
  await gateward.clockIsAhead(0);
  await gateward.deafen([]);
  await gateward.databaseIs("up");
});
afterAll(async () => {
  await gateward?.close();
  rmSync(state, { recursive: true });
});

const read = (name = "coder") => readCall({ agent: { id: name } });
/** A write of medium risk. */
const write = () => readCall({ tool_call: { action: "create_issue", mutates_state: true, parameters: { repo: "acme/shop", title: "t" } } });
/** A write of high risk. */
const merge = () => writeCall();

/** The result of a call: the decision and how it was made, or the problem. */
async function ask({ token }: TestAgent, body: AuthorizeRequest): Promise<string> {
  const reply = await gateward.post<Mode>(token, "/v1/authorize", body);
  const { engine_mode, degraded_cause } = reply.body;
  return [outcomeOf(reply), engine_mode, degraded_cause].filter((word) => word !== undefined).join(" ");
}

const said = ({ status, body }: Reply<Partial<Problem> & object>) => (status < 300 ? String(status) : `${status} ${body.code}: ${body.detail}`);

const AWAY = "503 registry_unavailable";
const UNTOUCHED = `${AWAY}: the database does not answer; nothing was changed; try again`;
const DEGRADED = "allow degraded registry_unconfirmed";

interface Cast {
  tenant: Tenant;
  /** The lane holds its records. */
  held: TestAgent;
  /** Nobody has asked for its records. */
  unknown: TestAgent;
  approver: Api;
  approvalId: string;
}

/** A tenant whose lane holds the records of three tools, and an approval that waits. */
async function cast(): Promise<Cast> {
  const tenant = await gateward.tenant();
  const [held, unknown] = [await tenant.agent(), await tenant.agent("unknown")];
  const approver = await tenant.approver("sam", SECURITY);
  for (const body of [read(), write(), merge()]) expect(await ask(held, body)).toBe("allow");
  const asks = await gateward.post<Mode>(held.token, "/v1/authorize", writeCall({ context: { source_trust: "semi_trusted_customer" } }));
  expect(asks.body.decision).toBe("require_approval");
  await tenant.flushed();
  return { tenant, held, unknown, approver, approvalId: asks.body.approval?.approval_id ?? "" };
}

/** One row of the table: the result of each event. */
interface Row {
  state: DatabaseState;
  heldRead: string;
  unknownRead: string;
  write: string;
  highRisk: string;
  freeze: string;
  approve: string;
  list: string;
}

const away = (state: DatabaseState): Row => ({
  state,
  heldRead: DEGRADED,
  unknownRead: AWAY,
  write: AWAY,
  highRisk: AWAY,
  freeze: UNTOUCHED,
  approve: UNTOUCHED,
  list: UNTOUCHED,
});
const there = (state: DatabaseState): Row => ({
  state,
  heldRead: "allow",
  unknownRead: "allow",
  write: "allow",
  highRisk: "allow",
  freeze: "200",
  approve: "200",
  list: "200",
});

describe.each<Row>([there("up"), there("slow"), away("failing"), away("losing"), away("hanging"), away("locked")])("while D1 is $state", (row) => {
  test("calls, administration and the journal", async () => {
    const { tenant, held, unknown, approver, approvalId } = await cast();
    await gateward.databaseIs(row.state);
    await pastTtl();
    expect({
      heldRead: await ask(held, read()),
      write: await ask(held, write()),
      highRisk: await ask(held, merge()),
      unknownRead: await ask(unknown, read("unknown")),
    }).toEqual({ heldRead: row.heldRead, write: row.write, highRisk: row.highRisk, unknownRead: row.unknownRead });
    // A flush that D1 did not take, or did not confirm, leaves its rows where they are.
    if (row.heldRead === DEGRADED) expect((await tenant.journal()).length).toBeGreaterThan(0);

    const [list, approve, freeze] = await Promise.all([
      tenant.api.get("/v1/decisions"),
      approver.post(`/v1/approvals/${approvalId}/approve`),
      tenant.api.post("/v1/agents/unknown/freeze"),
    ]);
    expect(said(list)).toBe(row.list);
    expect(said(approve)).toBe(row.approve);
    expect(said(freeze)).toBe(row.freeze);

    await gateward.databaseIs("up");
    await tenant.flushed();
    const receipts = await gateward.receipts(tenant.admin);
    expect(problemsOf(receipts)).toEqual([]);
    const degraded = receipts.map(({ body }) => body as { engine_mode?: string; degraded_cause?: string }).filter(({ engine_mode }) => engine_mode !== undefined);
    expect(degraded).toHaveLength(row.heldRead === DEGRADED ? 1 : 0);
    for (const body of degraded) expect(body).toMatchObject({ engine_mode: "degraded", degraded_cause: "registry_unconfirmed" });
    await eventually("the lane answers as ever", async () => (await ask(held, merge())) === "allow");
  });
});

test.each<DatabaseState>(["failing", "losing", "hanging", "locked"])("a change whose commit finds D1 %s may have been made, and says so", async (state) => {
  const { tenant, held } = await cast();
  await gateward.databaseIs(state, /INSERT INTO audit_events/);
  const freeze = () => tenant.api.post<Partial<PendingLanes>>("/v1/agents/coder/freeze");
  expect(said(await freeze())).toBe(`${AWAY}: it is not known whether the change was written; try again`);
  await gateward.databaseIs("up");
  expect(said(await freeze())).toBe("200");
  expect((await gateward.decide(held.token, read())).reason_code).toBe("agent_frozen");
});

test("/readyz says that D1 hangs", async () => {
  await gateward.databaseIs("hanging");
  await eventually("the answer from before is forgotten", async () => (await gateward.request("/readyz")).status === 503);
  await gateward.databaseIs("up");
  await eventually("D1 is back", async () => (await gateward.request("/readyz")).status === 200);
});

test("an eviction takes neither the records from a lane nor renews them", async () => {
  const { tenant, held, unknown } = await cast();
  await gateward.databaseIs("hanging");
  await pastTtl();
  await tenant.evict();
  expect(await ask(held, read())).toBe(DEGRADED);
  expect(await ask(held, merge())).toBe(AWAY);
  expect(await ask(unknown, read("unknown"))).toBe(AWAY);
});

test("a tenant says for how long its lanes go on, for each kind of call", async () => {
  const { tenant, held } = await cast();
  const limits = { grace_read_s: 0, grace_write_s: 3_600, grace_high_risk_s: 0 };
  expect(await tenant.api.change("PATCH", "/v1/settings", limits)).toMatchObject(limits);
  for (const body of [read(), write(), merge()]) expect(await ask(held, body)).toBe("allow");
  await gateward.databaseIs("failing");
  await pastTtl();
  expect([await ask(held, read()), await ask(held, write()), await ask(held, merge())]).toEqual([AWAY, DEGRADED, AWAY]);
  for (const grace_read_s of [-1, 3_601, 1.5]) {
    await gateward.databaseIs("up");
    expect((await tenant.api.patch("/v1/settings", { grace_read_s })).status).toBe(422);
  }
});

test("decisions without a confirmed registry are counted in the audit", async () => {
  const { tenant, held } = await cast();
  await gateward.databaseIs("failing");
  await pastTtl();
  for (let at = 0; at < 3; at += 1) expect(await ask(held, read())).toBe(DEGRADED);
  await gateward.databaseIs("up");
  const counts = async () => (await tenant.records<{ kind: string; source: string; count: number }>("audit_events")).filter(({ kind }) => kind === "decided_degraded");
  await eventually("the audit has the count", async () => (await counts()).length > 0);
  expect(await counts()).toMatchObject([{ source: "coder" }]);
});

test("a call is not decided after its caller was told that the lane does not answer", async () => {
  /** A cold lane loads the routes of an HTTP API first, and then the tool: together longer than its caller waits. */
  const LOAD_MS = 2_350;
  const slow = await Gateward.start({ entry: HINDERED });
  try {
    const upstream = { url: "http://127.0.0.1:9/", local: true, routes: [{ method: "GET", path: "/issues", tool: "list_issues" }] };
    const tenant = await slow.tenant({
      servers: [{ server: "api", kind: "http", upstream }],
      tools: [{ server: "api", tool: "list_issues", mutates: false, risk: "low" }],
    });
    const { token } = await tenant.agent();
    await slow.delayLoads(LOAD_MS);
    expectCode(await slow.get(token, "/http/api/issues"), 503, "lane_unavailable");
    await new Promise((resolve) => setTimeout(resolve, LOAD_MS));
    await slow.delayLoads(0);
    expect(await tenant.journal()).toEqual([]);
    expect(await slow.receipts(tenant.admin)).toEqual([]);
  } finally {
    await slow.close();
  }
});

test("a revocation that reached the lane holds though D1 hangs", async () => {
  const { tenant, held, unknown } = await cast();
  expect(await ask(unknown, read("unknown"))).toBe("allow");
  expect(said(await tenant.api.post("/v1/agents/coder/revoke"))).toBe("200");
  await gateward.databaseIs("hanging");
  await pastTtl();
  // The push deleted its records in memory and in storage. The records of others are unchanged.
  expect(await ask(held, read())).toBe(AWAY);
  expect(await ask(unknown, read("unknown"))).toBe(DEGRADED);
  await tenant.evict();
  expect(await ask(held, read())).toBe(AWAY);
  expect(await ask(unknown, read("unknown"))).toBe(DEGRADED);
});

test("a lane that did not take a change is told again", async () => {
  const { tenant, held } = await cast();
  const lane = `${tenant.name}/0`;
  await gateward.deafen([lane]);
  const frozen = await tenant.api.post<Partial<PendingLanes>>("/v1/agents/coder/freeze");
  expect(frozen).toMatchObject({ status: 202, body: { pending_lanes: [0] } });
  // D1 has the change, but the lane can no longer read it. So the lane decides on the records that it holds.
  await gateward.databaseIs("failing");
  await pastTtl();
  expect(await ask(held, read())).toBe(DEGRADED);
  await gateward.deafen([]);
  await eventually("the lane was told", async () => (await ask(held, read())) === AWAY);
  await gateward.databaseIs("up");
  await eventually("the lane reads the change", async () => (await ask(held, read())) === "deny");
});

/** How many log lines say that this many flushes of the lane failed in a row. */
const flushesFailed = (times: number): number =>
  gateward.lines().filter(({ event, detail }) => event === "flush_failed" && detail?.startsWith(`failed ${times} times`)).length;

test("a full journal is flushed as soon as D1 answers a load", async () => {
  const { tenant, held, unknown } = await cast();
  await gateward.databaseIs("failing");
  await pastTtl();
  await eventually("the journal is full", async () => (await ask(held, read())) === "503 journal_full");
  await eventually("flushes wait long", async () => flushesFailed(6) > 0);
  await gateward.databaseIs("up");
  // While the lane holds the agent's records and D1 has confirmed nothing, no load is due. This load is due.
  await eventually("a load is answered", async () => (await ask(unknown, read("unknown"))) !== AWAY);
  await tenant.flushed();
  expect(await ask(held, merge())).toBe("allow");
});

test("calls that need the same records share one load, and a lane that fails logs it once a second", async () => {
  const { tenant, held, unknown } = await cast();
  await gateward.databaseIs("slow");
  await tenant.evict();
  const before = await gateward.loads();
  const asked = await Promise.all(Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? ask(held, read()) : ask(unknown, read("unknown")))));
  expect(new Set(asked)).toEqual(new Set(["allow"]));
  expect((await gateward.loads()) - before).toBe(2);

  await gateward.databaseIs("failing");
  await pastTtl();
  const lines = gateward.lines().length;
  for (let at = 0; at < 200; at += 1) expect(await ask(unknown, read("unknown"))).not.toBe("");
  const since = gateward.lines().slice(lines).filter(({ event }) => event === "database_failed");
  expect(since.length).toBeLessThan(20);
});

/** A flush that fails writes its next alarm, which takes milliseconds: the lock waits for it. */
const LOCK_WAIT_MS = 5_000;

/** Locks the storage of a tenant's lane; returns what unlocks it. */
function lockStorage({ name }: Tenant): () => void {
  const files = readdirSync(state, { recursive: true, encoding: "utf8" }).filter((file) => file.includes("GateLane") && file.endsWith(".sqlite"));
  for (const file of files) {
    const storage = new DatabaseSync(join(state, file), { timeout: LOCK_WAIT_MS });
    const isLane = storage.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'journal'").get() !== undefined;
    if (isLane && storage.prepare("SELECT 1 FROM meta WHERE name = 'identity' AND value = ?").get(`${name}/0`) !== undefined) {
      storage.exec("BEGIN IMMEDIATE");
      return () => storage.close();
    }
    storage.close();
  }
  throw new Error(`${name} has no lane`);
}

describe("flushing goes on", () => {
  test("though the lane's storage was locked for a while", async () => {
    const { tenant, held } = await cast();
    await gateward.databaseIs("failing", /INSERT INTO journal_rows/);
    expect(await ask(held, read())).toBe("allow");
    const unlock = lockStorage(tenant);
    // Alarms find it locked, too.
    for (let at = 0; at < 5; at += 1) {
      expect(await ask(held, read())).toBe("503 lane_unavailable");
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    unlock();
    await gateward.databaseIs("up");
    expect(await ask(held, read())).toBe("allow");
    await tenant.flushed();
    expect(problemsOf(await gateward.receipts(tenant.admin))).toEqual([]);
  });

  test("though an alarm was lost", async () => {
    const { tenant, held } = await cast();
    const failures = () => flushesFailed(5);
    const before = failures();
    await gateward.databaseIs("failing", /INSERT INTO journal_rows/);
    const { body } = await gateward.post<Mode>(held.token, "/v1/authorize", read());
    await eventually("a flush waits for seconds", async () => failures() > before);
    await gateward.databaseIs("up");
    await gateward.loseAlarm(`${tenant.name}/0`);
    await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** 5 + 500));
    expect(await tenant.journal()).not.toEqual([]);
    // Any event has this effect. D1 does not have the decision, so its lane is asked.
    expect((await gateward.get(tenant.admin, `/v1/decisions/${body.decision_id}`)).status).toBe(200);
    await tenant.flushed();
  });

  test("though the clock was an hour ahead and came back", async () => {
    const { tenant, held } = await cast();
    await gateward.clockIsAhead(3_600_000);
    expect(await ask(held, read())).toBe("allow");
    await gateward.clockIsAhead(0);
    expect(await ask(held, read())).toBe("allow");
    await tenant.flushed();
    expect(problemsOf(await gateward.receipts(tenant.admin))).toEqual([]);
  });

  test("though the clock was set back by an hour", async () => {
    const { tenant, held } = await cast();
    await gateward.clockIsAhead(-3_600_000);
    expect(await ask(held, read())).toBe("allow");
    await tenant.flushed();
  });
});
