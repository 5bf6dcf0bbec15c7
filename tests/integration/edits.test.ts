// Concurrent writes: two administrators who edit at the same time, and a request that is sent again.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent, Ban, IssuedCredential, Problem } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { canaryCall, Gateward, readCall, type Tenant } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";

let gateward: Gateward;
let tenant: Tenant;
let api: Api;
/** An administrator of tenants. */
let root: Api;

beforeAll(async () => {
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  api = tenant.api;
  root = await tenant.apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]);
  await api.agent("coder");
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code, detail: reply.body.detail }).toEqual({ status, code, detail: expect.any(String) });
  expect(reply.headers.get("content-type")).toMatch(/^application\/problem\+json/);
}

const ban = (at: number) => ({ kind: "user", subject: `user-${at}` });
const issue = { kind: "agent", agent: "coder" };

describe("editing at once", () => {
  test("every read and write of one thing carries its revision as ETag", async () => {
    const created = await api.post<Agent>("/v1/agents", { agent: "tagged", environment: "production" });
    expect(created.status).toBe(201);
    expect(created.headers.get("etag")).toBe(`"${created.body.revision}"`);
    const read = await api.get<Agent>("/v1/agents/tagged");
    expect(read.headers.get("etag")).toBe(created.headers.get("etag"));
    const patched = await api.patch<Agent>("/v1/agents/tagged", { risk_tier: "medium" });
    expect(patched.body.revision).toBeGreaterThan(created.body.revision);
    expect(patched.headers.get("etag")).toBe(`"${patched.body.revision}"`);
    expect((await api.post<Agent>("/v1/agents/tagged/freeze")).headers.get("etag")).not.toBe(patched.headers.get("etag"));
  });

  test("two administrators edit at once: one gets 412", async () => {
    const second = await tenant.apiWith(ADMINISTRATOR_SCOPES);
    await api.agent("contested");
    const path = "/v1/agents/contested";
    const ifMatch = (await api.get(path)).headers.get("etag");
    const replies = await Promise.all([
      api.patch(path, { risk_tier: "medium" }, { ifMatch }),
      second.patch(path, { risk_tier: "high" }, { ifMatch }),
    ]);
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 412]);
    expectCode(replies.find(({ status }) => status === 412) as Reply<Problem>, 412, "precondition_failed");
    const winner = replies.find(({ status }) => status === 200)?.body;
    expect(await api.read(path)).toEqual(winner);
  });

  test("a restore that loses against another edit leaves the lane's quarantine", async () => {
    const own = await gateward.tenant();
    const agent = await own.agent("trapped");
    expect((await gateward.decide(agent.token, canaryCall({ agent: { id: "trapped" } }))).decision).toBe("quarantine");
    await own.api.change("PATCH", "/v1/agents/trapped", { allowed_tools: ["*"] });
    expectCode(await own.api.post("/v1/agents/trapped/restore", undefined, { ifMatch: '"1"' }), 412, "precondition_failed");
    const denied = readCall({ agent: { id: "trapped" } });
    expect(await gateward.decide(agent.token, denied)).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });
    await own.api.change("POST", "/v1/agents/trapped/restore");
    expect((await gateward.decide(agent.token, denied)).decision).toBe("allow");
  });

  test("a restore that is sent again lifts no later quarantine", async () => {
    const own = await gateward.tenant();
    const agent = await own.agent("relapsed");
    const [trap, call] = [canaryCall({ agent: { id: "relapsed" } }), readCall({ agent: { id: "relapsed" } })];
    expect((await gateward.decide(agent.token, trap)).decision).toBe("quarantine");
    const restore = () => own.api.post("/v1/agents/relapsed/restore", undefined, { idempotencyKey: "restore-once" });
    expect((await restore()).status).toBe(200);
    expect((await gateward.decide(agent.token, call)).decision).toBe("allow");
    expect((await gateward.decide(agent.token, trap)).decision).toBe("quarantine");
    const again = await restore();
    expect({ status: again.status, replayed: again.headers.get("idempotency-replayed") }).toEqual({ status: 200, replayed: "true" });
    expect((await gateward.decide(agent.token, call)).reason_code).toBe("agent_quarantined");
  });

  test("what an agent's groups are is a part of its revision, and what has no revision matches nothing", async () => {
    await api.agent("grouped");
    await api.group("revised");
    const path = "/v1/agents/grouped";
    for (const change of [() => api.put("/v1/groups/revised/members/agents/grouped"), () => api.delete("/v1/groups/revised")]) {
      const ifMatch = (await api.get(path)).headers.get("etag");
      expect((await change()).status).toBe(200);
      expectCode(await api.patch(path, { risk_tier: "high" }, { ifMatch }), 412, "precondition_failed");
    }
    await api.group("plain");
    const { ban_id } = await api.create<Ban>("/v1/bans", ban(77));
    const ifMatch = '"1"';
    for (const reply of [
      await api.put("/v1/groups/plain/members/agents/grouped", { ifMatch }),
      await api.delete("/v1/groups/plain", { ifMatch }),
      await api.delete(`/v1/bans/${ban_id}`, { ifMatch }),
    ]) expectCode(reply, 412, "precondition_failed");
  });

  test("every kind of change honours If-Match, and a lost one writes nothing", async () => {
    await api.agent("old");
    await api.server("old", "tool");
    const { key_id } = await api.credential("old");
    const stale = { ifMatch: '"0"' };
    const before = await tenant.snapshot();
    const lost: [string, string, object?][] = [
      ["PATCH", "/v1/agents/old", { risk_tier: "high" }],
      ["DELETE", "/v1/agents/old"],
      ["POST", "/v1/agents/old/freeze"],
      ["POST", `/v1/credentials/${key_id}/rotate`, {}],
      ["POST", `/v1/credentials/${key_id}/revoke`],
      ["PATCH", "/v1/servers/old", { kind: "http" }],
      ["POST", "/v1/servers/old/disable"],
      ["DELETE", "/v1/servers/old"],
      ["PATCH", "/v1/servers/old/tools/tool", { risk: "high" }],
      ["POST", "/v1/servers/old/tools/tool/disable"],
      ["PATCH", "/v1/settings", { risk_denials: 1 }],
      ["PATCH", `/v1/tenants/${tenant.name}`, { lanes: 2 }],
    ];
    for (const [method, path, body] of lost) {
      const { status } = await gateward.send<Problem>(method, root.token, path, body, stale);
      expect({ method, path, status }).toEqual({ method, path, status: 412 });
    }
    expect(await tenant.snapshot()).toEqual(before);
  });

  test("changes at once without If-Match all land, each at a revision of its own", async () => {
    await api.agent("busy");
    const path = "/v1/agents/busy";
    const [before] = await gateward.rows<{ epoch: number }>("SELECT epoch FROM tenants WHERE tenant = ?1", tenant.name);
    const changes = ["a", "b", "c"].map((server) => ({ allowed_tools: [`${server}/*`] }));
    const replies = await Promise.all([
      ...changes.map((change) => api.patch<Agent>(path, change)),
      api.patch<Agent>(path, { environment: "staging" }),
      api.patch<Agent>(path, { risk_tier: "high" }),
      api.post<Agent>(`${path}/freeze`),
    ]);
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
    const revisions = replies.map(({ body }) => body.revision);
    expect(new Set(revisions).size).toBe(replies.length);
    const [after] = await gateward.rows<{ epoch: number }>("SELECT epoch FROM tenants WHERE tenant = ?1", tenant.name);
    expect(after?.epoch).toBe((before?.epoch ?? 0) + replies.length);
    const last = await api.read<Agent>(path);
    expect(last.revision).toBe(Math.max(...revisions));
    // No change undid another change.
    expect(last).toMatchObject({ environment: "staging", risk_tier: "high", frozen: true });
  });
});

