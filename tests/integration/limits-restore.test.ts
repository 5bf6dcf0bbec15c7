// The use of limits survives a deploy, and the drill of docs/operations.md, "Restoring D1": lanes and counters store it,
// and D1 does not.
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Limit, SubjectKind } from "../support/api/types.gen.ts";
import { LOG_SECRETS } from "../support/exports.ts";
import { eventually, Gateward, INSPECTABLE, outcomeOf, readCall, Tenant, type TestAgent, type Vars } from "../support/gateward.ts";
import type { SqlValue } from "../support/miniflare.ts";

const state = mkdtempSync(join(tmpdir(), "gateward-limits-restore-"));
const database = join(state, "d1");
const backup = join(state, "backup");
let gateward: Gateward;

const start = (migrate = false, vars: Vars = {}) =>
  Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50, ...vars }, secrets: LOG_SECRETS, state, migrate });

beforeAll(async () => {
  gateward = await start(true);
});
afterAll(async () => {
  await gateward?.close();
  rmSync(state, { recursive: true });
});

const ask = ({ token, name }: TestAgent) => gateward.decide(token, readCall({ agent: { id: name } }));

async function expectAllowed(agents: TestAgent[], times: number): Promise<void> {
  for (const agent of agents) for (let at = 0; at < times; at += 1) expect((await ask(agent)).decision).toBe("allow");
}

function quota({ api }: Tenant, limit_id: string, subject_kind: SubjectKind, subject: string, max: string): Promise<Limit> {
  return api.create<Limit>("/v1/limits", { limit_id, subject_kind, subject, rule: { kind: "quota", max, window: "month" } });
}

test("the quotas of an agent and of a tenant keep their counts when a worker with other settings is deployed", async () => {
  const tenant = await gateward.tenant({ lanes: 2 });
  const [one, two] = [await tenant.agent("one", { lane: 0 }), await tenant.agent("two", { lane: 1 })];
  await quota(tenant, "own", "agent", "one", "3");
  await quota(tenant, "shared", "tenant", "*", "5");
  await expectAllowed([one, two], 2);
  await gateward.close();
  gateward = await start(false, { RATE_CAPACITY: 50 });
  await expectAllowed([one], 1);
  const { headers, body } = await gateward.post(one.token, "/v1/authorize", readCall({ agent: { id: "one" } }));
  expect(headers.get("ratelimit-policy")).toMatch(/^"agent";q=50;/);
  expect(body).toMatchObject({ reason_code: "quota_exhausted", violated_limits: [{ limit_id: "own", max: "3", remaining: "0" }] });
  expect(await ask(two)).toMatchObject({ reason_code: "quota_exhausted", violated_limits: [{ limit_id: "shared", max: "5", remaining: "0" }] });
});

test("the quotas of an agent and of a tenant keep their counts when D1 is restored to an earlier time", async () => {
  const tenant = await gateward.tenant({ lanes: 2 });
  const [one, two] = [await tenant.agent("one", { lane: 0 }), await tenant.agent("two", { lane: 1 })];
  await quota(tenant, "own", "agent", "one", "5");
  await quota(tenant, "shared", "tenant", "*", "9");
  await expectAllowed([one, two], 2);
  for (const lane of [0, 1]) await tenant.flushed(lane);

  // A backup.
  await gateward.close();
  cpSync(database, backup, { recursive: true });
  gateward = await start();

  // What the restored D1 lacks.
  const { name, administrator } = tenant;
  const { api } = new Tenant(gateward, name, administrator);
  await api.change("PATCH", "/v1/limits/shared", { rule: { max: "8" } });
  const late = { limit_id: "late", subject_kind: "tenant", subject: "*", rule: { kind: "quota", max: "4", window: "month" } };
  await api.create<Limit>("/v1/limits", late);
  await expectAllowed([one], 2);
  // Step 1.
  const [{ epoch } = { epoch: 0 }] = await gateward.rows<{ epoch: number }>("SELECT epoch FROM tenants WHERE tenant = ?1", name);
  const [created = {}] = await gateward.rows<Record<string, SqlValue>>("SELECT * FROM limits WHERE tenant = ?1 AND limit_id = 'late'", name);

  // D1 is lost and restored.
  await gateward.close();
  rmSync(database, { recursive: true });
  cpSync(backup, database, { recursive: true });
  gateward = await start();
  // Step 4.
  const columns = Object.keys(created);
  await gateward.execute(`INSERT INTO limits (${columns.join(", ")}) VALUES (${columns.map((_, at) => `?${at + 1}`).join(", ")})`, ...Object.values(created));
  await gateward.execute("UPDATE limits SET revision = CAST(?2 AS INTEGER) WHERE tenant = ?1", name, epoch + 1);
  await gateward.execute("UPDATE tenants SET epoch = CAST(?2 AS INTEGER) WHERE tenant = ?1", name, epoch + 1);
  for (const { token, name: id } of [one, two]) {
    // A dry run uses nothing.
    const dry = readCall({ agent: { id }, dry_run: true });
    await eventually(`the lane of ${id} answers again`, async () => outcomeOf(await gateward.post(token, "/v1/authorize", dry)) === "allow");
  }

  // Two of the four calls under the limit that was created after the backup were made before the restore.
  await expectAllowed([one], 1);
  expect(await ask(one)).toMatchObject({ reason_code: "quota_exhausted", violated_limits: [{ limit_id: "own", max: "5", remaining: "0" }] });
  await expectAllowed([two], 1);
  expect(await ask(two)).toMatchObject({ reason_code: "quota_exhausted", violated_limits: [{ limit_id: "late", max: "4", remaining: "0" }] });
  // The restored limit is the one before the change: 9.
  await new Tenant(gateward, name, administrator).api.change("DELETE", "/v1/limits/late");
  await expectAllowed([two], 1);
  expect(await ask(two)).toMatchObject({ reason_code: "quota_exhausted", violated_limits: [{ limit_id: "shared", max: "9", remaining: "0" }] });
});
