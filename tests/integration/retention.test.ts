// How many records of a tenant are kept, and for how long: daily bounds, and deletion by age.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Problem, Verification } from "../support/api/types.gen.ts";
import { Api } from "../support/administration.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

let gateward: Gateward;
/** An administrator of tenants. */
let root: Api;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  root = await (await gateward.tenant()).apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]);
});
afterAll(() => gateward?.close());

async function verify(tenant: Tenant, from: number, to?: number): Promise<Verification> {
  const reply = await gateward.post<Verification>(tenant.admin, "/v1/receipts/verify", { lane: 0, from, ...(to === undefined ? {} : { to }) });
  expect(reply.status).toBe(200);
  return reply.body;
}

describe("a tenant's bounds of a day", () => {
  test("deny its calls, leave no rows, and are in the audit; another tenant's calls go on", async () => {
    const [tenant, other] = [await gateward.tenant(), await gateward.tenant()];
    await root.change("PATCH", `/v1/tenants/${tenant.name}`, { rows_per_day: 5 });
    const { token } = await tenant.agent();
    const reasons = [];
    for (let at = 0; at < 8; at += 1) reasons.push((await gateward.decide(token, readCall())).reason_code);
    expect(reasons).toEqual([...Array(5).fill("policy_allow"), ...Array(3).fill("tenant_rows_exhausted")]);
    await tenant.flushed();
    expect(await tenant.records("receipts")).toHaveLength(5);
    expect((await gateward.decide((await other.agent()).token, readCall())).decision).toBe("allow");
    const kinds = async () => (await tenant.records<{ kind: string }>("audit_events")).map(({ kind }) => kind);
    await eventually("the audit tells of the bound", async () => (await kinds()).includes("tenant_rows_limit_reached"));
    expect(await kinds()).toContain("tenant_rows_near_limit");
    // The agent can be stopped all the same, and a higher bound holds from then on.
    await tenant.api.change("POST", "/v1/agents/coder/freeze");
    expect((await gateward.decide(token, readCall())).reason_code).toBe("agent_frozen");
    await tenant.api.change("POST", "/v1/agents/coder/unfreeze");
    await root.change("PATCH", `/v1/tenants/${tenant.name}`, { rows_per_day: null });
    expect((await gateward.decide(token, readCall())).decision).toBe("allow");
  });

  test("are the operators' to set", async () => {
    const tenant = await gateward.tenant();
    const path = `/v1/tenants/${tenant.name}`;
    const reply = await tenant.api.patch<Problem>(path, { rows_per_day: 9 });
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 403, code: "forbidden" });
    for (const body of [{ rows_per_day: 0 }, { bytes_per_day: -1 }, { retention_days: 0 }, { retention_days: 36_501 }]) {
      expect((await root.patch<Problem>(path, body)).body).toMatchObject({ code: "invalid_field", field: Object.keys(body)[0] });
    }
    expect(await root.change("PATCH", path, { rows_per_day: 7, retention_days: 30 })).toMatchObject({ rows_per_day: 7, bytes_per_day: null, retention_days: 30 });
  });
});

/** Makes receipts up to `seq`, their decisions and events older than two days. */
async function age(tenant: Tenant, seq: number): Promise<void> {
  const at = Date.now() - 3 * DAY_MS;
  const of = "(SELECT decision_id FROM receipts WHERE tenant = ?1 AND seq <= ?2)";
  await gateward.execute(`UPDATE decisions SET at_ms = ?3 WHERE tenant = ?1 AND decision_id IN ${of}`, tenant.name, seq, at);
  await gateward.execute(`UPDATE audit_events SET at_ms = ?3 WHERE tenant = ?1 AND decision_id IN ${of}`, tenant.name, seq, at);
  await gateward.execute("UPDATE receipts SET at_ms = ?3 WHERE tenant = ?1 AND seq <= ?2", tenant.name, seq, at);
}

/** A tenant with so many receipts in D1. */
async function played(count: number): Promise<{ tenant: Tenant; token: string; ids: string[] }> {
  const tenant = await gateward.tenant();
  const { token } = await tenant.agent();
  const ids = [];
  for (let at = 0; at < count; at += 1) ids.push((await gateward.decide(token, readCall())).decision_id);
  await tenant.flushed();
  return { tenant, token, ids };
}

/** Sets how long records are kept, for a lane that looked at its clock an hour ago: a younger one deletes nothing. */
async function retain(tenant: Tenant, retention_days: number): Promise<void> {
  const looks = `${Date.now() - HOUR_MS}:0:0:0`;
  const set = "INSERT INTO meta (name, value) VALUES ('clock', ?1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
  await gateward.laneRows(`${tenant.name}/0`, set, looks);
  await tenant.evict();
  await root.change("PATCH", `/v1/tenants/${tenant.name}`, { retention_days });
}
const seqs = async (tenant: Tenant) => (await tenant.records<{ seq: number }>("receipts")).map(({ seq }) => seq).sort((a, b) => a - b);

