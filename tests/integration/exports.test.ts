// An export of a real history, verified by two programs that share no code, and by both again after somebody changed D1
// or the export.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Entry, Exports, type Line, linesOf, LOG_SECRETS, logSigner, originOf, type Report } from "../support/exports.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant } from "../support/gateward.ts";
import { sha256Hex } from "../support/receipts.ts";
import { type Embedded, Forgery, rewrite } from "../support/tampering.ts";
import { COSIGNATURE, leafHash, Note, parseTreeHead, Signer, treeHeadText } from "../support/tlog.ts";
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

/**
 * A tenant with changes of its registry and 30 receipts in each of two lanes. Its head log has two checkpoints of
 * each. At the end, the clock is this far behind.
 */
async function played(behindMs = 0): Promise<Tenant> {
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
  await gateward.clockIsAhead(-2 * TELL_HEAD_MS - behindMs);
  await decide(20);
  await eventually("the head log has both lanes", async () => (await sizesIn(tenant, 0)).length > 0 && (await sizesIn(tenant, 1)).length > 0);
  await gateward.clockIsAhead(-TELL_HEAD_MS - behindMs);
  await decide(10);
  await gateward.clockIsAhead(-behindMs);
  await eventually("the head log has both lanes as they are", async () => (await sizesIn(tenant, 0)).includes(30) && (await sizesIn(tenant, 1)).includes(30));
  await cosigned(tenant);
  return tenant;
}

/** Waits until the witness has cosigned the head log as it is. */
async function cosigned(tenant: Tenant): Promise<void> {
  await tenant.flushed(HEAD_LANE);
  await eventually("the witness cosigned the head log", async () => {
    const [row] = await gateward.rows<{ note: string; cosignatures: string }>("SELECT note, cosignatures FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2", tenant.name, HEAD_LANE);
    const [count] = await gateward.rows<{ count: number }>("SELECT count(*) AS count FROM receipts WHERE tenant = ?1 AND lane = ?2", tenant.name, HEAD_LANE);
    return row !== undefined && row.cosignatures !== "" && parseTreeHead(new Note(row.note).text).size === count?.count;
  });
}

/** Decides in lane 0, and waits until the lane has published a checkpoint of this many receipts. */
async function decidedIn(tenant: Tenant, { token, name }: { token: string; name: string }, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 1) await gateward.decide(token, readCall({ agent: { id: name } }));
  await eventually("the lane published its last receipts", async () => {
    const [row] = await gateward.rows<{ note: string }>("SELECT note FROM log_checkpoints WHERE tenant = ?1 AND lane = 0", tenant.name);
    return parseTreeHead(new Note(row?.note ?? "").text).size === to;
  });
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

