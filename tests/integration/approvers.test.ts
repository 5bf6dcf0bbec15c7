// The meaning of a quorum: that many different persons. Nobody can give themselves another vote.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Approval, ApprovalPage, Problem } from "../support/api/types.gen.ts";
import { Api, type NewCredential } from "../support/administration.ts";
import { approvalOf, ask, decide, decided, expectCode, refundCall, use } from "../support/approvals.ts";
import type { Reply } from "../support/client.ts";
import { eventually, Gateward, type Tenant, type TestAgent } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES } from "../support/registry.ts";

/** Two members of this group must approve a large refund in the tenant `demo`. */
const FINANCE = "finance";
const MEMBERS = `/v1/groups/${FINANCE}/members/administrators`;

let gateward: Gateward;
let demo: Tenant;
let agent: TestAgent;
/** Members of the group, which is protected; each may do everything in the tenant. */
let ann: Api;
let ben: Api;
/** The token of `ben`. */
let bensKey: string;

beforeAll(async () => {
  gateward = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: 50 } });
  demo = await gateward.tenant({}, "demo");
  agent = await demo.agent("refunder", { groups: ["support"] });
  await demo.api.create("/v1/groups", { group: FINANCE });
  const member = async (name: string) => {
    const issued = await demo.api.administrator(name, ADMINISTRATOR_SCOPES);
    await demo.api.change("PUT", `${MEMBERS}/${name}`);
    return issued;
  };
  ann = new Api(gateward, (await member("ann")).token);
  const issued = await member("ben");
  ben = new Api(gateward, issued.token);
  bensKey = issued.key_id;
  await demo.api.change("POST", `/v1/groups/${FINANCE}/protect`);
});
afterAll(() => gateward?.close());

const credentialOf = (administrator: string) => ({ kind: "administrator", administrator, scopes: ADMINISTRATOR_SCOPES });

/** The approval that a refused change waits for. */
function waitsFor(reply: Reply<Problem>): string {
  expectCode(reply, 403, "approval_required");
  return reply.body.approval_id ?? "";
}

/** The same request with the approval. */
const approved = (id: string) => ({ headers: { "x-gateward-approval-id": id } });

test("one person cannot approve twice under two names", async () => {
  const body = refundCall(agent);
  const id = await ask(gateward, agent, body);
  expect(await decided(ann, "approve", id)).toMatchObject({ status: "pending", approvers: [{ administrator: "ann", issued_by: "admin" }] });

  // Another credential of hers is still one person.
  const own = waitsFor(await ann.post("/v1/credentials", credentialOf("ann")));
  expect(await approvalOf(ann, own)).toMatchObject({ approver_groups: [{ group: FINANCE, quorum: 2 }] });

  // An administrator with another name is not a member, and does not become one.
  await ann.create("/v1/administrators", { administrator: "puppet" });
  const puppet = new Api(gateward, (await ann.create<NewCredential>("/v1/credentials", credentialOf("puppet"))).token);
  expectCode(await decide(puppet, "approve", id), 403, "forbidden");
  const joins = waitsFor(await ann.put(`${MEMBERS}/puppet`));
  expectCode(await decide(puppet, "approve", joins), 403, "forbidden");
  expect(await decided(ann, "approve", joins)).toMatchObject({ status: "pending" });
  expectCode(await ann.put(`${MEMBERS}/puppet`, approved(joins)), 409, "state_conflict");
  // This also fails if that administrator asks, and she approves.
  const asks = waitsFor(await puppet.put(`${MEMBERS}/puppet`));
  expect(await decided(ann, "approve", asks)).toMatchObject({ status: "pending" });

  // Nobody can take over another person's vote.
  expectCode(await ann.post(`/v1/credentials/${bensKey}/rotate`, {}), 403, "forbidden");
  waitsFor(await ann.post("/v1/credentials", credentialOf("ben")));

  // Nobody can lift the protection alone, or make the group smaller.
  waitsFor(await ann.post(`/v1/groups/${FINANCE}/unprotect`));
  waitsFor(await ann.delete(`/v1/groups/${FINANCE}`));
  waitsFor(await ann.delete(`${MEMBERS}/ben`));
  waitsFor(await ann.delete("/v1/administrators/ben"));

  const { members } = await ann.read<{ members: object[] }>(`/v1/groups/${FINANCE}/members`);
  expect(members).toHaveLength(2);
  expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "require_approval", reason_code: "approval_pending" });
  expect(await decided(ben, "approve", id)).toMatchObject({ status: "approved" });
  expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "allow" });
});

