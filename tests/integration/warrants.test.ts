// Capability warrants on the wire: an orchestrator hands a sub-agent "refund up to 50 for this customer".
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Client, type Reply } from "../support/client.ts";
import type { Agent, AuthorizeResponse, DecisionPage } from "../support/api/types.gen.ts";
import { Api } from "../support/administration.ts";
import { BOOTSTRAP_SECRET, eventually, type Gateward, MAC_KEY, type Tenant } from "../support/gateward.ts";
import { answerIn } from "../support/mcp.ts";
import { builtModules, startWithProcess } from "../support/miniflare.ts";
import { call, outcome, Recorder, stateless } from "../support/recorder.ts";
import { mintLocator } from "../support/tokens.ts";
import { anything, APPROVALS_HEADER, Chain, exact, type Input, Key, revocationList, upTo } from "../support/warrants.ts";

const ROOT = new Key(1);
const ORCHESTRATOR = new Key(2);
/** Has no registration. */
const WORKER = new Key(3);
const STRANGER = new Key(9);

let recorder: Recorder;
let gateward: Gateward;
let tenant: Tenant;
/** The orchestrator's credential. */
let token: string;

beforeAll(async () => {
  recorder = await Recorder.start();
  ({ gateward, tenant } = recorder);
  await tenant.register({
    servers: [
      {
        server: "shop",
        kind: "http",
        upstream: { url: recorder.upstream.url("/v1/"), local: true, routes: [{ method: "POST", path: "/customers/{customer}/refunds", tool: "refund" }, { method: "GET", path: "/customers/{customer}/refunds", tool: "read" }] },
      },
      { server: "pay", kind: "named" },
    ],
    tools: [
      { server: "shop", tool: "refund", mutates: true, risk: "low" },
      { server: "shop", tool: "read", mutates: false, risk: "low" },
      { server: "pay", tool: "refund", mutates: true, risk: "low" },
      { server: "pay", tool: "list", mutates: false, risk: "low" },
    ],
  });
  const { api } = tenant;
  await api.create("/v1/warrant-roots", { root_id: "orchestration", public_key: ROOT.hex });
  await api.agent("orchestrator", { public_key: ORCHESTRATOR.hex });
  ({ token } = await api.credential("orchestrator"));
});
afterAll(() => recorder?.close());
beforeEach(() => recorder.reset());

/** The task: refunds of up to 50 for the customer c-7, by the worker. */
function task(): Chain {
  const all = { refund: { customer: anything, amount: upTo(500) }, list: {}, record: {}, change: {} };
  return Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: all }).attenuate({
    by: ORCHESTRATOR,
    holder: WORKER,
    tools: { refund: { customer: exact("c-7"), amount: upTo(50) }, list: {}, record: {}, change: {} },
  });
}

const body = (action: string, parameters: Input, more: object = {}) => ({
  agent: { id: "orchestrator", environment: "production" },
  tool_call: { tool: "pay", action, mutates_state: false, parameters },
  context: { source_trust: "trusted_internal_unsigned" as const, contains_sensitive_data: false },
  ...more,
});
const GOOD: Input = { customer: "c-7", amount: 20 };

/** The reason code of a decision, or the status and code of a problem. */
function said({ status, body }: Reply<Partial<AuthorizeResponse> & { code?: string }>): string {
  return status === 200 ? String(body.reason_code) : `${status} ${body.code}`;
}

async function authorize(parameters: Input, headers: Record<string, string>, more: object = {}): Promise<string> {
  return said(await gateward.post<AuthorizeResponse>(token, "/v1/authorize", body("refund", parameters, more), { headers }));
}

