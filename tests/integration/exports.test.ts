// An export of a real history, verified by two programs that share no code, and by both again after somebody changed D1
// or the export.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Exports, linesOf, LOG_SECRETS, logSigner } from "../support/exports.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant } from "../support/gateward.ts";
import { Forgery, rewrite } from "../support/tampering.ts";
import { COSIGNATURE, Note, parseTreeHead, Signer } from "../support/tlog.ts";
import { Witness } from "../support/witness.ts";

const HEAD_LANE = 65535;
const FORGER = Buffer.alloc(32, 1);
/** More than how often a lane tells the head log of its checkpoint. */
const TELL_HEAD_MS = 40_000;

let gateward: Gateward;
let witness: Witness;
let tenant: Tenant;
let other: Tenant;
let exports: Exports;

const log = (lane: number, of = tenant) => `${of.name}.lane-${lane}`;
const head = (of = tenant) => `${of.name}.head`;

beforeAll(async () => {
  exports = new Exports();
  witness = await Witness.start({ name: "witness.test", logs: [] });
  gateward = await Gateward.start({
    entry: INSPECTABLE,
    vars: { FLUSH_INTERVAL_MS: 50 },
    secrets: { ...LOG_SECRETS, WITNESSES: `${witness.url} ${witness.vkey}` },
  });
  tenant = await played();
  other = await played();
});
afterAll(async () => {
  await gateward?.close();
  await witness?.stop();
  exports?.remove();
});

/** A tenant with changes of its registry and 30 receipts in each of two lanes. Its head log has two checkpoints of each. */
async function played(): Promise<Tenant> {
  const tenant = await gateward.tenant({ lanes: 2 });
  witness.trust(logSigner(head(tenant)).vkey);
  await tenant.api.change("POST", "/v1/groups", { group: "auditors" });
  const agents = [await tenant.agent("one", { lane: 0 }), await tenant.agent("two", { lane: 1 })];
  const decide = async (count: number) => {
    for (const { token, name } of agents) {
      for (let at = 0; at < count; at += 1) await gateward.decide(token, readCall({ agent: { id: name } }));
      await tenant.flushed(agents.findIndex((agent) => agent.name === name));
    }
  };
  await gateward.clockIsAhead(-2 * TELL_HEAD_MS);
  await decide(20);
  await eventually("the head log has both lanes", async () => (await sizesIn(tenant, 0)).length > 0 && (await sizesIn(tenant, 1)).length > 0);
  await gateward.clockIsAhead(-TELL_HEAD_MS);
  await decide(10);
  await gateward.clockIsAhead(0);
  await eventually("the head log has both lanes as they are", async () => (await sizesIn(tenant, 0)).includes(30) && (await sizesIn(tenant, 1)).includes(30));
  await tenant.flushed(HEAD_LANE);
  await eventually("the witness cosigned the head log", async () => {
    const [row] = await gateward.rows<{ note: string; cosignatures: string }>("SELECT note, cosignatures FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2", tenant.name, HEAD_LANE);
    const [count] = await gateward.rows<{ count: number }>("SELECT count(*) AS count FROM receipts WHERE tenant = ?1 AND lane = ?2", tenant.name, HEAD_LANE);
    return row !== undefined && row.cosignatures !== "" && parseTreeHead(new Note(row.note).text).size === count?.count;
  });
  return tenant;
}

/** The sizes of a lane's checkpoints in the head log. */
async function sizesIn({ name }: Tenant, lane: number): Promise<number[]> {
  const rows = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = ?2 ORDER BY seq", name, HEAD_LANE);
  const bodies = rows.map(({ body }) => JSON.parse(body) as { of_lane?: number; checkpoint?: string });
  return bodies.flatMap(({ of_lane, checkpoint }) => (of_lane === lane ? [parseTreeHead(new Note(checkpoint ?? "").text).size] : []));
}

const exportTo = (file: string, token = tenant.admin) => exports.to(file, gateward.url, token);
const exported = (of = tenant) => exports.of(gateward.url, of.admin);
const verified = (file: string, ...options: string[]) => exports.verify(file, tenant.name, ...options);

test("an export verifies without the worker, with the key of the head log and the witness's", async () => {
  const file = await exported();
  const report = await verified(file, "--witness", witness.vkey);
  expect(report).toMatchObject({ verified: true, faults: [], cosignatures: [expect.anything()] });
  expect(report.logs.map(({ log, receipts }) => [log, receipts])).toEqual([
    [log(0), 30],
    [log(1), 30],
    [head(), expect.any(Number)],
  ]);
  const lines = linesOf(file);
  const events = lines.filter((line) => line.type === "event");
  expect(events.length).toBeGreaterThan(0);
  expect(events.every(({ event }) => event !== null)).toBe(true);
  expect(lines.at(-1)).toMatchObject({ type: "end" });
  const stranger = new Signer("stranger.test", COSIGNATURE, Buffer.alloc(32, 3));
  expect((await verified(file, "--witness", stranger.vkey)).faults[0]).toMatchObject({ fault: "missing_cosignature" });
});

