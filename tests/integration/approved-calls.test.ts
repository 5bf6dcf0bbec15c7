// Approved calls: exactly the approved call passes, once, before the approval expires, and everything is recorded.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Approval, ApprovalPage, AuditEvent, AuthorizeRequest, AuthorizeResponse, Tool, Verification } from "../support/api/types.gen.ts";
import { Api } from "../support/administration.ts";
import {
  actionHash, approvalOf, ask, decide, decided, DEFAULT_APPROVAL_MS, expectCode, mainMergeCall, MAX_TAMPERING, mergeCall, newOffice, type Office, refundCall,
  SECURITY, use, type Verdict,
} from "../support/approvals.ts";
import { canaryCall, type Changes, eventually, Gateward, INSPECTABLE, outcomeOf, type Tenant, type TestAgent } from "../support/gateward.ts";
import { GENESIS, problemsOf } from "../support/receipts.ts";
import { TENANTS_SCOPE } from "../support/registry.ts";

const VERDICTS: Verdict[] = ["approve", "reject", "cancel"];
const TOOL = "/v1/servers/github/tools/merge_pull_request";
/** The most open approvals of one agent. */
const MAX_OPEN = 100;
/** Bytes of arguments, in canonical form, that can wait for approval. */
const MAX_INPUT_BYTES = 64 * 1_024;

let gateward: Gateward;
/** The tenant whose policies need several groups, and forbid by group. */
let demo: Tenant;
let finance: { ann: Api; ben: Api };

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  demo = await gateward.tenant({}, "demo");
  finance = { ann: await demo.approver("ann", "finance"), ben: await demo.approver("ben", "finance") };
});
afterAll(() => gateward?.close());

/** A call of the office's agent that was approved. */
async function approved({ agent, sam }: Office, body = mergeCall(agent)): Promise<string> {
  const id = await ask(gateward, agent, body);
  await decided(sam, "approve", id);
  return id;
}

const uses = (tenant: Tenant) => tenant.api.all<AuditEvent>("/v1/audit-events?kind=approval_used");

