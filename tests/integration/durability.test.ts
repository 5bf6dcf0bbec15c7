// An answer stays valid and is recorded once, whatever happens to the lane or D1.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeRequest, AuthorizeResponse, DecisionPage, DecisionRecord, Problem } from "../support/api/types.gen.ts";
import { canaryCall, eventually, Gateward, INSPECTABLE, NEVER_MS, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";

/** Longer than several flush intervals of the workers below, so that they have done everything they would do. */
const SEVERAL_FLUSHES_MS = 500;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The lane's chain as the API returns it is whole and holds exactly `answers`, in some order. */
async function expectWholeChain(gateward: Gateward, tenant: Tenant, answers: AuthorizeResponse[]): Promise<void> {
  const receipts = await gateward.receipts(tenant.admin);
  expect(problemsOf(receipts)).toEqual([]);
  expect(receipts.map(({ body }) => body.decision_id).sort()).toEqual(answers.map(({ decision_id }) => decision_id).sort());
}

describe("while nothing is flushed", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: NEVER_MS } });
  });
  afterAll(() => gateward?.close());

  test("a decision can be read by its id as soon as it was answered, and a list says it is not there yet", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const answer = await gateward.decide(token, readCall());
    for (const reader of [tenant.admin, token]) {
      const reply = await gateward.get<DecisionRecord>(reader, `/v1/decisions/${answer.decision_id}`);
      expect(reply.status).toBe(200);
      expect(reply.body).toMatchObject({ decision_id: answer.decision_id, lane: 0, seq: 1, agent: "coder", response: answer });
    }
    const page = await gateward.get<DecisionPage>(tenant.admin, "/v1/decisions");
    expect(page.body.decisions).toEqual([]);
    expect(page.body.flushed_through.every(({ seq }) => seq === 0)).toBe(true);
    expect(await tenant.journal()).toEqual([1]);
  });

  test("an evicted lane goes on where it was", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = writeCall({ request_id: "r1" });
    const answers = [await gateward.decide(token, body)];
    for (let at = 0; at < 4; at += 1) {
      await tenant.evict();
      expect(await gateward.decide(token, body)).toEqual(answers[0]);
      answers.push(await gateward.decide(token, readCall()));
    }
    expect(answers.map(({ receipt }) => receipt?.seq)).toEqual([1, 2, 3, 4, 5]);
    await expectWholeChain(gateward, tenant, answers);
  });

  test("a stopped agent's denial takes neither the request id nor the nonce of an earlier answer", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = readCall({ request_id: "r1", nonce: "n1", timestamp: new Date().toISOString() });
    const first = await gateward.decide(token, body);
    await tenant.change({ agents: [{ agent: "coder", status: "frozen" }] });
    const denied = await gateward.decide(token, body);
    expect(denied).toMatchObject({ decision: "deny", reason_code: "agent_frozen", receipt: { seq: 2 } });
    await tenant.change({ agents: [{ agent: "coder", groups: ["engineering"] }] });
    expect(await gateward.decide(token, body)).toEqual(first);
    await expectWholeChain(gateward, tenant, [first, denied]);
  });

  test("calls at once get one order", async () => {
    const tenant = await gateward.tenant();
    const agents = await Promise.all(["one", "two", "three"].map((name) => tenant.agent(name)));
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, at) => {
        const { name, token } = agents[at % agents.length] ?? { name: "", token: "" };
        return gateward.decide(token, readCall({ agent: { id: name } }));
      }),
    );
    expect(answers.map(({ receipt }) => receipt?.seq).sort((a = 0, b = 0) => a - b)).toEqual(answers.map((_, at) => at + 1));
    await expectWholeChain(gateward, tenant, answers);
  });

  test("lanes of a tenant have chains of their own", async () => {
    const tenant = await gateward.tenant({ lanes: 2 });
    const [zero, one] = [await tenant.agent("zero"), await tenant.agent("one", { lane: 1 })];
    const first = await gateward.decide(zero.token, readCall({ agent: { id: "zero" } }));
    const second = await gateward.decide(one.token, readCall({ agent: { id: "one" } }));
    expect([first, second].map(({ receipt }) => receipt?.receipt_id)).toEqual(["rcpt_0_1", "rcpt_1_1"]);
    expect(problemsOf(await gateward.receipts(tenant.admin, 1))).toEqual([]);
    const reply = await gateward.get<DecisionRecord>(tenant.admin, `/v1/decisions/${second.decision_id}`);
    expect(reply.body).toMatchObject({ lane: 1, response: second });
  });
});

