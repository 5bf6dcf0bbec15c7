// The drill of docs/operations.md, "Restoring D1", step by step: D1 is lost, and a file of an earlier time takes its place.
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Exports, linesOf, LOG_SECRETS, logSigner } from "../support/exports.ts";
import { eventually, Gateward, INSPECTABLE, outcomeOf, readCall, Tenant, type TestAgent } from "../support/gateward.ts";
import { LogClient } from "../support/log-client.ts";
import type { SqlValue } from "../support/miniflare.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { Note, parseTreeHead, verifyConsistency } from "../support/tlog.ts";

const HEAD_LANE = 65535;
/** More than how often a lane tells the head log of its checkpoint. */
const TELL_HEAD_MS = 40_000;
/** Receipts in each lane, before the backup and after it. */
const CALLS = 20;
/** How many of the receipts after the backup a lane of the second tenant no longer has. */
const LOST = 5;
/** More than the 5,000 rows that a lane writes again before it compares once more. */
const MANY = 6_000;
const AT_ONCE = 50;
/** Hashes of a full tile. */
const TILE = 256;
const MANY_LIMIT_MS = 30_000;

const state = mkdtempSync(join(tmpdir(), "gateward-restore-"));
const database = join(state, "d1");
const backup = join(state, "backup");
const exports = new Exports();
let gateward: Gateward;

/** Starts it with a clock that is this far behind. */
const start = (behindMs: number, migrate = false) =>
  Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50, CLOCK_AHEAD_MS: -behindMs }, secrets: LOG_SECRETS, state, migrate });
const reader = ({ name, admin }: Tenant, log = "head") =>
  new LogClient(new URL(`/v1/log/${name}.${log}`, gateward.url).href, [logSigner(`${name}.${log}`).vkey], { headers: { authorization: `Bearer ${admin}` } });

beforeAll(async () => {
  gateward = await start(3 * TELL_HEAD_MS, true);
});
afterAll(async () => {
  await gateward?.close();
  exports.remove();
  rmSync(state, { recursive: true });
});

/** Each agent makes this many calls. Then waits until D1 has everything: receipts, and checkpoints of the lanes. */
async function play(tenant: Tenant, agents: TestAgent[], count: number): Promise<void> {
  const sizes = new Map<number, number>();
  for (const { token, name } of agents) {
    for (let at = 0; at < count; at += 1) {
      const { receipt } = await gateward.decide(token, readCall({ agent: { id: name } }));
      const [, lane = 0, seq = 0] = (receipt?.receipt_id ?? "").split("_").map(Number);
      sizes.set(lane, seq);
    }
  }
  for (const [lane, size] of sizes) await eventually(`lane ${lane} published ${size}`, async () => (await sizeOf(tenant, lane)) >= size);
}

async function sizeOf({ name }: Tenant, lane: number): Promise<number> {
  const [row] = await gateward.rows<{ note: string }>("SELECT note FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2", name, lane);
  return row === undefined ? 0 : parseTreeHead(new Note(row.note).text).size;
}

/** Waits until the head log has each lane's newest checkpoint and has published its own. */
async function headHasLanes(tenant: Tenant, lanes: number[]): Promise<void> {
  await eventually("the head log has the lanes as they are", async () => {
    const rows = await gateward.rows<{ seq: number; body: string }>("SELECT seq, body FROM receipts WHERE tenant = ?1 AND lane = ?2", tenant.name, HEAD_LANE);
    const bodies = rows.map(({ body }) => JSON.parse(body) as { of_lane?: number; checkpoint?: string });
    const newest = (lane: number) => Math.max(0, ...bodies.filter(({ of_lane }) => of_lane === lane).map(({ checkpoint }) => parseTreeHead(new Note(checkpoint ?? "").text).size));
    for (const lane of lanes) if (newest(lane) < (await sizeOf(tenant, lane))) return false;
    // Entries can be lost.
    return (await sizeOf(tenant, HEAD_LANE)) === Math.max(...rows.map(({ seq }) => seq));
  });
}

const linesAbout = (of: Tenant, event: string) => gateward.lines().filter((line) => line.event === event && line.tenant === of.name);

const receiptsOf = ({ name }: Tenant) => gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = 0 ORDER BY seq", name);

async function checkpointOf({ name }: Tenant): Promise<Record<string, SqlValue>> {
  const [row] = await gateward.rows<Record<string, SqlValue>>("SELECT * FROM log_checkpoints WHERE tenant = ?1 AND lane = 0", name);
  if (row === undefined) throw new Error(`lane 0 of ${name} has no checkpoint`);
  return row;
}

/** Makes D1's lane 0 of a tenant what it was when it had this many receipts and this checkpoint. */
async function restore({ name }: Tenant, count: number, checkpoint: Record<string, SqlValue>): Promise<void> {
  for (const table of ["receipts", "decisions"]) await gateward.execute(`DELETE FROM ${table} WHERE tenant = ?1 AND lane = 0 AND seq > ?2`, name, count);
  if (count >= TILE) throw new Error("a restored tile would have to stay");
  await gateward.execute("DELETE FROM log_tiles WHERE tenant = ?1 AND lane = 0", name);
  const columns = Object.keys(checkpoint);
  await gateward.execute(`REPLACE INTO log_checkpoints (${columns.join(", ")}) VALUES (${columns.map((_, at) => `?${at + 1}`).join(", ")})`, ...Object.values(checkpoint));
}