describe("an approved call", () => {
  test("passes once", async () => {
    const office = await newOffice(gateward);
    const body = mergeCall(office.agent);
    const id = await approved(office);
    const first = await use(gateward, office.agent, body, id);
    expect(first).toMatchObject({
      decision: "allow",
      reason_code: "approval_granted",
      matched_policies: ["base/provenance#customer-writes-need-approval"],
      approval: { approval_id: id, status: "used", action_hash: actionHash(office.tenant.name, body) },
    });
    expect(await approvalOf(office.sam, id)).toMatchObject({ status: "used", used_by: first.decision_id, closed_by: null, closed_at: expect.any(String) });
    for (let at = 0; at < 3; at += 1) {
      expect(await use(gateward, office.agent, body, id)).toMatchObject({ decision: "deny", reason_code: "approval_used", approval: { approval_id: id, status: "used" } });
    }
    expect(await gateward.decide(office.agent.token, body)).toMatchObject({ decision: "require_approval" });
    expect(await approvalOf(office.sam, id)).toMatchObject({ used_by: first.decision_id, tampering: 0 });
  });

  test("passes once though it is made on many connections at once", async () => {
    const office = await newOffice(gateward);
    const { agent, tenant } = office;
    const again = await tenant.agent(agent.name);
    for (let round = 0; round < 4; round += 1) {
      const id = await approved(office);
      const tokens = [agent.token, again.token];
      const answers = await Promise.all(Array.from({ length: 10 }, (_, at) =>
        gateward.decide(tokens[at % 2] ?? "", { ...mergeCall(agent), approval_id: id, request_id: `race-${round}-${at}` })));
      expect(answers.map(({ reason_code }) => reason_code).sort()).toEqual(["approval_granted", ...Array(9).fill("approval_used")]);
    }
    await tenant.flushed();
    expect(await uses(tenant)).toHaveLength(4);
  });

  test("is not passed before it is approved, and asks for no second approval while it waits", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const body = mergeCall(agent);
    const id = await ask(gateward, agent, body);
    for (let at = 0; at < 3; at += 1) {
      expect(await use(gateward, agent, body, id)).toMatchObject({
        decision: "require_approval", reason_code: "approval_pending", approval: { approval_id: id, status: "pending" },
      });
    }
    await tenant.flushed();
    expect((await sam.all<Approval>("/v1/approvals")).map(({ approval_id }) => approval_id)).toEqual([id]);
    expect(await approvalOf(sam, id)).toMatchObject({ revision: 1 });
  });

  test("is nothing to another agent: not to use, and not to be tampered with", async () => {
    const office = await newOffice(gateward);
    const other = await office.tenant.agent("other");
    const id = await approved(office);
    for (const body of [mergeCall(other), mergeCall(other, { tool_call: { resource: "other" } })]) {
      expect(await use(gateward, other, body, id)).toMatchObject({ decision: "deny", reason_code: "approval_unknown", approval: null });
    }
    expect(await approvalOf(office.sam, id)).toMatchObject({ status: "approved", tampering: 0, used_by: null });
    const stranger = await newOffice(gateward);
    expect((await use(gateward, stranger.agent, mergeCall(stranger.agent), id)).reason_code).toBe("approval_unknown");
    expect((await use(gateward, office.agent, mergeCall(office.agent), id)).reason_code).toBe("approval_granted");
  });

  test.each(["appr_0_999999", "appr_7_1", "appr", "x", "'; DROP TABLE approvals --"])("with the approval id %j is denied", async (id) => {
    const { agent } = await newOffice(gateward);
    expect(await use(gateward, agent, mergeCall(agent), id)).toMatchObject({ decision: "deny", reason_code: "approval_unknown" });
  });

  test("whose request id is replayed gets the stored answer, and uses nothing", async () => {
    const office = await newOffice(gateward);
    const { agent, sam, tenant } = office;
    const body = mergeCall(agent);
    const asking = { ...body, request_id: "ask" };
    const asked = await gateward.decide(agent.token, asking);
    const id = asked.approval?.approval_id ?? "";
    expect(await gateward.decide(agent.token, asking)).toEqual(asked);
    await decided(sam, "approve", id);
    // The answer from before the approval is repeated.
    expect(await gateward.decide(agent.token, asking)).toEqual(asked);
    const using = { ...body, approval_id: id, request_id: "ask" };
    expectCode(await gateward.post(agent.token, "/v1/authorize", using), 409, "request_id_conflict");
    expect(await approvalOf(sam, id)).toMatchObject({ status: "approved", used_by: null });

    const first = await gateward.decide(agent.token, { ...using, request_id: "use" });
    expect(first.reason_code).toBe("approval_granted");
    for (const evicted of [false, true]) {
      if (evicted) await tenant.evict();
      expect(await gateward.decide(agent.token, { ...using, request_id: "use" })).toEqual(first);
    }
    await tenant.flushed();
    expect(await uses(tenant)).toHaveLength(1);
    // A replay does not open another approval either.
    const next = await approved(office);
    expectCode(await gateward.post(agent.token, "/v1/authorize", { ...using, approval_id: next, request_id: "use" }), 409, "request_id_conflict");
    expect(await approvalOf(sam, next)).toMatchObject({ status: "approved", used_by: null });
  });

  test("that is a dry run is explained, uses nothing, and counts as no tampering", async () => {
    const office = await newOffice(gateward);
    const { agent, sam } = office;
    const id = await approved(office);
    const dry = (body: AuthorizeRequest) => gateward.decide(agent.token, { ...body, approval_id: id, dry_run: true });
    expect(await dry(mergeCall(agent))).toMatchObject({ decision: "allow", reason_code: "approval_granted", approval: { status: "approved" }, receipt: null });
    expect(await dry(mergeCall(agent, { tool_call: { resource: "other" } }))).toMatchObject({ decision: "deny", reason_code: "approval_mismatch", receipt: null });
    expect(await approvalOf(sam, id)).toMatchObject({ status: "approved", revision: 2, tampering: 0, used_by: null });
    expect((await use(gateward, agent, mergeCall(agent), id)).reason_code).toBe("approval_granted");
  });

  test("is no cover for a canary: whatever approval id comes with it, the agent is quarantined", async () => {
    for (const presented of ["approved", "pending", "unknown"]) {
      const office = await newOffice(gateward);
      const { agent, sam } = office;
      const id = presented === "approved" ? await approved(office) : presented === "pending" ? await ask(gateward, agent, mergeCall(agent)) : "appr_0_999999";
      const answer = await use(gateward, agent, canaryCall(), id);
      expect({ presented, ...answer }).toMatchObject({ presented, decision: "quarantine", reason_code: "policy_quarantine" });
      expect((await use(gateward, agent, mergeCall(agent), id)).reason_code).toBe("agent_quarantined");
      if (presented !== "unknown") expect(await approvalOf(sam, id)).toMatchObject({ status: presented, used_by: null });
    }
  });

  test("that was narrowed until it needs no approval uses it all the same", async () => {
    const agent = await demo.agent("narrowed", { groups: ["support"] });
    const id = await ask(gateward, agent, refundCall(agent, 900));
    const { edited } = await decided(finance.ann, "approve", id, { edit: { amount: 400 } });
    await decided(finance.ben, "approve", id, { action_hash: edited?.action_hash });
    expect(await use(gateward, agent, refundCall(agent, 400), id)).toMatchObject({ decision: "allow", approval: { approval_id: id, status: "used" } });
    expect((await use(gateward, agent, refundCall(agent, 400), id)).reason_code).toBe("approval_used");
  });
});

