// The reference for Gateward's speed (the *floor*): a worker with the same I/O and no authorization. A call costs it
// the same hop, the same insert of the same bytes and the same answer, and each flush the same statements; nothing is
// checked, hashed or decided. The difference to Gateward is the cost of deciding, and of doing so in Wasm.
//
// Its SQL is Gateward's own: workers.ts reads it from worker/core/src/sql/ and binds it here as
// STATEMENTS. The bytes of rows and answers are those of an allowed read by the demo's agent;
// same-io.ts compares them with Gateward's.
import { DurableObject } from "cloudflare:workers";

const TENANT = "demo";
const LANE = 0;
/** The lane's name, as worker/edge/src/lane/client.rs makes it; without a token, it is always this one. */
const LANE_NAME = `${TENANT}/${LANE}`;

/**
 * Padding that makes the hop's body as long as Gateward's encoded command, 226 bytes. It stands for the two digests,
 * the secret's hash and the key id, which the floor does not have.
 */
const COMMAND_PADDING = "0".repeat(90);

// They are as long as Gateward's, and the same in each row.
const DIGEST = "5".repeat(64);
const KEY_ID = "k000000000000";
const FINGERPRINT = `${KEY_ID}:${DIGEST}`;
// Slots of a window in an agent's state (worker/core/src/velocity/window.rs).
const WINDOW_SLOTS = 9;
const GENESIS = "0".repeat(64);
const POLICIES = ["base/provenance#reads-pass"];

