// Decisions for callers: the semantics of POST /v1/authorize.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeResponse, Limit, Problem, SourceTrust } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import {
  canaryCall,
  type Changes,
  eventually,
  Gateward,
  INSPECTABLE,
  MAC_KEY,
  readCall,
  type Tenant,
  writeCall,
} from "../support/gateward.ts";
import { canonicalize, sha256Hex } from "../support/receipts.ts";
import { sign } from "../support/tokens.ts";

/**
 * Counts are written when they reach a power of two, and when their window of 60 s has closed. The
 * tests cause a power of two, so they have to wait only if a window ends meanwhile.
 */
const AGGREGATION_LIMIT_MS = 90_000;
const AGGREGATION_TEST_MS = 120_000;

let gateward: Gateward;
/** The tenant that the bundle has an overlay for. */
let demo: Tenant;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  demo = await gateward.tenant({}, "demo");
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

/** The body of the receipt that `answer` names, as the API returns it. */
async function receiptOf(tenant: Tenant, answer: AuthorizeResponse): Promise<Record<string, unknown>> {
  const reply = await gateward.get<{ body: Record<string, unknown> }>(tenant.admin, `/v1/receipts/${answer.receipt?.receipt_id}`);
  expect(reply.status).toBe(200);
  return reply.body.body;
}

describe("an answer", () => {
  test("has every field of the contract", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const reply = await gateward.post<AuthorizeResponse>(token, "/v1/authorize", readCall({ request_id: "r1" }));
    expect(reply.status).toBe(200);
    expect(reply.headers.get("content-type")).toMatch(/^application\/json/);
    expect(reply.headers.get("x-request-id")).toBeTruthy();
    expect(reply.body).toEqual({
      decision_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      decision: "allow",
      risk_score: expect.any(Number),
      risk_level: "low",
      composite_risk_score: expect.any(Number),
      reason: expect.stringMatching(/^[A-Z].*\.$/),
      reason_code: "policy_allow",
      matched_policies: ["base/provenance#reads-pass"],
      approval: null,
      redacted_fields: [],
      root_trust_level: "trusted_internal_unsigned",
      trust: { claimed: "trusted_internal_signed", effective: "trusted_internal_unsigned", lowered_by: "signature" },
      dry_run: false,
      bundle: expect.stringMatching(/^[0-9a-f]{64}$/),
      receipt: {
        receipt_id: "rcpt_0_1",
        lane: 0,
        seq: 1,
        receipt_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        prev_receipt_hash: "0".repeat(64),
        canon_version: "rfc8785",
      },
    });
  });

  test("carries the digest that /version tells", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const version = await gateward.request<{ bundle: string }>("/version");
    expect((await gateward.decide(token, readCall())).bundle).toBe(version.body.bundle);
  });

  // [what, changes, decision, reason code, policies]
  const refund = (amount: number): Changes => ({
    tool_call: {
      tool: "crm",
      action: "refund",
      mutates_state: true,
      parameters: { customer_id: "c1", amount, currency: "EUR" },
    },
  });
  const trust = (source_trust: string): Changes => ({ context: { source_trust: source_trust as SourceTrust } });
  const merge = "base/provenance#trusted-writes-pass";
  const cases: [string, Changes, string, string, string[]][] = [
    ["a read from outside is allowed", { ...trust("untrusted_external") }, "allow", "policy_allow", ["base/provenance#reads-pass"]],
    ["a small refund is allowed", refund(12.5), "allow", "policy_allow", [merge]],
    ["a large refund needs approval", refund(500.01), "require_approval", "policy_require_approval", [merge, "tenants/demo/crm#large-refunds-need-finance"]],
    ["a customer's refund needs approval", { ...refund(1), ...trust("semi_trusted_customer") }, "require_approval", "policy_require_approval", ["base/provenance#customer-writes-need-approval"]],
    ["a suspected refund is denied", { ...refund(1), ...trust("malicious_suspected") }, "deny", "policy_forbid", ["base/provenance#untrusted-never-writes"]],
    ["a trust level that does not exist counts as unknown", { ...refund(1), ...trust("root") }, "deny", "policy_forbid", ["base/provenance#untrusted-never-writes"]],
    ["an amount with five decimals does not convert", refund(1.00001), "deny", "input_invalid", []],
    ["an argument of another type does not match", { tool_call: { parameters: { repo: 7 } } }, "deny", "input_schema_mismatch", []],
    ["a required argument is missing", { tool_call: { parameters: {} } }, "deny", "input_schema_mismatch", []],
    ["an argument that the tool does not have", { tool_call: { parameters: { repo: "a/b", evil: true } } }, "deny", "input_schema_mismatch", []],
    ["the server's long name means the same server", { tool_call: { tool: "mcp:github" } }, "allow", "policy_allow", ["base/provenance#reads-pass"]],
  ];
  test.each(cases)("%s", async (name, changes, decision, reason_code, matched_policies) => {
    const agent = `a${sha256Hex(name).slice(0, 12)}`;
    const { token } = await demo.agent(agent, { groups: ["engineering", "support"] });
    const answer = await gateward.decide(token, readCall({ ...changes, agent: { id: agent } }));
    expect(answer).toMatchObject({ decision, reason_code, matched_policies: [...matched_policies].sort() });
  });

  test("a refund by an agent that is not in support is denied", async () => {
    const { token } = await demo.agent("outsider");
    const answer = await gateward.decide(token, readCall({ ...refund(1), agent: { id: "outsider" } }));
    expect(answer).toMatchObject({ decision: "deny", reason_code: "policy_forbid", matched_policies: ["tenants/demo/crm#only-support-refunds"] });
  });

  test("a sensitive read of a customer is redacted", async () => {
    const { token } = await demo.agent("redacted");
    const answer = await gateward.decide(token, readCall({
      agent: { id: "redacted" },
      tool_call: { tool: "crm", action: "get_customer", parameters: { customer_id: "c1" } },
      context: { contains_sensitive_data: true },
    }));
    expect(answer).toMatchObject({ decision: "redact", reason_code: "policy_redact", redacted_fields: ["email", "phone"] });
    expect(await receiptOf(demo, answer)).toMatchObject({ obligations: { redact_fields: ["email", "phone"] } });
  });

  test("another tenant's overlay does not decide", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = writeCall({ tool_call: { parameters: { repo: "acme/shop", number: 1, base: "main" } } });
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "allow" });
  });
});