describe("another call than the approved one", () => {
  const others: [string, Changes][] = [
    ["another argument", { tool_call: { parameters: { repo: "acme/shop", number: 43, base: "feature/search" } } }],
    ["one argument more", { tool_call: { parameters: { repo: "acme/shop", number: 42, base: "feature/search", method: "squash" } } }],
    ["one argument less", { tool_call: { parameters: { repo: "acme/shop", number: 42 } } }],
    ["no arguments", { tool_call: { parameters: {} } }],
    ["an argument in another case", { tool_call: { parameters: { repo: "acme/Shop", number: 42, base: "feature/search" } } }],
    ["a number as text", { tool_call: { parameters: { repo: "acme/shop", number: "42", base: "feature/search" } } }],
    ["another resource", { tool_call: { resource: "pull:43" } }],
    ["another tool", { tool_call: { action: "create_issue", parameters: { repo: "acme/shop", number: 42, base: "feature/search" } } }],
    ["a tool that only reads", { tool_call: { action: "list_issues", mutates_state: false, parameters: { repo: "acme/shop" } } }],
  ];
  test.each(others)("with %s is denied, uses nothing, and is audited as tampering", async (_, changes) => {
    const office = await newOffice(gateward);
    const { agent, sam, tenant } = office;
    const id = await approved(office);
    const swapped = mergeCall(agent, changes);
    const answer = await use(gateward, agent, swapped, id);
    expect(answer).toMatchObject({
      decision: "deny",
      reason_code: "approval_mismatch",
      approval: { approval_id: id, status: "approved", action_hash: actionHash(tenant.name, mergeCall(agent)) },
    });
    expect(await approvalOf(sam, id)).toMatchObject({ status: "approved", tampering: 1, used_by: null });
    await tenant.flushed();
    expect(await tenant.api.all<AuditEvent>("/v1/audit-events?kind=approval_tampered")).toEqual([
      expect.objectContaining({
        kind: "approval_tampered",
        source: "coder",
        lane: 0,
        decision_id: answer.decision_id,
        detail: { approval_id: id, status: "approved", action_hash: actionHash(tenant.name, mergeCall(agent)), tampering: 1 },
      }),
    ]);
    expect((await use(gateward, agent, mergeCall(agent), id)).reason_code).toBe("approval_granted");
  });

  test.each([["an approved", true], ["a pending", false]])("cancels %s one at the fifth time", async (_, isApproved) => {
    const office = await newOffice(gateward);
    const { agent, sam, tenant } = office;
    const id = isApproved ? await approved(office) : await ask(gateward, agent, mergeCall(agent));
    for (let at = 1; at < MAX_TAMPERING; at += 1) {
      expect((await use(gateward, agent, mergeCall(agent, { tool_call: { resource: `r${at}` } }), id)).reason_code).toBe("approval_mismatch");
    }
    expect(await approvalOf(sam, id)).toMatchObject({ status: isApproved ? "approved" : "pending", tampering: MAX_TAMPERING - 1 });
    // The fifth use is the same call as an earlier one, and comes after an eviction.
    await tenant.evict();
    const last = await use(gateward, agent, mergeCall(agent, { tool_call: { resource: "r1" } }), id);
    expect(last).toMatchObject({ decision: "deny", reason_code: "approval_mismatch", approval: { status: "cancelled" } });
    expect(await approvalOf(sam, id)).toMatchObject({ status: "cancelled", tampering: MAX_TAMPERING, closed_by: null, input: null });
    expect((await use(gateward, agent, mergeCall(agent), id)).reason_code).toBe("approval_cancelled");
    expectCode(await decide(sam, "approve", id), 409, "state_conflict");
    await tenant.flushed();
    const events = await tenant.api.all<AuditEvent>("/v1/audit-events?kind=approval_tampered");
    expect(events.map(({ detail }) => (detail as { tampering: number }).tampering).sort()).toEqual([1, 2, 3, 4, 5]);
  });
});

