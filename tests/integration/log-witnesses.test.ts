// Two witnesses of the head log, of which one misbehaves. The cosignatures of the other one are stored and served, and
// nothing stops. The failed one is asked again, even if the log does not grow.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LOG_SECRETS, logSigner } from "../support/exports.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant } from "../support/gateward.ts";
import { LogClient } from "../support/log-client.ts";
import { Note, VerifierKey } from "../support/tlog.ts";
import { type Misbehaviour, Witness } from "../support/witness.ts";

const HEAD_LANE = 65535;
/** Longer than Gateward's time limit for a witness. */
const TOO_SLOW_MS = 6_000;
/** More than the pause before a witness that failed is asked again. */
const HOUR_MS = 3_600_000;

let good: Witness;
let bad: Witness;
let gateward: Gateward;

beforeAll(async () => {
  good = await Witness.start({ name: "good.test", logs: [] });
  bad = await Witness.start({ name: "bad.test", logs: [] });
  const WITNESSES = [bad, good].map(({ url, vkey }) => `${url} ${vkey}`).join(" ");
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 }, secrets: { ...LOG_SECRETS, WITNESSES } });
});
afterEach(async () => {
  bad.behave();
  await gateward.clockIsAhead(0);
});
afterAll(async () => {
  await gateward?.close();
  await Promise.all([good?.stop(), bad?.stop()]);
});

const headOf = ({ name, admin }: Tenant) => {
  const headers = { authorization: `Bearer ${admin}` };
  return new LogClient(new URL(`/v1/log/${name}.head`, gateward.url).href, [logSigner(`${name}.head`).vkey], { headers });
};

/** The newest checkpoint of the head log, as it is served: its size, and which witnesses cosigned it. */
async function served(tenant: Tenant): Promise<{ size: number; by: Witness[] }> {
  const { size, note } = await headOf(tenant).checkpoint();
  const isBy = ({ vkey }: Witness) => new Note(note).signaturesOf([new VerifierKey(vkey)]).length === 1;
  return { size, by: [good, bad].filter(isBy) };
}

/** Waits until the newest checkpoint has all entries of the head log, and is cosigned by these. Returns its size. */
async function cosigned(tenant: Tenant, by: Witness[]): Promise<number> {
  let size = 0;
  await eventually(`${by.length} cosigned the whole head log`, async () => {
    const [row] = await gateward.rows<{ count: number }>("SELECT count(*) AS count FROM receipts WHERE tenant = ?1 AND lane = ?2", tenant.name, HEAD_LANE);
    if (row === undefined || row.count === 0) return false;
    const now = await served(tenant).catch(() => undefined);
    size = row.count;
    return now?.size === size && by.length === now.by.length && by.every((witness) => now.by.includes(witness));
  });
  return size;
}

const failures = ({ name }: Tenant) => gateward.lines().filter(({ event, tenant }) => event === "witness_failed" && tenant === name);

const hasLane = async ({ name }: Tenant) => {
  const rows = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = ?2", name, HEAD_LANE);
  return rows.some(({ body }) => body.includes('"of_lane":0'));
};

describe("a witness that", () => {
  test.each<[string, Misbehaviour, string]>([
    ["cosigns, and whose answer is lost", { kind: "lost" }, ""],
    ["cosigns, and answers too late", { kind: "slow", ms: TOO_SLOW_MS }, ""],
    ["does not answer", { kind: "silent" }, ""],
    ["breaks the connection", { kind: "broken" }, ""],
    ["answers with an error", { kind: "status", status: 500 }, "it answered 500"],
    ["does not know the log", { kind: "status", status: 404 }, "it answered 404"],
    ["always says that it cosigned nothing", { kind: "conflict", size: 0 }, "it does not say which tree it cosigned"],
    ["says that it cosigned a larger tree", { kind: "conflict", size: 1_000_000 }, "it cosigned a tree that the log does not have"],
    ["answers garbage", { kind: "garbage" }, "its cosignature does not hold"],
    ["signs another checkpoint", { kind: "wrong-signature" }, "its cosignature does not hold"],
    ["signs with another key", { kind: "stranger" }, "its cosignature does not hold"],
    ["signs without a time", { kind: "timeless" }, "its cosignature does not hold"],
    ["answers without an end", { kind: "endless" }, "its cosignature does not hold"],
  ])("%s hinders neither the other one nor the log, and is asked again", async (_, how, why) => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    for (const witness of [good, bad]) witness.trust(logSigner(`${tenant.name}.head`).vkey);
    bad.misbehave(how);
    // So that the clock can end the pause after a failure.
    await gateward.clockIsAhead(-HOUR_MS);
    await tenant.api.create("/v1/groups", { group: "auditors" });
    await cosigned(tenant, [good]);
    expect(failures(tenant).length).toBeGreaterThan(0);

    // Lanes go on, and so does the head log.
    await gateward.decide(token, readCall());
    await tenant.flushed();
    await eventually("the head log has the lane", () => hasLane(tenant));
    const size = await cosigned(tenant, [good]);
    for (const { detail } of failures(tenant)) expect(detail).toMatch(new RegExp(`^\`bad\\.test\`: .*${why}`));
    expect(good.latest(logSigner(`${tenant.name}.head`).name)?.size).toBe(size);

    // The same checkpoint, once it can.
    bad.behave();
    await gateward.clockIsAhead(0);
    expect(await cosigned(tenant, [good, bad])).toBe(size);
    await headOf(tenant).mirror();
  });
});

test("a witness has its time, even if the clock is set while it is asked", async () => {
  const tenant = await gateward.tenant();
  for (const witness of [good, bad]) witness.trust(logSigner(`${tenant.name}.head`).vkey);
  const asked = bad.submissions.length;
  bad.misbehave({ kind: "slow", ms: 1_000 }, 1);
  await gateward.clockIsAhead(-HOUR_MS);
  await tenant.api.create("/v1/groups", { group: "auditors" });
  await eventually("the slow one is asked", async () => bad.submissions.length > asked);
  await gateward.clockIsAhead(0);
  await cosigned(tenant, [good, bad]);
  expect(failures(tenant)).toEqual([]);
});