describe("identity", () => {
  test("a body that names another agent, or another environment, is refused", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await tenant.agent("other");
    expectCode(await gateward.post(token, "/v1/authorize", readCall({ agent: { id: "other" } })), 403, "agent_mismatch");
    expectCode(await gateward.post(token, "/v1/authorize", readCall({ agent: { environment: "staging" } })), 403, "environment_mismatch");
  });

  test("a wrong secret, another agent's key, and a revoked, expired or unknown credential are 401", async () => {
    const tenant = await gateward.tenant();
    const { token, credential } = await tenant.agent();
    const [prefix = "", agent = "", lane = "", key = "", secret = ""] = token.split(".");
    const other = await tenant.agent("other");
    const revoked = await tenant.agent("revoked", {}, { status: "revoked" });
    const expired = await tenant.agent("expired", {}, { expires_at_ms: 1 });
    const cases: [string, string, string][] = [
      ["unauthorized", sign(`${prefix}.${agent}.${lane}.${key}.${"s".repeat(43)}`, MAC_KEY), "coder"],
      ["unauthorized", sign(`${prefix}.${agent}.${lane}.unknown.${secret}`, MAC_KEY), "coder"],
      ["unauthorized", sign(`${prefix}.other.${lane}.${credential.keyId}.${secret}`, MAC_KEY), other.name],
      ["unauthorized", sign(`${prefix}.${agent}.1.${key}.${secret}`, MAC_KEY), "coder"],
      ["unauthorized", revoked.token, revoked.name],
      ["credential_expired", expired.token, expired.name],
    ];
    for (const [code, wrong, id] of cases) {
      expectCode(await gateward.post(wrong, "/v1/authorize", readCall({ agent: { id } })), 401, code);
    }
    expect((await gateward.decide(token, readCall())).decision).toBe("allow");
  });

  test("a scope that the credential lacks denies, with a receipt", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", {}, { scopes: ["tools:read"] });
    expect((await gateward.decide(token, readCall())).decision).toBe("allow");
    const answer = await gateward.decide(token, writeCall());
    expect(answer).toMatchObject({ decision: "deny", reason_code: "scope_missing" });
    expect(await receiptOf(tenant, answer)).toMatchObject({ reason_code: "scope_missing" });
  });
});