describe("POST /v1/authorize", () => {
  test("what was handed on passes, and an injected text cannot get more", async () => {
    const chain = task();
    expect(await authorize(GOOD, chain.headers(WORKER, "refund", GOOD))).toBe("policy_allow");
    for (const [what, input, code] of [
      ["more money", { customer: "c-7", amount: 51 }, "warrant_argument_refused"],
      ["another customer", { customer: "c-8", amount: 20 }, "warrant_argument_refused"],
      ["another argument", { customer: "c-7", amount: 20, note: "x" }, "warrant_argument_refused"],
      ["an argument less", { customer: "c-7" }, "warrant_argument_refused"],
    ] as const) {
      expect(await authorize(input, chain.headers(WORKER, "refund", input)), what).toBe(code);
    }
    // The worker hands itself more, or signs for another call.
    const wider = chain.attenuate({ by: WORKER, holder: WORKER, tools: { refund: { customer: anything, amount: upTo(500) } } });
    expect(await authorize(GOOD, wider.headers(WORKER, "refund", GOOD))).toBe("warrant_widened");
    expect(await authorize({ customer: "c-7", amount: 21 }, chain.headers(WORKER, "refund", GOOD))).toBe("warrant_proof_invalid");
    expect(await authorize(GOOD, chain.headers(STRANGER, "refund", GOOD))).toBe("warrant_proof_invalid");
    const forged = Chain.root({ by: STRANGER, holder: ORCHESTRATOR, tools: { refund: {} } });
    expect(await authorize(GOOD, forged.headers(ORCHESTRATOR, "refund", GOOD))).toBe("warrant_untrusted");
    const others = Chain.root({ by: ROOT, holder: STRANGER, tools: { refund: {} } });
    expect(await authorize(GOOD, others.headers(STRANGER, "refund", GOOD))).toBe("warrant_holder_unknown");
    expect(await authorize(GOOD, { "x-tenuo-warrant": "!" })).toBe("warrant_malformed");
    expect(await authorize(GOOD, { "x-tenuo-warrant": chain.text })).toBe("warrant_proof_missing");
  });

  test("a warrant is in the headers or in the body, in one place", async () => {
    const chain = task();
    const member = { warrant: chain.member(WORKER, "refund", GOOD) };
    expect(await authorize(GOOD, {}, member)).toBe("policy_allow");
    expect(await authorize(GOOD, chain.headers(WORKER, "refund", GOOD), member)).toBe("warrant_malformed");
    expect(await authorize(GOOD, { "x-tenuo-pop": "AA" })).toBe("warrant_malformed");
    expect(await authorize(GOOD, {}, { warrant: "AA" })).toBe("warrant_malformed");
    expect(await authorize(GOOD, {}, { warrant: { ...member.warrant, more: 1 } })).toBe("warrant_malformed");
  });

  test.each(Object.entries(APPROVALS_HEADER))("a call that needs approvals passes with those of its approvers, in %s", async (_, written) => {
    const [first, second] = [new Key(11), new Key(12)];
    const chain = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: {} }, approvers: [first, second] });
    const send = (approvals: Buffer[]) =>
      authorize(GOOD, { ...chain.headers(ORCHESTRATOR, "refund", GOOD), "x-tenuo-approvals": written(approvals) });
    const by = (approver: Key, input = GOOD) => chain.approve(approver, "refund", input);
    for (const [what, approvals] of [
      ["none", []],
      ["too few", [by(first)]],
      ["one twice", [by(first), by(first)]],
      ["of somebody else", [by(first), by(STRANGER)]],
      ["of another call", [by(first), by(second, { ...GOOD, amount: 21 })]],
    ] as const) {
      expect(await send([...approvals]), what).toBe("warrant_approval_missing");
    }
    expect(await send([by(second), by(first)])).toBe("policy_allow");
    expect(await authorize(GOOD, { ...chain.headers(ORCHESTRATOR, "refund", GOOD), "x-tenuo-approvals": "!" })).toBe("warrant_malformed");
  });

  test("a denial names the approvals that the warrant asks for", async () => {
    const [first, second] = [new Key(11), new Key(12)];
    const chain = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: {} }, approvers: [first, second] });
    const warrant = { ...chain.member(ORCHESTRATOR, "refund", GOOD), approvals: [chain.approve(first, "refund", GOOD).toString("base64")] };
    const { body: denied } = await gateward.post<AuthorizeResponse>(token, "/v1/authorize", body("refund", GOOD, { warrant }));
    expect(denied).toMatchObject({
      reason_code: "warrant_approval_missing",
      warrant_approvals: { request_hash: chain.requestHash("refund", GOOD), got: 1, need: 2 },
    });
  });

  test("the resource of a call with a warrant is one of its arguments", async () => {
    const chain = task();
    for (const [amount, resource, code] of [
      [1, "c-7", "policy_allow"],
      [2, "c-8", "warrant_argument_refused"],
    ] as const) {
      const input = { customer: "c-7", amount };
      const asked = body("refund", input);
      const request = { ...asked, tool_call: { ...asked.tool_call, resource } };
      const headers = chain.headers(WORKER, "refund", input);
      expect(said(await gateward.post<AuthorizeResponse>(token, "/v1/authorize", request, { headers })), resource).toBe(code);
    }
  });

  test("a request that is repeated gets its answer, and the receipt names the chain", async () => {
    const chain = task();
    const send = (more: object) =>
      gateward.post<AuthorizeResponse>(token, "/v1/authorize", body("refund", GOOD, more), { headers: chain.headers(WORKER, "refund", GOOD) });
    const { body: first } = await send({ request_id: "r-1" });
    expect(first.reason_code).toBe("policy_allow");
    expect((await send({ request_id: "r-1" })).body).toEqual(first);
    expect(said(await send({ request_id: "r-2" }))).toBe("warrant_proof_used");
    expect(said(await send({ nonce: "n", timestamp: new Date().toISOString() }))).toBe("warrant_malformed");
    let rows: { body: string }[] = [];
    await eventually("the receipt is in D1", async () => {
      rows = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE decision_id = ?1", first.decision_id);
      return rows.length === 1;
    });
    const receipt = JSON.parse(rows[0]?.body ?? "{}") as { warrant?: object };
    expect(receipt.warrant).toEqual({ chain_hash: chain.sha256, depth: 1, id: chain.id, root: ROOT.hex });
  });

  test("of twenty requests with one proof, one passes, and none after the object was evicted", async () => {
    const chain = task();
    const headers = chain.headers(WORKER, "refund", GOOD);
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => authorize(GOOD, headers)));
    expect(outcomes.filter((it) => it === "policy_allow")).toHaveLength(1);
    expect(outcomes.filter((it) => it === "warrant_proof_used")).toHaveLength(19);
    const agent = await tenant.api.read<{ lane: number }>("/v1/agents/orchestrator");
    await tenant.evict(agent.lane);
    expect(await authorize(GOOD, headers)).toBe("warrant_proof_used");
  });

  test("a read may repeat its proof", async () => {
    const chain = task();
    const headers = chain.headers(WORKER, "list", {});
    for (let times = 0; times < 2; times += 1) {
      expect(said(await gateward.post<AuthorizeResponse>(token, "/v1/authorize", body("list", {}), { headers }))).toBe("policy_allow");
    }
  });

  test("after a revocation was acknowledged, no call passes", async () => {
    const root = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: {} } });
    const leaf = root.attenuate({ by: ORCHESTRATOR, holder: WORKER, tools: { refund: {} } });
    const of = (amount: number) => ({ customer: "c", amount });
    expect(await authorize(of(1), leaf.headers(WORKER, "refund", of(1)))).toBe("policy_allow");
    await tenant.api.create("/v1/warrant-revocations", { warrant_id: root.id, reason: "leaked" });
    expect(await authorize(of(2), leaf.headers(WORKER, "refund", of(2)))).toBe("warrant_revoked");
  });
});

