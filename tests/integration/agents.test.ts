// Administration of agents: states with their own undo actions, grants, groups, names that cannot be used again.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent, AuthorizeRequest, Member, Problem } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { canaryCall, eventually, Gateward, INSPECTABLE, passes, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";

let gateward: Gateward;
let tenant: Tenant;
let api: Api;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  tenant = await gateward.tenant();
  api = tenant.api;
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

let made = 0;
/** A new agent with a credential, and a read that it may make. */
async function newAgent(of = api, fields: object = {}): Promise<{ name: string; token: string; body: AuthorizeRequest }> {
  made += 1;
  const name = `agent-${made}`;
  await of.agent(name, fields);
  const { token } = await of.credential(name);
  return { name, token, body: readCall({ agent: { id: name } }) };
}

describe("an agent", () => {
  test("has exactly the fields of the contract, and may call at once", async () => {
    const created = await api.agent("whole");
    expect(created).toEqual({
      agent: "whole",
      environment: "production",
      lane: 0,
      status: "active",
      frozen: false,
      quarantined: false,
      revoked: false,
      risk_tier: "low",
      registered_risk_tier: "low",
      groups: [],
      allowed_tools: null,
      public_key: null,
      warrant_required: false,
      taint: null,
      warrant_locator: null,
      revision: expect.any(Number),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    expect(await api.read("/v1/agents/whole")).toEqual(created);
    const { token } = await api.credential("whole");
    expect(await passes(gateward, token, readCall({ agent: { id: "whole" } }))).toBe(true);
  });

  test("a patch changes what it names, null clears, and the next call goes by it", async () => {
    const { name, token, body } = await newAgent(api, { allowed_tools: ["*"] });
    const path = `/v1/agents/${name}`;
    expect((await api.patch<Agent>(path, { risk_tier: "high" })).body).toMatchObject({ allowed_tools: ["*"], risk_tier: "high", registered_risk_tier: "high" });
    expect(await gateward.decide(token, writeCall({ agent: { id: name } }))).toMatchObject({ decision: "require_approval" });
    expect((await api.patch<Agent>(path, { allowed_tools: null })).body).toMatchObject({ allowed_tools: null, risk_tier: "high" });
    await api.change("PATCH", path, { environment: "staging" });
    expectCode(await gateward.post(token, "/v1/authorize", body), 403, "environment_mismatch");
  });

  test("an existing name is taken, and so is a deleted one", async () => {
    const { name, token, body } = await newAgent();
    const again = () => api.post("/v1/agents", { agent: name, environment: "production" });
    expectCode(await again(), 409, "name_taken");
    await api.change("DELETE", `/v1/agents/${name}`);
    expectCode(await api.get(`/v1/agents/${name}`), 404, "not_found");
    expect((await api.all<Agent>("/v1/agents")).map(({ agent }) => agent)).not.toContain(name);
    expect(await passes(gateward, token, body)).toBe(false);
    expectCode(await again(), 409, "name_taken");
    expect([404, 409]).toContain((await api.post(`/v1/agents/${name}/freeze`)).status);
    expect([404, 409, 422]).toContain((await api.post("/v1/credentials", { kind: "agent", agent: name })).status);
  });
});

describe("states", () => {
  // [name, actions, the flags and the status afterwards]
  type State = Pick<Agent, "status" | "frozen" | "quarantined" | "revoked">;
  const state = (status: Agent["status"], ...flags: string[]): State => ({
    status,
    frozen: flags.includes("frozen"),
    quarantined: flags.includes("quarantined"),
    revoked: flags.includes("revoked"),
  });
  const cases: [string[], State][] = [
    [["freeze"], state("frozen", "frozen")],
    [["freeze", "unfreeze"], state("active")],
    [["freeze", "restore"], state("frozen", "frozen")],
    [["quarantine"], state("quarantined", "quarantined")],
    [["quarantine", "unfreeze"], state("quarantined", "quarantined")],
    [["quarantine", "restore"], state("active")],
    [["freeze", "quarantine", "unfreeze"], state("quarantined", "quarantined")],
    [["freeze", "quarantine", "restore"], state("frozen", "frozen")],
    [["quarantine", "freeze", "restore", "unfreeze"], state("active")],
    [["revoke"], state("revoked", "revoked")],
    [["freeze", "quarantine", "revoke"], state("revoked", "frozen", "quarantined", "revoked")],
  ];
  test.each(cases)("after %j an agent is %j, and is decided so", async (actions, expected) => {
    const { name, token, body } = await newAgent();
    expect(await passes(gateward, token, body)).toBe(true);
    expect(await api.act(name, ...actions)).toMatchObject(expected);
    const { decision, reason_code } = await gateward.decide(token, body);
    expect({ decision, reason_code }).toEqual(
      expected.status === "active"
        ? { decision: "allow", reason_code: "policy_allow" }
        : { decision: "deny", reason_code: `agent_${expected.status}` },
    );
  });

  test("revoked is final", async () => {
    const { name, token, body } = await newAgent();
    await api.act(name, "freeze", "revoke");
    for (const action of ["unfreeze", "restore", "freeze", "quarantine", "revoke", "unrevoke"]) {
      const { status } = await api.post(`/v1/agents/${name}/${action}`);
      expect({ action, status }).toEqual({ action, status: expect.toBeOneOf(action === "unrevoke" ? [404] : [200, 409]) });
      expect(await api.read(`/v1/agents/${name}`)).toMatchObject({ status: "revoked", revoked: true });
    }
    const patched = await api.patch(`/v1/agents/${name}`, { environment: "production" });
    expect([200, 409]).toContain(patched.status);
    expectCode(await api.post("/v1/agents", { agent: name, environment: "production" }), 409, "name_taken");
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "deny", reason_code: "agent_revoked" });
  });

  test("what a canary call did is lifted by restore alone, and at once", async () => {
    const { name, token, body } = await newAgent();
    expect(await gateward.decide(token, canaryCall({ agent: { id: name } }))).toMatchObject({ decision: "quarantine" });
    await eventually("the registry tells of the quarantine", async () => (await api.read<Agent>(`/v1/agents/${name}`)).status === "quarantined");
    await api.act(name, "freeze", "unfreeze");
    await api.change("PATCH", `/v1/agents/${name}`, { risk_tier: "low" });
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });

    await api.change("POST", `/v1/agents/${name}/restore`);
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "allow" });
    await tenant.evict();
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "allow" });
    await eventually("D1's copy follows", async () => {
      const [row] = await gateward.rows<{ lane_quarantined: number; status: string }>(
        "SELECT lane_quarantined, status FROM agents WHERE tenant = ?1 AND agent = ?2", tenant.name, name);
      return row?.lane_quarantined === 0 && row.status === "active";
    });
    expect(await api.read<Agent>(`/v1/agents/${name}`)).toMatchObject({ status: "active", quarantined: false });
    await tenant.flushed();
    expect(problemsOf(await gateward.receipts(tenant.admin))).toEqual([]);
  });

  test("restore before the quarantine was flushed lifts it for good", async () => {
    const { name, token, body } = await newAgent();
    await gateward.decide(token, canaryCall({ agent: { id: name } }));
    await api.change("POST", `/v1/agents/${name}/restore`);
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "allow" });
    await tenant.flushed();
    expect(await api.read<Agent>(`/v1/agents/${name}`)).toMatchObject({ status: "active" });
    await tenant.evict();
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "allow" });
    expect(await gateward.decide(token, canaryCall({ agent: { id: name } }))).toMatchObject({ decision: "quarantine" });
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });
  });

  test("restore lifts the administrators' quarantine and the lane's together", async () => {
    const { name, token, body } = await newAgent();
    await gateward.decide(token, canaryCall({ agent: { id: name } }));
    await api.act(name, "quarantine", "restore");
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "allow" });
  });
});