describe("a change of a protected group", () => {
  test("is made once two members approved it, by whoever asked, and once", async () => {
    const body = credentialOf("ben");
    const id = waitsFor(await demo.api.post("/v1/credentials", body));
    expect(await approvalOf(ann, id)).toMatchObject({
      agent: "_registry", user_id: "admin", server: "gateward", tool: "credential_created", resource: "ben", status: "pending",
      input: { administrator: "admin", method: "POST", path: "/v1/credentials", body },
    });
    await eventually("the approval is listed", async () => {
      const { approvals } = await ann.read<ApprovalPage>(`/v1/approvals?group=${FINANCE}&status=pending`);
      return approvals.some(({ approval_id }) => approval_id === id);
    });
    await decided(ann, "approve", id);
    expect(await decided(ben, "approve", id)).toMatchObject({ status: "approved" });

    // What was approved is this body and this query, for this person.
    expectCode(await demo.api.post("/v1/credentials?last=true", body, approved(id)), 409, "state_conflict");
    expectCode(await ann.post("/v1/credentials", body, approved(id)), 409, "state_conflict");
    expectCode(await demo.api.post("/v1/credentials", { ...body, signed: true }, approved(id)), 409, "state_conflict");
    const issued = await demo.api.post<NewCredential>("/v1/credentials", body, approved(id));
    expect({ status: issued.status, administrator: issued.body.administrator, issued_by: issued.body.issued_by }).toEqual({ status: 201, administrator: "ben", issued_by: "admin" });
    expectCode(await demo.api.post("/v1/credentials", body, approved(id)), 409, "state_conflict");
    expect(await approvalOf(ann, id)).toMatchObject({ status: "used" });
    const [event] = await demo.api.all<{ kind: string; detail: { approval_id?: string } }>("/v1/audit-events?kind=credential_created");
    expect(event?.detail.approval_id).toBe(id);
  });

  test("is rejected by one member, and by nobody else", async () => {
    const id = waitsFor(await demo.api.put(`${MEMBERS}/admin`));
    expectCode(await decide(demo.api, "reject", id), 403, "forbidden");
    expect(await decided(ben, "reject", id)).toMatchObject({ status: "rejected" });
    expectCode(await demo.api.put(`${MEMBERS}/admin`, approved(id)), 409, "state_conflict");
  });

  test("is read by no agent", async () => {
    const id = waitsFor(await demo.api.put(`${MEMBERS}/admin`));
    expect((await gateward.get(agent.token, `/v1/approvals/${id}`)).status).toBe(404);
  });

  test("waits for no approval that is not one", async () => {
    for (const id of ["appr_0_999999", "appr_1_1", "appr_9999_1", "x"]) {
      expectCode(await demo.api.put(`${MEMBERS}/admin`, approved(id)), 409, "state_conflict");
    }
  });
});

test("the only member of a protected group lets the second one in", async () => {
  const { api } = await gateward.tenant();
  await api.create("/v1/groups", { group: "g" });
  expectCode(await api.post("/v1/groups/g/protect"), 409, "state_conflict");
  await api.change("PUT", "/v1/groups/g/members/administrators/admin");
  await api.administrator("eve", ADMINISTRATOR_SCOPES);
  await api.change("POST", "/v1/groups/g/protect");
  const path = "/v1/groups/g/members/administrators/eve";
  const id = waitsFor(await api.put(path));
  expect(await decided(api, "approve", id)).toMatchObject({ status: "approved" });
  expect((await api.put(path, approved(id))).status).toBe(200);
  expectCode(await api.delete("/v1/administrators/nobody"), 404, "not_found");
});

test("only the tenant's first administrator protects a group", async () => {
  const tenant = await gateward.tenant();
  const second = await tenant.apiWith(ADMINISTRATOR_SCOPES);
  await second.create("/v1/groups", { group: "mine" });
  await second.change("PUT", "/v1/groups/mine/members/administrators/second");
  expectCode(await second.post("/v1/groups/mine/protect"), 403, "forbidden");
  expect(await tenant.api.read("/v1/administrators/admin")).toMatchObject({ administrator: "admin", first: true });
  expect((await tenant.api.post("/v1/groups/mine/protect")).status).toBe(200);
});

test("an administrator who is deleted has no credential and no membership, and its name is not given again", async () => {
  const tenant = await gateward.tenant();
  const leaver = await tenant.approver("leaver", "g");
  await tenant.api.change("DELETE", "/v1/administrators/leaver");
  expect((await leaver.get<Approval & Problem>("/v1/approvals")).status).toBe(401);
  expect(await tenant.api.read("/v1/groups/g/members")).toMatchObject({ members: [] });
  expectCode(await tenant.api.post("/v1/administrators", { administrator: "leaver" }), 409, "name_taken");
  expectCode(await tenant.api.post("/v1/credentials", credentialOf("leaver")), 422, "invalid_field");
});
