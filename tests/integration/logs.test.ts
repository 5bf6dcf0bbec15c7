// The transparency logs: what a client that is written against the C2SP texts reads and verifies, what a lane does if
// D1 was changed, and what an independent witness cosigns.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeResponse, Problem, Verification } from "../support/api/types.gen.ts";
import { eventually, Gateward, INSPECTABLE, MAC_KEY, outcomeOf, readCall, type Tenant } from "../support/gateward.ts";
import { LogClient } from "../support/log-client.ts";
import { ED25519, leafHash, Note, parseTreeHead, Signer, VerifierKey, verifyConsistency, verifyInclusion } from "../support/tlog.ts";
import { Witness } from "../support/witness.ts";

const HOST = "gateward.test";
const HEAD_LANE = 65535;
const SEED = Buffer.alloc(32, 7);
const PREVIOUS_SEED = Buffer.alloc(32, 8);

let gateward: Gateward;
let witness: Witness;

const origin = (log: string) => `${HOST}/v1/log/${log}`;
const vkey = (log: string, seed = SEED) => new Signer(origin(log), ED25519, seed).vkey;
const base64 = (text: string) => Buffer.from(text, "base64");

beforeAll(async () => {
  witness = await Witness.start({ name: "witness.test", logs: [] });
  gateward = await Gateward.start({
    entry: INSPECTABLE,
    vars: { FLUSH_INTERVAL_MS: 50 },
    secrets: {
      TOKEN_MAC_KEY: MAC_KEY,
      LOG_KEY: SEED.toString("hex"),
      LOG_KEY_PREVIOUS: PREVIOUS_SEED.toString("hex"),
      LOG_ORIGIN: HOST,
      WITNESSES: `${witness.url} ${witness.vkey}`,
    },
  });
});
afterAll(async () => {
  await gateward?.close();
  await witness?.stop();
});

/** A reader of a log with the administrator's credential, or without one. */
function reader(tenant: Tenant, log: string, token: string | undefined = tenant.admin): LogClient {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return new LogClient(new URL(`/v1/log/${log}`, gateward.url).href, [vkey(log)], { headers });
}

/** An answer that is text. */
async function textOf(path: string, token?: string): Promise<{ status: number; text: string }> {
  const response = await fetch(new URL(path, gateward.url), token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, text: await response.text() };
}

/** Decides this many calls, ten at a time. */
async function decide(token: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 10) {
    const some = Array.from({ length: Math.min(10, count - at) }, () => gateward.decide(token, readCall()));
    expect((await Promise.all(some)).every(({ decision }) => decision === "allow")).toBe(true);
  }
}

async function sizeIs(tenant: Tenant, log: string, size: number): Promise<void> {
  await eventually(`${log} has ${size} entries`, async () => {
    const { status, text } = await textOf(`/v1/log/${log}/checkpoint`, tenant.admin);
    return status === 200 && parseTreeHead(new Note(text).text).size >= size;
  });
}

const bodies = (tenant: Tenant, lane: number) =>
  gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = ?2 ORDER BY seq", tenant.name, lane);