describe("while rows are flushed", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50, FLUSH_BATCH_ROWS: 4 } });
  });
  afterAll(() => gateward?.close());

  // A quarantine is not among them: its agent is denied before stored answers are looked up.
  const outcomes: [string, AuthorizeRequest][] = [
    ["allow", readCall({ request_id: "r1" })],
    ["deny", writeCall({ request_id: "r1", context: { source_trust: "unknown" } })],
    ["require_approval", writeCall({ request_id: "r1", context: { source_trust: "semi_trusted_customer" } })],
  ];
  test.each(outcomes)("a replay of %s is the first answer, also when it was flushed and evicted", async (decision, body) => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const first = await gateward.decide(token, body);
    expect(first.decision).toBe(decision);
    await tenant.flushed();
    expect(await tenant.journal()).toEqual([]);
    expect(await gateward.decide(token, body)).toEqual(first);
    await tenant.evict();
    expect(await gateward.decide(token, body)).toEqual(first);
    const conflict = await gateward.post<Problem>(token, "/v1/authorize", { ...body, user: { id: "another" } });
    expect({ status: conflict.status, code: conflict.body.code }).toEqual({ status: 409, code: "request_id_conflict" });
    const reply = await gateward.get<DecisionRecord>(token, `/v1/decisions/${first.decision_id}`);
    expect(reply.body.response).toEqual(first);
    expect(await tenant.records("decisions")).toHaveLength(1);
  });

  test("more rows than a batch all arrive, in the chain's order, though the lane is evicted meanwhile", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const answers: AuthorizeResponse[] = [];
    for (let at = 0; at < 23; at += 1) {
      answers.push(await gateward.decide(token, readCall({ request_id: `r${at}` })));
      if (at % 6 === 5) await tenant.evict();
    }
    await tenant.flushed();
    await expectWholeChain(gateward, tenant, answers);
    expect(await tenant.records("decisions")).toHaveLength(23);
    expect(await tenant.records("audit_events")).toHaveLength(23);
  });

  test("rows that were flushed, but the answer got lost, are flushed again to no effect", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const name = `${tenant.name}/0`;
    await gateward.decide(token, readCall());
    await tenant.flushed();
    const answers = [await gateward.decide(token, canaryCall()), await gateward.decide(token, readCall())];
    await tenant.flushed();
    const rows = await tenant.records("receipts");
    await gateward.laneRows(name, "UPDATE flushes SET through = 1");
    await tenant.evict();
    // Repeats of a status denial write nothing, so another agent's call causes the flush.
    const other = await tenant.agent("other");
    const last = await gateward.decide(other.token, readCall({ agent: { id: "other" } }));
    await tenant.flushed();
    expect(last.receipt?.seq).toBe((answers[1]?.receipt?.seq ?? 0) + 1);
    expect((await tenant.records("receipts")).slice(0, rows.length)).toEqual(rows);
    expect(problemsOf(await gateward.receipts(tenant.admin))).toEqual([]);
  });

  test("a row that D1 holds otherwise is not pruned", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await gateward.execute(
      "INSERT INTO receipts (tenant, lane, seq, kind, decision_id, at_ms, receipt_hash, prev_receipt_hash, body) " +
        "VALUES (?1, 0, 1, 'decision', 'another', 1, ?2, ?2, '{}')",
      tenant.name,
      "f".repeat(64),
    );
    const answer = await gateward.decide(token, readCall());
    await pause(SEVERAL_FLUSHES_MS);
    expect(await tenant.journal()).toEqual([1]);
    await gateward.execute("DELETE FROM receipts WHERE tenant = ?1", tenant.name);
    await tenant.flushed();
    await expectWholeChain(gateward, tenant, [answer]);
  });
});