describe("without a credential", () => {
  let locator: string;
  const send = (bearer: string, input: Input, headers: Record<string, string>) =>
    gateward.post<AuthorizeResponse & { code?: string; detail?: string }>(bearer, "/v1/authorize", body("refund", input), { headers });
  const saidTo = async (bearer: string, input: Input, headers: Record<string, string>) => said(await send(bearer, input, headers));
  const rows = async () => {
    const [row] = await gateward.rows<{ rows: number }>("SELECT count(*) AS rows FROM decisions WHERE agent = 'orchestrator'");
    return row?.rows ?? 0;
  };

  beforeAll(async () => {
    await tenant.api.change("PATCH", "/v1/settings", { warrant_alone_trust: "trusted_internal_unsigned" });
    locator = (await tenant.api.read<{ warrant_locator: string }>("/v1/agents/orchestrator")).warrant_locator;
  });
  afterAll(() => tenant.api.change("PATCH", "/v1/settings", { warrant_alone_trust: null }));

  test("a sub-agent without any registration gets what it was handed, and no more", async () => {
    const chain = task();
    expect(locator).toMatch(/^gwl_/);
    expect(await saidTo(locator, GOOD, chain.headers(WORKER, "refund", GOOD))).toBe("policy_allow");
    const again = await send(locator, GOOD, chain.headers(WORKER, "refund", GOOD));
    expect(`${again.status} ${again.body.detail}`).toMatch(/^401 The proof was used: each proof is valid for one call/);
    const more: Input = { customer: "c-7", amount: 51 };
    const refused = await send(locator, more, chain.headers(WORKER, "refund", more));
    expect(refused.body.reason).toBe("Link 1 of the warrant's chain: it does not allow this value of `amount`.");
    expect(said(refused)).toBe("warrant_argument_refused");
  });

  test("of twenty requests with one proof, one passes", async () => {
    const headers = task().headers(WORKER, "refund", GOOD);
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => saidTo(locator, GOOD, headers)));
    expect(outcomes.filter((it) => it === "policy_allow")).toHaveLength(1);
    expect(outcomes.filter((it) => it === "401 warrant_refused")).toHaveLength(19);
  });

  test("a caller with only the locator is a stranger", async () => {
    const chain = task();
    const before = await rows();
    const own = Chain.root({ by: STRANGER, holder: ORCHESTRATOR, tools: { refund: {} } });
    const others = Chain.root({ by: STRANGER, holder: STRANGER, tools: { refund: {} } });
    for (const [what, headers] of [
      ["nothing", {}],
      ["no proof", { "x-tenuo-warrant": chain.text }],
      ["another's proof", chain.headers(STRANGER, "refund", GOOD)],
      ["only a proof", { "x-tenuo-pop": "AA" }],
      ["a root of its own", own.headers(ORCHESTRATOR, "refund", GOOD)],
      ["a chain of its own", others.headers(STRANGER, "refund", GOOD)],
    ] as const) {
      expect(await saidTo(locator, GOOD, headers), what).toBe("401 warrant_refused");
    }
    expect(await saidTo(`${locator.slice(0, -1)}${locator.endsWith("0") ? "1" : "0"}`, GOOD, chain.headers(WORKER, "refund", GOOD))).toBe("401 unauthorized");
    for (const path of ["/v1/approvals", "/v1/decisions", "/v1/agents", "/v1/limits/status"]) {
      expect((await gateward.get(locator, path, { headers: chain.headers(WORKER, "refund", GOOD) })).status, path).toBe(401);
    }
    expect((await gateward.post(locator, "/v1/runs", { run_id: "r", instruction: "x" })).status).toBe(401);
    expect(await rows(), "strangers write no rows").toBe(before);
    // A refusal by the worker is counted for no tenant, a refusal by the lane for the tenant.
    await eventually("the audit has the reasons", async () => {
      const events = await gateward.rows<{ kind: string; source: string }>("SELECT kind, source FROM audit_events WHERE kind LIKE 'warrant%'");
      const lanes = events.filter(({ source }) => source === "@warrant").map(({ kind }) => kind);
      const workers = events.filter(({ source }) => source !== "@warrant").map(({ kind }) => kind);
      return lanes.includes("warrant_untrusted") && ["warrant_required", "warrant_malformed", "warrant_proof_missing", "warrant_proof_invalid"].every((kind) => workers.includes(kind));
    });
  });

  test("a forged locator wakes no lane, and neither does a real one without a chain and a proof that hold", async () => {
    const quiet = await gateward.tenant();
    const of = (agent: string, key: Key, lane = 0, macKey = MAC_KEY) => mintLocator(macKey, quiet.name, agent, key.public, lane);
    const real = of("orchestrator", ORCHESTRATOR);
    const cut = real.lastIndexOf(".");
    const sealed = (locator: string) => `${locator.slice(0, locator.lastIndexOf("."))}${real.slice(cut)}`;
    const chain = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: {} } });
    const good = chain.headers(ORCHESTRATOR, "refund", GOOD);
    const others = Chain.root({ by: ROOT, holder: STRANGER, tools: { refund: {} } }).headers(STRANGER, "refund", GOOD);
    const before = await gateward.laneIds();
    for (const [code, what, locator, headers] of [
      ["unauthorized", "a seal of another key", of("orchestrator", ORCHESTRATOR, 0, MAC_KEY.replace("a", "b")), good],
      ["unauthorized", "another seal", `${real.slice(0, -1)}${real.endsWith("0") ? "1" : "0"}`, good],
      ["unauthorized", "no seal", real.slice(0, cut), good],
      ["unauthorized", "another agent's name", sealed(of("other", ORCHESTRATOR)), good],
      ["unauthorized", "another lane", sealed(of("orchestrator", ORCHESTRATOR, 1)), good],
      ["unauthorized", "another key", sealed(of("orchestrator", STRANGER)), others],
      ["warrant_refused", "no warrant", real, {}],
      ["warrant_refused", "no proof", real, { "x-tenuo-warrant": chain.text }],
      ["warrant_refused", "somebody else's proof", real, chain.headers(STRANGER, "refund", GOOD)],
      ["warrant_refused", "somebody else's chain", real, others],
    ] as const) {
      expect(await saidTo(locator, GOOD, headers), what).toBe(`401 ${code}`);
      expect(await gateward.laneIds(), what).toEqual(before);
    }
    // Whether the root is registered, only the lane knows.
    expect(await saidTo(real, GOOD, good)).toBe("401 unauthorized");
    expect(await gateward.laneIds()).toHaveLength(before.length + 1);
  });

  test("a revoked warrant identifies nobody", async () => {
    const chain = task();
    await tenant.api.create("/v1/warrant-revocations", { warrant_id: chain.id, reason: "done" });
    expect(await saidTo(locator, GOOD, chain.headers(WORKER, "refund", GOOD))).toBe("401 warrant_refused");
  });

  test("the same for an API and for an MCP server", async () => {
    const chain = task();
    const refund = (headers: Record<string, string>, amount: number) =>
      fetch(new URL("/http/shop/customers/c-7/refunds", gateward.url), {
        method: "POST",
        headers: { authorization: `Bearer ${locator}`, "content-type": "application/json", ...headers },
        body: JSON.stringify({ amount }),
      });
    expect((await refund(chain.headers(WORKER, "refund", GOOD), 20)).status).toBe(200);
    const tooMuch = await refund(chain.headers(WORKER, "refund", { customer: "c-7", amount: 51 }), 51);
    expect(`${tooMuch.status} ${tooMuch.headers.get("x-gateward-reason-code")}`).toBe("403 warrant_argument_refused");
    expect((await refund({}, 20)).status).toBe(401);
    const own = Chain.root({ by: STRANGER, holder: ORCHESTRATOR, tools: { refund: {} } });
    expect((await refund(own.headers(ORCHESTRATOR, "refund", GOOD), 20)).status).toBe(401);
    expect(recorder.upstream.received).toHaveLength(1);
    recorder.reset();
    const message = (meta: object) => recorder.send(call("record", { arguments: {}, _meta: meta }), { token: locator });
    expect(await outcome(await message({ tenuo: chain.member(WORKER, "record", {}) }))).toBe("200 -");
    const refunds = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: {} } });
    expect(await outcome(await message({ tenuo: refunds.member(ORCHESTRATOR, "record", {}) }))).toBe("200 -32001");
    expect(await outcome(await message({}))).toBe("401 -32001");
    const { status } = await recorder.send({ jsonrpc: "2.0", id: 1, method: "tools/list" }, { token: locator });
    expect(status).toBe(401);
    expect(recorder.upstream.received).toHaveLength(1);
  });

  test("the same for a gateway that asks", async () => {
    const chain = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { read: { customer: exact("c-7") } } });
    const of = (customer: string, by = ORCHESTRATOR) => chain.headers(by, "read", { customer });
    const ask = async (customer: string, headers: Record<string, string>) => {
      const asked = { "x-original-method": "GET", "x-original-uri": `/customers/${customer}/refunds`, ...headers };
      const { status, headers: answered } = await gateward.get(locator, "/v1/forward-auth/shop", { headers: asked });
      return `${status} ${answered.get("x-gateward-reason-code")}`;
    };
    const proved = of("c-7");
    expect(await ask("c-7", proved)).toBe("200 policy_allow");
    // The worker knows the chain now, and the proof must be right as before.
    expect(await ask("c-7", proved), "a used proof").toBe("401 warrant_refused");
    expect(await ask("c-8", of("c-8"))).toBe("403 warrant_argument_refused");
    expect(await ask("c-7", of("c-7", STRANGER))).toBe("401 warrant_refused");
    expect(await ask("c-7", {})).toBe("401 warrant_refused");
  });

  test("strangers with somebody's chain are refused before the lane verifies more of them", async () => {
    const own = new Key(5);
    const { warrant_locator } = await tenant.api.agent("crowded", { public_key: own.hex });
    const chain = Chain.root({ by: ROOT, holder: own, tools: { read: {} } });
    const headers = { authorization: `Bearer ${warrant_locator}`, ...chain.headers(STRANGER, "read", { customer: "c-7" }) };
    const read = () => fetch(new URL("/http/shop/customers/c-7/refunds", gateward.url), { headers });
    // Far more than it verifies in a row, so that those that it verifies meanwhile do not matter.
    const answers = await Promise.all(Array.from({ length: 200 }, read));
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 401).length + refused.length).toBe(200);
    expect(refused.length).toBeGreaterThan(0);
    expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(recorder.upstream.received).toEqual([]);
  });

  test("a tenant that does not say so accepts none", async () => {
    await tenant.api.change("PATCH", "/v1/settings", { warrant_alone_trust: null });
    const chain = task();
    expect(await saidTo(locator, GOOD, chain.headers(WORKER, "refund", GOOD))).toBe("401 unauthorized");
    await tenant.api.change("PATCH", "/v1/settings", { warrant_alone_trust: "trusted_internal_unsigned" });
    expect(await saidTo(locator, GOOD, chain.headers(WORKER, "refund", GOOD))).toBe("policy_allow");
  });
});

