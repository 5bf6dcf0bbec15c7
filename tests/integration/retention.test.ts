// How many records of a tenant are kept, and for how long: daily bounds, and deletion by age.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Problem, Verification } from "../support/api/types.gen.ts";
import { Api } from "../support/administration.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { linked, rewrite } from "../support/tampering.ts";

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
    // The agent can still be stopped. A higher bound applies from then on.
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

/** A tenant with receipts in D1: a number of three days ago, then a number of an hour ago. */
async function played({ old = 0, young }: { old?: number; young: number }): Promise<{ tenant: Tenant; token: string; ids: string[] }> {
  const tenant = await gateward.tenant();
  const { token } = await tenant.agent();
  const ids: string[] = [];
  const decide = async (count: number) => {
    for (let at = 0; at < count; at += 1) ids.push((await gateward.decide(token, readCall())).decision_id);
    await tenant.flushed();
  };
  if (old > 0) await gateward.ago(3 * DAY_MS, () => decide(old));
  // A lane computes the deletion from a time that its clock showed at least an hour ago.
  await gateward.ago(HOUR_MS, () => decide(young));
  return { tenant, token, ids };
}

/** Sets how long records are kept. The lanes then prune at once. */
const retain = (tenant: Tenant, retention_days: number) => root.change("PATCH", `/v1/tenants/${tenant.name}`, { retention_days });

const failedToPrune = (tenant: Tenant) => gateward.lines().find(({ event, tenant: of }) => event === "prune_failed" && of === tenant.name)?.detail;

/** Removes a receipt from D1, and seals the chain again around it: each later one gets the number before. */
async function remove(tenant: Tenant, seq: number): Promise<void> {
  const [before] = await gateward.rows<{ receipt_hash: string }>("SELECT receipt_hash FROM receipts WHERE tenant = ?1 AND seq = ?2", tenant.name, seq - 1);
  await gateward.execute("DELETE FROM receipts WHERE tenant = ?1 AND seq = ?2", tenant.name, seq);
  const renumbered = `UPDATE receipts SET seq = seq - 1, body = replace(body, '"seq":' || seq || ',', '"seq":' || (seq - 1) || ',') WHERE tenant = ?1 AND seq > ?2`;
  await gateward.execute(renumbered, tenant.name, seq);
  await rewrite(gateward, tenant.name, 0, seq, (body) => linked(body, before?.receipt_hash ?? ""));
}

const seqs = async (tenant: Tenant) => (await tenant.records<{ seq: number }>("receipts")).map(({ seq }) => seq).sort((a, b) => a - b);

describe("retention", () => {
  test("deletes what is too old, and the rest verifies from the last that was deleted", async () => {
    const { tenant, token, ids } = await played({ old: 4, young: 2 });
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
    // The lane goes on as before, even after an eviction.
    await tenant.evict();
    expect((await gateward.decide(token, readCall())).receipt?.seq).toBe(7);
    expect(await verify(tenant, 1)).toMatchObject({ verified: true, checked: 3, anchored: "head" });
  });

  test.each<[string, (tenant: Tenant) => Promise<unknown>, string, number]>([
    [
      "was changed",
      (tenant) => gateward.execute("UPDATE receipts SET body = replace(body, 'allow', 'denyy') WHERE tenant = ?1 AND seq = 2", tenant.name),
      "receipt 2 does not verify",
      2,
    ],
    // Only the lane's own tree shows these changes.
    [
      "was changed and sealed again to its end",
      (tenant) => rewrite(gateward, tenant.name, 0, 2, (body) => body.replace('"decision":"allow"', '"decision":"deny"')),
      "receipt 6 does not verify",
      6,
    ],
    ["lacks a receipt and was sealed again around it", (tenant) => remove(tenant, 3), "receipt 6 does not verify", 6],
  ])("deletes no chain that %s", async (_, tamper, detail, broken_at) => {
    const { tenant } = await played({ old: 5, young: 1 });
    await tamper(tenant);
    await retain(tenant, 1);
    await eventually("the log says so", async () => failedToPrune(tenant) !== undefined);
    expect(failedToPrune(tenant)).toContain(detail);
    // In the last case, D1 lacks receipt 6 at first, and the lane writes it again.
    expect(await seqs(tenant)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await verify(tenant, 1)).toMatchObject({ verified: false, broken_at, pruned_through: null });
  });

  test("goes by the time that the lane sealed: a young receipt is kept, whatever its row says", async () => {
    const { tenant, ids } = await played({ old: 2, young: 3 });
    await gateward.execute("UPDATE receipts SET at_ms = 0 WHERE tenant = ?1", tenant.name);
    await retain(tenant, 2);
    await eventually("the old receipts are deleted", async () => !(await seqs(tenant)).includes(2));
    expect(await seqs(tenant)).toEqual([3, 4, 5]);
    expect((await tenant.records<{ decision_id: string }>("decisions")).map(({ decision_id }) => decision_id).sort()).toEqual(ids.slice(2).sort());
    expect(await verify(tenant, 1)).toMatchObject({ verified: true, checked: 3, from: 3, pruned_through: 2 });
  });

  test("is not feigned by deleting rows: the lane knows what it pruned", async () => {
    const { tenant } = await played({ young: 5 });
    await gateward.execute("INSERT INTO receipt_anchors (tenant, lane, seq, receipt_hash) SELECT tenant, lane, seq, receipt_hash FROM receipts WHERE tenant = ?1 AND seq = 3", tenant.name);
    await gateward.execute("DELETE FROM receipts WHERE tenant = ?1 AND seq <= 3", tenant.name);
    expect(await verify(tenant, 1)).toMatchObject({ verified: false, broken_at: 1, pruned_through: null });
  });

  test("takes copies of approvals along, open ones excepted", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const ask = async () => {
      const { approval } = await gateward.decide(token, writeCall({ context: { source_trust: "semi_trusted_customer" } }));
      await tenant.flushed();
      return approval?.approval_id;
    };
    await gateward.ago(9 * DAY_MS, ask);
    const open = await gateward.ago(HOUR_MS, ask);
    await retain(tenant, 1);
    await eventually("the old approval is deleted", async () => (await tenant.records("approvals")).length === 1);
    expect(await gateward.rows("SELECT DISTINCT approval_id FROM approval_groups WHERE tenant = ?1", tenant.name)).toEqual([{ approval_id: open }]);
  });

  test("deletes names of metrics that were not counted for long, and counts them again", async () => {
    const { tenant, token } = await played({ young: 3 });
    const series = () => gateward.rows<{ names: string; count: number }>("SELECT names, count FROM metric_counters WHERE tenant = ?1 AND names <> '[]'", tenant.name);
    const before = await series();
    expect(before.map(({ count }) => count)).toEqual([3, 3]);
    await gateward.execute("UPDATE metric_counters SET counted_day = counted_day - 101 WHERE tenant = ?1", tenant.name);
    await retain(tenant, 30);
    await eventually("they are deleted", async () => (await series()).length === 0);
    await gateward.decide(token, readCall());
    await tenant.flushed();
    expect(await series()).toEqual(before.map(({ names }) => ({ names, count: 1 })));
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