describe("a lane's log", () => {
  test("has each receipt as its entry, in tiles that a client of C2SP's text verifies", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await decide(token, 30);
    const log = `${tenant.name}.lane-0`;
    await sizeIs(tenant, log, 30);
    const older = await reader(tenant, log).checkpoint();
    await decide(token, 300);
    await sizeIs(tenant, log, 330);
    const mirror = await reader(tenant, log).mirror();
    mirror.mustExtend(older);
    expect(mirror.entries.map(String)).toEqual((await bodies(tenant, 0)).map(({ body }) => body));
    // Two keys are valid while they are rotated.
    const note = new Note(mirror.checkpoint.note);
    const keys = [SEED, PREVIOUS_SEED].map((seed) => new VerifierKey(vkey(log, seed)));
    expect(note.signaturesOf(keys)).toHaveLength(2);
    const stated = await textOf(`/v1/log/${log}/keys`, tenant.admin);
    expect(stated.text).toBe(`${vkey(log)}\n${vkey(log, PREVIOUS_SEED)}\n`);
  });

  test("proves that an entry is in it, and that it only grew", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await decide(token, 20);
    const log = `${tenant.name}.lane-0`;
    await sizeIs(tenant, log, 20);
    const older = await reader(tenant, log).checkpoint();
    await decide(token, 280);
    await sizeIs(tenant, log, 300);
    const newer = await reader(tenant, log).checkpoint();
    const entries = (await bodies(tenant, 0)).map(({ body }) => Buffer.from(body));
    for (const index of [0, 1, 255, 256, newer.size - 1]) {
      const reply = await gateward.get<{ leaf_hash: string; proof: string[] }>(tenant.admin, `/v1/log/${log}/inclusion?index=${index}&size=${newer.size}`);
      expect(reply.status).toBe(200);
      const leaf = leafHash(entries[index] ?? Buffer.alloc(0));
      expect(base64(reply.body.leaf_hash)).toEqual(leaf);
      expect(verifyInclusion(index, newer.size, leaf, reply.body.proof.map(base64), newer.root)).toBe(true);
    }
    const reply = await gateward.get<{ proof: string[] }>(tenant.admin, `/v1/log/${log}/consistency?from=${older.size}&to=${newer.size}`);
    expect(verifyConsistency(older, newer, reply.body.proof.map(base64))).toBe(true);
    for (const [query, name] of [["index=300", "index"], ["size=3", "index"], ["index=x", "index"], ["index=1&more=2", "more"]]) {
      const wrong = await gateward.get<Problem>(tenant.admin, `/v1/log/${log}/inclusion?${query}`);
      expect(wrong.body, query).toMatchObject({ code: "malformed_request", detail: expect.stringContaining(`\`${name}\``) });
    }
  });

  test("is read with the scope to read the audit, by its own tenant, or by anybody if the tenant publishes it", async () => {
    const [tenant, other] = [await gateward.tenant(), await gateward.tenant()];
    const { token } = await tenant.agent();
    await decide(token, 1);
    const log = `${tenant.name}.lane-0`;
    await sizeIs(tenant, log, 1);
    const path = `/v1/log/${log}/checkpoint`;
    const statusOf = async (bearer?: string) => (await textOf(path, bearer)).status;
    const without = await tenant.api.administrator("carl", ["registry:read"]);
    expect(await Promise.all([statusOf(), statusOf(token), statusOf(without.token), statusOf(other.admin), statusOf(tenant.admin)])).toEqual([401, 403, 403, 404, 200]);
    await tenant.api.change("PATCH", "/v1/settings", { log_public: true });
    expect((await reader(tenant, log, undefined).mirror()).entries).toHaveLength((await bodies(tenant, 0)).length);
    await tenant.api.change("PATCH", "/v1/settings", { log_public: null });
    expect(await statusOf()).toBe(401);
    for (const unknown of ["tile/0/001", "tile/0/000.p/2", "tile/entries/000", "tile/1/000", "tile/64/000", "tile/0/0"]) {
      const reply = await gateward.get(tenant.admin, `/v1/log/${log}/${unknown}`);
      expect(reply.status, unknown).toBe(404);
    }
    expect((await gateward.get(tenant.admin, `/v1/log/${tenant.name}.lane-7/checkpoint`)).status).toBe(404);
  });

  test("gives the decision that waits for it a checkpoint and a proof", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await decide(token, 3);
    const reply = await gateward.post<AuthorizeResponse>(token, "/v1/authorize", readCall(), { headers: { prefer: "respond-async, Wait = 99" } });
    expect(reply.headers.get("preference-applied")).toBe("wait=10");
    const { log, receipt } = reply.body;
    const note = new Note(log?.checkpoint ?? "");
    const name = `${tenant.name}.lane-0`;
    expect(note.signaturesOf([new VerifierKey(vkey(name))])).toHaveLength(1);
    const head = parseTreeHead(note.text);
    const [{ body } = { body: "" }] = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND seq = ?2 AND lane = 0", tenant.name, receipt?.seq ?? 0);
    const proof = (log?.inclusion.proof ?? []).map(base64);
    expect(verifyInclusion(log?.inclusion.index ?? -1, head.size, leafHash(Buffer.from(body)), proof, head.root)).toBe(true);
    const plain = await gateward.post<AuthorizeResponse>(token, "/v1/authorize", readCall(), { headers: { prefer: "return=minimal; wait=5" } });
    expect([plain.body.log, plain.headers.get("preference-applied")]).toEqual([undefined, null]);
  });
});