test("a signed list revokes what it names, and an older one is refused", async () => {
  const root = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: {} } });
  const leaf = root.attenuate({ by: ORCHESTRATOR, holder: WORKER, tools: { refund: {} } });
  const take = (list: string) => gateward.send("PUT", tenant.api.token, "/v1/warrant-roots/orchestration/revocation-list", { list });
  expect((await take(revocationList(STRANGER, [root.id], 2))).status).toBe(422);
  expect(await authorize(GOOD, leaf.headers(WORKER, "refund", GOOD))).toBe("policy_allow");
  expect((await take(revocationList(ROOT, [root.id], 2))).status).toBe(200);
  const more: Input = { customer: "c-7", amount: 21 };
  expect(await authorize(more, leaf.headers(WORKER, "refund", more))).toBe("warrant_revoked");
  expect((await take(revocationList(ROOT, [root.id], 2))).status, "the same list again").toBe(200);
  expect((await take(revocationList(ROOT, [], 2))).status, "another list of the same version").toBe(409);
  expect((await take(revocationList(ROOT, [], 1))).status, "an older one").toBe(409);
});

test("a signed list revokes for its own root only", async () => {
  const other = new Key(8);
  await tenant.api.create("/v1/warrant-roots", { root_id: "other", public_key: other.hex });
  const chain = (by: Key) => Chain.root({ by, holder: ORCHESTRATOR, tools: { refund: {} } });
  const [own, others] = [chain(ROOT), chain(other)];
  const list = revocationList(other, [own.id, others.id], 1);
  expect((await gateward.send("PUT", tenant.api.token, "/v1/warrant-roots/other/revocation-list", { list })).status).toBe(200);
  expect(await authorize(GOOD, own.headers(ORCHESTRATOR, "refund", GOOD))).toBe("policy_allow");
  expect(await authorize(GOOD, others.headers(ORCHESTRATOR, "refund", GOOD))).toBe("warrant_revoked");

  // Its version does not go back when the root is registered again.
  expect((await gateward.send("DELETE", tenant.api.token, "/v1/warrant-roots/other")).status).toBe(200);
  await tenant.api.create("/v1/warrant-roots", { root_id: "again", public_key: other.hex });
  const older = revocationList(other, [], 0);
  expect((await gateward.send("PUT", tenant.api.token, "/v1/warrant-roots/again/revocation-list", { list: older })).status).toBe(409);
  expect(await authorize(GOOD, others.headers(ORCHESTRATOR, "refund", GOOD))).toBe("warrant_revoked");
});