describe("Idempotency-Key", () => {
  test("the same POST again gets the same answer, and does nothing", async () => {
    const idempotencyKey = "first-ban";
    const first = await api.post<Ban>("/v1/bans", ban(1), { idempotencyKey });
    expect(first.status).toBe(201);
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    const before = await tenant.snapshot();
    const again = await api.post<Ban>("/v1/bans", ban(1), { idempotencyKey });
    expect({ status: again.status, body: again.body }).toEqual({ status: first.status, body: first.body });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await tenant.snapshot()).toEqual(before);
    expect((await api.post<Ban>("/v1/bans", ban(1))).body.ban_id).not.toBe(first.body.ban_id);
  });

  test("also of a POST that had nothing to change", async () => {
    await api.agent("stopped");
    await api.change("POST", "/v1/agents/stopped/freeze");
    const freeze = () => api.post<Agent>("/v1/agents/stopped/freeze", undefined, { idempotencyKey: "freeze-again" });
    expect((await freeze()).headers.get("idempotency-replayed")).toBeNull();
    await api.change("POST", "/v1/agents/stopped/unfreeze");
    expect((await freeze()).headers.get("idempotency-replayed")).toBe("true");
    expect(await api.read("/v1/agents/stopped")).toMatchObject({ frozen: false });
  });

  test("a credential's secrets are left out of the second answer", async () => {
    const options = { idempotencyKey: "credential-1" };
    const body = { ...issue, signed: true };
    const first = await api.post<IssuedCredential>("/v1/credentials", body, options);
    expect(first.body).toMatchObject({ token: expect.stringMatching(/^gw_/), signing_key: expect.stringMatching(/^[0-9a-f]{64}$/) });
    const again = await api.post<IssuedCredential>("/v1/credentials", body, options);
    expect(again.body).toEqual({ ...first.body, token: null, signing_key: null });
    const rotated = await api.post<IssuedCredential>(`/v1/credentials/${first.body.key_id}/rotate`, {}, { idempotencyKey: "rotate-1" });
    const rotatedAgain = await api.post<IssuedCredential>(`/v1/credentials/${first.body.key_id}/rotate`, {}, { idempotencyKey: "rotate-1" });
    expect(rotatedAgain.body).toEqual({ ...rotated.body, token: null, signing_key: null });
  });

  test("the key with another body, at another path, or with another query, is refused", async () => {
    const idempotencyKey = "reused";
    expect((await api.post("/v1/bans", ban(2), { idempotencyKey })).status).toBe(201);
    expectCode(await api.post("/v1/bans", ban(3), { idempotencyKey }), 422, "idempotency_key_reused");
    expectCode(await api.post("/v1/groups", { group: "reused" }, { idempotencyKey }), 422, "idempotency_key_reused");
    expectCode(await api.post("/v1/agents/coder/freeze", undefined, { idempotencyKey }), 422, "idempotency_key_reused");
    expect(await api.read("/v1/agents/coder")).toMatchObject({ frozen: false });
    const { key_id } = (await api.post<IssuedCredential>("/v1/credentials", issue)).body;
    const revoke = (query: string) => api.post(`/v1/credentials/${key_id}/revoke${query}`, undefined, { idempotencyKey: "revoke" });
    expect((await revoke("")).status).toBe(200);
    expectCode(await revoke("?last=true"), 422, "idempotency_key_reused");
  });

  test("two at once create one thing", async () => {
    for (let round = 0; round < 5; round += 1) {
      const body = { kind: "run", subject: `run-${round}` };
      const post = () => api.post<Ban>("/v1/bans", body, { idempotencyKey: `at-once-${round}` });
      const replies = await Promise.all([post(), post(), post()]);
      expect(replies.map(({ status }) => status)).toEqual([201, 201, 201]);
      expect(new Set(replies.map(({ body }) => body.ban_id)).size).toBe(1);
      expect(replies.filter(({ headers }) => headers.get("idempotency-replayed") === "true")).toHaveLength(2);
      const found = (await api.all<Ban>("/v1/bans")).filter(({ subject }) => subject === body.subject);
      expect(found).toHaveLength(1);
    }
  });

  test.each(["k".repeat(129), "with space", "ü"])("%j is no key", async (idempotencyKey) => {
    const reply = await api.post("/v1/bans", ban(4), { idempotencyKey });
    expect([400, 422]).toContain(reply.status);
  });

  test("a key is one tenant's own", async () => {
    const other = await gateward.tenant();
    const options = { idempotencyKey: "shared-by-chance" };
    const one = await api.post<Ban>("/v1/bans", ban(5), options);
    const two = await other.api.post<Ban>("/v1/bans", ban(6), options);
    expect([one.status, two.status]).toEqual([201, 201]);
    expect(two.body.subject).toBe("user-6");
  });
});