describe("a verification", () => {
  test("is anchored to the checkpoint that covers its end, and finds a chain that was sealed anew", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await decide(token, 6);
    await sizeIs(tenant, `${tenant.name}.lane-0`, 6);
    const verify = async (to: number) => (await gateward.post<Verification>(tenant.admin, "/v1/receipts/verify", { lane: 0, from: 1, to })).body;
    expect(await verify(4)).toMatchObject({ verified: true, anchored: "checkpoint" });
    // As if only a key that was removed had signed it.
    const [stored] = await checkpoint(tenant);
    const { text } = new Note(stored?.note ?? "");
    const stale = `${text}\n${new Signer(origin(`${tenant.name}.lane-0`), ED25519, Buffer.alloc(32, 6)).sign(text)}`;
    await setCheckpoint(tenant, { note: stale, leaves: stored?.leaves ?? "" });
    expect(await verify(4)).toMatchObject({ verified: true, anchored: "nothing" });
    expect(await verify(6)).toMatchObject({ verified: true, anchored: "head" });
    await setCheckpoint(tenant, stored);
    // The last of them is changed, with its hash: nothing else in D1 shows it.
    const [row] = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = 0 AND seq = 4", tenant.name);
    const body = row?.body.replace('"decision":"allow"', '"decision":"deny"') ?? "";
    const hash = createHash("sha256").update(body).digest("hex");
    await gateward.rows("UPDATE receipts SET body = ?2, receipt_hash = ?3 WHERE tenant = ?1 AND lane = 0 AND seq = 4", tenant.name, body, hash);
    expect(await verify(4)).toMatchObject({ verified: false, broken_at: 4, anchored: "nothing" });
    expect(await verify(3)).toMatchObject({ verified: true, anchored: "checkpoint" });
  });
});

/** What D1 has of the checkpoint of lane 0. */
type Checkpoint = { note: string; leaves: string };

const checkpoint = ({ name }: Tenant) => gateward.rows<Checkpoint>("SELECT note, leaves FROM log_checkpoints WHERE tenant = ?1 AND lane = 0", name);
const setCheckpoint = ({ name }: Tenant, { note, leaves }: Checkpoint = { note: "", leaves: "" }) =>
  gateward.rows("UPDATE log_checkpoints SET note = ?2, leaves = ?3 WHERE tenant = ?1 AND lane = 0", name, note, leaves);