test("after a restore, lanes write again what they have, the log goes on, and what is lost is told by its numbers", async () => {
  let [whole, lossy] = [await gateward.tenant({ lanes: 2 }), await gateward.tenant()];
  const [one, two] = [await whole.agent("one", { lane: 0 }), await whole.agent("two", { lane: 1 })];
  const coder = await lossy.agent();
  const leaked = await whole.api.credential("one");
  await play(whole, [one, two], CALLS);
  await play(lossy, [coder], CALLS);

  // A backup.
  await gateward.close();
  cpSync(database, backup, { recursive: true });
  gateward = await start(2 * TELL_HEAD_MS);
  const again = ({ name, administrator }: Tenant) => new Tenant(gateward, name, administrator);
  [whole, lossy] = [again(whole), again(lossy)];

  // What the restored D1 will lack.
  await play(whole, [one, two], CALLS);
  await play(lossy, [coder], CALLS);
  for (const { api } of [whole, lossy]) await api.create("/v1/groups", { group: "late" });
  await whole.api.change("POST", `/v1/credentials/${leaked.key_id}/revoke`);
  await gateward.clockIsAhead(-TELL_HEAD_MS);
  await headHasLanes(whole, [0, 1]);
  await headHasLanes(lossy, [0]);
  const kept = await reader(whole).checkpoint();
  const all = await whole.records<{ lane: number; seq: number; body: string }>("receipts");
  // As if these had been flushed more than an hour ago.
  await gateward.laneRows(`${lossy.name}/0`, "DELETE FROM journal WHERE seq <= CAST(?1 AS INTEGER)", CALLS + LOST);
  await gateward.laneRows(`${lossy.name}/${HEAD_LANE}`, "DELETE FROM journal WHERE seq < (SELECT max(seq) FROM journal)");
  // Step 1.
  const epochs = await gateward.rows<{ tenant: string; epoch: number }>("SELECT tenant, epoch FROM tenants");

  // D1 is lost. Steps 2 and 3.
  await gateward.close();
  rmSync(database, { recursive: true });
  cpSync(backup, database, { recursive: true });
  gateward = await start(TELL_HEAD_MS);
  [whole, lossy] = [again(whole), again(lossy)];
  const outcome = async (token: string, id: string) => outcomeOf(await gateward.post(token, "/v1/authorize", readCall({ agent: { id } })));
  expect(await outcome(one.token, "one")).toBe("503 registry_unavailable");
  // Step 4.
  for (const { tenant, epoch } of epochs) await gateward.execute("UPDATE tenants SET epoch = CAST(?2 AS INTEGER) WHERE tenant = ?1", tenant, epoch + 1);
  await eventually("the lane answers again", async () => (await outcome(one.token, "one")) === "allow");
  // Step 5.
  expect(await outcome(leaked.token, "one")).toBe("allow");
  await whole.api.change("POST", `/v1/credentials/${leaked.key_id}/revoke`);
  expect(await outcome(leaked.token, "one")).toBe("401 unauthorized");
  await lossy.api.create("/v1/groups", { group: "after" });
  // Step 6.
  await play(whole, [one, two], 1);
  await play(lossy, [coder], 1);
  await gateward.clockIsAhead(0);
  await headHasLanes(whole, [0, 1]);
  await headHasLanes(lossy, [0]);

  // Step 7. Everything that lanes had is in D1 again, and the log continues.
  expect(linesAbout(whole, "log_restored").map(({ lane }) => lane).sort()).toEqual([0, 1, HEAD_LANE]);
  expect(linesAbout(whole, "receipts_lost")).toEqual([]);
  const now = new Map((await whole.records<{ lane: number; seq: number; body: string }>("receipts")).map(({ lane, seq, body }) => [`${lane}.${seq}`, body]));
  expect(all.filter(({ lane, seq, body }) => now.get(`${lane}.${seq}`) !== body)).toEqual([]);
  const checkpoint = await reader(whole).checkpoint();
  const { body: consistency } = await gateward.get<{ proof: string[] }>(whole.admin, `/v1/log/${whole.name}.head/consistency?from=${kept.size}&to=${checkpoint.size}`);
  expect(verifyConsistency(kept, checkpoint, consistency.proof.map((hash) => Buffer.from(hash, "base64")))).toBe(true);
  expect(await exports.gateward(gateward.url, whole.admin, "receipts", "verify")).toMatchObject({ code: 0 });
  const file = await exports.of(gateward.url, whole.admin);
  expect(await exports.verify(file, whole.name)).toMatchObject({ verified: true });
  // Of the registry's changes after the backup, the log has ids and hashes.
  expect(linesOf(file).some((line) => line.type === "event" && line.event === null)).toBe(true);

  // What the lane and the head log of the other tenant no longer had is lost, and everybody says which.
  const said = linesAbout(lossy, "receipts_lost").map(({ lane, detail }) => ({ lane, lost: (detail?.match(/[0-9]+/g) ?? []).map(Number) }));
  expect(said).toHaveLength(2);
  expect(said).toContainEqual({ lane: 0, lost: [CALLS + 1, CALLS + LOST] });
  expect(said.map(({ lane }) => lane)).toContain(HEAD_LANE);
  const report = await exports.verify(await exports.of(gateward.url, lossy.admin), lossy.name);
  expect(report).toMatchObject({ verified: false });
  const faults = report.faults.map(({ fault, log, first_receipt, last_receipt }) => [fault, log, first_receipt, last_receipt]);
  const expected = said.map(({ lane, lost }) => ["missing_receipt", `${lossy.name}.${lane === HEAD_LANE ? "head" : `lane-${lane}`}`, ...lost]);
  expect(faults.sort()).toEqual(expected.sort());
  for (const { lane, lost } of said) {
    const verified = await exports.gateward(gateward.url, lossy.admin, "receipts", "verify", "--lane", `${lane}`);
    expect(verified).toMatchObject({ code: 1, said: expect.stringContaining(`${lost[0]}`) });
  }
});

