// Records, and who may read them: decisions, receipts and their verification.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeResponse, DecisionPage, DecisionRecord, Problem, ReceiptPage, ReceiptRecord, Verification } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import { canaryCall, Gateward, INSPECTABLE, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { GENESIS, problemsOf } from "../support/receipts.ts";

let gateward: Gateward;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

/** Calls of every outcome, in order: allow, deny, require_approval, quarantine, deny. */
async function playAll(tenant: Tenant): Promise<AuthorizeResponse[]> {
  const { token } = await tenant.agent();
  const answers = [];
  for (const body of [
    readCall({ request_id: "r1", user: { id: "u1" }, trace: { run_id: "run-1" } }),
    writeCall({ context: { source_trust: "untrusted_external" } }),
    writeCall({ context: { source_trust: "semi_trusted_customer" }, tool_call: { resource: "ünï\u0001\"\\\u{1f600}" } }),
    canaryCall(),
    readCall(),
  ]) {
    answers.push(await gateward.decide(token, body));
  }
  expect(answers.map(({ decision }) => decision)).toEqual(["allow", "deny", "require_approval", "quarantine", "deny"]);
  return answers;
}

/** Calls of one agent, all allowed. */
async function play(tenant: Tenant, count: number, agent = "coder"): Promise<AuthorizeResponse[]> {
  const { token } = await tenant.agent(agent);
  const answers = [];
  for (let at = 0; at < count; at += 1) answers.push(await gateward.decide(token, readCall({ agent: { id: agent } })));
  return answers;
}

async function list(tenant: Tenant, query: string): Promise<DecisionPage> {
  const reply = await gateward.get<DecisionPage>(tenant.admin, `/v1/decisions?${query}`);
  expect({ query, status: reply.status }).toEqual({ query, status: 200 });
  return reply.body;
}

function verify(tenant: Tenant, from: number, to: number): Promise<Reply<Verification>> {
  return gateward.post(tenant.admin, "/v1/receipts/verify", { lane: 0, from, to });
}

describe("rows in D1", () => {
  test("every journalled decision has a decision row, an audit event and a receipt, denials included", async () => {
    const tenant = await gateward.tenant();
    const answers = await playAll(tenant);
    await tenant.flushed();
    const ids = answers.map(({ decision_id }) => decision_id).sort();
    const decisions = await tenant.records<{ decision_id: string; response: string; seq: number }>("decisions");
    const receipts = await tenant.records<{ decision_id: string; seq: number; receipt_hash: string; kind: string }>("receipts");
    const events = await tenant.records<{ decision_id: string | null; kind: string; source: string; lane: number }>("audit_events");
    expect(decisions.map((row) => row.decision_id).sort()).toEqual(ids);
    expect(receipts.map((row) => row.decision_id).sort()).toEqual(ids);
    expect(events.map((row) => row.decision_id).filter((id) => id !== null).sort()).toEqual(ids);
    expect(new Set(events.map((row) => row.source))).toEqual(new Set(["coder"]));
    for (const answer of answers) {
      const row = decisions.find((decision) => decision.decision_id === answer.decision_id);
      expect(JSON.parse(row?.response ?? "null")).toEqual(answer);
      expect(receipts).toContainEqual(expect.objectContaining({
        decision_id: answer.decision_id,
        seq: answer.receipt?.seq,
        receipt_hash: answer.receipt?.receipt_hash,
        kind: "decision",
      }));
    }
  });

  test("arguments and secrets are in no row", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await gateward.decide(token, readCall({ tool_call: { parameters: { repo: "a-very-secret-argument" } } }));
    const journal = await gateward.laneRows(`${tenant.name}/0`, "SELECT * FROM journal");
    await tenant.flushed();
    const tables = await Promise.all((["decisions", "receipts", "audit_events"] as const).map((table) => tenant.records(table)));
    const written = JSON.stringify([journal, tables]);
    expect(written).not.toContain("a-very-secret-argument");
    expect(written).not.toContain(token.split(".")[4]);
  });
});