describe("a lane", () => {
  test("stops if D1 has the checkpoint of another tree, and goes on once its own is there again", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await decide(token, 5);
    const log = `${tenant.name}.lane-0`;
    await sizeIs(tenant, log, 5);
    const [stored] = await checkpoint(tenant);
    const { size } = parseTreeHead(new Note(stored?.note ?? "").text);
    // It is signed with the right key, but not for what the lane decided.
    const text = `${origin(log)}\n${size}\n${Buffer.alloc(32, 1).toString("base64")}\n`;
    const forged = `${text}\n${new Signer(origin(log), ED25519, SEED).sign(text)}`;
    await gateward.rows("UPDATE log_checkpoints SET note = ?2 WHERE tenant = ?1 AND lane = 0", tenant.name, forged);
    const outcome = async () => outcomeOf(await gateward.post(token, "/v1/authorize", readCall()));
    await eventually("the lane stops", async () => (await outcome()) === "503 lane_unavailable");
    expect(gateward.lines().some(({ event, tenant: of }) => event === "log_stopped" && of === tenant.name)).toBe(true);
    await setCheckpoint(tenant, stored);
    await eventually("the lane goes on", async () => (await outcome()) === "allow");
  });

  test("writes again what a restored D1 is missing", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await decide(token, 260);
    const log = `${tenant.name}.lane-0`;
    await sizeIs(tenant, log, 260);
    const before = await bodies(tenant, 0);
    const [old] = await checkpoint(tenant);
    await decide(token, 40);
    await sizeIs(tenant, log, 300);
    const all = await bodies(tenant, 0);
    // As D1 was before: its rows, its checkpoint and its tiles.
    await gateward.rows("DELETE FROM receipts WHERE tenant = ?1 AND lane = 0 AND seq > ?2", tenant.name, before.length);
    await gateward.rows("DELETE FROM decisions WHERE tenant = ?1 AND lane = 0 AND seq > ?2", tenant.name, before.length);
    await setCheckpoint(tenant, old);
    await gateward.rows("UPDATE lane_flushes SET seq = ?2 WHERE tenant = ?1 AND lane = 0", tenant.name, before.length);
    await decide(token, 1);
    await sizeIs(tenant, log, all.length + 1);
    const mirror = await reader(tenant, log).mirror();
    expect(mirror.entries.slice(0, all.length).map(String)).toEqual(all.map(({ body }) => body));
    expect(gateward.lines().some(({ event, tenant: of }) => event === "log_restored" && of === tenant.name)).toBe(true);
    expect(gateward.lines().some(({ event, tenant: of }) => event === "receipts_lost" && of === tenant.name)).toBe(false);
  });

  test("tells which receipts a restored D1 lost, and the log shows that they were there", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await decide(token, 20);
    const log = `${tenant.name}.lane-0`;
    await sizeIs(tenant, log, 20);
    const [old] = await checkpoint(tenant);
    await decide(token, 30);
    await sizeIs(tenant, log, 50);
    const { size } = parseTreeHead(new Note(old?.note ?? "").text);
    await gateward.rows("DELETE FROM receipts WHERE tenant = ?1 AND lane = 0 AND seq > ?2", tenant.name, size);
    await setCheckpoint(tenant, old);
    // As if they had been flushed long ago.
    await gateward.laneRows(`${tenant.name}/0`, "DELETE FROM journal WHERE seq <= ?1", size + 10);
    await decide(token, 1);
    await sizeIs(tenant, log, 51);
    const lost = gateward.lines().find(({ event, tenant: of }) => event === "receipts_lost" && of === tenant.name);
    expect(lost?.detail).toBe(`receipts ${size + 1} to ${size + 10}`);
    const mirror = await reader(tenant, log).mirror({ withGaps: true });
    expect(mirror.root()).toEqual(mirror.checkpoint.root);
    expect(mirror.absent.some((path) => path.startsWith("tile/entries/"))).toBe(true);
  });
});