test("each answer that shows an agent with a key has its locator", async () => {
  const key = new Key(6);
  const fields = { agent: "located", environment: "production", public_key: key.hex };
  const once = { idempotencyKey: "located" };
  const { warrant_locator } = await tenant.api.change<Agent>("POST", "/v1/agents", fields, once);
  expect(warrant_locator).toMatch(/^gwl_/);
  const again = await tenant.api.change<Agent>("POST", "/v1/agents", fields, once);
  expect(again.warrant_locator, "repeated").toBe(warrant_locator);
  expect((await tenant.api.read<Agent>("/v1/agents/located")).warrant_locator).toBe(warrant_locator);
  const patch = (public_key: string | null) => tenant.api.change<Agent>("PATCH", "/v1/agents/located", { public_key });
  expect((await patch(null)).warrant_locator).toBeNull();
  expect((await patch(new Key(7).hex)).warrant_locator).not.toBe(warrant_locator);
  expect((await patch(key.hex)).warrant_locator).toBe(warrant_locator);
});

test("a key is one agent's", async () => {
  const { status } = await tenant.api.post("/v1/agents", { agent: "twin", environment: "production", public_key: ORCHESTRATOR.hex });
  expect(status).toBe(409);
});

describe("/mcp", () => {
  const send = (name: string, input: Input, meta: object | undefined, headers = {}) =>
    recorder.send(call(name, { arguments: input, _meta: { progressToken: 1, ...(meta !== undefined && { tenuo: meta }) } }), { token, headers });

  test("a call passes without its warrant, and a refusal is an error that clients know", async () => {
    const chain = task();
    const passed = await send("record", {}, chain.member(WORKER, "record", {}));
    expect(await outcome(passed)).toBe("200 -");
    expect(recorder.upstream.received).toHaveLength(1);
    const [{ text } = { text: "" }] = recorder.upstream.received;
    expect(text).toContain("progressToken");
    expect(text).not.toContain("tenuo");
    expect(text).not.toContain(chain.text);
    recorder.reset();
    expect(await outcome(await send("record", { a: 1 }, chain.member(WORKER, "record", {})))).toBe("200 -32001");
    expect(await outcome(await send("record", {}, { warrant: "!", signature: "AA" }))).toBe("200 -32602");
    expect(await outcome(await send("record", {}, { warrant: 5 }))).toBe("200 -32602");
    const answering = stateless("tools/call", { name: "record", arguments: {}, inputResponses: { k: {} }, _meta: { tenuo: chain.member(WORKER, "record", {}) } });
    expect(await outcome(await recorder.sendStateless(answering, { token }))).toBe("200 -32602");
    expect(await outcome(await send("record", {}, chain.member(WORKER, "record", {}), chain.headers(WORKER, "record", {})))).toBe("200 -32602");
    expect(recorder.upstream.received).toEqual([]);
    const [headers, batch] = [chain.headers(WORKER, "record", {}), [call("record")]];
    const inBatch = await recorder.send(batch, { token, headers: { ...headers, "mcp-protocol-version": "2025-03-26" } });
    expect(await inBatch.json()).toMatchObject([{ error: { code: -32602 } }]);
    expect(recorder.upstream.received).toEqual([]);
    const inHeaders = await send("record", {}, undefined, headers);
    expect(await outcome(inHeaders)).toBe("200 -");
    expect(JSON.stringify(recorder.upstream.received[0]?.headers)).not.toContain("tenuo");
  });

  test("the error for a call without its approvals has the request hash, and the counts if there are some", async () => {
    const [first, second] = [new Key(11), new Key(12)];
    const chain = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { record: {} }, approvers: [first, second] });
    const sent = async (...approvers: Key[]) => {
      const approvals = approvers.map((approver) => chain.approve(approver, "record", {}).toString("base64"));
      return answerIn(await send("record", {}, { ...chain.member(ORCHESTRATOR, "record", {}), approvals }));
    };
    const request_hash = chain.requestHash("record", {});
    const { error: none } = await sent();
    expect(none).toMatchObject({ code: -32002, data: { request_hash, "dev.gateward/reason_code": "warrant_approval_missing" } });
    expect(none?.data).not.toHaveProperty("got");
    expect((await sent(second)).error).toMatchObject({ code: -32002, data: { request_hash, got: 1, need: 2 } });
    expect(recorder.upstream.received).toEqual([]);
    expect((await sent(first, second)).error).toBeUndefined();
  });
});