test("lanes write again what they have without keys for logs too", async () => {
  const unsigned = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  try {
    const tenant = await unsigned.tenant();
    const { token } = await tenant.agent();
    const decide = async (count: number) => {
      for (let at = 0; at < count; at += 1) await unsigned.decide(token, readCall());
      await tenant.flushed();
    };
    await decide(CALLS);
    const bodies = async () => (await tenant.records<{ body: string }>("receipts")).map(({ body }) => body);
    const before = await bodies();
    for (const table of ["receipts", "decisions"]) await unsigned.execute(`DELETE FROM ${table} WHERE tenant = ?1 AND seq > ?2`, tenant.name, CALLS / 2);
    await decide(1);
    expect((await bodies()).slice(0, CALLS)).toEqual(before);
    expect(unsigned.lines().filter(({ event, tenant: of }) => event === "log_restored" && of === tenant.name).map(({ detail }) => detail)).toEqual([`receipts ${CALLS / 2 + 1} to ${CALLS}`]);
  } finally {
    await unsigned.close();
  }
});

test("a lane without calls notices that D1 was restored before it deletes anything, and writes again what it has", async () => {
  const tenant = await gateward.tenant();
  const coder = await tenant.agent();
  const root = await tenant.apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]);
  await play(tenant, [coder], CALLS);
  const [all, checkpoint] = [await receiptsOf(tenant), await checkpointOf(tenant)];
  await play(tenant, [coder], CALLS);
  const more = (await receiptsOf(tenant)).slice(CALLS);
  await restore(tenant, CALLS, checkpoint);
  // Pruning is due once a day, and at once when the retention changes.
  await root.change("PATCH", `/v1/tenants/${tenant.name}`, { retention_days: 30 });
  await eventually("the lane writes what D1 lacks", async () => (await sizeOf(tenant, 0)) === 2 * CALLS);
  expect(await receiptsOf(tenant)).toEqual([...all, ...more]);
  expect(linesAbout(tenant, "log_restored").map(({ detail }) => detail)).toEqual([`receipts ${CALLS + 1} to ${2 * CALLS}`]);
});

test("a lane writes again more rows than it compares at once", { timeout: 180_000 }, async () => {
  const tenant = await gateward.tenant();
  const coder = await tenant.agent("coder", { request_rate: { capacity: MANY, refill_per_s: MANY } });
  await play(tenant, [coder], CALLS);
  const checkpoint = await checkpointOf(tenant);
  for (let left = MANY; left > 0; left -= AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, () => gateward.decide(coder.token, readCall())));
  const all = CALLS + MANY;
  await eventually("everything is published", async () => (await sizeOf(tenant, 0)) === all, MANY_LIMIT_MS);
  await restore(tenant, CALLS, checkpoint);
  await gateward.decide(coder.token, readCall());
  await eventually("the lane writes what D1 lacks", async () => (await sizeOf(tenant, 0)) === all + 1, MANY_LIMIT_MS);
  expect(await gateward.rows("SELECT count(*) AS receipts FROM receipts WHERE tenant = ?1 AND lane = 0", tenant.name)).toEqual([{ receipts: all + 1 }]);
  expect(await gateward.rows("SELECT count(*) AS decisions FROM decisions WHERE tenant = ?1 AND lane = 0", tenant.name)).toEqual([{ decisions: all + 1 }]);
  expect(await gateward.rows("SELECT count(*) AS tiles FROM log_tiles WHERE tenant = ?1 AND lane = 0 AND level = 0", tenant.name)).toEqual([{ tiles: Math.floor((all + 1) / TILE) }]);
  expect(linesAbout(tenant, "receipts_lost")).toEqual([]);
  // Each is as it was: the chain ends where the lane's does, and makes the root that the lane signed.
  expect(await exports.gateward(gateward.url, tenant.admin, "receipts", "verify")).toMatchObject({ code: 0 });
});
