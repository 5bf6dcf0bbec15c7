// Receipts that a lane deletes because of their age stay in its log's tree. The head log says up to where they are gone,
// so nobody else can delete receipts and call it retention.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Api } from "../support/administration.ts";
import { Exports, linesOf, LOG_SECRETS, logSigner } from "../support/exports.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant } from "../support/gateward.ts";
import { LogClient } from "../support/log-client.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { Note, parseTreeHead, verifyConsistency } from "../support/tlog.ts";

const HEAD_LANE = 65535;
const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;
/** More than a tile has. */
const OLD = 300;
const YOUNG = 20;

let gateward: Gateward;
let exports: Exports;
let root: Api;

beforeAll(async () => {
  exports = new Exports();
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 }, secrets: LOG_SECRETS });
  root = await (await gateward.tenant()).apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]);
});
afterAll(async () => {
  await gateward?.close();
  exports?.remove();
});

const reader = ({ name, admin }: Tenant) =>
  new LogClient(new URL(`/v1/log/${name}.lane-0`, gateward.url).href, [logSigner(`${name}.lane-0`).vkey], { headers: { authorization: `Bearer ${admin}` } });

async function decide(tenant: Tenant, token: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 10) await Promise.all(Array.from({ length: 10 }, () => gateward.decide(token, readCall())));
  await tenant.flushed();
}

/** Up to where the head log says that lane 0 deleted receipts, and the size of the tree that it then has. */
async function toldTo({ name }: Tenant): Promise<{ pruned_through: number; size: number } | undefined> {
  const rows = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = ?2 ORDER BY seq", name, HEAD_LANE);
  const last = rows.map(({ body }) => JSON.parse(body) as { of_lane?: number; pruned_through?: number; checkpoint?: string }).findLast(({ of_lane }) => of_lane === 0);
  return last && { pruned_through: last.pruned_through ?? 0, size: parseTreeHead(new Note(last.checkpoint ?? "").text).size };
}

test("deleted receipts stay in the tree, the rest verifies, and nobody can feign a deletion", async () => {
  const tenant = await gateward.tenant();
  const { token } = await tenant.agent();
  await gateward.clockIsAhead(-3 * DAY_MS);
  await decide(tenant, token, OLD);
  await gateward.clockIsAhead(-HOUR_MS);
  await decide(tenant, token, YOUNG);
  await gateward.clockIsAhead(0);
  await eventually("the lane published all", async () => (await reader(tenant).checkpoint().catch(() => ({ size: 0 }))).size === OLD + YOUNG);
  const before = await reader(tenant).checkpoint();
  await root.change("PATCH", `/v1/tenants/${tenant.name}`, { retention_days: 2 });
  const first = async () => (await gateward.rows<{ first: number }>("SELECT min(seq) AS first FROM receipts WHERE tenant = ?1 AND lane = 0", tenant.name))[0]?.first;
  await eventually("the old receipts are deleted", async () => (await first()) === OLD + 1);
  await eventually("the head log says so, and is published", async () => {
    const [row] = await gateward.rows<{ note: string; count: number }>(
      "SELECT note, (SELECT count(*) FROM receipts WHERE tenant = ?1 AND lane = ?2) AS count FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2",
      tenant.name,
      HEAD_LANE,
    );
    return (await toldTo(tenant))?.pruned_through === OLD && parseTreeHead(new Note(row?.note ?? "").text).size === row?.count;
  });

  // The tree goes on behind the deletion.
  await decide(tenant, token, 10);
  await eventually("the lane published more", async () => (await reader(tenant).checkpoint()).size === OLD + YOUNG + 10);
  const after = await reader(tenant).checkpoint();
  const { body } = await gateward.get<{ proof: string[] }>(tenant.admin, `/v1/log/${tenant.name}.lane-0/consistency?from=${before.size}&to=${after.size}`);
  expect(verifyConsistency(before, after, body.proof.map((hash) => Buffer.from(hash, "base64")))).toBe(true);
  const file = await exports.of(gateward.url, tenant.admin);
  expect(linesOf(file).find((line) => line.type === "log" && line.log.endsWith("lane-0"))).toMatchObject({ begin: OLD });
  const report = await exports.verify(file, tenant.name);
  expect(report).toMatchObject({ verified: true, logs: [{ first_receipt: OLD + 1 }, {}] });

  await gateward.execute("DELETE FROM receipts WHERE tenant = ?1 AND lane = 0 AND seq <= ?2", tenant.name, OLD + 5);
  const feigned = await exports.verify(await exports.of(gateward.url, tenant.admin), tenant.name);
  expect(feigned.faults).toEqual([expect.objectContaining({ fault: "missing_receipt", first_receipt: OLD + 1, last_receipt: OLD + 5 })]);
});