describe("/http and /v1/forward-auth", () => {
  const refund = (customer: string, amount: number, headers: Record<string, string>) =>
    fetch(new URL(`/http/shop/customers/${customer}/refunds`, gateward.url), {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      body: JSON.stringify({ amount }),
    });

  test("the arguments are the route's and the body's, and no header is forwarded", async () => {
    const chain = task();
    const good = { customer: "c-7", amount: 20 };
    const passed = await refund("c-7", 20, chain.headers(WORKER, "refund", good));
    expect(passed.status).toBe(200);
    expect(recorder.upstream.received).toHaveLength(1);
    expect(JSON.stringify(recorder.upstream.received[0]?.headers)).not.toContain("tenuo");
    for (const [customer, amount] of [["c-7", 51], ["c-8", 20]] as const) {
      const input = { customer, amount };
      const refused = await refund(customer, amount, chain.headers(WORKER, "refund", input));
      expect(`${refused.status} ${refused.headers.get("x-gateward-reason-code")}`).toBe("403 warrant_argument_refused");
    }
    const again = await refund("c-7", 20, chain.headers(WORKER, "refund", good));
    expect(again.headers.get("x-gateward-reason-code")).toBe("warrant_proof_used");
    expect(recorder.upstream.received).toHaveLength(1);
  });

  test("a denial names the approvals that the warrant asks for", async () => {
    const chain = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: {}, read: {} }, approvers: [new Key(11)] });
    const input = { customer: "c-7", amount: 20 };
    const denied = await refund("c-7", 20, chain.headers(ORCHESTRATOR, "refund", input));
    expect(await denied.json()).toMatchObject({ code: "call_denied", warrant_approvals: { request_hash: chain.requestHash("refund", input), got: 0, need: 1 } });
    const read = { customer: "c-7" };
    const headers = { "x-original-method": "GET", "x-original-uri": "/customers/c-7/refunds", ...chain.headers(ORCHESTRATOR, "read", read) };
    const { status, body: told } = await gateward.get(token, "/v1/forward-auth/shop", { headers });
    expect({ status, told }).toMatchObject({ status: 403, told: { warrant_approvals: { request_hash: chain.requestHash("read", read), got: 0, need: 1 } } });
  });

  test("a gateway that asks gets an answer about what it shows", async () => {
    const chain = Chain.root({ by: ROOT, holder: ORCHESTRATOR, tools: { refund: { customer: anything }, read: { customer: exact("c-7") } } });
    const ask = async (method: string, customer: string, tool: string) => {
      const headers = { "x-original-method": method, "x-original-uri": `/customers/${customer}/refunds`, ...chain.headers(ORCHESTRATOR, tool, { customer }) };
      const { status, headers: answered } = await gateward.get(token, "/v1/forward-auth/shop", { headers });
      return `${status} ${answered.get("x-gateward-reason-code")}`;
    };
    expect(await ask("GET", "c-7", "read")).toBe("200 policy_allow");
    expect(await ask("GET", "c-8", "read")).toBe("403 warrant_argument_refused");
    // The gateway does not show the body, which has the amount.
    expect(await ask("POST", "c-7", "refund")).toBe("403 warrant_unsupported");
  });
});