test("a range of receipts is anchored to the lane's signed checkpoint", async () => {
  const { code, said } = await exports.gateward(gateward.url, tenant.admin, "receipts", "verify", "--lane", "0", "--to", "7");
  expect({ code, said }).toEqual({ code: 0, said: "lane 0: verified 7 receipts, 1 (the lane's first) to 7; anchored to the lane's signed checkpoint\n" });
});

test("an export that was stopped anywhere goes on from there", async () => {
  const STOPS = 24;
  const whole = readFileSync(await exported());
  // The first line has the time at which an export began.
  const begin = whole.indexOf("\n") + 1;
  for (let at = 0; at < STOPS; at += 1) {
    const length = begin + Math.floor(((whole.length - 1 - begin) * at) / (STOPS - 1));
    const file = exports.file(whole.subarray(0, length));
    expect({ length, ...(await exportTo(file)) }).toMatchObject({ code: 0 });
    expect(readFileSync(file).subarray(begin).equals(whole.subarray(begin)), `stopped after ${length} bytes`).toBe(true);
  }
});

test("an export writes over no other file", async () => {
  const whole = readFileSync(await exported(), "utf8");
  for (const [text, token] of [
    [whole, tenant.admin],
    ["notes", tenant.admin],
    ["notes\n", tenant.admin],
    ['{"type":"end","entries":1}\n', tenant.admin],
    [whole.slice(0, -9), other.admin],
  ] as const) {
    const file = exports.file(text);
    expect(await exportTo(file, token)).toMatchObject({ code: 1 });
    expect(readFileSync(file, "utf8")).toBe(text);
  }
  const empty = exports.file("");
  expect(await exportTo(empty)).toMatchObject({ code: 0 });
});

/** What must be found first, with the number of the log: the fault, or what the export itself says. */
type Found = { fault: string; log?: () => string } | { refuses: string };