describe("at use everything is checked again, and what is denied uses nothing:", () => {
  interface Check {
    what: string;
    change: (api: Api, root: Api, tenant: Tenant) => Promise<unknown>;
    outcome: string;
    undo: (api: Api, root: Api, tenant: Tenant) => Promise<unknown>;
  }
  const AGENT = "/v1/agents/coder";
  const checks: Check[] = [
    { what: "an agent that was frozen", change: (api) => api.act("coder", "freeze"), outcome: "agent_frozen", undo: (api) => api.act("coder", "unfreeze") },
    { what: "an agent in quarantine", change: (api) => api.act("coder", "quarantine"), outcome: "agent_quarantined", undo: (api) => api.act("coder", "restore") },
    {
      what: "an agent that was banned",
      change: (api) => api.create("/v1/bans", { kind: "agent", subject: "coder" }),
      outcome: "agent_banned",
      undo: async (api) => {
        for (const { ban_id } of await api.all<{ ban_id: string }>("/v1/bans")) await api.change("DELETE", `/v1/bans/${ban_id}`);
      },
    },
    { what: "a tool that was disabled", change: (api) => api.change("POST", `${TOOL}/disable`), outcome: "tool_inactive", undo: (api) => api.change("POST", `${TOOL}/restore`) },
    {
      what: "a server in quarantine",
      change: (api) => api.change("POST", "/v1/servers/github/quarantine"),
      outcome: "tool_inactive",
      undo: (api) => api.change("POST", "/v1/servers/github/restore"),
    },
    {
      what: "a tool that is granted no more",
      change: (api) => api.change("PATCH", AGENT, { allowed_tools: ["crm/*"] }),
      outcome: "tool_not_granted",
      undo: (api) => api.change("PATCH", AGENT, { allowed_tools: null }),
    },
    {
      what: "a quota that is spent",
      change: (api) => api.create("/v1/limits", { limit_id: "daily", subject_kind: "agent", subject: "coder", rule: { kind: "quota", max: "0", window: "day" } }),
      outcome: "quota_exhausted",
      undo: (api) => api.change("DELETE", "/v1/limits/daily"),
    },
    {
      what: "a tenant that was suspended",
      change: (_, root, { name }) => root.change("PATCH", `/v1/tenants/${name}`, { status: "suspended" }),
      outcome: "tenant_inactive",
      undo: (_, root, { name }) => root.change("PATCH", `/v1/tenants/${name}`, { status: "active" }),
    },
  ];
  test.each(checks)("$what", async ({ change, outcome, undo }) => {
    const office = await newOffice(gateward);
    const { agent, sam, tenant } = office;
    const root = await tenant.apiWith([TENANTS_SCOPE]);
    const id = await approved(office);
    await change(tenant.api, root, tenant);
    expect(await use(gateward, agent, mergeCall(agent), id)).toMatchObject({ decision: "deny", reason_code: outcome });
    await undo(tenant.api, root, tenant);
    expect(await approvalOf(sam, id)).toMatchObject({ status: "approved", tampering: 0, used_by: null });
    expect(await use(gateward, agent, mergeCall(agent), id)).toMatchObject({ decision: "allow", reason_code: "approval_granted" });
  });

  test("an agent that was revoked, and a credential that was", async () => {
    const office = await newOffice(gateward);
    const { agent, sam, tenant } = office;
    const second = await tenant.agent(agent.name);
    const [one, two] = [await approved(office), await approved(office)];
    await tenant.api.change("POST", `/v1/credentials/${agent.credential.keyId}/revoke`);
    expectCode(await gateward.post(agent.token, "/v1/authorize", { ...mergeCall(agent), approval_id: one }), 401, "unauthorized");
    expect(await approvalOf(sam, one)).toMatchObject({ status: "approved", used_by: null });
    // Another credential of the same agent is the same agent.
    expect((await use(gateward, second, mergeCall(agent), one)).reason_code).toBe("approval_granted");
    await tenant.api.change("POST", "/v1/agents/coder/revoke");
    const reply = await gateward.post<Partial<AuthorizeResponse> & { code?: string }>(second.token, "/v1/authorize", { ...mergeCall(agent), approval_id: two });
    expect(outcomeOf(reply)).toBe("deny");
    expect(reply.body.reason_code).toBe("agent_revoked");
    expect(await approvalOf(sam, two)).toMatchObject({ status: "approved", used_by: null });
  });

  test("a rate that is spent", async () => {
    const office = await newOffice(gateward);
    const { agent, sam, tenant } = office;
    const id = await approved(office);
    await tenant.api.create("/v1/limits", { limit_id: "one-request", subject_kind: "agent", subject: "coder", covers: "requests", rule: { kind: "rate", capacity: 1, refill_per_s: 0.001 } });
    const reasons = [];
    for (let at = 0; at < 3; at += 1) {
      reasons.push(outcomeOf(await gateward.post(agent.token, "/v1/authorize", mergeCall(agent, { tool_call: { resource: `r${at}` } }))));
    }
    expect(reasons.at(-1)).toBe("429 rate_limited");
    expectCode(await gateward.post(agent.token, "/v1/authorize", { ...mergeCall(agent), approval_id: id }), 429, "rate_limited");
    expect(await approvalOf(sam, id)).toMatchObject({ status: "approved", used_by: null });
  });

  test("a forbid that holds by then: of where the call comes from", async () => {
    const office = await newOffice(gateward);
    const { agent, sam } = office;
    const id = await approved(office);
    for (const source_trust of ["untrusted_external", "malicious_suspected", "unknown"] as const) {
      expect(await use(gateward, agent, mergeCall(agent, { context: { source_trust } }), id)).toMatchObject({
        decision: "deny", reason_code: "policy_forbid", matched_policies: ["base/provenance#untrusted-never-writes"],
      });
    }
    expect(await approvalOf(sam, id)).toMatchObject({ status: "approved", tampering: 0, used_by: null });
    expect((await use(gateward, agent, mergeCall(agent), id)).reason_code).toBe("approval_granted");
  });

  test("a forbid that holds by then: of the agent's groups", async () => {
    const agent = await demo.agent("leaver", { groups: ["support"] });
    const body = refundCall(agent);
    const id = await ask(gateward, agent, body);
    for (const api of [finance.ann, finance.ben]) await decided(api, "approve", id);
    await demo.api.change("DELETE", "/v1/groups/support/members/agents/leaver");
    expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "deny", reason_code: "policy_forbid", matched_policies: ["tenants/demo/crm#only-support-refunds"] });
    expect(await approvalOf(finance.ann, id)).toMatchObject({ status: "approved", used_by: null });
    await demo.api.change("PUT", "/v1/groups/support/members/agents/leaver");
    expect((await use(gateward, agent, body, id)).reason_code).toBe("approval_granted");
  });

  test("policies that ask for more by then", async () => {
    const agent = await demo.agent("riskier");
    const rita = await demo.approver("rita", "release-managers");
    const sam = await demo.approver("sam", SECURITY);
    // A maintainer's text caused the request, and a customer's text caused the use.
    const body = mainMergeCall(agent, { context: { source_trust: "trusted_internal_signed" } });
    const id = await ask(gateward, agent, body);
    await decided(rita, "approve", id);
    expect(await use(gateward, agent, mainMergeCall(agent), id)).toMatchObject({ decision: "deny", reason_code: "approval_insufficient" });
    await demo.api.change("PATCH", "/v1/agents/riskier", { risk_tier: "high" });
    expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "deny", reason_code: "approval_insufficient" });
    expect(await approvalOf(rita, id)).toMatchObject({ status: "approved", tampering: 0, used_by: null });
    const more = await ask(gateward, agent, body);
    for (const api of [rita, sam]) await decided(api, "approve", more);
    expect((await use(gateward, agent, body, more)).reason_code).toBe("approval_granted");
    await demo.api.change("PATCH", "/v1/agents/riskier", { risk_tier: "low" });
    expect((await use(gateward, agent, body, id)).reason_code).toBe("approval_granted");
  });
});