describe("grants", () => {
  // [allowed_tools, whether github/list_issues passes]
  const grants: [string[] | null, boolean][] = [
    [null, true],
    [[], false],
    [["github/list_issues"], true],
    [["github/*"], true],
    [["*"], true],
    [["git*/list_*"], true],
    [["*/list_issues"], true],
    [["github/list_issue"], false],
    [["github/list*issue*"], true],
    [["github/list_issues_*"], false],
    [["GITHUB/*"], false],
    [["crm/*", "github/get_issue"], false],
    [["crm/*", "github/list_issues"], true],
  ];
  test.each(grants)("with allowed_tools %j, reading passes: %s", async (allowed_tools, expected) => {
    const { name, token, body } = await newAgent(api, { allowed_tools });
    expect(await api.read(`/v1/agents/${name}`)).toMatchObject({ allowed_tools });
    const { decision, reason_code } = await gateward.decide(token, body);
    expect({ decision, reason_code }).toEqual(
      expected ? { decision: "allow", reason_code: "policy_allow" } : { decision: "deny", reason_code: "tool_not_granted" });
  });

  test("removing the last grant leaves none, not all; clearing the list leaves all", async () => {
    const { name, token, body } = await newAgent(api, { allowed_tools: ["github/list_issues"] });
    const path = `/v1/agents/${name}`;
    expect(await passes(gateward, token, body)).toBe(true);
    await api.change("PATCH", path, { allowed_tools: [] });
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "deny", reason_code: "tool_not_granted" });
    await api.change("PATCH", path, { risk_tier: "low" });
    expect(await api.read(path)).toMatchObject({ allowed_tools: [] });
    expect(await passes(gateward, token, body)).toBe(false);
    await api.change("PATCH", path, { allowed_tools: null });
    expect(await passes(gateward, token, body)).toBe(true);
  });
});