describe("the registry's word", () => {
  test("a body that calls a write a read changes nothing", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const answer = await gateward.decide(token, writeCall({
      tool_call: { mutates_state: false },
      context: { source_trust: "untrusted_external" },
    }));
    expect(answer).toMatchObject({ decision: "deny", reason_code: "policy_forbid", risk_level: "high" });
  });

  test("mutates_state may tighten a read", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = readCall({ context: { source_trust: "untrusted_external" } });
    expect((await gateward.decide(token, body)).decision).toBe("allow");
    body.tool_call.mutates_state = true;
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "deny", reason_code: "policy_forbid" });
  });

  test("an agent of high risk needs approval to write", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", { risk_tier: "high" });
    expect((await gateward.decide(token, writeCall())).decision).toBe("require_approval");
  });

  const status = { server: "other", kind: "mcp" } as const;
  const tool = { server: "other", tool: "list", mutates: false, risk: "low" } as const;
  const cases: [string, Parameters<Gateward["tenant"]>[0], string][] = [
    ["a server that is not registered", {}, "server_unknown"],
    ["a tool that is not registered", { servers: [status] }, "tool_unknown"],
    ["a tool that is pending", { servers: [status], tools: [{ ...tool, status: "pending" }] }, "tool_inactive"],
    ["a tool that is disabled", { servers: [status], tools: [{ ...tool, status: "disabled" }] }, "tool_inactive"],
    ["a tool in quarantine", { servers: [status], tools: [{ ...tool, status: "quarantined" }] }, "tool_inactive"],
    ["a server that is pending", { servers: [{ ...status, status: "pending" }], tools: [tool] }, "tool_inactive"],
    ["a server that is disabled", { servers: [{ ...status, status: "disabled" }], tools: [tool] }, "tool_inactive"],
    ["a server in quarantine", { servers: [{ ...status, status: "quarantined" }], tools: [tool] }, "tool_inactive"],
  ];
  test.each(cases)("%s is denied, and its receipt exists", async (_, rows, reason_code) => {
    const tenant = await gateward.tenant(rows);
    const { token } = await tenant.agent();
    const answer = await gateward.decide(token, readCall({ tool_call: { tool: "other", action: "list" } }));
    expect(answer).toMatchObject({ decision: "deny", reason_code, matched_policies: [] });
    expect(await receiptOf(tenant, answer)).toMatchObject({ decision: "deny", reason_code, server: "other", tool: "list" });
  });

  test("a tool's name is case-sensitive", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const answer = await gateward.decide(token, readCall({ tool_call: { action: "List_issues" } }));
    expect(answer.reason_code).toBe("tool_unknown");
  });

  test("a tenant that is suspended is denied", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    expect((await gateward.decide(token, readCall())).decision).toBe("allow");
    await tenant.change({ status: "suspended" });
    expect(await gateward.decide(token, readCall())).toMatchObject({ decision: "deny", reason_code: "tenant_inactive" });
  });

  test("a change of the registry reaches a lane that is awake", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    expect((await gateward.decide(token, readCall())).decision).toBe("allow");
    await tenant.register({ agents: [{ agent: "coder", status: "frozen" }] });
    // Every decision makes a flush due, and every flush confirms the epoch.
    await eventually("the agent is frozen", async () => (await gateward.decide(token, readCall())).reason_code === "agent_frozen");
  });
});

describe("source trust", () => {
  const levels: SourceTrust[] = ["trusted_internal_signed", "trusted_internal_unsigned", "semi_trusted_customer",
    "untrusted_external", "malicious_suspected", "unknown"];
  // Nothing here is signed, so no call can claim that it is. Signed calls are in
  // tests/integration/signing.test.ts.
  test("a claim never counts for more than the credential's max_source_trust", async () => {
    const tenant = await gateward.tenant();
    for (const most of levels) {
      const id = most.replaceAll("_", "-");
      const { token } = await tenant.agent(id, {}, { max_source_trust: most });
      for (const claim of levels) {
        const answer = await gateward.decide(token, readCall({ agent: { id }, context: { source_trust: claim } }));
        const lower = levels[Math.max(1, levels.indexOf(most), levels.indexOf(claim))];
        expect({ most, claim, trust: (await receiptOf(tenant, answer)).trust }).toEqual({ most, claim, trust: lower });
      }
    }
  });

  test("a capped claim is decided as what it counts for", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", {}, { max_source_trust: "semi_trusted_customer" });
    expect(await gateward.decide(token, writeCall())).toMatchObject({ decision: "require_approval" });
  });

  test("the root's trust may lower what is reported, and never raises it", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const root = async (claim: SourceTrust, root_trust_level: SourceTrust) =>
      (await gateward.decide(token, readCall({ context: { source_trust: claim }, trace: { root_trust_level } }))).root_trust_level;
    expect(await root("trusted_internal_signed", "untrusted_external")).toBe("untrusted_external");
    expect(await root("untrusted_external", "trusted_internal_signed")).toBe("untrusted_external");
  });
});