describe("while D1 fails", () => {
  const SOFT_ROWS = 5;
  const HARD_ROWS = 8;
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({
      entry: INSPECTABLE,
      vars: { FLUSH_INTERVAL_MS: 50, JOURNAL_SOFT_ROWS: SOFT_ROWS, JOURNAL_HARD_ROWS: HARD_ROWS, REGISTRY_TTL_MS: NEVER_MS },
    });
  });
  afterAll(() => gateward?.close());

  test("a full journal refuses writes, then everything, and nothing acknowledged is lost", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await gateward.decide(token, readCall());
    await gateward.decide(token, writeCall());
    await tenant.flushed();
    const before = await gateward.receipts(tenant.admin);

    await gateward.execute("ALTER TABLE receipts RENAME TO receipts_away");
    const answers: AuthorizeResponse[] = [];
    const refusals: [string, number, string][] = [];
    const ask = async (kind: string, body: AuthorizeRequest) => {
      const reply = await gateward.post<AuthorizeResponse & Problem>(token, "/v1/authorize", body);
      if (reply.status === 200) {
        answers.push(reply.body);
      } else {
        expect(reply.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
        refusals.push([kind, reply.status, reply.body.code]);
      }
    };
    for (let at = 0; at < SOFT_ROWS; at += 1) await ask("write", writeCall({ request_id: `w${at}` }));
    expect(refusals).toEqual([]);
    await ask("write", writeCall());
    for (let at = SOFT_ROWS; at < HARD_ROWS; at += 1) await ask("read", readCall());
    await ask("read", readCall());
    await tenant.evict();
    await ask("read after an eviction", readCall());
    expect(refusals).toEqual([
      ["write", 503, "journal_full"],
      ["read", 503, "journal_full"],
      ["read after an eviction", 503, "journal_full"],
    ]);
    expect(answers).toHaveLength(HARD_ROWS);
    // Decisions can still be read, because this writes nothing.
    expect(await gateward.decide(token, writeCall({ request_id: "w0" }))).toEqual(answers[0]);
    expect((await gateward.decide(token, writeCall({ dry_run: true }))).decision).toBe("allow");

    await gateward.execute("ALTER TABLE receipts_away RENAME TO receipts");
    await tenant.flushed();
    const after = await gateward.receipts(tenant.admin);
    expect(problemsOf(after)).toEqual([]);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.slice(before.length).map(({ body }) => body.decision_id)).toEqual(answers.map(({ decision_id }) => decision_id));
    expect(await tenant.records("decisions")).toHaveLength(after.length);
    expect(await gateward.decide(token, writeCall())).toMatchObject({ decision: "allow", receipt: { seq: after.length + 1 } });
  });

  test("a lane that holds the records it needs goes on, also after an eviction; one that does not answers 503", async () => {
    const tenant = await gateward.tenant();
    const [{ token }, stranger] = [await tenant.agent(), await tenant.agent("stranger")];
    await gateward.decide(token, readCall());
    await tenant.flushed();
    await gateward.execute("ALTER TABLE agents RENAME TO agents_away");
    try {
      expect((await gateward.decide(token, readCall())).decision).toBe("allow");
      await tenant.evict();
      expect((await gateward.decide(token, readCall())).decision).toBe("allow");
      const reply = await gateward.post<Problem>(stranger.token, "/v1/authorize", readCall({ agent: { id: "stranger" } }));
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 503, code: "registry_unavailable" });
      expect(reply.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      expect(JSON.stringify(reply.body)).not.toMatch(/no such table|sqlite|agents/i);
    } finally {
      await gateward.execute("ALTER TABLE agents_away RENAME TO agents");
    }
    const ask = () => gateward.post(stranger.token, "/v1/authorize", readCall({ agent: { id: "stranger" } }));
    await eventually("the lane answers again", async () => (await ask()).status === 200);
  });

  test("the worker says that it is not ready", async () => {
    await gateward.execute("ALTER TABLE tenants RENAME TO tenants_away");
    try {
      const reply = await gateward.request<Problem>("/readyz");
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 503, code: "registry_unavailable" });
    } finally {
      await gateward.execute("ALTER TABLE tenants_away RENAME TO tenants");
    }
    // The answer is kept for a second.
    await eventually("the worker is ready", async () => (await gateward.request("/readyz")).status === 200);
  });

  test("a quarantine that could not be flushed holds all the same", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await gateward.decide(token, readCall());
    await tenant.flushed();
    await gateward.execute("ALTER TABLE receipts RENAME TO receipts_away");
    try {
      expect((await gateward.decide(token, canaryCall())).decision).toBe("quarantine");
      await tenant.evict();
      expect((await gateward.decide(token, readCall())).reason_code).toBe("agent_quarantined");
    } finally {
      await gateward.execute("ALTER TABLE receipts_away RENAME TO receipts");
    }
    await tenant.flushed();
    expect(problemsOf(await gateward.receipts(tenant.admin))).toEqual([]);
  });
});

describe("a lane that cannot confirm the registry", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: NEVER_MS, REGISTRY_TTL_MS: 100 } });
  });
  afterAll(() => gateward?.close());

  test("refuses writes once its time to live has passed, and goes on when D1 is back", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await gateward.decide(token, readCall());
    await gateward.execute("ALTER TABLE tenants RENAME TO tenants_away");
    try {
      await eventually("the lane refuses", async () => {
        const reply = await gateward.post<Problem>(token, "/v1/authorize", writeCall());
        return reply.status === 503 && reply.body.code === "registry_unavailable";
      });
    } finally {
      await gateward.execute("ALTER TABLE tenants_away RENAME TO tenants");
    }
    await eventually("the lane answers again", async () => (await gateward.post(token, "/v1/authorize", writeCall())).status === 200);
  });

  test("takes a revocation within its time to live", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await gateward.decide(token, readCall());
    await tenant.register({ agents: [{ agent: "coder", status: "revoked" }] });
    await eventually("the agent is revoked", async () => (await gateward.decide(token, readCall())).reason_code === "agent_revoked");
  });
});