describe("retention", () => {
  test("deletes what is too old, and the rest verifies from the last that was deleted", async () => {
    const { tenant, token, ids } = await played(6);
    await age(tenant, 4);
    await retain(tenant, 2);
    await eventually("the old receipts are deleted", async () => (await seqs(tenant)).length === 2);
    expect(await seqs(tenant)).toEqual([5, 6]);
    expect((await tenant.records<{ decision_id: string }>("decisions")).map(({ decision_id }) => decision_id).sort()).toEqual(ids.slice(4).sort());
    const events = await tenant.records<{ decision_id: string | null }>("audit_events");
    expect(events.filter(({ decision_id }) => decision_id !== null && ids.slice(0, 4).includes(decision_id))).toEqual([]);
    expect((await gateward.get(tenant.admin, `/v1/decisions/${ids[0]}`)).status).toBe(404);

    expect(await verify(tenant, 5)).toMatchObject({ verified: true, checked: 2, from: 5, begins: "pruned", anchored: "head", pruned_through: 4 });
    expect(await verify(tenant, 1)).toMatchObject({ verified: true, checked: 2, from: 5, begins: "pruned", anchored: "head", pruned_through: 4 });
    expect(await verify(tenant, 1, 3)).toMatchObject({ verified: false, checked: 0, pruned_through: 4, problem: expect.stringContaining("pruned") });
    const [anchor] = await gateward.rows<{ seq: number; receipt_hash: string }>("SELECT seq, receipt_hash FROM receipt_anchors WHERE tenant = ?1", tenant.name);
    const rest = await gateward.receipts(tenant.admin);
    expect(anchor?.seq).toBe(4);
    expect(problemsOf(rest, anchor?.receipt_hash)).toEqual([]);
    // The lane goes on as it was, after an eviction too.
    await tenant.evict();
    expect((await gateward.decide(token, readCall())).receipt?.seq).toBe(7);
    expect(await verify(tenant, 1)).toMatchObject({ verified: true, checked: 3, anchored: "head" });
  });

  test("deletes no chain that was changed", async () => {
    const { tenant } = await played(5);
    await gateward.execute("UPDATE receipts SET body = replace(body, 'allow', 'denyy') WHERE tenant = ?1 AND seq = 2", tenant.name);
    await age(tenant, 5);
    await retain(tenant, 1);
    await eventually("the log says so", async () => gateward.lines().some(({ event, detail }) => event === "prune_failed" && detail?.includes("receipt 2")));
    expect(await seqs(tenant)).toEqual([1, 2, 3, 4, 5]);
    expect(await verify(tenant, 1)).toMatchObject({ verified: false, broken_at: 2, pruned_through: null });
  });

  test("is not feigned by deleting rows: the lane knows what it pruned", async () => {
    const { tenant } = await played(5);
    await gateward.execute("INSERT INTO receipt_anchors (tenant, lane, seq, receipt_hash) SELECT tenant, lane, seq, receipt_hash FROM receipts WHERE tenant = ?1 AND seq = 3", tenant.name);
    await gateward.execute("DELETE FROM receipts WHERE tenant = ?1 AND seq <= 3", tenant.name);
    expect(await verify(tenant, 1)).toMatchObject({ verified: false, broken_at: 1, pruned_through: null });
  });

  test("takes copies of approvals along, open ones excepted", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const ask = () => gateward.decide(token, writeCall({ context: { source_trust: "semi_trusted_customer" } }));
    await ask();
    await ask();
    await tenant.flushed();
    const old = Date.now() - 9 * DAY_MS;
    const first = "approval_id = (SELECT min(approval_id) FROM approvals WHERE tenant = ?1)";
    await gateward.execute(`UPDATE approval_groups SET created_at_ms = ?2 WHERE tenant = ?1 AND ${first}`, tenant.name, old);
    await gateward.execute(`UPDATE approvals SET created_at_ms = ?2, expires_at_ms = ?2 WHERE tenant = ?1 AND ${first}`, tenant.name, old);
    await retain(tenant, 1);
    await eventually("the old approval is deleted", async () => (await tenant.records("approvals")).length === 1);
    expect(await gateward.rows("SELECT approval_id FROM approval_groups WHERE tenant = ?1", tenant.name)).toHaveLength(1);
  });
});

describe("a database without room", () => {
  test("takes no records, and administration all the same", async () => {
    const full = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50, D1_MAX_BYTES: 256_000_001, JOURNAL_SOFT_ROWS: 3, JOURNAL_HARD_ROWS: 3 } });
    try {
      const tenant = await full.tenant();
      const { token } = await tenant.agent();
      for (let at = 0; at < 3; at += 1) await full.decide(token, readCall());
      await eventually("the log says why", async () => full.lines().some(({ detail }) => detail?.includes("D1's database has")));
      expect(await tenant.journal()).toEqual([1, 2, 3]);
      expect(await tenant.records("receipts")).toEqual([]);
      const reply = await full.post<Problem>(token, "/v1/authorize", readCall());
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 503, code: "journal_full" });
      await tenant.api.change("POST", "/v1/agents/coder/freeze");
      expect(await tenant.api.read("/v1/agents/coder")).toMatchObject({ status: "frozen" });
    } finally {
      await full.close();
    }
  });
});