describe("stopped agents", () => {
  test.each(["frozen", "revoked", "quarantined"] as const)("a %s agent is denied before a stored answer is replayed", async (status) => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = readCall({ request_id: "stored" });
    const first = await gateward.decide(token, body);
    expect(first.decision).toBe("allow");
    await tenant.change({ agents: [{ agent: "coder", status }] });
    const denied = await gateward.decide(token, body);
    expect(denied).toMatchObject({ decision: "deny", reason_code: `agent_${status}` });
    expect(await receiptOf(tenant, denied)).toMatchObject({ decision: "deny", reason_code: `agent_${status}` });
    // Whether it was flushed or not, the denial has not replaced the first answer.
    await tenant.flushed();
    await tenant.change({ agents: [{ agent: "coder", status: "active", groups: ["engineering"] }] });
    expect(await gateward.decide(token, body)).toEqual(first);
  });

  test("repeated denials are answered without a receipt, and audited once with their count", { timeout: AGGREGATION_TEST_MS }, async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", { status: "frozen" });
    const repeats = 4;
    const first = await gateward.decide(token, readCall());
    expect(first.receipt).not.toBeNull();
    for (let at = 0; at < repeats; at += 1) {
      expect(await gateward.decide(token, readCall())).toMatchObject({ decision: "deny", reason_code: "agent_frozen", receipt: null });
    }
    await expectAggregated(tenant, "status_denied", "coder", repeats);
    expect(await tenant.records("receipts")).toHaveLength(1);
  });

  test("a quarantine takes effect on the very next call, and survives eviction", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const other = await tenant.agent("bystander");
    const stored = readCall({ request_id: "stored" });
    expect((await gateward.decide(token, stored)).decision).toBe("allow");
    expect(await gateward.decide(token, canaryCall())).toMatchObject({ decision: "quarantine", reason_code: "policy_quarantine" });
    expect(await gateward.decide(token, readCall())).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });
    expect(await gateward.decide(token, stored)).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });
    await tenant.evict();
    expect(await gateward.decide(token, readCall())).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });
    await tenant.flushed();
    await tenant.evict();
    expect(await gateward.decide(token, readCall())).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });
    expect(await gateward.decide(other.token, readCall({ agent: { id: "bystander" } }))).toMatchObject({ decision: "allow" });
  });

  test("a canary that only the registry knows quarantines too", async () => {
    const tenant = await gateward.tenant({
      tools: [{ server: "github", tool: "admin_backdoor", mutates: false, risk: "low", canary: true }],
    });
    const { token } = await tenant.agent();
    const answer = await gateward.decide(token, readCall({ tool_call: { action: "admin_backdoor" } }));
    expect(answer.decision).toBe("quarantine");
  });
});