describe("an export of a database that somebody changed does not verify", () => {
  const sql = (text: string, ...values: (string | number)[]) => gateward.rows(text, tenant.name, ...values);
  const noteOf = async (lane: number) => {
    const [row] = await gateward.rows<{ note: string }>("SELECT note FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2", tenant.name, lane);
    return row?.note ?? "";
  };
  const setNote = (lane: number, note: string) => sql("UPDATE log_checkpoints SET note = ?3 WHERE tenant = ?1 AND lane = ?2", lane, note);
  const TABLES = ["receipts", "decisions", "audit_events", "log_checkpoints", "log_tiles"];
  const saved: Record<string, Record<string, string | number | null>[]> = {};

  beforeAll(async () => {
    for (const table of TABLES) saved[table] = await gateward.rows(`SELECT * FROM ${table} WHERE tenant = ?1`, tenant.name);
  });
  async function restore(): Promise<void> {
    for (const [table, rows] of Object.entries(saved)) {
      await gateward.rows(`DELETE FROM ${table} WHERE tenant = ?1`, tenant.name);
      for (const row of rows) {
        const names = Object.keys(row);
        await gateward.rows(`INSERT INTO ${table} (${names}) VALUES (${names.map((_, at) => `?${at + 1}`)})`, ...Object.values(row));
      }
    }
  }
  const deny = (body: string) => body.replace('"decision":"allow"', '"decision":"deny"');

  test.each<[string, () => Promise<unknown>, Found]>([
    ["an edited field", () => sql("UPDATE receipts SET body = replace(body, '\"decision\":\"allow\"', '\"decision\":\"deny\"') WHERE tenant = ?1 AND lane = 0 AND seq = 7"), { fault: "broken_link" }],
    ["an edited field, with the chain sealed again", () => rewrite(gateward, tenant.name, 0, 7, deny), { fault: "wrong_root" }],
    ["an edited last receipt, with its hash", () => rewrite(gateward, tenant.name, 0, 30, deny), { fault: "wrong_root" }],
    ["a removed row", () => sql("DELETE FROM receipts WHERE tenant = ?1 AND lane = 1 AND seq = 9"), { fault: "missing_receipt" }],
    ["a removed tail", () => sql("DELETE FROM receipts WHERE tenant = ?1 AND lane = 1 AND seq > 20"), { fault: "missing_receipt" }],
    [
      "a removed tail, with an older checkpoint of the lane",
      async () => {
        const [older] = (await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = ?2 ORDER BY seq", tenant.name, HEAD_LANE))
          .map(({ body }) => JSON.parse(body) as { of_lane?: number; checkpoint?: string })
          .filter(({ of_lane }) => of_lane === 1);
        const note = older?.checkpoint ?? "";
        await setNote(1, note);
        await sql("DELETE FROM receipts WHERE tenant = ?1 AND lane = 1 AND seq > ?2", parseTreeHead(new Note(note).text).size);
      },
      { fault: "wrong_size" },
    ],
    [
      "swapped rows",
      async () => {
        await sql("UPDATE receipts SET seq = 900 WHERE tenant = ?1 AND lane = 0 AND seq = 4");
        await sql("UPDATE receipts SET seq = 4 WHERE tenant = ?1 AND lane = 0 AND seq = 5");
        await sql("UPDATE receipts SET seq = 5 WHERE tenant = ?1 AND lane = 0 AND seq = 900");
      },
      { fault: "wrong_number" },
    ],
    ["an edited event of the registry", () => sql("UPDATE audit_events SET source = 'nobody' WHERE tenant = ?1 AND event_id LIKE 'registry.%'"), { fault: "wrong_event" }],
    [
      "a fork with a checkpoint that another key signed",
      async () => {
        await rewrite(gateward, tenant.name, 0, 7, deny);
        const forgery = new Forgery(exports.file('{"type":"end","entries":0}\n'));
        const rows = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = 0 ORDER BY seq", tenant.name);
        forgery.lines = rows.map(({ body }, index) => ({ type: "entry", log: log(0), index, body }));
        await setNote(0, forgery.checkpoint(log(0), logSigner(log(0), FORGER)));
      },
      { fault: "wrong_root" },
    ],
    [
      "a checkpoint that another key signed",
      async () => {
        const { text } = new Note(await noteOf(0));
        await setNote(0, `${text}\n${logSigner(log(0), FORGER).sign(text)}`);
      },
      { fault: "invalid_checkpoint" },
    ],
    ["another lane's checkpoint", async () => setNote(0, await noteOf(1)), { fault: "wrong_origin" }],
    [
      "a missing lane",
      async () => {
        for (const table of ["receipts", "log_checkpoints", "log_tiles"]) await sql(`DELETE FROM ${table} WHERE tenant = ?1 AND lane = 1`);
      },
      { refuses: "lane-1` is not found" },
    ],
    [
      "another tenant's rows",
      async () => {
        const column = (name: string) => `${name} = (SELECT ${name} FROM receipts AS it WHERE it.tenant = ?2 AND it.lane = 0 AND it.seq = receipts.seq)`;
        await sql(`UPDATE receipts SET ${["body", "receipt_hash", "prev_receipt_hash"].map(column)} WHERE tenant = ?1 AND lane = 0`, other.name);
      },
      { fault: "wrong_tenant" },
    ],
    [
      "another tenant's log",
      async () => {
        const column = (name: string) => `${name} = (SELECT ${name} FROM log_checkpoints AS it WHERE it.tenant = ?2 AND it.lane = 0)`;
        await sql(`UPDATE log_checkpoints SET ${["note", "leaves"].map(column)} WHERE tenant = ?1 AND lane = 0`, other.name);
      },
      { fault: "wrong_origin" },
    ],
  ])("%s", async (_, tamper, found) => {
    // Nothing is decided meanwhile, so the lanes do not look.
    await tamper();
    try {
      const file = exports.file();
      const made = await exportTo(file);
      if ("refuses" in found) {
        expect(made).toMatchObject({ code: 1, said: expect.stringContaining(found.refuses) });
      } else {
        expect(made).toMatchObject({ code: 0 });
        const [first] = (await verified(file)).faults;
        expect(first).toMatchObject({ fault: found.fault });
      }
    } finally {
      await restore();
    }
    expect((await verified(await exported())).verified).toBe(true);
  });

  test("but for rows beyond the end of the lane's checkpoint: they are not in it", async () => {
    const names = "tenant, lane, kind, decision_id, at_ms, receipt_hash, prev_receipt_hash";
    await sql(`INSERT INTO receipts (seq, body, ${names}) SELECT 31, replace(body, '"seq":30,', '"seq":31,'), ${names} FROM receipts WHERE tenant = ?1 AND lane = 0 AND seq = 30`);
    try {
      const { verified: holds, logs } = await verified(await exported());
      expect({ holds, last: logs[0]?.last_receipt }).toEqual({ holds: true, last: 30 });
    } finally {
      await restore();
    }
  });
});