test("of twenty requests with one proof, of which a kill of the runtime ends some, one passes", async () => {
  const state = mkdtempSync(join(tmpdir(), "gateward-warrants-"));
  const bindings = { LOCAL_TARGETS: "true", TOKEN_MAC_KEY: MAC_KEY, BOOTSTRAP_SECRET };
  const start = (migrate: boolean) => startWithProcess({ modules: builtModules(), bindings, state, migrate });
  try {
    let runtime = await start(true);
    const bootstrap = await new Client(runtime.url).post<{ token: string }>(BOOTSTRAP_SECRET, "/v1/bootstrap", { tenant: "acme" });
    const api = new Api(new Client(runtime.url), bootstrap.body.token);
    await api.server("pay");
    await api.create("/v1/servers/pay/tools", { tool: "refund", mutates: true, risk: "low" });
    await api.approveTool("/v1/servers/pay/tools/refund");
    await api.create("/v1/warrant-roots", { root_id: "r", public_key: ROOT.hex });
    await api.agent("orchestrator", { public_key: ORCHESTRATOR.hex });
    const credential = await api.credential("orchestrator");
    const headers = task().headers(WORKER, "refund", GOOD);
    const outcomes: string[] = [];
    const send = async () => {
      const answer = await new Client(runtime.url).post<AuthorizeResponse>(credential.token, "/v1/authorize", body("refund", GOOD), { headers });
      outcomes.push(said(answer));
      return answer.body.decision_id;
    };
    const sent = Array.from({ length: 20 }, () => send().catch(() => outcomes.push("no answer")));
    await Promise.race(sent);
    const exited = once(runtime.workerd, "exit");
    runtime.workerd.kill("SIGKILL");
    await exited;
    await Promise.all(sent);
    await runtime.miniflare.dispose();
    expect(outcomes).toHaveLength(20);
    runtime = await start(false);
    try {
      // The proof is valid for more than a minute. If the very first call was acknowledged, its proof was used.
      const passed = outcomes.filter((it) => it === "policy_allow").length;
      const last = await Promise.all([send(), send()]);
      const [first, second] = outcomes.slice(-2).sort();
      expect(second).toBe("warrant_proof_used");
      expect(passed + (first === "policy_allow" ? 1 : 0), outcomes.join()).toBeLessThanOrEqual(1);
      if (passed === 1) expect(first).toBe("warrant_proof_used");
      // One passed, also if nobody was told so.
      const reader = new Api(new Client(runtime.url), bootstrap.body.token);
      const read = async () => (await reader.read<DecisionPage>("/v1/decisions")).decisions;
      let rows = await read();
      await eventually("the last decisions are in D1", async () => {
        rows = await read();
        return last.every((id) => rows.some(({ decision_id }) => decision_id === id));
      });
      expect(rows.filter(({ reason_code }) => reason_code === "policy_allow")).toHaveLength(1);
    } finally {
      await runtime.miniflare.dispose();
    }
  } finally {
    rmSync(state, { recursive: true });
  }
});