describe("an approval's time", () => {
  const open = ({ created_at, expires_at }: Approval) => Date.parse(expires_at) - Date.parse(created_at);

  test("is half an hour, or what its tool has in the registry", async () => {
    const { agent, sam, tenant } = await newOffice(gateward);
    const timeOf = async () => open(await approvalOf(sam, await ask(gateward, agent, mergeCall(agent))));
    expect(await timeOf()).toBe(DEFAULT_APPROVAL_MS);
    for (const approval_ttl_s of [60, 604_800]) {
      expect(await tenant.api.change<Tool>("PATCH", TOOL, { approval_ttl_s })).toMatchObject({ approval_ttl_s });
      expect(await timeOf()).toBe(approval_ttl_s * 1_000);
    }
    expect(await tenant.api.change<Tool>("PATCH", TOOL, { approval_ttl_s: null })).toMatchObject({ approval_ttl_s: null });
    expect(await timeOf()).toBe(DEFAULT_APPROVAL_MS);
    for (const approval_ttl_s of [0, 59, 604_801, -60, 60.5, "60", 1e15]) {
      expectCode(await tenant.api.patch(TOOL, { approval_ttl_s }), 422, "invalid_field");
    }
    const tool = { tool: "push", mutates: true, risk: "low", approval_ttl_s: 90 };
    expect(await tenant.api.create<Tool>("/v1/servers/github/tools", tool)).toMatchObject({ approval_ttl_s: 90 });
    expectCode(await tenant.api.post("/v1/servers/github/tools", { ...tool, tool: "pull", approval_ttl_s: 59 }), 422, "invalid_field");
  });

  test("ends: it is approved, rejected, cancelled and used no more", async () => {
    const office = await newOffice(gateward);
    const { agent, sam, tenant } = office;
    const ids = [await ask(gateward, agent, mergeCall(agent)), await approved(office)];
    await tenant.flushed();
    for (const id of ids) {
      // Only the lane's clock has ended it. Nothing was written yet.
      await tenant.endsAt(id, Date.now());
      expect(await approvalOf(sam, id)).toMatchObject({ status: "expired" });
      expect((await sam.get(`/v1/approvals/${id}`)).headers.get("retry-after")).toBeNull();
      for (const verdict of VERDICTS) expectCode(await decide(sam, verdict, id), 409, "state_conflict");
      expect(await use(gateward, agent, mergeCall(agent), id)).toMatchObject({ decision: "deny", reason_code: "approval_expired", approval: { approval_id: id, status: "expired" } });
      expect(await use(gateward, agent, mergeCall(agent, { tool_call: { resource: "other" } }), id)).toMatchObject({ reason_code: "approval_expired" });
      await eventually("it is written down", async () => (await approvalOf(sam, id)).closed_at !== null);
      expect(await approvalOf(sam, id)).toMatchObject({ status: "expired", closed_by: null, tampering: 0, used_by: null, input: null });
    }
  });

  test.each([["awake", false], ["evicted", true]])("ends as an event of the lane, which is %s: nobody reads or calls", async (_, evicted) => {
    const office = await newOffice(gateward);
    const { agent, tenant, sam } = office;
    const other = await tenant.agent("other");
    const ids = [await ask(gateward, agent, mergeCall(agent)), await approved(office)];
    const left = await approved(office);
    await tenant.flushed();
    for (const id of ids) await tenant.endsAt(id, Date.now() + 3_000);
    // Another row to flush. After the flush, the lane looks when the next approval ends.
    await ask(gateward, other, mergeCall(other));
    await tenant.flushed();
    if (evicted) await tenant.evict();
    const expired = async () => (await tenant.records<{ kind: string }>("audit_events")).filter(({ kind }) => kind === "approval_expired").length;
    expect(await expired()).toBe(0);
    await eventually("both expiries are audited in D1", async () => (await expired()) === 2);

    for (const event of await tenant.api.all<AuditEvent>("/v1/audit-events?kind=approval_expired")) {
      expect(event).toMatchObject({ source: "_clock", lane: 0, detail: { status: "expired" } });
    }
    const listed = await sam.read<ApprovalPage>("/v1/approvals?status=expired");
    expect(listed.approvals.map(({ approval_id }) => approval_id)).toEqual(ids.toReversed());
    expect(listed.approvals).toEqual(await Promise.all(ids.toReversed().map((id) => approvalOf(sam, id))));
    expect(await approvalOf(sam, left)).toMatchObject({ status: "approved" });
    expect(problemsOf(await gateward.receipts(tenant.admin), GENESIS)).toEqual([]);
  });
});