describe("groups", () => {
  test("have agents and administrators as members, named once however often they are put in", async () => {
    const { name } = await newAgent();
    await api.group("mixed", name, name);
    await api.administrator("ann", ["audit:read"]);
    const path = "/v1/groups/mixed/members";
    expect(await api.change("PUT", `${path}/administrators/ann`)).toEqual({ kind: "administrator", member: "ann", group: "mixed" });
    const members = await api.all<Member>(path);
    expect(members.toSorted((a, b) => a.member.localeCompare(b.member))).toEqual([
      { group: "mixed", kind: "agent", member: name },
      { group: "mixed", kind: "administrator", member: "ann" },
    ]);
    expect(await api.read<Agent>(`/v1/agents/${name}`)).toMatchObject({ groups: ["mixed"] });
    for (let at = 0; at < 2; at += 1) await api.change("DELETE", `${path}/agents/${name}`);
    expect(await api.all<Member>(path)).toEqual([{ group: "mixed", kind: "administrator", member: "ann" }]);
    expect(await api.read<Agent>(`/v1/agents/${name}`)).toMatchObject({ groups: [] });
  });

  test("take nobody that does not exist, and no kind that does not", async () => {
    await api.group("strict");
    for (const member of ["agents/nobody", "agents/Nobody", "people/ann", "agent/coder"]) {
      const { status } = await api.put(`/v1/groups/strict/members/${member}`);
      expect({ member, status }).toEqual({ member, status: expect.toBeOneOf([404, 422]) });
    }
    expectCode(await api.put("/v1/groups/none/members/agents/agent-1"), 404, "not_found");
    expect(await api.all("/v1/groups/strict/members")).toEqual([]);
  });

  test("that are deleted have no members, and their names are not given again", async () => {
    const { name } = await newAgent();
    await api.group("gone", name);
    await api.change("DELETE", "/v1/groups/gone");
    expect(await api.read<Agent>(`/v1/agents/${name}`)).toMatchObject({ groups: [] });
    for (const path of ["/v1/groups/gone", "/v1/groups/gone/members"]) expectCode(await api.get(path), 404, "not_found");
    expectCode(await api.put(`/v1/groups/gone/members/agents/${name}`), 404, "not_found");
    expectCode(await api.post("/v1/groups", { group: "gone" }), 409, "name_taken");
  });

  test("are what policies see: only support refunds", async () => {
    const demo = await gateward.tenant({}, "demo");
    const { name, token } = await newAgent(demo.api);
    const body = readCall({
      agent: { id: name },
      tool_call: { tool: "crm", action: "refund", mutates_state: true, parameters: { customer_id: "c1", amount: 5, currency: "EUR" } },
    });
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "deny", matched_policies: ["tenants/demo/crm#only-support-refunds"] });
    await demo.api.group("support", name);
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "allow" });
    await demo.api.change("DELETE", `/v1/groups/support/members/agents/${name}`);
    expect(await passes(gateward, token, body)).toBe(false);
    await demo.api.change("PUT", `/v1/groups/support/members/agents/${name}`);
    expect(await passes(gateward, token, body)).toBe(true);
    await demo.api.change("DELETE", "/v1/groups/support");
    expect(await passes(gateward, token, body)).toBe(false);
  });
});