describe("request ids and nonces", () => {
  test("a repeated request gets the first answer, and no second receipt", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = writeCall({ request_id: "r1" });
    const first = await gateward.decide(token, body);
    for (let at = 0; at < 3; at += 1) expect(await gateward.decide(token, body)).toEqual(first);
    expect((await gateward.decide(token, readCall())).receipt?.seq).toBe(2);
  });

  test("equal requests at once get one answer", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const answers = await Promise.all(Array.from({ length: 20 }, () => gateward.decide(token, writeCall({ request_id: "r1" }))));
    expect(new Set(answers.map(({ decision_id }) => decision_id)).size).toBe(1);
  });

  const changes: [string, Changes][] = [
    ["another tool", { tool_call: { action: "get_issue", parameters: { repo: "acme/shop", number: 1 } } }],
    ["other arguments", { tool_call: { parameters: { repo: "acme/other" } } }],
    ["another resource", { tool_call: { resource: "https://example.com" } }],
    ["another trust", { context: { source_trust: "unknown" } }],
    ["another sensitivity", { context: { contains_sensitive_data: true } }],
    ["another user", { user: { id: "u2" } }],
    ["another run", { trace: { run_id: "run-2" } }],
  ];
  test.each(changes)("a request id with %s is a conflict", async (_, changed) => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const first = await gateward.decide(token, readCall({ request_id: "r1" }));
    expectCode(await gateward.post(token, "/v1/authorize", readCall({ ...changed, request_id: "r1" })), 409, "request_id_conflict");
    expect(await gateward.decide(token, readCall({ request_id: "r1" }))).toEqual(first);
  });

  test("the order of keys and the spelling of numbers do not make another request", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = JSON.stringify(writeCall({ request_id: "r1" }));
    const respelt = body.replace('"repo":"acme/shop","number":42', '"number":42.0,"repo":"acme\\/shop"');
    expect(respelt).not.toBe(body);
    const first = await gateward.post<AuthorizeResponse>(token, "/v1/authorize", body);
    const second = await gateward.post<AuthorizeResponse>(token, "/v1/authorize", respelt);
    expect(second.body).toEqual(first.body);
  });

  test("one agent's request id is nothing to another", async () => {
    const tenant = await gateward.tenant();
    const one = await tenant.agent("one");
    const two = await tenant.agent("two");
    const first = await gateward.decide(one.token, readCall({ agent: { id: "one" }, request_id: "r1" }));
    const second = await gateward.decide(two.token, readCall({ agent: { id: "two" }, request_id: "r1" }));
    expect(second.decision_id).not.toBe(first.decision_id);
  });

  test("a nonce is good once, also after an eviction", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = () => readCall({ nonce: "n1", timestamp: new Date().toISOString() });
    expect((await gateward.decide(token, body())).decision).toBe("allow");
    expectCode(await gateward.post(token, "/v1/authorize", body()), 409, "nonce_replayed");
    await tenant.flushed();
    await tenant.evict();
    expectCode(await gateward.post(token, "/v1/authorize", body()), 409, "nonce_replayed");
  });

  test("a timestamp more than 300 s off is stale, either way", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const at = (offsetS: number) => readCall({ timestamp: new Date(Date.now() + offsetS * 1000).toISOString() });
    for (const offset of [-330, 330]) {
      expectCode(await gateward.post(token, "/v1/authorize", at(offset)), 409, "timestamp_stale");
    }
    for (const offset of [-200, 0, 200]) expect((await gateward.decide(token, at(offset))).decision).toBe("allow");
  });
});

/** Limits how many calls the agent `coder` may make a day. */
function dailyQuota(tenant: Tenant, max: number): Promise<Limit> {
  const rule = { kind: "quota", max: String(max), window: "day" } as const;
  return tenant.api.create<Limit>("/v1/limits", { limit_id: "daily", subject_kind: "agent", subject: "coder", rule });
}

describe("dry runs", () => {
  test("a dry run decides and explains, and leaves nothing behind", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder");
    await dailyQuota(tenant, 1);
    const dry = await gateward.decide(token, writeCall({ dry_run: true, request_id: "r1", nonce: "n1", timestamp: new Date().toISOString() }));
    expect(dry).toMatchObject({
      decision: "allow",
      reason_code: "policy_allow",
      matched_policies: ["base/provenance#trusted-writes-pass"],
      dry_run: true,
      receipt: null,
    });
    // The request id, the nonce and the quota are not used up.
    const real = await gateward.decide(token, readCall({ request_id: "r1", nonce: "n1", timestamp: new Date().toISOString() }));
    expect(real).toMatchObject({ decision: "allow", dry_run: false, receipt: { seq: 1 } });
    await tenant.flushed();
    expect(await tenant.records("decisions")).toHaveLength(1);
    expect(await tenant.records("receipts")).toHaveLength(1);
  });

  test("a dry run of a canary quarantines nobody, and of an approval makes none", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    expect((await gateward.decide(token, { ...canaryCall(), dry_run: true })).decision).toBe("quarantine");
    const approval = await gateward.decide(token, writeCall({ dry_run: true, context: { source_trust: "semi_trusted_customer" } }));
    expect(approval).toMatchObject({ decision: "require_approval", approval: null });
    expect(await gateward.decide(token, readCall())).toMatchObject({ decision: "allow" });
    await tenant.flushed();
    expect(await tenant.records("approvals")).toEqual([]);
  });

  test("a dry run does not see a stored answer", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await gateward.decide(token, readCall({ request_id: "r1" }));
    expect(await gateward.decide(token, readCall({ request_id: "r1", dry_run: true }))).toMatchObject({ dry_run: true, receipt: null });
  });
});