describe("the head log", () => {
  test("has the lanes' checkpoints and the registry's events, and a witness cosigns it", async () => {
    const tenant = await gateward.tenant();
    const head = `${tenant.name}.head`;
    witness.trust(vkey(head));
    const lanes = [await tenant.agent("one", { lane: 0 }), await tenant.agent("two", { lane: 1 })];
    for (const { token, name } of lanes) await gateward.decide(token, readCall({ agent: { id: name } }));
    await tenant.api.change("POST", "/v1/groups", { group: "auditors" });
    type Entry = { kind: string; of_lane?: number; checkpoint?: string; event_id?: string; event_hash?: string };
    const entries = async () => (await bodies(tenant, HEAD_LANE)).map(({ body }) => JSON.parse(body) as Entry);
    await eventually("the head log has both lanes and the change", async () => {
      const all = await entries();
      const of = (lane: number) => all.some(({ of_lane }) => of_lane === lane);
      return of(0) && of(1) && all.some(({ kind }) => kind === "registry_event");
    });
    for (const { checkpoint, of_lane } of await entries()) {
      if (checkpoint === undefined) continue;
      const note = new Note(checkpoint);
      expect(note.signaturesOf([new VerifierKey(vkey(`${tenant.name}.lane-${of_lane}`))])).toHaveLength(1);
    }
    const event = (await entries()).findLast(({ kind }) => kind === "registry_event");
    const [row] = await gateward.rows<{ at_ms: number; detail: string; event_id: string; kind: string; source: string }>(
      "SELECT at_ms, detail, event_id, kind, source FROM audit_events WHERE tenant = ?1 AND event_id = ?2",
      tenant.name,
      event?.event_id ?? "",
    );
    const sorted = (value: unknown): unknown =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sorted(member)]))
        : Array.isArray(value)
          ? value.map(sorted)
          : value;
    const canonical = JSON.stringify(sorted({ ...row, detail: JSON.parse(row?.detail ?? "") }));
    expect(event?.event_hash).toBe(createHash("sha256").update(canonical).digest("hex"));

    const key = new VerifierKey(witness.vkey);
    await eventually("the witness cosigned the newest checkpoint", async () => {
      const { note } = await reader(tenant, head).checkpoint();
      return new Note(note).signaturesOf([key]).length === 1;
    });
    await reader(tenant, head).mirror();
    // A witness that misbehaves delays nothing, and the next checkpoint is cosigned again.
    witness.misbehave({ kind: "garbage" });
    await tenant.api.change("POST", "/v1/groups", { group: "second" });
    const count = (await entries()).length;
    await eventually("its answer was refused", async () => gateward.lines().some(({ event, tenant: of }) => event === "witness_failed" && of === tenant.name));
    witness.behave();
    await tenant.api.change("POST", "/v1/groups", { group: "third" });
    await eventually("it cosigns again", async () => {
      const checkpoint = await reader(tenant, head).checkpoint();
      return checkpoint.size > count && new Note(checkpoint.note).signaturesOf([key]).length === 1;
    });
  });

  test("takes a change of the registry that it could not read at first, without anything else that happens", async () => {
    const tenant = await gateward.tenant();
    const failed = () => gateward.lines().some(({ event, tenant: of }) => event === "head_log_not_told" && of === tenant.name);
    const events = async () => (await bodies(tenant, HEAD_LANE)).map(({ body }) => (JSON.parse(body) as { event_id?: string }).event_id);
    await tenant.api.change("POST", "/v1/groups", { group: "first" });
    await eventually("the head log has begun", async () => (await events()).length > 0);
    // A time that no reader accepts.
    const broken = "UPDATE audit_events SET at_ms = -at_ms WHERE tenant = NEW.tenant AND event_id = NEW.event_id";
    await gateward.execute(`CREATE TRIGGER unreadable AFTER INSERT ON audit_events WHEN NEW.tenant = '${tenant.name}' BEGIN ${broken}; END`);
    await tenant.api.change("POST", "/v1/groups", { group: "auditors" });
    await eventually("the head log cannot read it", async () => failed());
    await gateward.execute("DROP TRIGGER unreadable");
    const [event] = await gateward.rows<{ event_id: string }>(
      "UPDATE audit_events SET at_ms = -at_ms WHERE tenant = ?1 AND at_ms < 0 RETURNING event_id",
      tenant.name,
    );
    await eventually("the head log has it", async () => (await events()).includes(event?.event_id));
  });

  test("is always served with cosignatures while it grows, and a witness that failed is asked again when it does not", async () => {
    const tenant = await gateward.tenant();
    const head = `${tenant.name}.head`;
    witness.trust(vkey(head));
    const key = new VerifierKey(witness.vkey);
    const served = async () => {
      const { note, size } = await reader(tenant, head).checkpoint();
      return { size, isCosigned: new Note(note).signaturesOf([key]).length === 1 };
    };
    const grow = (name: string) => tenant.api.change("POST", "/v1/groups", { group: name });
    await grow("first");
    await eventually("it is cosigned", async () => (await served().catch(() => undefined))?.isCosigned === true);
    witness.misbehave({ kind: "slow", ms: 200 });
    const growing = (async () => {
      for (let at = 0; at < 10; at += 1) await grow(`g-${at}`);
    })();
    const sizes: number[] = [];
    let isGrowing = true;
    void growing.finally(() => {
      isGrowing = false;
    });
    while (isGrowing) {
      const { size, isCosigned } = await served();
      expect(isCosigned, `of the size ${size}`).toBe(true);
      sizes.push(size);
    }
    await growing;
    expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
    witness.behave();
    await eventually("all of it is cosigned", async () => (await served()).size >= 11 && (await served()).isCosigned);

    witness.misbehave({ kind: "garbage" });
    await grow("last");
    await eventually("the last one has no cosignature", async () => !(await served()).isCosigned);
    const { size } = await served();
    witness.behave();
    await eventually("it has one", async () => (await served()).isCosigned, 60_000);
    expect((await served()).size).toBe(size);
  }, 90_000);
});
