// The rotation of docs/operations.md, "Keys of the logs", step by step: the old key, both, and only the new one. A lane that
// stays quiet keeps a checkpoint that only the old key signed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Verification } from "../support/api/types.gen.ts";
import { Exports, linesOf, LOG_SECRETS, logSigner } from "../support/exports.ts";
import { eventually, Gateward, INSPECTABLE, readCall, Tenant, type TestAgent } from "../support/gateward.ts";
import { LogClient } from "../support/log-client.ts";
import { Note, parseTreeHead, VerifierKey, verifyConsistency } from "../support/tlog.ts";
import { Witness } from "../support/witness.ts";

const HEAD_LANE = 65535;
const [BUSY, QUIET] = [0, 1];
/** More than how often a lane tells the head log of its checkpoint. */
const TELL_HEAD_MS = 40_000;
/** Calls in each phase. */
const CALLS = 5;
const OLD_SEED = Buffer.alloc(32, 8);
const OLD = { ...LOG_SECRETS, LOG_KEY: OLD_SEED.toString("hex") };
const BOTH = { ...LOG_SECRETS, LOG_KEY_PREVIOUS: OLD_SEED.toString("hex") };
const NEW = LOG_SECRETS;

const state = mkdtempSync(join(tmpdir(), "gateward-rotation-"));
const exports = new Exports();
let witness: Witness;
let gateward: Gateward;

/** Starts it with these keys, and with a clock that is this far behind. */
const start = (secrets: Record<string, string>, behindMs: number, migrate = false) =>
  Gateward.start({
    entry: INSPECTABLE,
    vars: { FLUSH_INTERVAL_MS: 50, CLOCK_AHEAD_MS: -behindMs },
    secrets: { ...secrets, WITNESSES: `${witness.url} ${witness.vkey}` },
    state,
    migrate,
  });

beforeAll(async () => {
  witness = await Witness.start({ name: "witness.test", logs: [] });
  gateward = await start(OLD, 6 * TELL_HEAD_MS, true);
});
afterAll(async () => {
  await gateward?.close();
  await witness?.stop();
  exports.remove();
  rmSync(state, { recursive: true });
});

/** What D1 has of a log's checkpoint. */
async function stored({ name }: Tenant, lane: number): Promise<{ size: number; note: Note; cosignatures: string }> {
  const [row] = await gateward.rows<{ note: string; cosignatures: string }>("SELECT note, cosignatures FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2", name, lane);
  const note = new Note(row?.note ?? "");
  return { size: parseTreeHead(note.text).size, note, cosignatures: row?.cosignatures ?? "" };
}

/**
 * Has the agents call, and sets the clock. Then waits until the head log has the newest checkpoints of their lanes, and
 * the witness cosigned it.
 */
async function play(tenant: Tenant, agents: TestAgent[], thenBehindMs: number): Promise<void> {
  const sizes = new Map<number, number>();
  for (const { token, name } of agents) {
    for (let at = 0; at < CALLS; at += 1) {
      const { receipt } = await gateward.decide(token, readCall({ agent: { id: name } }));
      sizes.set(receipt?.lane ?? 0, receipt?.seq ?? 0);
    }
  }
  await gateward.clockIsAhead(-thenBehindMs);
  await eventually("the head log has the lanes as they are, with a cosignature", async () => {
    const rows = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = ?2", tenant.name, HEAD_LANE);
    const bodies = rows.map(({ body }) => JSON.parse(body) as { of_lane?: number; checkpoint?: string });
    const has = (lane: number, size: number) =>
      bodies.some(({ of_lane, checkpoint }) => of_lane === lane && parseTreeHead(new Note(checkpoint ?? "").text).size === size);
    if (![...sizes].every(([lane, size]) => has(lane, size))) return false;
    const head = await stored(tenant, HEAD_LANE);
    return head.size === rows.length && head.cosignatures !== "";
  });
}