describe("GET /v1/decisions", () => {
  test("lists newest first, and says how far it reaches", async () => {
    const tenant = await gateward.tenant();
    const answers = await playAll(tenant);
    await tenant.flushed();
    const page = await list(tenant, "");
    expect(page.decisions.map((row) => row.response)).toEqual(answers.toReversed());
    expect(page.decisions[0]).toMatchObject({
      decision_id: answers[4]?.decision_id,
      lane: 0,
      seq: 5,
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      agent: "coder",
      server: "github",
      tool: "list_issues",
      decision: "deny",
      reason_code: "agent_quarantined",
    });
    expect(page.next_cursor).toBeNull();
    expect(page.flushed_through).toEqual([{ lane: 0, seq: 5, at: expect.any(String) }]);
  });

  test("filters by agent, decision and time", async () => {
    const tenant = await gateward.tenant();
    const answers = [...(await playAll(tenant)), ...(await play(tenant, 3, "other"))];
    await tenant.flushed();
    const times = (await list(tenant, "")).decisions.map(({ at }) => at).sort();
    const [first = "", last = ""] = [times[0], times.at(-1)];
    const afterLast = new Date(Date.parse(last) + 1).toISOString();
    const counts: [string, number][] = [
      ["agent=other", 3],
      ["agent=coder", 5],
      ["agent=nobody", 0],
      ["decision=deny", 2],
      ["decision=allow", 4],
      ["decision=redact", 0],
      ["agent=coder&decision=allow", 1],
      [`from=${first}`, answers.length],
      [`from=${first}&to=${afterLast}`, answers.length],
      [`from=${afterLast}`, 0],
      [`to=${first}`, 0],
      ["from=2000-01-01T00:00:00Z&to=2000-01-02T00:00:00Z", 0],
      ["to=2000-01-01T00:00:00Z", 0],
      ["from=2100-01-01T00:00:00Z", 0],
    ];
    for (const [query, count] of counts) {
      expect({ query, count: (await list(tenant, query)).decisions.length }).toEqual({ query, count });
    }
  });

  test("pages with cursors, each decision once", async () => {
    const tenant = await gateward.tenant();
    const answers = await play(tenant, 7);
    await tenant.flushed();
    for (const filter of ["", "&agent=coder", "&decision=allow"]) {
      const ids: string[] = [];
      const sizes: number[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page: DecisionPage = await list(tenant, `limit=3${filter}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
        ids.push(...page.decisions.map(({ decision_id }) => decision_id));
        sizes.push(page.decisions.length);
        cursor = page.next_cursor;
      }
      expect(ids).toEqual(answers.map(({ decision_id }) => decision_id).toReversed());
      expect(sizes).toEqual([3, 3, 1]);
    }
  });

  const wrong = ["limit=0", "limit=-1", "limit=many", "limit=1000000", "from=yesterday", "to=1", "cursor=!", "cursor=AAAA", "decision=maybe"];
  test.each(wrong)("%s is malformed", async (query) => {
    const tenant = await gateward.tenant();
    expectCode(await gateward.get<Problem>(tenant.admin, `/v1/decisions?${query}`), 400, "malformed_request");
  });

  test("an agent's token lists that agent's own decisions only", async () => {
    const tenant = await gateward.tenant();
    const own = await play(tenant, 2, "one");
    await play(tenant, 2, "two");
    const { token } = await tenant.agent("one");
    await tenant.flushed();
    for (const query of ["", "?agent=one"]) {
      const page = await gateward.get<DecisionPage>(token, `/v1/decisions${query}`);
      expect(page.status).toBe(200);
      expect(page.body.decisions.map(({ decision_id }) => decision_id)).toEqual(own.map(({ decision_id }) => decision_id).toReversed());
    }
    expectCode(await gateward.get<Problem>(token, "/v1/decisions?agent=two"), 403, "forbidden");
  });
});

describe("GET /v1/decisions/{id}", () => {
  test("an agent reads its own decision, and no other's", async () => {
    const tenant = await gateward.tenant();
    const [own] = await play(tenant, 1, "one");
    const [others] = await play(tenant, 1, "two");
    const { token } = await tenant.agent("one");
    const read = (id: string | undefined) => gateward.get<DecisionRecord & Problem>(token, `/v1/decisions/${id}`);
    expect((await read(own?.decision_id)).body.response).toEqual(own);
    expectCode(await read(others?.decision_id), 404, "not_found");
  });

  test("says what was claimed, and gives the policies' text to administrators alone", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("claims", {}, { max_source_trust: "unknown" });
    const call = writeCall({ agent: { id: "claims" }, context: { source_trust: "trusted_internal_unsigned" } });
    const denied = await gateward.decide(token, call);
    expect(denied).toMatchObject({
      decision: "deny",
      reason: expect.stringContaining("The credential's highest trust is `unknown`"),
      trust: { claimed: "trusted_internal_unsigned", effective: "unknown", lowered_by: "credential" },
    });
    const read = async (reader: string) =>
      (await gateward.get<{ policies: object[]; outcome: unknown }>(reader, `/v1/decisions/${denied.decision_id}`)).body;
    const policy_id = "base/provenance#untrusted-never-writes";
    for (const flushed of [false, true]) {
      if (flushed) await tenant.flushed();
      const shown = await read(tenant.admin);
      expect(shown.policies).toEqual([{ policy_id, text: expect.stringMatching(/^@id\("untrusted-never-writes"\)[^]+forbid/) }]);
      expect(shown.outcome).toBeNull();
      expect((await read(token)).policies).toEqual([{ policy_id, text: null }]);
    }
  });

  test.each(["0", "nothing", "00000000-0000-7000-8000-000000000000", "'%20OR%201=1"])("%s is not found", async (id) => {
    const tenant = await gateward.tenant();
    expectCode(await gateward.get<Problem>(tenant.admin, `/v1/decisions/${id}`), 404, "not_found");
  });
});

describe("tenants", () => {
  test("nothing crosses from one to another", async () => {
    const [tenant, stranger] = [await gateward.tenant(), await gateward.tenant()];
    const [answer] = await play(tenant, 3);
    await play(stranger, 1);
    const { token } = await stranger.agent("coder");
    for (const flushed of [false, true]) {
      if (flushed) await tenant.flushed();
      for (const reader of [stranger.admin, token]) {
        expectCode(await gateward.get<Problem>(reader, `/v1/decisions/${answer?.decision_id}`), 404, "not_found");
      }
      expectCode(await gateward.get<Problem>(stranger.admin, "/v1/receipts/rcpt_0_3"), 404, "not_found");
      expect((await gateward.receipts(stranger.admin)).map(({ body }) => body.tenant)).toEqual([stranger.name]);
    }
    await stranger.flushed();
    expect((await list(stranger, "")).decisions).toHaveLength(1);
    expect((await list(tenant, "")).decisions).toHaveLength(3);
  });
});

describe("receipts", () => {
  test("as the API returns them they verify with code that shares nothing with the worker", async () => {
    const tenant = await gateward.tenant();
    const answers = await playAll(tenant);
    const check = async () => {
      const receipts = await gateward.receipts(tenant.admin);
      expect(receipts).toHaveLength(answers.length);
      expect(problemsOf(receipts, GENESIS)).toEqual([]);
      for (const [at, { body, receipt_hash }] of receipts.entries()) {
        expect(body).toMatchObject({ tenant: tenant.name, decision_id: answers[at]?.decision_id, decision: answers[at]?.decision });
        expect(receipt_hash).toBe(answers[at]?.receipt?.receipt_hash);
      }
      return receipts;
    };
    const unflushed = await check();
    await tenant.flushed();
    expect(await check()).toEqual(unflushed);
  });

  test("a body has exactly the fields of the contract", async () => {
    const tenant = await gateward.tenant();
    const answers = await playAll(tenant);
    const [first] = await gateward.receipts(tenant.admin);
    expect(first?.body).toEqual({
      version: 2,
      kind: "decision",
      tenant: tenant.name,
      lane: 0,
      seq: 1,
      decision_id: answers[0]?.decision_id,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      agent: "coder",
      key_id: expect.stringMatching(/^k[0-9a-f]{12}$/),
      epoch: expect.any(Number),
      user: "u1",
      run: "run-1",
      server: "github",
      tool: "list_issues",
      resource: "",
      trust: "trusted_internal_unsigned",
      decision: "allow",
      reason_code: "policy_allow",
      matched_policies: ["base/provenance#reads-pass"],
      obligations: { approver_groups: [], redact_fields: [] },
      bundle: answers[0]?.bundle,
      action_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      approval_id: "",
      prev_hash: GENESIS,
    });
  });

  test("pages follow on each other", async () => {
    const tenant = await gateward.tenant();
    await play(tenant, 5);
    const seqs: number[][] = [];
    for (let from: number | null = 1; from !== null; ) {
      const page: Reply<ReceiptPage> = await gateward.get(tenant.admin, `/v1/receipts?lane=0&from=${from}&limit=2`);
      seqs.push(page.body.receipts.map(({ seq }) => seq));
      from = page.body.next_from;
    }
    expect(seqs.flat()).toEqual([1, 2, 3, 4, 5]);
    expect(seqs.every((page) => page.length <= 2)).toBe(true);
  });

  test("are found by id, flushed or not", async () => {
    const tenant = await gateward.tenant();
    const [answer] = await play(tenant, 1);
    const read = () => gateward.get<ReceiptRecord>(tenant.admin, `/v1/receipts/${answer?.receipt?.receipt_id}`);
    const unflushed = await read();
    expect(problemsOf([unflushed.body])).toEqual([]);
    await tenant.flushed();
    expect((await read()).body).toEqual(unflushed.body);
    for (const id of ["rcpt_0_2", "rcpt_1_1", "rcpt_0_0", "rcpt_0", "1"]) {
      expectCode(await gateward.get<Problem>(tenant.admin, `/v1/receipts/${id}`), 404, "not_found");
    }
  });

  test("end where the lane says, flushed or not", async () => {
    const tenant = await gateward.tenant();
    const ends = async (query = "lane=0") => gateward.get<Problem & object>(tenant.admin, `/v1/receipts/ends?${query}`);
    expect((await ends()).body).toEqual({ lane: 0, head: null, pruned_through: null });
    const answers = await play(tenant, 2);
    const { seq, receipt_hash } = answers.at(-1)?.receipt ?? {};
    for (const flushed of [false, true]) {
      if (flushed) await tenant.flushed();
      expect((await ends()).body).toEqual({ lane: 0, head: { seq, receipt_hash }, pruned_through: null });
    }
    expectCode(await ends("lane=7"), 404, "not_found");
    for (const query of ["", "lane=x", "lane=0&from=1"]) expectCode(await ends(query), 400, "malformed_request");
  });

  test("of a lane that does not exist are not made up", async () => {
    const tenant = await gateward.tenant();
    const before = await gateward.laneIds();
    const reply = await gateward.get<ReceiptPage & Problem>(tenant.admin, "/v1/receipts?lane=7&from=1");
    if (reply.status === 200) expect(reply.body.receipts).toEqual([]);
    else expectCode(reply, 404, "not_found");
    expect(await gateward.laneIds()).toEqual(before);
  });

  test.each(["lane=-1", "lane=x", "lane=0&from=-1", "lane=0&from=x", `lane=0&from=${2n ** 63n}`, "lane=0&limit=0", "lane=99999"])("?%s is malformed", async (query) => {
    const tenant = await gateward.tenant();
    expectCode(await gateward.get<Problem>(tenant.admin, `/v1/receipts?${query}`), 400, "malformed_request");
  });
});

describe("POST /v1/receipts/verify", () => {
  test("confirms a whole chain, a part of it, and one that is half flushed", async () => {
    const tenant = await gateward.tenant();
    await play(tenant, 4);
    await tenant.flushed();
    await play(tenant, 2);
    for (const [from, to, begins, anchored] of [
      [1, 6, "genesis", "head"],
      [1, 5, "genesis", "nothing"],
      [2, 5, "receipt", "nothing"],
      [6, 6, "receipt", "head"],
    ] as const) {
      expect((await verify(tenant, from, to)).body).toEqual({
        verified: true,
        checked: to - from + 1,
        from,
        to,
        complete: true,
        next_from: null,
        begins,
        anchored,
        pruned_through: null,
        broken_at: null,
        problem: null,
      });
    }
  });

  // [name, statement on the tenant ?1, where the chain is broken]
  const tampering: [string, string, number][] = [
    ["a decision that was changed", "UPDATE receipts SET body = replace(body, '\"decision\":\"allow\"', '\"decision\":\"deny\"') WHERE tenant = ?1 AND seq = 3", 3],
    ["a body in another spelling", "UPDATE receipts SET body = replace(body, '\"lane\":0', '\"lane\": 0') WHERE tenant = ?1 AND seq = 2", 2],
    ["a hash that was replaced", "UPDATE receipts SET receipt_hash = replace(hex(zeroblob(32)), '0', 'a') WHERE tenant = ?1 AND seq = 4", 4],
    ["a previous hash that was replaced", "UPDATE receipts SET prev_receipt_hash = replace(hex(zeroblob(32)), '0', 'a') WHERE tenant = ?1 AND seq = 5", 5],
    ["a row that is gone", "DELETE FROM receipts WHERE tenant = ?1 AND seq = 2", 2],
    ["the first row that is gone", "DELETE FROM receipts WHERE tenant = ?1 AND seq = 1", 1],
    ["the last row that is gone", "DELETE FROM receipts WHERE tenant = ?1 AND seq = 6", 6],
  ];
  test.each(tampering)("finds %s", async (_, sql, broken_at) => {
    const tenant = await gateward.tenant();
    await play(tenant, 6);
    await tenant.flushed();
    await gateward.execute(sql, tenant.name);
    const reply = await verify(tenant, 1, 6);
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ verified: false, broken_at, problem: expect.any(String) });
  });

  test("a tail that was sealed anew as a whole verifies short of the head, and is not anchored", async () => {
    const tenant = await gateward.tenant();
    await play(tenant, 4);
    await tenant.flushed();
    let previous = GENESIS;
    for (const receipt of await gateward.receipts(tenant.admin)) {
      const body = JSON.stringify({ ...receipt.body, prev_hash: previous, user: "somebody" });
      const hash = createHash("sha256").update(body).digest("hex");
      const sql = "UPDATE receipts SET body = ?2, receipt_hash = ?3, prev_receipt_hash = ?4 WHERE tenant = ?1 AND seq = ?5";
      await gateward.execute(sql, tenant.name, body, hash, previous, receipt.seq);
      previous = hash;
    }
    expect((await verify(tenant, 1, 3)).body).toMatchObject({ verified: true, anchored: "nothing" });
    expect((await verify(tenant, 1, 4)).body).toMatchObject({ verified: false, anchored: "nothing", broken_at: 4 });
  });

  test("finds a newest receipt that was changed and sealed anew", async () => {
    const tenant = await gateward.tenant();
    await play(tenant, 3);
    await tenant.flushed();
    const { receipts } = (await gateward.get<{ receipts: { body: object }[] }>(tenant.admin, "/v1/receipts?lane=0&from=3")).body;
    const body = JSON.stringify({ ...receipts[0]?.body, decision: "quarantine" });
    const hash = createHash("sha256").update(body).digest("hex");
    await gateward.execute(`UPDATE receipts SET body = '${body}', receipt_hash = '${hash}' WHERE tenant = ?1 AND seq = 3`, tenant.name);
    expect((await verify(tenant, 1, 3)).body).toMatchObject({ verified: false, broken_at: 3, problem: expect.stringContaining("newest") });
  });

  test("finds two rows that changed places", async () => {
    const tenant = await gateward.tenant();
    await play(tenant, 5);
    await tenant.flushed();
    for (const [from, to] of [[2, 99], [3, 2], [99, 3]]) {
      await gateward.execute(`UPDATE receipts SET seq = ${to} WHERE tenant = ?1 AND seq = ${from}`, tenant.name);
    }
    expect((await verify(tenant, 1, 5)).body).toMatchObject({ verified: false, broken_at: 2 });
  });

  const wrong = ["", "{}", "[]", '{"lane":0}', '{"lane":"0","from":1,"to":2}', '{"lane":0,"from":0,"to":2}',
    '{"lane":0,"from":3,"to":2}', '{"lane":-1,"from":1,"to":2}', '{"lane":0,"from":1.5,"to":2}'];
  test.each(wrong)("%s is malformed", async (body) => {
    const tenant = await gateward.tenant();
    expectCode(await gateward.post<Problem>(tenant.admin, "/v1/receipts/verify", body), 400, "malformed_request");
  });
});