/** The hash of a key id, in a journal row and as metrics show it. */
const KEY_HASH = 1_000_000_000;
const KEY_LABEL = "kh_00000000";
/** The last member of a journal row. */
const METRICS_MEMBER = ',"metrics":';
/** The members of a decision's row that its series need. */
const DECIDED = /"server":"([^"]*)","tool":"([^"]*)","decision":"([^"]*)","reason_code":"([^"]*)"/;

/** From worker/edge/src/lane/object/alarm.rs. */
const MAX_BATCHES_PER_ALARM = 8;
const MAX_BACKOFF_MS = 60_000;
/** From worker/core/src/lane/flush.rs. */
const MAX_FLUSH_BYTES = 1_500_000;
const MAX_FLUSH_COUNTS = 500;
const MAX_EXPIRED_ROWS = 4_000;
/** From worker/core/src/lane/publish.rs. */
const MAX_KEPT_ROWS = 500_000;
const MINUTE_MS = 60 * 1_000;
const KEPT_MS = 60 * MINUTE_MS;
/** From worker/core/src/gate/mod.rs. */
const REPLAY_MS = 24 * 60 * 60 * 1_000;
const NONCE_MS = 10 * 60 * 1_000;

export default {
  async fetch(request, env) {
    // Whether the module is ready (cold-start.ts).
    if (request.method === "GET") return new Response("ok");
    const { agent, tool_call, context } = await request.json();
    const command = JSON.stringify([
      crypto.randomUUID(),
      agent.id,
      agent.environment,
      tool_call.tool,
      tool_call.action,
      tool_call.parameters,
      context.source_trust,
      COMMAND_PADDING,
    ]);
    return env.LANES.getByName(LANE_NAME).fetch("https://lane/call", { method: "POST", body: command });
  },
};

export class GateLane extends DurableObject {
  #storage;
  #sql;
  #db;
  #lane;
  #d1;
  #intervalMs;
  #batchRows;
  /** Sequence number and hash of the newest row. */
  #head = { seq: 0, hash: GENESIS };
  #state = {
    revision: 0,
    bucket: { micro: 999_999_000_000, at_ms: 0 },
    quarantined: false,
    status_denial: null,
    windows: [["calls_1m.00000000", { slots: [] }]],
  };
  #agent = "";
  /** The series that D1 was told of. */
  #toldSeries = new Set();
  #alarmIsSet = false;
  /** The last row that D1 has. */
  #flushedThrough = 0;

  constructor(state, env) {
    super(state, env);
    this.#storage = state.storage;
    this.#sql = state.storage.sql;
    this.#db = env.DB;
    this.#lane = env.STATEMENTS.lane;
    this.#d1 = env.STATEMENTS.d1;
    this.#intervalMs = env.FLUSH_INTERVAL_MS;
    this.#batchRows = env.FLUSH_BATCH_ROWS;
    for (const statement of this.#lane.SCHEMA) this.#sql.exec(statement);
    const [head] = this.#sql.exec(this.#lane.META, "head");
    [[this.#flushedThrough]] = this.#sql.exec(this.#lane.FLUSHED_THROUGH).raw();
    const [[, last]] = this.#sql.exec(this.#lane.JOURNAL_EXTENT, this.#flushedThrough).raw();
    if (last > 0) {
      const [[hash]] = this.#sql.exec(this.#lane.JOURNAL_HASH, last).raw();
      this.#head = { seq: last, hash };
    } else if (head !== undefined) {
      const [seq, hash] = head.value.split(":");
      this.#head = { seq: Number(seq), hash };
    } else {
      this.#setHead();
      this.#sql.exec(this.#lane.SET_META, "identity", LANE_NAME);
    }
    this.#sql.exec(this.#lane.SET_META, "starts", "1");
  }

  async fetch(request) {
    const [requestId, agent, , server, tool, , trust] = await request.json();
    const now = Date.now();
    const previous = this.#head.hash;
    const seq = this.#head.seq + 1;
    const hash = seq.toString(16).padStart(64, "0");
    const id = decisionId(now, seq);

    const state = this.#state;
    state.revision += 1;
    state.bucket.at_ms = now;
    const { slots } = state.windows[0][1];
    if (slots.length < WINDOW_SLOTS) slots.push([slots.length === 0 ? now : 100, 1]);
    else slots[WINDOW_SLOTS - 1][1] += 1;
    const answer = JSON.stringify({
      decision_id: id,
      decision: "allow",
      risk_score: 5,
      risk_level: "low",
      composite_risk_score: 10,
      reason: "A read is allowed, even if untrusted text caused it.",
      reason_code: "policy_allow",
      matched_policies: POLICIES,
      approval: null,
      redacted_fields: [],
      root_trust_level: trust,
      trust: { claimed: trust, effective: trust, lowered_by: null },
      dry_run: false,
      bundle: DIGEST,
      receipt: {
        receipt_id: `rcpt_${LANE}_${seq}`,
        lane: LANE,
        seq,
        receipt_hash: hash,
        prev_receipt_hash: previous,
        canon_version: "rfc8785",
      },
    });
    const receipt = JSON.stringify({
      action_hash: DIGEST,
      agent,
      approval_id: "",
      bundle: DIGEST,
      decision: "allow",
      decision_id: id,
      epoch: 2,
      key_id: KEY_ID,
      kind: "decision",
      lane: LANE,
      matched_policies: POLICIES,
      obligations: { approver_groups: [], redact_fields: [] },
      prev_hash: previous,
      reason_code: "policy_allow",
      resource: "",
      run: "",
      seq,
      server,
      tenant: TENANT,
      time: new Date(now).toISOString(),
      tool,
      trust,
      user: "",
      version: 2,
    });
    const row = JSON.stringify({
      seq,
      at_ms: now,
      decision_id: id,
      agent,
      server,
      tool,
      decision: "allow",
      reason_code: "policy_allow",
      response: answer,
      receipt,
      receipt_hash: hash,
      prev_receipt_hash: previous,
      approval: null,
      counted: [KEY_HASH, 2],
      metrics: [],
    });
    await this.#journal({ seq, now, hash, agent, fingerprint: FINGERPRINT, row });
    return new Response(answer, {
      headers: {
        "content-type": "application/json",
        "cache-control": "no-store",
        "x-request-id": requestId,
        "ratelimit-policy": '"agent";q=1000000;w=1',
        ratelimit: '"agent";r=999999;t=1',
      },
    });
  }

  /** The outcome of a forwarded call: one row, with a receipt in the chain. */
  async record({ agent, server, decisionId: decision_id, decisionHash: decision_hash, status, bytes }) {
    const now = Date.now();
    const previous = this.#head.hash;
    const seq = this.#head.seq + 1;
    const hash = seq.toString(16).padStart(64, "0");
    const duration_ms = 1;
    this.#state.revision += 1;
    const receipt = JSON.stringify({
      agent,
      bytes,
      decision_hash,
      decision_id,
      duration_ms,
      ending: "complete",
      kind: "outcome",
      lane: LANE,
      prev_hash: previous,
      result_sha256: DIGEST,
      seq,
      server,
      status,
      tenant: TENANT,
      time: new Date(now).toISOString(),
      version: 2,
    });
    const row = JSON.stringify({
      kind: "outcome",
      seq,
      at_ms: now,
      decision_id,
      agent,
      source: agent,
      detail: { server, status, bytes, duration_ms },
      receipt,
      receipt_hash: hash,
      prev_receipt_hash: previous,
      metrics: [["proxied_ms", ["answered", 10], [server], duration_ms]],
    });
    await this.#journal({ seq, now, hash, agent, fingerprint: "", row });
  }

  #journal({ seq, now, hash, agent, fingerprint, row }) {
    this.#sql.exec(this.#lane.INSERT, seq, now, hash, agent, JSON.stringify(this.#state), null, fingerprint, null, row, null);
    this.#agent = agent;
    this.#head = { seq, hash };
    return this.#alarmIsSet ? undefined : this.#arm(this.#intervalMs);
  }

  async alarm() {
    await this.#arm(MAX_BACKOFF_MS);
    for (let batch = 0; batch < MAX_BATCHES_PER_ALARM; batch += 1) {
      if (!(await this.#flush())) {
        this.#alarmIsSet = false;
        await this.#storage.deleteAlarm();
        return;
      }
    }
    await this.#arm(0);
  }

  #arm(pauseMs) {
    this.#alarmIsSet = true;
    return this.#storage.setAlarm(Date.now() + pauseMs);
  }

  #setHead() {
    this.#sql.exec(this.#lane.SET_META, "head", `${this.#head.seq}:${this.#head.hash}`);
  }

  /** Flushes one batch with the same statements as Gateward. Returns whether there was one. */
  async #flush() {
    const sql = this.#sql;
    const lane = this.#lane;
    const now = Date.now();
    sql.exec(lane.EXPIRE_REPLAYS, now - REPLAY_MS, MAX_EXPIRED_ROWS, 0, now);
    sql.exec(lane.EXPIRE_NONCES, now - NONCE_MS, MAX_EXPIRED_ROWS, 0, now);
    if (sql.databaseSize === 0) throw new Error("the lane has no storage");
    const texts = [];
    const metrics = new Map();
    let oldest = now;
    const hashes = [];
    let first = 0;
    let last = 0;
    let bytes = 0;
    for (const [seq, hash, row, at] of sql.exec(lane.ROWS, this.#flushedThrough + 1, this.#batchRows).raw()) {
      const end = row.lastIndexOf(METRICS_MEMBER);
      const text = `${row.slice(0, end)}}`;
      bytes += text.length + 1;
      if (first === 0) first = seq;
      else if (bytes > MAX_FLUSH_BYTES) break;
      last = seq;
      hashes.push(hash);
      texts.push(text);
      const series = JSON.parse(row.slice(end + METRICS_MEMBER.length, -1));
      const decided = DECIDED.exec(row);
      if (decided !== null) {
        const [, server, tool, decision, reason] = decided;
        series.push(["decisions", [decision, reason], [server, tool]], ["credential_decisions", [decision], [KEY_LABEL]]);
      }
      for (const one of series) {
        const key = JSON.stringify(one);
        const rows = metrics.get(key);
        if (rows === undefined) metrics.set(key, [seq]);
        else rows.push(seq);
      }
      oldest = Math.min(oldest, at);
    }
    sql.exec(lane.COUNTS, MAX_FLUSH_COUNTS).toArray();
    if (texts.length === 0) return false;

    const rows = `[${texts.join(",")}]`;
    const series = [...metrics.keys()];
    const isNew = series.some((one) => !this.#toldSeries.has(one));
    const counts = [...metrics.values()].map((seqs) => seqs.length);
    const seqs = [...metrics.values()];
    const report = { number: 1, at_ms: now, journal_rows: 0, journal_age_ms: now - oldest, approvals_open: 0, reservations_open: 0, epoch: 1, alarm_overdue_ms: 0, totals: {} };
    const d1 = this.#d1;
    const db = this.#db;
    const before = first > 1 ? first - 1 : null;
    const results = await db.batch([
      ...(isNew ? [db.prepare(d1.ADD_SERIES).bind(TENANT, `[${series.join(",")}]`)] : []),
      db.prepare(d1.COUNT_ROWS).bind(TENANT, LANE, `[${series.join(",")}]`, JSON.stringify(counts), JSON.stringify(seqs), first, before),
      db.prepare(d1.FLUSH_ROWS).bind(TENANT, LANE, rows, before),
      db.prepare(d1.FLUSHED_THROUGH).bind(TENANT, LANE, last, now, JSON.stringify(report), before),
      db.prepare(d1.STORED_HASHES).bind(TENANT, LANE, first, last),
      db.prepare(d1.EPOCH).bind(TENANT),
    ]);
    const stored = results.at(-2).results;
    if (stored.length !== hashes.length) throw new Error("D1 holds other rows than the journal");
    for (let at = 0; at < hashes.length; at += 1) {
      if (stored[at].receipt_hash !== hashes[at]) throw new Error(`row ${first + at} differs in D1`);
    }

    for (const one of series) this.#toldSeries.add(one);
    sql.exec(lane.KEEP_REPLAYS, first, last);
    sql.exec(lane.KEEP_NONCES, first, last);
    sql.exec(lane.KEEP_STATES, first - 1);
    this.#setHead();
    sql.exec(lane.DROP_KEYS, first, last);
    const kept = [2 * hashes.length, last - MAX_KEPT_ROWS];
    const minute = Math.floor((now - KEPT_MS) / MINUTE_MS);
    sql.exec(lane.FLUSHED, Math.floor(now / MINUTE_MS), last);
    sql.exec(lane.FORGET_ROWS, minute, ...kept);
    sql.exec(lane.FORGET_FLUSHES, minute);
    sql.exec(lane.FORGET_FLUSHED, now - KEPT_MS, ...kept);
    this.#flushedThrough = last;
    return true;
  }
}

/** As long as a UUID, and sorted by time, as Gateward's are. */
function decisionId(now, seq) {
  const time = now.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${seq.toString(16).padStart(12, "0")}`;
}