test("while the key is rotated each note has both signatures, and an export is verified with both keys", async () => {
  let tenant = await gateward.tenant({ lanes: 2 });
  const [busy, quiet] = [await tenant.agent("busy", { lane: BUSY }), await tenant.agent("quiet", { lane: QUIET })];
  const nameOf = (lane: number) => (lane === HEAD_LANE ? `${tenant.name}.head` : `${tenant.name}.lane-${lane}`);
  const [oldKey, newKey] = [(lane: number) => logSigner(nameOf(lane), OLD_SEED).vkey, (lane: number) => logSigner(nameOf(lane)).vkey];
  /** Which of the keys signed a log's checkpoint. */
  const signedBy = async (lane: number) => {
    const { note } = await stored(tenant, lane);
    const keys = Object.entries({ old: oldKey(lane), new: newKey(lane) });
    return keys.filter(([, vkey]) => note.signaturesOf([new VerifierKey(vkey)]).length === 1).map(([key]) => key);
  };
  const stated = async () => {
    const headers = { authorization: `Bearer ${tenant.admin}` };
    return (await (await fetch(new URL(`/v1/log/${nameOf(QUIET)}/keys`, gateward.url), { headers })).text()).trim().split("\n");
  };
  const verify = async (lane: number, range: { from: number; to?: number } = { from: 1 }) =>
    (await gateward.post<Verification>(tenant.admin, "/v1/receipts/verify", { lane, ...range })).body;
  const reader = (lane: number, ...vkeys: string[]) =>
    new LogClient(new URL(`/v1/log/${nameOf(lane)}`, gateward.url).href, vkeys, { headers: { authorization: `Bearer ${tenant.admin}` } });
  const restart = async (secrets: Record<string, string>, behindMs: number) => {
    await gateward.close();
    gateward = await start(secrets, behindMs);
    tenant = new Tenant(gateward, tenant.name, tenant.administrator);
  };

  // Only the old key.
  witness.trust(oldKey(HEAD_LANE));
  await play(tenant, [busy, quiet], 5 * TELL_HEAD_MS);
  expect(await stated()).toEqual([oldKey(QUIET)]);
  const kept = await reader(HEAD_LANE, oldKey(HEAD_LANE)).checkpoint();

  // Step 1, and step 2: the witness gets the new key. The old one still verifies everything.
  await restart(BOTH, 4 * TELL_HEAD_MS);
  witness.trust(newKey(HEAD_LANE));
  await play(tenant, [busy], 3 * TELL_HEAD_MS);
  expect(await stated()).toEqual([newKey(QUIET), oldKey(QUIET)]);
  expect(await Promise.all([BUSY, QUIET, HEAD_LANE].map(signedBy))).toEqual([["old", "new"], ["old"], ["old", "new"]]);
  expect(await verify(QUIET)).toMatchObject({ verified: true, anchored: "checkpoint" });
  await reader(BUSY, oldKey(BUSY)).mirror();
  await reader(BUSY, newKey(BUSY)).mirror();

  // Step 4. The quiet lane made no call meanwhile.
  await restart(NEW, 2 * TELL_HEAD_MS);
  await play(tenant, [busy], TELL_HEAD_MS);
  expect(await stated()).toEqual([newKey(QUIET)]);
  expect(await Promise.all([BUSY, QUIET, HEAD_LANE].map(signedBy))).toEqual([["new"], ["old"], ["new"]]);
  // Its receipts have not changed, but the keys that the worker now has do not verify its
  // checkpoint.
  expect(await verify(BUSY)).toMatchObject({ verified: true, anchored: "checkpoint" });
  expect(await verify(QUIET)).toMatchObject({ verified: true, complete: true, anchored: "head" });
  expect(await verify(QUIET, { from: 1, to: CALLS - 1 })).toMatchObject({ verified: true, complete: true, anchored: "nothing" });
  await expect(reader(QUIET, ...(await stated())).checkpoint()).rejects.toThrow("no signature of the log's keys");
  await reader(QUIET, oldKey(QUIET)).mirror();

  // The head log is one log over all of it, and its export has notes of each kind.
  const now = await reader(HEAD_LANE, newKey(HEAD_LANE)).checkpoint();
  const { body } = await gateward.get<{ proof: string[] }>(tenant.admin, `/v1/log/${nameOf(HEAD_LANE)}/consistency?from=${kept.size}&to=${now.size}`);
  expect(verifyConsistency(kept, now, body.proof.map((hash) => Buffer.from(hash, "base64")))).toBe(true);
  const file = await exports.of(gateward.url, tenant.admin);
  const both = ["--key", oldKey(HEAD_LANE), "--witness", witness.vkey];
  expect(await exports.verify(file, tenant.name, ...both)).toMatchObject({ verified: true, faults: [] });
  // The first note that only the old key signed.
  const at = linesOf(file).findIndex((line) => line.type === "entry" && line.body.includes('"kind":"lane_checkpoint"'));
  const withNew = await exports.verify(file, tenant.name);
  expect(withNew.faults[0]).toMatchObject({ fault: "invalid_checkpoint", log: nameOf(HEAD_LANE), line: at + 1 });
  if (withNew.other !== undefined) expect(withNew.other).toContain(`line ${at + 1}: `);

  // A call in the lane ends it.
  await play(tenant, [quiet], 0);
  expect(await signedBy(QUIET)).toEqual(["new"]);
  expect(await verify(QUIET)).toMatchObject({ verified: true, anchored: "checkpoint" });
  expect(gateward.lines().filter(({ event }) => event === "log_stopped" || event === "witness_failed")).toEqual([]);
});