test("an export without a terminal says only what it exported", async () => {
  const { code, said } = await exportTo(exports.file());
  expect({ code, said }).toEqual({ code: 0, said: expect.stringMatching(/^gateward: exported [0-9]+ receipts of 2 lanes and the head log\n$/) });
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

describe("an export that was stopped", () => {
  // Each line of the stopped export gets a space, which has no meaning. So the lines that stay can be counted.
  const MARK = "{ ";
  const isOf = (log: string) => (line: Line) => line.type === "entry" && line.log === log;
  const afterFirst = (lines: Line[], log: string) => lines.findIndex(isOf(log)) + 1;

  test.each<[string, (lines: Line[]) => { stopped: number; stays: number; cut?: boolean }]>([
    ["within the first lane goes on there", (lines) => ({ stopped: afterFirst(lines, log(0)), stays: afterFirst(lines, log(0)) })],
    ["within the second lane goes on there", (lines) => ({ stopped: afterFirst(lines, log(1)), stays: afterFirst(lines, log(1)) })],
    ["within a line loses only that line", (lines) => ({ stopped: afterFirst(lines, log(0)), stays: afterFirst(lines, log(0)), cut: true })],
    [
      "between a registry event and its line loses the event",
      (lines) => {
        const event = lines.findIndex(({ type }) => type === "event");
        return { stopped: event, stays: event - 1 };
      },
    ],
    [
      "within its checkpoints goes on behind the last entry",
      (lines) => {
        const checkpoint = lines.findIndex(({ type }) => type === "checkpoint");
        return { stopped: checkpoint + 1, stays: checkpoint };
      },
    ],
  ])("%s", async (_, stop) => {
    const whole = await exported();
    const { stopped, stays, cut = false } = stop(linesOf(whole));
    const lines = readFileSync(whole, "utf8").split("\n");
    const text = lines.slice(0, stopped).map((line) => `${line.replace("{", MARK)}\n`);
    const file = exports.file(text.join("") + (cut ? (lines[stopped] ?? "").slice(0, 20) : ""));
    expect(await exportTo(file)).toMatchObject({ code: 0 });
    const written = readFileSync(file, "utf8").split("\n");
    expect(written.filter((line) => line.startsWith(MARK)).length).toBe(stays);
    expect(written.map((line) => line.replace(MARK, "{"))).toEqual(lines);
    expect((await verified(file)).verified).toBe(true);
  });

  test("before its logs grew has all receipts, and verifies", async () => {
    const STOPS = 16;
    // In the lane, the stopped export has receipts that the head log does not cover yet.
    const [inHead, before, after] = [30, 33, 36];
    // If the clock is ahead, alarms are late. So the clock is behind, until the lane must tell the head log again.
    const grown = await played(TELL_HEAD_MS);
    const agent = await grown.agent("three", { lane: 0 });
    await decidedIn(grown, agent, inHead, before);
    const whole = readFileSync(await exported(grown));
    await gateward.clockIsAhead(0);
    await decidedIn(grown, agent, before, after);
    await eventually("the head log has the lane", async () => (await sizesIn(grown, 0)).some((size) => size > inHead));
    await cosigned(grown);
    const begin = whole.indexOf("\n") + 1;
    // Without the last line, because an export with the last line is complete.
    const end = whole.lastIndexOf("\n", whole.length - 2);
    for (let at = 0; at < STOPS; at += 1) {
      const length = begin + Math.floor(((end - begin) * at) / (STOPS - 1));
      const file = exports.file(whole.subarray(0, length));
      expect({ length, ...(await exportTo(file, grown.admin)) }).toMatchObject({ code: 0 });
      const { faults, logs } = await exports.verify(file, grown.name, "--witness", witness.vkey);
      expect({ length, faults, last: logs[0]?.last_receipt }).toEqual({ length, faults: [], last: after });
    }
  });
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

const receipts = (from: number, to = from) => (from === to ? `receipt ${from}` : `receipts ${from} to ${to}`);

/** A fault as people read it. */
function shown(fault: Report["faults"][number] | undefined): string | undefined {
  if (fault === undefined) return undefined;
  const { log, first_receipt: first, last_receipt: last, line } = fault;
  const among = first === null || last === null ? [] : [receipts(first, last)];
  return `${fault.fault}: ${[...(log === null ? [] : [log]), ...among, `line ${line}`].join(", ")}`;
}

describe("an export of a database that somebody changed does not verify", () => {
  const sql = (text: string, ...values: (string | number)[]) => gateward.rows(text, tenant.name, ...values);
  const TABLES = ["receipts", "decisions", "audit_events", "log_checkpoints", "log_tiles"];
  const saved: Record<string, Record<string, string | number | null>[]> = {};

  beforeAll(async () => {
    for (const table of TABLES) saved[table] = await gateward.rows(`SELECT * FROM ${table} WHERE tenant = ?1`, tenant.name);
  });
  async function restore(): Promise<void> {
    const { db } = gateward;
    const statements = Object.entries(saved).flatMap(([table, rows]) => [
      db.prepare(`DELETE FROM ${table} WHERE tenant = ?1`).bind(tenant.name),
      ...rows.map((row) => {
        const names = Object.keys(row);
        return db.prepare(`INSERT INTO ${table} (${names}) VALUES (${names.map((_, at) => `?${at + 1}`)})`).bind(...Object.values(row));
      }),
    ]);
    await db.batch(statements);
  }

  /** The beginning of the first fault, or of the error of the export itself. */
  type Expected = { finds: () => string } | { refuses: string };

  test.each<[string, () => Promise<unknown>, Expected]>([
    ["an edited field, with the chain sealed again", () => rewrite(gateward, tenant.name, 0, 7, (body) => body.replace("allow", "deny")), { finds: () => `wrong_root: ${log(0)}, ` }],
    ["a removed row", () => sql("DELETE FROM receipts WHERE tenant = ?1 AND lane = 1 AND seq = 9"), { finds: () => `missing_receipt: ${log(1)}, receipt 9, ` }],
    ["a removed tail", () => sql("DELETE FROM receipts WHERE tenant = ?1 AND lane = 1 AND seq > 20"), { finds: () => `missing_receipt: ${log(1)}, receipts 21 to ` }],
    [
      "a removed tail, with an older checkpoint of the lane",
      async () => {
        const [older] = (await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = ?2 ORDER BY seq", tenant.name, HEAD_LANE))
          .map(({ body }) => JSON.parse(body) as { of_lane?: number; checkpoint?: string })
          .filter(({ of_lane }) => of_lane === 1);
        const note = older?.checkpoint ?? "";
        await sql("UPDATE log_checkpoints SET note = ?2 WHERE tenant = ?1 AND lane = 1", note);
        await sql("DELETE FROM receipts WHERE tenant = ?1 AND lane = 1 AND seq > ?2", parseTreeHead(new Note(note).text).size);
      },
      { finds: () => `wrong_size: ${log(1)}, ` },
    ],
    ["an edited event of the registry", () => sql("UPDATE audit_events SET source = 'nobody' WHERE tenant = ?1 AND event_id LIKE 'registry.%'"), { finds: () => `wrong_event: ${head()}, ` }],
    [
      "a missing lane",
      async () => {
        for (const table of ["receipts", "log_checkpoints", "log_tiles"]) await sql(`DELETE FROM ${table} WHERE tenant = ?1 AND lane = 1`);
      },
      { refuses: "lane-1` is not found" },
    ],
  ])("%s", async (_, tamper, expected) => {
    // Nothing is decided meanwhile, so the lanes do not notice.
    await tamper();
    try {
      const file = exports.file();
      const made = await exportTo(file);
      if ("refuses" in expected) {
        expect(made).toMatchObject({ code: 1, said: expect.stringContaining(expected.refuses) });
      } else {
        expect(made).toMatchObject({ code: 0 });
        expect(shown((await verified(file)).faults[0])).toMatch(new RegExp(`^${expected.finds()}`));
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

describe("an export that somebody changed, and sealed again as far as that needs no key, does not verify:", () => {
  /** Of lane 0. The head log has no checkpoint of the last of them. */
  const RECEIPTS = 33;
  const IN_HEAD = 30;
  /** A power of two: its tree is one perfect subtree. */
  const PRUNED = 4;
  let forged: Tenant;
  /** Its export, and that of the other tenant. */
  let whole: string;
  let foreign: string;

  beforeAll(async () => {
    forged = await played();
    await decidedIn(forged, await forged.agent("three", { lane: 0 }), IN_HEAD, RECEIPTS);
    whole = await exported(forged);
    foreign = await exported(tenant);
  });

  const lane = (number: number) => log(number, forged);
  const top = () => head(forged);
  const truly = (log: string) => logSigner(log);
  const falsely = (log: string) => logSigner(log, FORGER);
  /** Changes decisions of lane 0. */
  const deny = (it: Forgery, ...numbers: number[]) => {
    for (const number of numbers) it.edit(it.entry(lane(0), number), (body) => (body.decision = "deny"));
  };
  /** Puts other receipts in the place of some of lane 0. */
  const replace = (it: Forgery, numbers: number[], by: (number: number) => string) => {
    for (const number of numbers) it.entry(lane(0), number).body = by(number);
  };
  const noteIn = ({ entry }: Embedded) => (JSON.parse(entry.body) as { checkpoint: string }).checkpoint;
  const embed = (it: Forgery, { entry }: Embedded, note: string) => it.edit(entry, (body) => (body.checkpoint = note));
  /** The head log's first checkpoint of a lane that covers a receipt. */
  const covering = (it: Forgery, number: number, receipt: number) => it.checkpointsOf(top(), number).find(({ size }) => size >= receipt) as Embedded;
  const newest = (it: Forgery, number: number) => it.checkpointsOf(top(), number).at(-1) as Embedded;
  /** The first registry event, after the entry that it is of. */
  const eventOf = (it: Forgery) => {
    const at = it.lines.findIndex(({ type }) => type === "event");
    return [it.lines[at], it.lines[at - 1]] as [Extract<Line, { type: "event" }>, Entry];
  };
  /** The note, which says that this signer signed it. */
  const underIdOf = ({ vkey }: Signer, note: string) =>
    note.replace(/[^ ]+\n$/, (base64) => {
      const id = Buffer.from(vkey.split("+")[1] ?? "", "hex");
      return `${Buffer.concat([id, Buffer.from(base64, "base64").subarray(id.length)]).toString("base64")}\n`;
    });
  /** Signs every checkpoint of the lanes, and then that of the head log, which has them. */
  const signAll = (it: Forgery, signer: typeof truly) => {
    for (const number of [0, 1]) {
      for (const embedded of it.checkpointsOf(top(), number)) embed(it, embedded, it.checkpoint(lane(number), signer(lane(number)), embedded.size));
      it.last(lane(number)).note = it.checkpoint(lane(number), signer(lane(number)));
    }
    it.seal();
    it.last(top()).note = it.checkpoint(top(), signer(top()));
  };
  /** Says that the first receipts of lane 0 were deleted because of their age. */
  const prune = (it: Forgery) => {
    const gone = it.entries(lane(0)).slice(0, PRUNED);
    const begin = it.lines.find((line) => line.type === "log" && line.log === lane(0));
    if (begin?.type !== "log") throw new Error("the log does not begin");
    const prev_hash = sha256Hex(gone.at(-1)?.body ?? "");
    Object.assign(begin, { begin: PRUNED, edge: [it.root(lane(0), PRUNED).toString("base64")], prev_hash });
    it.remove((line) => gone.some((entry) => entry === line));
    it.seal();
  };

  /**
   * What both programs must find first, in the same line. `gateward verify` names the receipts among which it is, and
   * `verify.py` the receipt that it has just read.
   */
  interface Found {
    line: number;
    fault: string;
    /** The log and the receipts. */
    in: string[];
    /** How `verify.py` begins to say what is wrong and where. */
    other: string;
  }
  const wrongRoot = (it: Forgery, number: number, { entry, receipt, from, size }: Embedded): Found => ({
    line: it.numberOf(entry),
    fault: "wrong_root",
    in: [lane(number), receipts(from, size)],
    other: `${top()} receipt ${receipt}: ${lane(number)} has another root at ${size} entries`,
  });
  const wrongSize = (it: Forgery, number: number, { entry, receipt, size }: Embedded, present: number): Found => ({
    line: it.numberOf(entry),
    fault: "wrong_size",
    in: [lane(number), receipts(present + 1, size)],
    other: `${top()} receipt ${receipt}: the head has a checkpoint of ${size} entries of ${lane(number)}, and ${present} precede it`,
  });
  const inEntry = (it: Forgery, entry: Entry, fault: string, says: string): Found => {
    const { seq } = JSON.parse(entry.body) as { seq: number };
    return { line: it.numberOf(entry), fault, in: [entry.log, receipts(seq)], other: `${entry.log} receipt ${seq}: ${says}` };
  };
  const inLast = (it: Forgery, log: string, fault: string, says: string, ...among: string[]): Found => ({
    line: it.numberOf(it.last(log)),
    fault,
    in: [log, ...among],
    other: `${log}: ${says}`,
  });
  /** The last checkpoint of a log has another number of entries. */
  const lastSize = (it: Forgery, log: string, size: number, present: number): Found => ({
    ...inLast(it, log, "wrong_size", "", receipts(Math.min(size, present) + 1, Math.max(size, present))),
    other: `${log} receipt ${Math.min(size, present) + 1}: the final checkpoint is of ${size} entries, and the export has ${present}`,
  });
  const UNSIGNED = "the checkpoint has no signature of a given key";
  const OTHER_ROOT = "the tree has another root than the final checkpoint";

  test("unless nothing was changed", async () => {
    const it = new Forgery(whole);
    it.seal();
    expect(it.text()).toBe(readFileSync(whole, "utf8"));
    expect(await exports.verify(whole, forged.name, "--witness", witness.vkey)).toMatchObject({ verified: true, faults: [] });
  });

  test.each<[string, (it: Forgery) => Found]>([
    // Changed, removed and moved receipts.
    [
      "an edited field",
      (it) => {
        deny(it, 7);
        it.seal();
        return wrongRoot(it, 0, covering(it, 0, 7));
      },
    ],
    [
      "an edited field that only the lane's last checkpoint covers",
      (it) => {
        deny(it, RECEIPTS - 1);
        it.seal();
        return inLast(it, lane(0), "wrong_root", OTHER_ROOT, receipts(IN_HEAD + 1, RECEIPTS));
      },
    ],
    [
      "a removed row",
      (it) => {
        it.remove((line) => line === it.entry(lane(0), 7));
        it.seal();
        const checkpoint = covering(it, 0, 7);
        return wrongSize(it, 0, checkpoint, checkpoint.size - 1);
      },
    ],
    [
      "a removed row, and the next ones moved up",
      (it) => {
        const removed = it.entry(lane(0), 7);
        for (const { entry, size } of it.checkpointsOf(top(), 0)) if (size >= 7) it.put(it.entry(lane(0), size + 1), "before", entry);
        it.remove((line) => line === removed);
        it.seal();
        return wrongRoot(it, 0, covering(it, 0, 7));
      },
    ],
    [
      "a removed row that is said to be lost",
      (it) => {
        const entry = it.entry(lane(0), 7);
        const leaf_hash = leafHash(Buffer.from(entry.body)).toString("base64");
        const line = it.numberOf(entry);
        it.lines[line - 1] = { type: "missing", log: entry.log, index: entry.index, leaf_hash };
        return { line, fault: "missing_receipt", in: [lane(0), receipts(7)], other: `${lane(0)} receipt 7: the receipt is missing` };
      },
    ],
    [
      "a removed tail",
      (it) => {
        const gone = it.entries(lane(0)).slice(20);
        it.remove((line) => gone.some((entry) => entry === line));
        it.seal();
        return wrongSize(it, 0, covering(it, 0, 21), 20);
      },
    ],
    [
      "a removed tail, with the checkpoint before it",
      (it) => {
        const [older, next] = it.checkpointsOf(top(), 0) as [Embedded, Embedded];
        const gone = it.entries(lane(0)).slice(older.size);
        it.last(lane(0)).note = noteIn(older);
        it.remove((line) => gone.some((entry) => entry === line));
        it.seal();
        return wrongSize(it, 0, next, older.size);
      },
    ],
    [
      "a removed tail, with the checkpoint before it, and the later ones removed from the head log",
      (it) => {
        const size = it.entries(top()).length;
        const [older, ...later] = it.checkpointsOf(top(), 0) as [Embedded, ...Embedded[]];
        const gone = [...it.entries(lane(0)).slice(older.size), ...later.map(({ entry }) => entry)];
        it.last(lane(0)).note = noteIn(older);
        it.remove((line) => gone.some((entry) => entry === line));
        it.seal();
        return lastSize(it, top(), size, size - later.length);
      },
    ],
    [
      "swapped rows",
      (it) => {
        const [four, five] = [it.entry(lane(0), 4).body, it.entry(lane(0), 5).body];
        replace(it, [4, 5], (number) => (number === 4 ? five : four));
        it.seal();
        return wrongRoot(it, 0, covering(it, 0, 4));
      },
    ],
    [
      "rows beyond the claimed end",
      (it) => {
        const last = it.entry(lane(0), RECEIPTS);
        it.put({ ...last }, "behind", last);
        it.seal();
        return lastSize(it, lane(0), RECEIPTS, RECEIPTS + 1);
      },
    ],
    [
      "rows beyond the head log's claimed end",
      (it) => {
        const size = it.entries(top()).length;
        const { entry } = newest(it, 0);
        it.put({ ...entry }, "behind", entry);
        it.seal();
        return lastSize(it, top(), size, size + 1);
      },
    ],
    [
      "rows beyond the end of the export",
      (it) => {
        it.lines.push({ ...it.entry(lane(0), RECEIPTS), index: RECEIPTS });
        return { line: it.lines.length, fault: "after_end", in: [], other: "a line follows the end line" };
      },
    ],
    [
      "receipts that retention is said to have deleted",
      (it) => {
        prune(it);
        const line = it.lines.findIndex((line) => line.type === "log" && line.log === lane(0)) + 1;
        const other = `${lane(0)} receipt ${PRUNED}: receipts up to this one are absent, and the head does not say that they were deleted`;
        return { line, fault: "unrecorded_pruning", in: [lane(0), receipts(1, PRUNED)], other };
      },
    ],
    [
      "receipts that retention is said to have deleted, also in the head log",
      (it) => {
        it.edit(newest(it, 0).entry, (body) => (body.pruned_through = PRUNED));
        prune(it);
        return inLast(it, top(), "wrong_root", OTHER_ROOT, receipts(1, it.entries(top()).length));
      },
    ],
    // Forks.
    [
      "a fork with a checkpoint that another key signed",
      (it) => {
        deny(it, 7, 8, 9, RECEIPTS);
        it.seal();
        it.last(lane(0)).note = it.checkpoint(lane(0), falsely(lane(0)));
        return wrongRoot(it, 0, covering(it, 0, 7));
      },
    ],
    [
      "a fork after the head log's newest checkpoint of the lane",
      (it) => {
        deny(it, RECEIPTS);
        it.seal();
        it.last(lane(0)).note = it.checkpoint(lane(0), falsely(lane(0)));
        return inLast(it, lane(0), "invalid_checkpoint", UNSIGNED);
      },
    ],
    [
      "a fork with all checkpoints signed by another key",
      (it) => {
        deny(it, 7);
        it.seal();
        signAll(it, falsely);
        const [first] = it.entries(top()).filter(({ body }) => body.includes('"kind":"lane_checkpoint"')) as [Entry];
        return inEntry(it, first, "invalid_checkpoint", UNSIGNED);
      },
    ],
    [
      "a fork with all checkpoints signed by the true key: the witness did not see it",
      (it) => {
        deny(it, 7);
        it.seal();
        signAll(it, truly);
        return inLast(it, top(), "missing_cosignature", "the checkpoint has no cosignature of `witness.test`");
      },
    ],
    [
      "two checkpoints that do not extend each other, both signed by the true key",
      (it) => {
        const fork = new Forgery(whole);
        deny(fork, 1);
        fork.seal();
        const second = newest(it, 0);
        embed(it, second, fork.checkpoint(lane(0), truly(lane(0)), second.size));
        it.seal();
        it.last(top()).note = it.checkpoint(top(), truly(top()));
        return wrongRoot(it, 0, second);
      },
    ],
    [
      "two checkpoints that do not extend each other, with the rows of the second",
      (it) => {
        deny(it, 1);
        it.seal();
        const second = newest(it, 0);
        embed(it, second, it.checkpoint(lane(0), truly(lane(0)), second.size));
        it.last(lane(0)).note = it.checkpoint(lane(0), truly(lane(0)));
        it.seal();
        it.last(top()).note = it.checkpoint(top(), truly(top()));
        return wrongRoot(it, 0, covering(it, 0, 1));
      },
    ],
    [
      "two checkpoints of one size that differ",
      (it) => {
        const { entry, size } = newest(it, 1);
        const second = { ...entry };
        const text = treeHeadText({ origin: originOf(lane(1)), size, root: Buffer.alloc(32, 7) });
        it.edit(second, (body) => (body.checkpoint = `${text}\n${truly(lane(1)).sign(text)}`));
        it.put(second, "behind", entry);
        it.seal();
        it.last(top()).note = it.checkpoint(top(), truly(top()));
        return inEntry(it, second, "wrong_root", `two checkpoints of ${lane(1)} have the same size and different roots`);
      },
    ],
    [
      "a checkpoint of a smaller tree after one of a larger",
      (it) => {
        const older = { ...covering(it, 0, 1).entry };
        it.put(older, "behind", newest(it, 0).entry);
        it.seal();
        it.last(top()).note = it.checkpoint(top(), truly(top()));
        return inEntry(it, older, "wrong_size", `the checkpoint of ${lane(0)} is smaller than the one before`);
      },
    ],
    // Lanes and tenants.
    [
      "a missing lane",
      (it) => {
        it.remove((line) => "log" in line && line.log === lane(1));
        it.seal();
        const { entry, receipt } = newest(it, 1);
        const other = `${top()} receipt ${receipt}: the head has a checkpoint of ${lane(1)}, and the export does not have that log`;
        return { line: it.numberOf(entry), fault: "missing_lane", in: [lane(1)], other };
      },
    ],
    [
      "a missing lane, also in the head log",
      (it) => {
        const size = it.entries(top()).length;
        const named = it.checkpointsOf(top(), 1).map(({ entry }) => entry);
        it.remove((line) => ("log" in line && line.log === lane(1)) || named.some((entry) => entry === line));
        it.seal();
        return lastSize(it, top(), size, size - named.length);
      },
    ],
    [
      "another lane's rows",
      (it) => {
        replace(it, [5, 6, 7], (number) => it.entry(lane(1), number).body);
        it.seal();
        return inEntry(it, it.entry(lane(0), 5), "wrong_lane", "the body is of another lane");
      },
    ],
    [
      "another tenant's rows",
      (it) => {
        const others = new Forgery(foreign);
        replace(it, [5, 6, 7], (number) => others.entry(log(0), number).body);
        it.seal();
        return inEntry(it, it.entry(lane(0), 5), "wrong_tenant", "the body is of another tenant");
      },
    ],
    [
      "another tenant's rows under this tenant's name",
      (it) => {
        const others = new Forgery(foreign);
        replace(it, [5, 6, 7], (number) => others.entry(log(0), number).body.replaceAll(tenant.name, forged.name));
        it.seal();
        return wrongRoot(it, 0, covering(it, 0, 5));
      },
    ],
    [
      "another tenant's export",
      (it) => {
        it.lines = linesOf(foreign);
        return { line: 1, fault: "wrong_key", in: [], other: `the export is not of \`${originOf(top())}\`` };
      },
    ],
    [
      "another tenant's export under this tenant's name",
      (it) => {
        it.lines = linesOf(exports.file(readFileSync(foreign, "utf8").replaceAll(tenant.name, forged.name)));
        it.seal();
        const [first] = it.entries(top()).filter(({ body }) => body.includes('"kind":"lane_checkpoint"')) as [Entry];
        return inEntry(it, first, "invalid_checkpoint", UNSIGNED);
      },
    ],
    // Signatures.
    [
      "a lane's checkpoint signed by another key",
      (it) => {
        it.last(lane(0)).note = it.checkpoint(lane(0), falsely(lane(0)));
        return inLast(it, lane(0), "invalid_checkpoint", UNSIGNED);
      },
    ],
    [
      "a lane's checkpoint signed by another key under the true key's id",
      (it) => {
        it.last(lane(0)).note = underIdOf(truly(lane(0)), it.checkpoint(lane(0), falsely(lane(0))));
        return inLast(it, lane(0), "invalid_checkpoint", `a signature of \`${originOf(lane(0))}\` does not hold`);
      },
    ],
    [
      "the head log's checkpoint signed by another key",
      (it) => {
        it.last(top()).note = it.checkpoint(top(), falsely(top()));
        return inLast(it, top(), "invalid_checkpoint", UNSIGNED);
      },
    ],
    [
      "a checkpoint in the head log signed by another key",
      (it) => {
        const second = newest(it, 0);
        embed(it, second, it.checkpoint(lane(0), falsely(lane(0)), second.size));
        it.seal();
        return inEntry(it, second.entry, "invalid_checkpoint", UNSIGNED);
      },
    ],
    [
      "another lane's last checkpoint",
      (it) => {
        it.last(lane(0)).note = it.last(lane(1)).note;
        return inLast(it, lane(0), "wrong_origin", `the checkpoint is of another log than \`${originOf(lane(0))}\``);
      },
    ],
    [
      "another lane's checkpoint in the head log",
      (it) => {
        const second = newest(it, 0);
        embed(it, second, noteIn(newest(it, 1)));
        it.seal();
        return inEntry(it, second.entry, "wrong_origin", `the checkpoint is of another log than \`${originOf(lane(0))}\``);
      },
    ],
    // The registry.
    [
      "an edited registry event",
      (it) => {
        const [line, entry] = eventOf(it);
        line.event = line.event?.replace("auditors", "nobodies") ?? null;
        return { ...inEntry(it, entry, "wrong_event", "the registry event does not have the hash in its receipt"), line: it.numberOf(line) };
      },
    ],
    [
      "an edited registry event with its hash",
      (it) => {
        const [line] = eventOf(it);
        line.event = line.event?.replace("auditors", "nobodies") ?? null;
        it.seal();
        return inLast(it, top(), "wrong_root", OTHER_ROOT, receipts(1, it.entries(top()).length));
      },
    ],
    [
      "a removed registry event",
      (it) => {
        const size = it.entries(top()).length;
        const gone = eventOf(it);
        it.remove((line) => gone.some((other) => other === line));
        it.seal();
        return lastSize(it, top(), size, size - 1);
      },
    ],
  ])("%s", async (_, tamper) => {
    const it = new Forgery(whole);
    const { line, fault, in: place, other: says } = tamper(it);
    const report = await exports.verify(exports.file(it.text()), forged.name, "--witness", witness.vkey);
    expect(shown(report.faults[0])).toBe(`${fault}: ${[...place, `line ${line}`].join(", ")}`);
    const expected = `line ${line}: ${says}`;
    if (report.other !== undefined) expect(report.other.slice(0, expected.length)).toBe(expected);
  });
});