describe("open approvals of one agent", () => {
  test("are bounded: the next one is refused with a reason, until one is closed", { timeout: 120_000 }, async () => {
    const { agent, sam, tenant } = await newOffice(gateward);
    const other = await tenant.agent("other");
    const ids: string[] = [];
    for (let at = 0; at < MAX_OPEN; at += 10) {
      ids.push(...await Promise.all(Array.from({ length: 10 }, () => ask(gateward, agent, mergeCall(agent)))));
    }
    expect(new Set(ids).size).toBe(MAX_OPEN);
    const refused = { decision: "deny", reason_code: "approvals_exhausted", reason: expect.stringMatching(/^[A-Z].*\.$/), approval: null };
    const next = () => gateward.decide(agent.token, mergeCall(agent));
    expect(await next()).toMatchObject(refused);
    for (const evicted of [true, false]) {
      if (evicted) await tenant.evict();
      else await tenant.flushed();
      expect(await next()).toMatchObject(refused);
    }
    expect(await gateward.decide(other.token, mergeCall(other))).toMatchObject({ decision: "require_approval" });
    // Calls that need no approval pass, and so do calls that have one.
    expect((await gateward.decide(agent.token, mergeCall(agent, { context: { source_trust: "trusted_internal_signed" } }))).decision).toBe("allow");
    const [one = "", two = "", three = "", four = "", five = ""] = ids;
    await decided(sam, "approve", one);
    expect(await next()).toMatchObject(refused);

    const ways: [string, () => Promise<unknown>][] = [
      ["use", () => use(gateward, agent, mergeCall(agent), one)],
      ["reject", () => decided(sam, "reject", two)],
      ["cancel", () => decided(sam, "cancel", three)],
      ["tamper", async () => {
        for (let at = 0; at < MAX_TAMPERING; at += 1) await use(gateward, agent, mergeCall(agent, { tool_call: { resource: "other" } }), four);
      }],
      ["expire", async () => {
        await tenant.flushed();
        await tenant.endsAt(five, Date.now());
        // Any flush has this effect.
        await gateward.decide(other.token, mergeCall(other));
        await eventually("it is written down", async () => (await approvalOf(sam, five)).closed_at !== null);
      }],
    ];
    for (const [way, close] of ways) {
      await close();
      expect({ way, decision: (await next()).decision }).toEqual({ way, decision: "require_approval" });
      expect({ way, reason: (await next()).reason_code }).toEqual({ way, reason: "approvals_exhausted" });
    }
  });

  test("are never more, however many are asked for at once", { timeout: 120_000 }, async () => {
    const { agent } = await newOffice(gateward);
    const answers = await Promise.all(Array.from({ length: MAX_OPEN + 30 }, () => gateward.decide(agent.token, mergeCall(agent))));
    expect(answers.filter(({ decision }) => decision === "require_approval")).toHaveLength(MAX_OPEN);
    expect(answers.filter(({ reason_code }) => reason_code === "approvals_exhausted")).toHaveLength(30);
  });
});

describe("a waiting call's arguments", () => {
  const MARK = "a-very-secret-argument";
  const secretCall = (agent: TestAgent) => mergeCall(agent, { tool_call: { parameters: { repo: MARK, number: 42, base: "x" } } });
  const EDIT = { edit: { base: `edited-${MARK}` } };

  test("may be as large as an approver can read, and no larger", async () => {
    const { agent, sam, tenant } = await newOffice(gateward);
    const sized = (bytes: number) => {
      const frame = JSON.stringify({ base: "", number: 42, repo: "acme/shop" }).length;
      return mergeCall(agent, { tool_call: { parameters: { repo: "acme/shop", number: 42, base: "b".repeat(bytes - frame) } } });
    };
    const id = await ask(gateward, agent, sized(MAX_INPUT_BYTES));
    expect((await approvalOf(sam, id)).input).toEqual(sized(MAX_INPUT_BYTES).tool_call.parameters);
    await decided(sam, "approve", id);
    expect((await use(gateward, agent, sized(MAX_INPUT_BYTES), id)).reason_code).toBe("approval_granted");
    expect(await gateward.decide(agent.token, sized(MAX_INPUT_BYTES + 1))).toMatchObject({ decision: "deny", reason_code: "approval_input_too_large", approval: null });
    await tenant.flushed();
    expect(await tenant.records("approvals")).toHaveLength(1);
  });

  const ways: [string, string, (office: Office, id: string) => Promise<unknown>][] = [
    ["rejected", "rejected", ({ sam }, id) => decided(sam, "reject", id)],
    ["cancelled", "cancelled", ({ sam }, id) => decided(sam, "cancel", id)],
    ["cancelled after an edit", "cancelled", async ({ sam }, id) => {
      await decided(sam, "approve", id, EDIT);
      await decided(sam, "cancel", id);
    }],
    ["used", "used", async ({ sam, agent }, id) => {
      await decided(sam, "approve", id);
      await use(gateward, agent, secretCall(agent), id);
    }],
    ["used after an edit", "used", async ({ sam, agent }, id) => {
      const { edited } = await decided(sam, "approve", id, EDIT);
      await use(gateward, agent, mergeCall(agent, { tool_call: { parameters: edited?.input ?? {} } }), id);
    }],
    ["tampered with", "cancelled", async ({ agent }, id) => {
      for (let at = 0; at < MAX_TAMPERING; at += 1) await use(gateward, agent, mergeCall(agent), id);
    }],
    ["expired", "expired", async ({ tenant, agent, sam }, id) => {
      await tenant.endsAt(id, Date.now());
      await use(gateward, agent, secretCall(agent), id);
      await eventually("it is written down", async () => (await approvalOf(sam, id)).closed_at !== null);
    }],
  ];
  test.each(ways)("are kept by the lane alone, and no longer once it is %s", async (_, status, close) => {
    const office = await newOffice(gateward);
    const { tenant, agent, sam } = office;
    const id = await ask(gateward, agent, secretCall(agent));
    const lane = `${tenant.name}/0`;
    const kept = () => gateward.laneRows<{ input: string | null; edited_input: string | null }>(lane, "SELECT input, edited_input FROM approvals WHERE approval_id = ?1", id);
    expect(await kept()).toEqual([{ input: expect.stringContaining(MARK), edited_input: null }]);
    await close(office, id);
    expect(await kept()).toEqual([{ input: null, edited_input: null }]);
    expect(await approvalOf(sam, id)).toMatchObject({ status, input: null });
    expect((await approvalOf(sam, id)).edited?.input ?? null).toBeNull();

    const rest = [];
    for (const table of ["approvals", "journal", "replay", "agents", "meta"]) rest.push(await gateward.laneRows(lane, `SELECT * FROM ${table}`));
    await tenant.flushed();
    rest.push(await tenant.snapshot(), await gateward.receipts(tenant.admin));
    expect(JSON.stringify(rest)).toContain(id);
    expect(JSON.stringify(rest)).not.toContain(MARK);
  });

  test("are in no list and no row of D1 while it waits", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, secretCall(agent));
    await decided(sam, "approve", id, EDIT);
    const journal = await gateward.laneRows(`${tenant.name}/0`, "SELECT * FROM journal");
    await tenant.flushed();
    const listed = await sam.read<ApprovalPage>("/v1/approvals");
    expect(listed.approvals[0]?.edited).toMatchObject({ by: "sam", input: null });
    expect(JSON.stringify([journal, listed, await tenant.snapshot(), await gateward.receipts(tenant.admin)])).not.toContain(MARK);
  });
});