describe("quotas", () => {
  test("only what is allowed spends the day's quota", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder");
    await dailyQuota(tenant, 2);
    const denied = writeCall({ context: { source_trust: "unknown" } });
    const reasons = [];
    for (const body of [denied, readCall(), denied, readCall(), readCall(), denied]) {
      reasons.push((await gateward.decide(token, body)).reason_code);
    }
    expect(reasons).toEqual(["policy_forbid", "policy_allow", "policy_forbid", "policy_allow", "quota_exhausted", "quota_exhausted"]);
    await tenant.flushed();
    await tenant.evict();
    expect((await gateward.decide(token, readCall())).reason_code).toBe("quota_exhausted");
  });
});

describe("approvals", () => {
  test("require_approval makes a pending approval that is bound to the call's action hash", async () => {
    const { token } = await demo.agent("approved", { groups: ["support"] });
    const body = readCall({
      agent: { id: "approved" },
      tool_call: {
        tool: "crm",
        action: "refund",
        resource: "customer:ü",
        mutates_state: true,
        parameters: { customer_id: "c1", amount: 500.5, currency: "EUR" },
      },
    });
    const answer = await gateward.decide(token, body);
    const action_hash = sha256Hex(canonicalize({
      tenant: "demo",
      agent: "approved",
      server: "crm",
      tool: "refund",
      resource: "customer:ü",
      input: { customer_id: "c1", amount: 500.5, currency: "EUR" },
    }));
    expect(answer).toMatchObject({
      decision: "require_approval",
      approval: { status: "pending", approver_group: "finance", action_hash },
    });
    expect(await receiptOf(demo, answer)).toMatchObject({
      action_hash,
      approval_id: answer.approval?.approval_id,
      obligations: { approver_groups: [{ group: "finance", quorum: 2 }] },
    });
    await demo.flushed();
    const rows = await gateward.rows("SELECT * FROM approvals WHERE tenant = 'demo' AND approval_id = ?1", answer.approval?.approval_id ?? null);
    expect(rows).toEqual([
      expect.objectContaining({ agent: "approved", status: "pending", revision: 1, created_at_ms: expect.any(Number), record: expect.any(String) }),
    ]);
    expect(JSON.parse(String(rows[0]?.record))).toMatchObject({
      decision_id: answer.decision_id,
      approver_groups: [{ group: "finance", quorum: 2 }],
      action_hash,
      expires_at_ms: Date.parse(answer.approval?.expires_at ?? ""),
    });
  });
});

