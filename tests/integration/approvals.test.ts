// Approvals: who sees them, who decides on them, and the effect of a decision.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Approval, ApprovalPage } from "../support/api/types.gen.ts";
import { Api } from "../support/administration.ts";
import {
  actionHash, approvalOf, ask, decide, decided, expectCode, mainMergeCall, mergeCall, newOffice, refundCall, SECURITY, use, type Verdict,
} from "../support/approvals.ts";
import { eventually, Gateward, HINDERED, INSPECTABLE, NEVER_MS, type Tenant } from "../support/gateward.ts";

const VERDICTS: Verdict[] = ["approve", "reject", "cancel"];
const FINANCE = "finance";
const RELEASES = "release-managers";

let gateward: Gateward;
/** The tenant whose policies need several groups, and two people. */
let demo: Tenant;
let office: { ann: Api; ben: Api; rita: Api; sam: Api };

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  demo = await gateward.tenant({}, "demo");
  office = {
    ann: await demo.approver("ann", FINANCE),
    ben: await demo.approver("ben", FINANCE),
    rita: await demo.approver("rita", RELEASES),
    sam: await demo.approver("sam", SECURITY),
  };
});
afterAll(() => gateward?.close());

const support = { groups: ["support"] };
const ids = (page: ApprovalPage) => page.approvals.map(({ approval_id }) => approval_id);
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe("GET /v1/approvals", () => {
  test("lists newest first without arguments, and says how far it reaches", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const asked = [];
    for (let number = 1; number <= 3; number += 1) {
      asked.push(await ask(gateward, agent, mergeCall(agent, { tool_call: { parameters: { repo: "acme/shop", number, base: "x" } } })));
    }
    await tenant.flushed();
    const page = await sam.read<ApprovalPage>("/v1/approvals");
    expect(ids(page)).toEqual(asked.toReversed());
    expect(page.approvals.map(({ input }) => input)).toEqual([null, null, null]);
    expect(page.next_cursor).toBeNull();
    expect(page.flushed_through).toEqual([{ lane: 0, seq: 3, at: time }]);
  });

  test("has what was asked and decided a moment ago, before it is in D1", async () => {
    const held = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: NEVER_MS } });
    try {
      const { tenant, agent, sam } = await newOffice(held);
      const asked = [await ask(held, agent, mergeCall(agent)), await ask(held, agent, mergeCall(agent, { tool_call: { resource: "other" } }))];
      expect(await tenant.records("approvals")).toEqual([]);
      const page = await sam.read<ApprovalPage>("/v1/approvals");
      expect(ids(page)).toEqual(asked.toReversed());
      expect(page.flushed_through).toEqual([{ lane: 0, seq: 2, at: time }]);
      await decided(sam, "approve", asked[0] ?? "");
      const listed = async (query: string) => ids(await sam.read<ApprovalPage>(`/v1/approvals?${query}`));
      expect(await listed("status=approved")).toEqual([asked[0]]);
      expect(await listed("status=pending")).toEqual([asked[1]]);
      expect(await listed(`group=${SECURITY}&agent=${agent.name}`)).toEqual(asked.toReversed());
      expect(await listed("agent=nobody")).toEqual([]);
      const first = await sam.read<ApprovalPage>("/v1/approvals?limit=1");
      expect(ids(first)).toEqual([asked[1]]);
      const second = await sam.read<ApprovalPage>(`/v1/approvals?limit=1&cursor=${encodeURIComponent(first.next_cursor ?? "")}`);
      expect([ids(second), second.next_cursor]).toEqual([[asked[0]], null]);
    } finally {
      await held.close();
    }
  });

  test("filters by status, group and agent, each alone and together", async () => {
    const one = await demo.agent("filtered-one", support);
    const two = await demo.agent("filtered-two", support);
    const small = refundCall(one, 600);
    const approved = await ask(gateward, one, mergeCall(one));
    const both = await ask(gateward, one, mainMergeCall(one));
    const money = await ask(gateward, one, small);
    const others = await ask(gateward, two, mergeCall(two));
    await decided(office.sam, "approve", approved);
    await decided(office.sam, "reject", others);
    await demo.flushed();
    const cases: [string, string[]][] = [
      ["agent=filtered-one", [money, both, approved]],
      ["agent=filtered-two", [others]],
      ["agent=nobody", []],
      ["agent=filtered-one&status=pending", [money, both]],
      ["agent=filtered-one&status=approved", [approved]],
      ["agent=filtered-two&status=rejected", [others]],
      ["agent=filtered-one&status=rejected", []],
      ["agent=filtered-one&group=security", [both, approved]],
      ["agent=filtered-one&group=release-managers", [both]],
      ["agent=filtered-one&group=finance", [money]],
      ["agent=filtered-one&group=nobody", []],
      ["agent=filtered-one&group=security&status=pending", [both]],
    ];
    for (const [query, expected] of cases) {
      expect({ query, ids: ids(await office.sam.read<ApprovalPage>(`/v1/approvals?${query}`)) }).toEqual({ query, ids: expected });
    }
    const mine = new Set([money, both, approved, others]);
    for (const [query, expected] of [["status=approved", [approved]], ["status=rejected", [others]], ["group=release-managers", [both]]] as const) {
      const found = (await office.sam.all<Approval>(`/v1/approvals?${query}`)).map(({ approval_id }) => approval_id);
      expect({ query, ids: found.filter((id) => mine.has(id)) }).toEqual({ query, ids: expected });
    }
  });

  test("pages with cursors, each approval once, whatever the filter", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    // They are sent at once, so that some have the same time.
    const asked = await Promise.all(Array.from({ length: 7 }, () => ask(gateward, agent, mergeCall(agent))));
    await tenant.flushed();
    const listed = ids(await sam.read<ApprovalPage>("/v1/approvals"));
    expect(listed.toSorted()).toEqual(asked.toSorted());
    for (const filter of ["", "&agent=coder", "&status=pending", "&group=security", "&agent=coder&status=pending&group=security"]) {
      const pages: string[][] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page: ApprovalPage = await sam.read(`/v1/approvals?limit=3${filter}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
        pages.push(ids(page));
        cursor = page.next_cursor;
      }
      expect({ filter, ids: pages.flat() }).toEqual({ filter, ids: listed });
      expect(pages.map((page) => page.length)).toEqual([3, 3, 1]);
    }
  });

  test.each(["status=maybe", "status=", "group=!", "agent=!", "limit=0", "limit=-1", "limit=many", "limit=1000000", "cursor=!",
    "cursor=1", "cursor=1.x", "cursor=x.appr_0_1", "cursor=9999999999999999999.appr_0_1", "state=pending"])("?%s is malformed", async (query) => {
    expectCode(await office.sam.get(`/v1/approvals?${query}`), 400, "malformed_request");
  });

  test("an agent lists its own only", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const other = await tenant.agent("other");
    const own = await ask(gateward, agent, mergeCall(agent));
    const others = await ask(gateward, other, mergeCall(other));
    await tenant.flushed();
    const api = new Api(gateward, agent.token);
    for (const query of ["", "?agent=coder", "?status=pending", "?group=security", "?limit=1"]) {
      expect({ query, ids: ids(await api.read<ApprovalPage>(`/v1/approvals${query}`)) }).toEqual({ query, ids: [own] });
    }
    expectCode(await api.get("/v1/approvals?agent=other"), 403, "forbidden");
    expect(ids(await sam.read<ApprovalPage>("/v1/approvals"))).toEqual([others, own]);
  });
});

describe("GET /v1/approvals/{id}", () => {
  test("has every field of the contract", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const body = mergeCall(agent, { tool_call: { resource: "pull:ü" }, user: { id: "u1" }, trace: { run_id: "run-1" } });
    const answer = await gateward.decide(agent.token, body);
    const id = answer.approval?.approval_id ?? "";
    expect(id).toBe(`appr_0_${answer.receipt?.seq}`);
    const reply = await sam.get<Approval>(`/v1/approvals/${id}`);
    expect(reply.status).toBe(200);
    expect(reply.headers.get("etag")).toBe('"1"');
    expect(reply.headers.get("content-type")).toMatch(/^application\/json/);
    expect(reply.body).toEqual({
      approval_id: id,
      status: "pending",
      revision: 1,
      decision_id: answer.decision_id,
      agent: "coder",
      server: "github",
      tool: "merge_pull_request",
      resource: "pull:ü",
      user_id: "u1",
      run_id: "run-1",
      assigned: false,
      session: null,
      method: null,
      route: null,
      source_trust: "semi_trusted_customer",
      taint: null,
      provenance: null,
      warrant: null,
      reason: answer.reason,
      matched_policies: ["base/provenance#customer-writes-need-approval"],
      approver_groups: [{ group: SECURITY, quorum: 1 }],
      approvers: [],
      action_hash: actionHash(tenant.name, body),
      input: body.tool_call.parameters,
      edited: null,
      closed_by: null,
      comment: null,
      tampering: 0,
      used_by: null,
      created_at: time,
      expires_at: answer.approval?.expires_at,
      approved_at: null,
      closed_at: null,
      already_decided: false,
    });
  });

  test("the agent that asked polls its own, told when to come again as long as it waits", async () => {
    const { agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, mergeCall(agent));
    const poll = () => gateward.get<Approval>(agent.token, `/v1/approvals/${id}`);
    const waiting = await poll();
    expect({ status: waiting.status, state: waiting.body.status }).toEqual({ status: 200, state: "pending" });
    expect(waiting.headers.get("retry-after")).toBe("5");
    await decided(sam, "approve", id);
    const approved = await poll();
    expect(approved.body).toMatchObject({ status: "approved", approvers: [{ administrator: "sam", groups: [SECURITY] }] });
    expect(approved.headers.get("retry-after")).toBeNull();
  });

  test("another agent's is not found", async () => {
    const { tenant, agent } = await newOffice(gateward);
    const other = await tenant.agent("other");
    const id = await ask(gateward, agent, mergeCall(agent));
    for (const flushed of [false, true]) {
      if (flushed) await tenant.flushed();
      expectCode(await gateward.get(other.token, `/v1/approvals/${id}`), 404, "not_found");
    }
  });

  test("another tenant's is not found, neither to read nor to decide on", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const stranger = await newOffice(gateward);
    const strangers = new Api(gateward, stranger.agent.token);
    const id = await ask(gateward, agent, mergeCall(agent));
    for (const flushed of [false, true]) {
      if (flushed) await tenant.flushed();
      for (const api of [stranger.sam, strangers]) expectCode(await api.get(`/v1/approvals/${id}`), 404, "not_found");
      for (const verdict of VERDICTS) {
        expectCode(await decide(stranger.sam, verdict, id), 404, "not_found");
        expectCode(await decide(strangers, verdict, id), 403, "forbidden");
      }
    }
    expect(await approvalOf(sam, id)).toMatchObject({ status: "pending", revision: 1 });
  });

  test.each(["appr_0_999999", "appr_0_0", "appr_0_-1", "appr_0_01", "appr_0_+1", "appr_1_1", "appr_9999_1", "appr_0", "appr__", "rcpt_0_1", "x",
    "APPR_0_1", "appr_0_1%20", "appr_0_1%2F..", "appr_0_1%00", "%27%20OR%201=1", `appr_0_${"1".repeat(300)}`])("%s is not found", async (id) => {
    for (const verdict of VERDICTS) expectCode(await decide(office.sam, verdict, id), 404, "not_found");
    expectCode(await office.sam.get(`/v1/approvals/${id}`), 404, "not_found");
  });

  test("its id carries its lane, which decides on it", async () => {
    const tenant = await gateward.tenant({ lanes: 2 });
    const agent = await tenant.agent("coder", { lane: 1 });
    const sam = await tenant.approver("sam", SECURITY);
    const id = await ask(gateward, agent, mergeCall(agent));
    expect(id).toMatch(/^appr_1_\d+$/);
    expect(await decided(sam, "approve", id)).toMatchObject({ approval_id: id, status: "approved" });
    expect(await use(gateward, agent, mergeCall(agent), id)).toMatchObject({ decision: "allow", reason_code: "approval_granted" });
    const records = await gateward.receipts(tenant.admin, 1);
    expect(records.map(({ body }) => body.kind)).toEqual(["decision", "approval", "decision", "approval"]);
    expect(await gateward.receipts(tenant.admin, 0)).toEqual([]);
  });
});

describe("a decision", () => {
  test("approve lets the call pass", async () => {
    const { agent, sam } = await newOffice(gateward);
    const body = mergeCall(agent);
    const id = await ask(gateward, agent, body);
    const reply = await decide(sam, "approve", id, { comment: "Looks fine." });
    expect(reply.body).toMatchObject({
      status: "approved",
      revision: 2,
      approvers: [{ administrator: "sam", groups: [SECURITY], at: time }],
      comment: "Looks fine.",
      approved_at: time,
      closed_at: null,
      closed_by: null,
      input: body.tool_call.parameters,
      already_decided: false,
    });
    expect(reply.headers.get("etag")).toBe('"2"');
    expect(await approvalOf(sam, id)).toEqual(reply.body);
    expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "allow", reason_code: "approval_granted" });
  });

  test("reject and cancel deny it", async () => {
    const { agent, sam } = await newOffice(gateward);
    for (const [verdict, status] of [["reject", "rejected"], ["cancel", "cancelled"]] as const) {
      const body = mergeCall(agent);
      const id = await ask(gateward, agent, body);
      expect(await decided(sam, verdict, id, { comment: "No." })).toMatchObject({
        status, closed_by: "sam", comment: "No.", closed_at: time, approved_at: null, input: null, already_decided: false,
      });
      expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "deny", reason_code: `approval_${status}`, approval: { approval_id: id, status } });
    }
  });

  test("approve and reject need membership in a group that is asked, and cancel does not", async () => {
    const { tenant, agent } = await newOffice(gateward);
    const outsiders = [tenant.api, await tenant.approver("eve", "finance", "security-2"), await tenant.approver("ned")];
    const body = mergeCall(agent);
    const id = await ask(gateward, agent, body);
    for (const api of outsiders) {
      for (const verdict of ["approve", "reject"] as const) expectCode(await decide(api, verdict, id), 403, "forbidden");
    }
    expect(await approvalOf(tenant.api, id)).toMatchObject({ status: "pending", revision: 1, approvers: [] });
    expect((await use(gateward, agent, body, id)).reason_code).toBe("approval_pending");
    expect(await decided(tenant.api, "cancel", id)).toMatchObject({ status: "cancelled", closed_by: "admin" });
  });

  test("cancel ends an approved one too, which reject does not", async () => {
    const { agent, sam } = await newOffice(gateward);
    const body = mergeCall(agent);
    const id = await ask(gateward, agent, body);
    await decided(sam, "approve", id);
    expectCode(await decide(sam, "reject", id), 409, "state_conflict");
    expect(await decided(sam, "cancel", id)).toMatchObject({ status: "cancelled" });
    expect((await use(gateward, agent, body, id)).reason_code).toBe("approval_cancelled");
  });

  test("the agent that asked never decides: not by its credential, and no administrator of its name", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const namesake = await tenant.approver(agent.name, SECURITY);
    // Scopes that are written into D1 directly do not help.
    const smuggler = await tenant.agent(agent.name, {}, { scopes: ["tools:read", "tools:write", "approvals:decide"] });
    const id = await ask(gateward, agent, mergeCall(agent));
    for (const api of [new Api(gateward, agent.token), new Api(gateward, smuggler.token)]) {
      for (const verdict of VERDICTS) expectCode(await decide(api, verdict, id), 403, "forbidden");
    }
    for (const verdict of ["approve", "reject"] as const) expectCode(await decide(namesake, verdict, id), 403, "forbidden");
    expect(await approvalOf(sam, id)).toMatchObject({ status: "pending", revision: 1, approvers: [] });
  });

  test("a quorum of two needs two different people; the same one twice counts once, and is told so", async () => {
    const agent = await demo.agent("quorum", support);
    const body = refundCall(agent);
    const id = await ask(gateward, agent, body);
    expect(await approvalOf(office.ann, id)).toMatchObject({ approver_groups: [{ group: FINANCE, quorum: 2 }] });
    const first = await decided(office.ann, "approve", id);
    expect(first).toMatchObject({ status: "pending", revision: 2, approved_at: null, already_decided: false });
    const again = await decided(office.ann, "approve", id);
    expect(again).toEqual({ ...first, already_decided: true });
    // Another credential of hers is not another person.
    const { token } = await demo.api.administrator("ann", ["approvals:decide"]);
    expect(await decided(new Api(gateward, token), "approve", id)).toEqual(again);
    expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "require_approval", reason_code: "approval_pending", approval: { approval_id: id } });

    const last = await decided(office.ben, "approve", id);
    expect(last).toMatchObject({ status: "approved", revision: 3, already_decided: false });
    expect(last.approvers.map(({ administrator }) => administrator)).toEqual(["ann", "ben"]);
    expect(await decided(office.ann, "approve", id)).toEqual({ ...last, already_decided: true });
    expect((await use(gateward, agent, body, id)).decision).toBe("allow");
  });

  test("when several policies ask, all their groups must approve, in a fixed order", async () => {
    const agent = await demo.agent("several");
    const body = mainMergeCall(agent);
    const answers = [await gateward.decide(agent.token, body), await gateward.decide(agent.token, body)];
    for (const answer of answers) {
      expect(answer.approval?.approver_group).toBe("release-managers,security");
      expect(answer).toMatchObject({ reason: answers[0]?.reason, matched_policies: answers[0]?.matched_policies });
      expect(answer.reason).toBe("A customer's text made the agent write. A person must approve. Merging to main needs a release manager's approval.");
    }
    for (const [answer, order] of [[answers[0], [office.rita, office.sam]], [answers[1], [office.sam, office.rita]]] as const) {
      const id = answer?.approval?.approval_id ?? "";
      expect((await approvalOf(office.sam, id)).approver_groups).toEqual([{ group: RELEASES, quorum: 1 }, { group: SECURITY, quorum: 1 }]);
      expect(await decided(order[0], "approve", id)).toMatchObject({ status: "pending" });
      expectCode(await decide(office.ann, "approve", id), 403, "forbidden");
      expect((await use(gateward, agent, body, id)).reason_code).toBe("approval_pending");
      expect(await decided(order[1], "approve", id)).toMatchObject({ status: "approved" });
      expect((await use(gateward, agent, body, id)).decision).toBe("allow");
    }
  });

  test("a person in several of the groups decides for all of them, and for those joined since", async () => {
    const agent = await demo.agent("joint");
    const both = await demo.approver("bo", RELEASES, SECURITY);
    const id = await ask(gateward, agent, mainMergeCall(agent));
    expect(await decided(both, "approve", id)).toMatchObject({ status: "approved", approvers: [{ administrator: "bo", groups: [RELEASES, SECURITY] }] });

    const joining = await demo.approver("jo", SECURITY);
    const second = await ask(gateward, agent, mainMergeCall(agent));
    expect(await decided(joining, "approve", second)).toMatchObject({ status: "pending", approvers: [{ administrator: "jo", groups: [SECURITY] }] });
    await demo.api.change("PUT", `/v1/groups/${RELEASES}/members/administrators/jo`);
    expect(await decided(joining, "approve", second)).toMatchObject({
      status: "approved", approvers: [{ administrator: "jo", groups: [RELEASES, SECURITY] }], already_decided: false,
    });
  });

  test("one is enough to reject, whoever else approved", async () => {
    const agent = await demo.agent("rejected");
    const id = await ask(gateward, agent, mainMergeCall(agent));
    await decided(office.sam, "approve", id);
    expect(await decided(office.rita, "reject", id)).toMatchObject({ status: "rejected", closed_by: "rita" });
    expect((await use(gateward, agent, mainMergeCall(agent), id)).reason_code).toBe("approval_rejected");
  });

  test("what is closed stays as it is: its closer is told so, and everybody else is refused", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const sue = await tenant.approver("sue", SECURITY);
    for (const verdict of ["reject", "cancel"] as const) {
      const id = await ask(gateward, agent, mergeCall(agent));
      const closed = await decided(sam, verdict, id);
      expect(await decided(sam, verdict, id)).toEqual({ ...closed, already_decided: true });
      expectCode(await decide(sue, verdict, id), 409, "state_conflict");
      for (const other of VERDICTS.filter((other) => other !== verdict)) expectCode(await decide(sam, other, id), 409, "state_conflict");
      expect(await approvalOf(sam, id)).toEqual(closed);
    }
    const id = await ask(gateward, agent, mergeCall(agent));
    const approved = await decided(sam, "approve", id);
    expectCode(await decide(sue, "approve", id), 409, "state_conflict");
    expect(await approvalOf(sam, id)).toEqual(approved);
    await use(gateward, agent, mergeCall(agent), id);
    for (const verdict of VERDICTS) expectCode(await decide(sam, verdict, id), 409, "state_conflict");
  });

  test("decisions that meet are taken one after the other", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const sue = await tenant.approver("sue", SECURITY);
    for (let round = 0; round < 4; round += 1) {
      const id = await ask(gateward, agent, mergeCall(agent));
      const replies = await Promise.all([decide(sam, "approve", id), decide(sue, "reject", id), decide(sam, "approve", id)]);
      const { status } = await approvalOf(sam, id);
      const statuses = replies.map((reply) => reply.status);
      expect({ status, statuses }).toEqual({ status: expect.toBeOneOf(["approved", "rejected"]), statuses: status === "approved" ? [200, 409, 200] : [409, 200, 409] });
      expect((await use(gateward, agent, mergeCall(agent), id)).decision).toBe(status === "approved" ? "allow" : "deny");
    }
    const clerk = await demo.agent("clerk", support);
    for (let round = 0; round < 4; round += 1) {
      const id = await ask(gateward, clerk, refundCall(clerk));
      const replies = await Promise.all([office.ann, office.ann, office.ben].map((api) => decided(api, "approve", id)));
      expect(replies.filter(({ already_decided }) => already_decided)).toHaveLength(1);
      expect(await approvalOf(office.ann, id)).toMatchObject({ status: "approved", revision: 3 });
    }
  });

  test("a person who was taken out of the group decides no more, at once; what was approved before stands", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const body = mergeCall(agent);
    const [before, after] = [await ask(gateward, agent, body), await ask(gateward, agent, body)];
    await decided(sam, "approve", before);
    await tenant.api.change("DELETE", `/v1/groups/${SECURITY}/members/administrators/sam`);
    for (const verdict of ["approve", "reject"] as const) expectCode(await decide(sam, verdict, after), 403, "forbidden");
    expect(await approvalOf(sam, after)).toMatchObject({ status: "pending", approvers: [] });
    expect((await use(gateward, agent, body, before)).reason_code).toBe("approval_granted");
    await tenant.api.change("PUT", `/v1/groups/${SECURITY}/members/administrators/sam`);
    expect(await decided(sam, "approve", after)).toMatchObject({ status: "approved" });
  });

  test("a member of a group that was deleted decides no more", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, mergeCall(agent));
    await tenant.api.change("DELETE", `/v1/groups/${SECURITY}`);
    expectCode(await decide(sam, "approve", id), 403, "forbidden");
  });

  test("an agent that is a member of the group lends its membership to nobody", async () => {
    const { tenant, agent } = await newOffice(gateward);
    await tenant.agent("ned", { groups: [SECURITY] });
    const namesake = await tenant.approver("ned");
    const id = await ask(gateward, agent, mergeCall(agent));
    expectCode(await decide(namesake, "approve", id), 403, "forbidden");
  });

  test("a revoked credential decides no more", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, mergeCall(agent));
    const { credentials } = await tenant.api.read<{ credentials: { key_id: string; administrator: string | null }[] }>("/v1/credentials");
    const key = credentials.find(({ administrator }) => administrator === "sam")?.key_id;
    await tenant.api.change("POST", `/v1/credentials/${key}/revoke`);
    for (const verdict of VERDICTS) expectCode(await decide(sam, verdict, id), 401, "unauthorized");
    expect(await approvalOf(tenant.api, id)).toMatchObject({ status: "pending", approvers: [] });
  });

  test("If-Match is honoured: a stale one changes nothing", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, mergeCall(agent));
    const read = await sam.get<Approval>(`/v1/approvals/${id}`);
    const stale = read.headers.get("etag");
    // A use with another call is a change, because an approver may want to know about it.
    await use(gateward, agent, mergeCall(agent, { tool_call: { resource: "other" } }), id);
    for (const ifMatch of [stale, '"0"', '"99"', "2", 'W/"2"']) {
      for (const verdict of VERDICTS) expectCode(await decide(sam, verdict, id, undefined, { ifMatch }), 412, "precondition_failed");
    }
    expect(await approvalOf(sam, id)).toMatchObject({ status: "pending", revision: 2, tampering: 1 });
    const fresh = (await sam.get(`/v1/approvals/${id}`)).headers.get("etag");
    const sue = await tenant.approver("sue", SECURITY);
    const replies = await Promise.all([sam, sue].map((api) => decide(api, "approve", id, undefined, { ifMatch: fresh })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 412]);
    expect((await decide(sam, "cancel", id, undefined, { ifMatch: "*" })).status).toBe(200);
  });

  test("If-Match does not keep whoever got no answer from asking again", async () => {
    const { agent, sam } = await newOffice(gateward);
    for (const verdict of VERDICTS) {
      const id = await ask(gateward, agent, mergeCall(agent));
      const ifMatch = (await sam.get(`/v1/approvals/${id}`)).headers.get("etag");
      const first = await decide(sam, verdict, id, undefined, { ifMatch });
      expect(first.body).toMatchObject({ revision: 2, already_decided: false });
      const again = await decide(sam, verdict, id, undefined, { ifMatch });
      expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: { ...first.body, already_decided: true } });
      expect(again.headers.get("etag")).toBe(first.headers.get("etag"));
      expectCode(await decide(sam, verdict === "cancel" ? "reject" : "cancel", id, undefined, { ifMatch }), 412, "precondition_failed");
    }
  });

  test("the hash that is approved may be named, and must be the good one", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    const body = mergeCall(agent);
    const id = await ask(gateward, agent, body);
    for (const action_hash of ["0".repeat(64), "", actionHash(tenant.name, mainMergeCall(agent))]) {
      expectCode(await decide(sam, "approve", id, { action_hash }), 409, "state_conflict");
    }
    expect(await approvalOf(sam, id)).toMatchObject({ status: "pending", approvers: [] });
    expect(await decided(sam, "approve", id, { action_hash: actionHash(tenant.name, body) })).toMatchObject({ status: "approved" });
  });

  // [name, the verdicts, the body, status, code]
  const bodies: [string, Verdict[], string, number, string][] = [
    ["no JSON", VERDICTS, "{", 400, "malformed_request"],
    ["text after it", VERDICTS, "{} {}", 400, "malformed_request"],
    ["a key twice", VERDICTS, '{"comment":"a","comment":"b"}', 400, "input_invalid"],
    ["nested too deep", ["approve"], `{"edit":${'{"a":'.repeat(40)}1${"}".repeat(40)}}`, 400, "malformed_request"],
    ["an array", VERDICTS, "[1]", 422, "invalid_field"],
    ["a string", VERDICTS, '"approve"', 422, "invalid_field"],
    ["null", VERDICTS, "null", 422, "invalid_field"],
    ["an unknown field", VERDICTS, '{"because":"x"}', 422, "invalid_field"],
    ["a comment of another type", VERDICTS, '{"comment":7}', 422, "invalid_field"],
    ["a comment that is too long", VERDICTS, JSON.stringify({ comment: "c".repeat(1_001) }), 422, "invalid_field"],
    ["an edit that is no object", ["approve"], '{"edit":[1]}', 422, "invalid_field"],
    ["an edit that is text", ["approve"], '{"edit":"number=1"}', 422, "invalid_field"],
    ["a hash of another type", ["approve"], '{"action_hash":7}', 422, "invalid_field"],
    ["an edit where nothing is approved", ["reject", "cancel"], '{"edit":{"number":1}}', 422, "invalid_field"],
    ["a hash where nothing is approved", ["reject", "cancel"], '{"action_hash":"00"}', 422, "invalid_field"],
    ["more than a body may have", VERDICTS, `{"comment":"${"c".repeat(256 * 1_024)}"}`, 413, "body_too_large"],
  ];
  test.each(bodies)("with %s is refused, and changes nothing", async (_, verdicts, body, status, code) => {
    const { agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, mergeCall(agent));
    for (const verdict of verdicts) expectCode(await decide(sam, verdict, id, body), status, code);
    expect(await approvalOf(sam, id)).toMatchObject({ status: "pending", revision: 1 });
  });

  test("needs no body, and takes an empty object; another media type is refused", async () => {
    const { agent, sam } = await newOffice(gateward);
    for (const verdict of VERDICTS) {
      const id = await ask(gateward, agent, mergeCall(agent));
      expectCode(await decide(sam, verdict, id, "{}", { headers: { "content-type": "text/plain" } }), 415, "unsupported_media_type");
      expect((await decide(sam, verdict, id, "{}")).status).toBe(200);
    }
  });
});

describe("an approver who narrows the call", () => {
  test("makes a call with a hash of its own, which alone is good; both sides see both", async () => {
    const agent = await demo.agent("edited", support);
    const body = refundCall(agent, 900);
    const narrowed = refundCall(agent, 600);
    const id = await ask(gateward, agent, body);
    const edited = { action_hash: actionHash("demo", narrowed), by: "ann", input: narrowed.tool_call.parameters };
    const both = { action_hash: actionHash("demo", body), input: body.tool_call.parameters, edited };
    expect(await decided(office.ann, "approve", id, { edit: { amount: 600 } })).toMatchObject({ status: "pending", ...both });
    for (const reader of [office.ben, new Api(gateward, agent.token)]) expect(await approvalOf(reader, id)).toMatchObject(both);
    expect(await decided(office.ben, "approve", id, { action_hash: edited.action_hash })).toMatchObject({ status: "approved", ...both });

    expect(await use(gateward, agent, body, id)).toMatchObject({
      decision: "deny", reason_code: "approval_mismatch", approval: { status: "approved", action_hash: edited.action_hash },
    });
    const { edited: told } = await approvalOf(new Api(gateward, agent.token), id);
    const asTold = { ...body, tool_call: { ...body.tool_call, parameters: told?.input ?? {} } };
    expect(await use(gateward, agent, asTold, id)).toMatchObject({ decision: "allow", reason_code: "approval_granted", approval: { status: "used" } });
  });

  test("forgets who approved before: they approved something else", async () => {
    const agent = await demo.agent("forgotten", support);
    const body = refundCall(agent);
    const id = await ask(gateward, agent, body);
    await decided(office.ann, "approve", id, { action_hash: actionHash("demo", body) });
    const edited = await decided(office.ben, "approve", id, { edit: { amount: 700 } });
    expect(edited).toMatchObject({ status: "pending", approvers: [{ administrator: "ben" }], edited: { by: "ben" } });
    expect(edited.approvers).toHaveLength(1);
    // She cannot be made to approve a call that she did not see.
    expectCode(await decide(office.ann, "approve", id, { action_hash: actionHash("demo", body) }), 409, "state_conflict");
    // She cannot approve a call that she does not name, either.
    expectCode(await decide(office.ann, "approve", id), 409, "state_conflict");
    const seen = { action_hash: edited.edited?.action_hash };
    expect(await decided(office.ann, "approve", id, seen)).toMatchObject({ status: "approved", already_decided: false });
    expectCode(await decide(office.ben, "approve", id, { edit: { amount: 800 } }), 409, "state_conflict");
  });

  test("edits the edited call, and may go back to the one that was asked for", async () => {
    const agent = await demo.agent("twice-edited", support);
    const body = refundCall(agent, 900);
    const id = await ask(gateward, agent, body);
    const seen = async () => ({ action_hash: (await approvalOf(office.ann, id)).edited?.action_hash });
    await decided(office.ann, "approve", id, { edit: { amount: 700 } });
    await decided(office.ben, "approve", id, { ...(await seen()), edit: { currency: "CHF" } });
    expect((await approvalOf(office.ann, id)).edited?.input).toEqual({ customer_id: "c1", amount: 700, currency: "CHF" });
    await decided(office.ann, "approve", id, { ...(await seen()), edit: { amount: 900, currency: "EUR" } });
    expect((await approvalOf(office.ann, id)).edited).toEqual({ action_hash: actionHash("demo", body), by: "ann", input: body.tool_call.parameters });
    expect(await decided(office.ben, "approve", id, await seen())).toMatchObject({ status: "approved" });
    expect((await use(gateward, agent, body, id)).decision).toBe("allow");
  });

  // [the arguments, the patch, what they are then]: RFC 7396, appendix A and beyond.
  const patches: [object, object, object][] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { a: 1, e: null }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    [{ a: 1.5, "ü\u{1f600}": 0.1 }, { a: 0.0625, "\u0001": -0.5 }, { a: 0.0625, "ü\u{1f600}": 0.1, "\u0001": -0.5 }],
    [{ n: 9007199254740991 }, { m: -9007199254740991 }, { n: 9007199254740991, m: -9007199254740991 }],
    [{ constructor: 1, a: 1 }, JSON.parse('{"__proto__":{"a":2}}'), JSON.parse('{"constructor":1,"a":1,"__proto__":{"a":2}}')],
  ];
  test("does so by JSON Merge Patch", async () => {
    const { tenant, agent, sam } = await newOffice(gateward);
    await tenant.register({
      servers: [{ server: "notes", kind: "mcp" }],
      tools: [{ server: "notes", tool: "write", mutates: true, risk: "low" }],
    });
    const call = (parameters: object) =>
      mergeCall(agent, { tool_call: { tool: "notes", action: "write", parameters: parameters as Record<string, unknown> } });
    for (const [asked, patch, patched] of patches) {
      const id = await ask(gateward, agent, call(asked));
      const { edited } = await decided(sam, "approve", id, { edit: patch });
      expect({ asked, patch, input: edited?.input, action_hash: edited?.action_hash }).toEqual({
        asked, patch, input: patched, action_hash: actionHash(tenant.name, call(patched)),
      });
      expect({ asked, patch, decision: (await use(gateward, agent, call(patched), id)).decision }).toEqual({ asked, patch, decision: "allow" });
    }
  });

  test("and changes nothing, approves the call that was asked for", async () => {
    const { agent, sam } = await newOffice(gateward);
    for (const edit of [{}, { number: 42 }, { method: null }]) {
      const id = await ask(gateward, agent, mergeCall(agent));
      expect(await decided(sam, "approve", id, { edit })).toMatchObject({ status: "approved", edited: null });
      expect((await use(gateward, agent, mergeCall(agent), id)).decision).toBe("allow");
    }
  });

  test("and puts together more than arguments may be, is refused", async () => {
    const { agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, mergeCall(agent, { tool_call: { parameters: { repo: "r".repeat(40_000), number: 1, base: "x" } } }));
    expectCode(await decide(sam, "approve", id, { edit: { base: "b".repeat(40_000) } }), 422, "invalid_field");
    expectCode(await decide(sam, "approve", id, '{"edit":{"number":9007199254740993}}'), 400, "input_invalid");
    expect(await approvalOf(sam, id)).toMatchObject({ status: "pending", revision: 1, edited: null, approvers: [] });
  });

  test("and makes a call that the policies forbid, has not opened it", async () => {
    const { agent, sam } = await newOffice(gateward);
    const id = await ask(gateward, agent, mergeCall(agent));
    await decided(sam, "approve", id, { edit: { number: "forty-two" } });
    const body = mergeCall(agent, { tool_call: { parameters: { repo: "acme/shop", number: "forty-two", base: "feature/search" } } });
    expect(await use(gateward, agent, body, id)).toMatchObject({ decision: "deny", reason_code: "input_schema_mismatch" });
    expect(await approvalOf(sam, id)).toMatchObject({ status: "approved", used_by: null, tampering: 0 });
  });
});

describe("while the registry changes under a decision", () => {
  let hindered: Gateward;
  let tenant: Tenant;

  beforeAll(async () => {
    hindered = await Gateward.start({ entry: HINDERED, vars: { FLUSH_INTERVAL_MS: 50 } });
  });
  afterAll(() => hindered?.close());

  /** A decision of a member whose credential was checked. It has not reached the lane yet. */
  async function underWay(): Promise<{ id: string; approving: ReturnType<typeof decide> }> {
    const made = await newOffice(hindered);
    tenant = made.tenant;
    const id = await ask(hindered, made.agent, mergeCall(made.agent));
    await hindered.hold("decisions");
    const held = await hindered.held();
    const approving = decide(made.sam, "approve", id);
    await eventually("the decision is on its way", async () => (await hindered.held()) > held);
    return { id, approving };
  }

  test.each([["a lane that is awake", false], ["a lane that sleeps", true]])(
    "%s refuses one that was checked before the person was taken out of the group", async (_, evicted) => {
      const { id, approving } = await underWay();
      await tenant.api.change("DELETE", `/v1/groups/${SECURITY}/members/administrators/sam`);
      if (evicted) await tenant.evict();
      await hindered.release();
      expectCode(await approving, 403, "forbidden");
      expect(await approvalOf(tenant.api, id)).toMatchObject({ status: "pending", revision: 1, approvers: [] });
    });

  test("one that was checked before the credential was revoked is refused", async () => {
    const { id, approving } = await underWay();
    const { credentials } = await tenant.api.read<{ credentials: { key_id: string; administrator: string | null }[] }>("/v1/credentials");
    await tenant.api.change("POST", `/v1/credentials/${credentials.find(({ administrator }) => administrator === "sam")?.key_id}/revoke`);
    await hindered.release();
    expectCode(await approving, 401, "unauthorized");
    expect(await approvalOf(tenant.api, id)).toMatchObject({ status: "pending", approvers: [] });
  });

  test("a decision is checked again, and taken, after a change that does not concern it", async () => {
    const { id, approving } = await underWay();
    await tenant.api.create("/v1/groups", { group: "unrelated" });
    await hindered.release();
    expect((await approving).body).toMatchObject({ approval_id: id, status: "approved" });
  });

  test("one that is overtaken again and again is told to try again, and changes nothing", async () => {
    const { id, approving } = await underWay();
    let answered = false;
    void approving.then(() => { answered = true; });
    for (let at = 0; !answered; at += 1) {
      await tenant.api.create("/v1/groups", { group: `group-${at}` });
      const held = await hindered.held();
      await hindered.release(false);
      await eventually("it is answered, or on its way again", async () => answered || (await hindered.held()) > held);
      expect(at).toBeLessThan(10);
    }
    await hindered.release();
    expectCode(await approving, 503, "registry_unavailable");
    expect(await approvalOf(tenant.api, id)).toMatchObject({ status: "pending", revision: 1, approvers: [] });
  });

  test("a lane that has not heard of a removal takes nothing from who was removed", async () => {
    const { tenant, agent, sam } = await newOffice(hindered);
    const id = await ask(hindered, agent, mergeCall(agent));
    await hindered.deafen([`${tenant.name}/0`]);
    expect((await tenant.api.delete(`/v1/groups/${SECURITY}/members/administrators/sam`)).status).toBe(202);
    expectCode(await decide(sam, "approve", id), 403, "forbidden");
    await hindered.deafen([]);
  });
});