describe("what is written down", () => {
  /** An approval with every possible step. Returns its id and its audit events, oldest first. */
  async function play(office: Office, sue: Api): Promise<{ id: string; kind: string; source: string; status: string }[]> {
    const { tenant, agent, sam } = office;
    const body = mergeCall(agent);
    const steps: { id: string; kind: string; source: string; status: string }[] = [];
    const step = (id: string, kind: string, source: string, status: string) => steps.push({ id, kind: `approval_${kind}`, source, status });

    const used = await ask(gateward, agent, body);
    await use(gateward, agent, mergeCall(agent, { tool_call: { resource: "other" } }), used);
    step(used, "tampered", "coder", "pending");
    await decided(sam, "approve", used, { comment: "Fine." });
    step(used, "approved", "sam", "approved");
    await use(gateward, agent, body, used);
    step(used, "used", "coder", "used");

    const rejected = await ask(gateward, agent, body);
    await decided(sue, "reject", rejected, { comment: "No." });
    step(rejected, "rejected", "sue", "rejected");

    const cancelled = await ask(gateward, agent, body);
    await decided(sam, "approve", cancelled);
    step(cancelled, "approved", "sam", "approved");
    await decided(tenant.api, "cancel", cancelled);
    step(cancelled, "cancelled", "admin", "cancelled");

    const expired = await ask(gateward, agent, body);
    await tenant.flushed();
    await tenant.endsAt(expired, Date.now());
    await use(gateward, agent, body, expired);
    step(expired, "expired", "_clock", "expired");
    await eventually("it is written down", async () => (await approvalOf(sam, expired)).closed_at !== null);
    return steps;
  }

  test("every step has an audit event, and a receipt of kind approval in the lane's chain, which verifies", async () => {
    const office = await newOffice(gateward);
    const { tenant } = office;
    const sue = await tenant.approver("sue", SECURITY);
    const steps = await play(office, sue);
    const receipts = await gateward.receipts(tenant.admin);
    expect(problemsOf(receipts, GENESIS)).toEqual([]);
    const ofApprovals = receipts.flatMap(({ body }) => (body.kind === "approval" ? [body] : []));
    expect(ofApprovals.map(({ approval_id, change, status }) => ({ id: approval_id, kind: change, status }))).toEqual(
      steps.map(({ id, kind, status }) => ({ id, kind, status })));
    const [tampered, approvedOne, used] = ofApprovals;
    const decisions = receipts.filter(({ body }) => body.kind === "decision").map(({ body }) => body);
    expect(tampered).toMatchObject({ administrator: "", key_id: office.agent.credential.keyId, decision_id: decisions[1]?.decision_id });
    expect(used).toMatchObject({ administrator: "", key_id: office.agent.credential.keyId, decision_id: decisions[2]?.decision_id });
    expect(decisions[2]).toMatchObject({ decision: "allow", reason_code: "approval_granted", approval_id: steps[0]?.id, obligations: { approver_groups: [] } });
    expect(approvedOne).toEqual({
      version: 2,
      kind: "approval",
      change: "approval_approved",
      status: "approved",
      approval_id: steps[0]?.id,
      action_hash: actionHash(tenant.name, mergeCall(office.agent)),
      administrator: "sam",
      key_id: expect.stringMatching(/^k/),
      agent: "coder",
      decision_id: decisions[0]?.decision_id,
      epoch: expect.any(Number),
      tenant: tenant.name,
      lane: 0,
      seq: approvedOne?.seq,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      prev_hash: receipts[(approvedOne?.seq ?? 0) - 2]?.receipt_hash,
    });

    await tenant.flushed();
    expect(await gateward.receipts(tenant.admin)).toEqual(receipts);
    const verified = await gateward.post<Verification>(tenant.admin, "/v1/receipts/verify", { lane: 0, from: 1, to: receipts.length });
    expect(verified.body).toMatchObject({ verified: true, checked: receipts.length });
    const events = (await tenant.api.all<AuditEvent>("/v1/audit-events")).filter(({ kind }) => kind.startsWith("approval_")).toReversed();
    const told = (list: { kind: string; source: string; id: string; status: string }[]) => list.map((step) => JSON.stringify(step)).sort();
    expect(told(events.map(({ kind, source, detail }) => {
      const { approval_id, status } = detail as { approval_id: string; status: string };
      return { kind, source, id: approval_id, status };
    }))).toEqual(told(steps.map(({ kind, source, id, status }) => ({ kind, source, id, status }))));
    const comments = events.map(({ detail }) => (detail as { comment?: string }).comment).filter((comment) => comment !== undefined);
    expect(comments.sort()).toEqual(["Fine.", "No."]);
  });

  test("a quorum's first approval is one too", async () => {
    const agent = await demo.agent("endorsed", { groups: ["support"] });
    const id = await ask(gateward, agent, refundCall(agent));
    for (const api of [finance.ann, finance.ann, finance.ben]) await decided(api, "approve", id);
    await demo.flushed();
    const events = (await demo.api.all<AuditEvent>("/v1/audit-events"))
      .filter(({ detail }) => (detail as { approval_id?: string }).approval_id === id).map(({ kind, source }) => `${kind} ${source}`);
    expect(events.sort()).toEqual(["approval_approved ben", "approval_endorsed ann"]);
    expect(problemsOf(await gateward.receipts(demo.admin), GENESIS)).toEqual([]);
  });

  test("D1 has what the lane has, without the arguments, and the lane forgets nothing at a flush", async () => {
    const office = await newOffice(gateward);
    const { tenant, sam } = office;
    const sue = await tenant.approver("sue", SECURITY);
    const ids = [...new Set((await play(office, sue)).map(({ id }) => id)), await ask(gateward, office.agent, mergeCall(office.agent)), await approved(office)];
    await tenant.flushed();
    const listed = await sam.all<Approval>("/v1/approvals", 2);
    expect(listed.map(({ approval_id }) => approval_id)).toEqual(ids.toReversed());
    expect(listed.map(({ status }) => status)).toEqual(["approved", "pending", "expired", "cancelled", "rejected", "used"]);
    for (const one of listed) {
      const held = await approvalOf(sam, one.approval_id);
      // The end of this approval was changed in the lane. D1 got it with the expiry.
      expect(one).toEqual({ ...held, input: null });
    }
    // If an approval was closed long ago, only D1 still has it.
    const [used = ""] = ids;
    await gateward.laneRows(`${tenant.name}/0`, "DELETE FROM approvals WHERE approval_id = ?1", used);
    expect(await approvalOf(sam, used)).toEqual(listed.at(-1));
    expectCode(await decide(sam, "approve", used), 404, "not_found");
  });

  test("an approval survives the lane's eviction between all its steps", async () => {
    const agent = await demo.agent("survivor", { groups: ["support"] });
    const body = refundCall(agent);
    const narrowed = refundCall(agent, 600);
    const id = await ask(gateward, agent, body);
    const evicted = async <Result>(step: () => Promise<Result>): Promise<Result> => {
      await demo.evict();
      return step();
    };
    const pending = await evicted(() => approvalOf(finance.ann, id));
    expect(pending).toMatchObject({ status: "pending", input: body.tool_call.parameters });
    expect((await evicted(() => use(gateward, agent, body, id))).reason_code).toBe("approval_pending");
    const edited = await evicted(() => decided(finance.ann, "approve", id, { edit: { amount: 600 } }));
    expect(await evicted(() => approvalOf(finance.ann, id))).toEqual(edited);
    expect(await evicted(() => decided(finance.ann, "approve", id))).toEqual({ ...edited, already_decided: true });
    const seen = { action_hash: edited.edited?.action_hash };
    expect(await evicted(() => decided(finance.ben, "approve", id, seen))).toMatchObject({ status: "approved", revision: 3 });
    expect((await evicted(() => use(gateward, agent, body, id))).reason_code).toBe("approval_mismatch");
    expect((await evicted(() => use(gateward, agent, narrowed, id))).reason_code).toBe("approval_granted");
    expect((await evicted(() => use(gateward, agent, narrowed, id))).reason_code).toBe("approval_used");
    expect(await evicted(() => approvalOf(finance.ann, id))).toMatchObject({ status: "used", tampering: 0, input: null, edited: { input: null } });
    expect(problemsOf(await gateward.receipts(demo.admin), GENESIS)).toEqual([]);
  });
});