describe("rates", () => {
  test("every decision says how the agent's bucket stands", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", { request_rate: { capacity: 10, refill_per_s: 0.001 } });
    for (const remaining of [9, 8]) {
      const { headers } = await gateward.post(token, "/v1/authorize", readCall());
      expect(headers.get("ratelimit-policy")).toBe('"rate-coder";q=10;w=10000');
      expect(headers.get("ratelimit")).toMatch(new RegExp(`^"rate-coder";r=${remaining};t=\\d+$`));
    }
  });

  test("the vars' rate holds for an agent whose requests no limit covers", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const { headers } = await gateward.post(token, "/v1/authorize", readCall());
    expect(headers.get("ratelimit-policy")).toBe('"agent";q=600;w=6');
  });

  test("beyond its capacity an agent gets 429, audited once with a count", { timeout: AGGREGATION_TEST_MS }, async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", { request_rate: { capacity: 3, refill_per_s: 0.001 } });
    const other = await tenant.agent("other");
    // Denials, replays and dry runs cost too.
    await gateward.decide(token, readCall({ request_id: "r1" }));
    await gateward.decide(token, readCall({ request_id: "r1" }));
    await gateward.decide(token, readCall({ dry_run: true }));
    const rejections = 8;
    for (let at = 0; at < rejections; at += 1) {
      const reply = await gateward.post<Problem>(token, "/v1/authorize", readCall());
      expectCode(reply, 429, "rate_limited");
      expect(reply.headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(reply.headers.get("ratelimit")).toMatch(/^"rate-coder";r=0;t=\d+$/);
    }
    expect((await gateward.decide(other.token, readCall({ agent: { id: "other" } }))).decision).toBe("allow");
    await expectAggregated(tenant, "rate_limited", "coder", rejections);
  });

  test("many calls at once never pass the capacity", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", { request_rate: { capacity: 5, refill_per_s: 0.001 } });
    const replies = await Promise.all(Array.from({ length: 25 }, () => gateward.post(token, "/v1/authorize", readCall())));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(20);
  });

  test("an agent's reads are charged like its calls, an administrator's are not", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", { request_rate: { capacity: 3, refill_per_s: 0.001 } });
    await gateward.decide(token, readCall());
    const paths = ["/v1/decisions", "/v1/approvals", "/v1/decisions", "/v1/approvals", "/v1/decisions/unknown"];
    const replies = [];
    for (const path of paths) replies.push(await gateward.get<Problem>(token, path));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 429, 429, 429]);
    for (const reply of replies.slice(2)) {
      expectCode(reply, 429, "rate_limited");
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expectCode(await gateward.post<Problem>(token, "/v1/authorize", readCall()), 429, "rate_limited");
    for (let at = 0; at < 5; at += 1) expect((await gateward.get(tenant.admin, "/v1/decisions")).status).toBe(200);
  });

  test("a bucket survives an eviction", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent("coder", { request_rate: { capacity: 2, refill_per_s: 0.001 } });
    await gateward.decide(token, readCall());
    await gateward.decide(token, readCall());
    await tenant.evict();
    expectCode(await gateward.post(token, "/v1/authorize", readCall()), 429, "rate_limited");
  });
});

describe("failed authentications", () => {
  test("wrong secrets are audited once per source and window, with a count", { timeout: AGGREGATION_TEST_MS }, async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const parts = token.split(".");
    const wrong = sign([...parts.slice(0, 4), "s".repeat(43)].join("."), MAC_KEY);
    const failures = 4;
    for (let at = 0; at < failures; at += 1) {
      expectCode(await gateward.post(wrong, "/v1/authorize", readCall()), 401, "unauthorized");
    }
    await expectAggregated(tenant, "authentication_failed", null, failures);
  });

  test("forged tokens are audited in aggregate, under no tenant", { timeout: AGGREGATION_TEST_MS }, async () => {
    const sum = async () => {
      const rows = await gateward.rows<{ count: number }>("SELECT count FROM audit_events WHERE tenant = ''");
      return { rows: rows.length, count: rows.reduce((total, row) => total + row.count, 0) };
    };
    const before = await sum();
    const failures = 8;
    const forged = sign(`gw_demo.coder.0.k1.${"s".repeat(43)}`, "another key of at least 32 characters");
    for (let at = 0; at < failures; at += 1) {
      expectCode(await gateward.post(forged, "/v1/authorize", readCall()), 401, "unauthorized");
    }
    await eventually("all forged tokens are counted", async () => {
      // A closed window's count is written at the next request.
      await gateward.request("/healthz");
      return (await sum()).count - before.count === failures;
    }, AGGREGATION_LIMIT_MS);
    // One window, or two if a window ends during the test.
    expect((await sum()).rows - before.rows).toBeLessThanOrEqual(2);
  });
});

/** The tenant's audit has `count` such events in one row, or in the rows of two successive windows. */
async function expectAggregated(tenant: Tenant, kind: string, source: string | null, count: number): Promise<void> {
  const events = async () =>
    (await tenant.records<{ kind: string; source: string; count: number }>("audit_events")).filter((event) => event.kind === kind);
  await eventually(`${count} events \`${kind}\` are audited`, async () =>
    (await events()).reduce((total, event) => total + event.count, 0) === count, AGGREGATION_LIMIT_MS);
  const found = await events();
  expect(found.length).toBeLessThanOrEqual(2);
  if (source !== null) expect(found.map((event) => event.source)).toEqual(found.map(() => source));
}
