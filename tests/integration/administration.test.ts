// Rules of the administration API for all records: names, fields and pages.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent, Problem } from "../support/api/types.gen.ts";
import { type Api, itemsOf, type Page } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { Gateward, type Tenant } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";

let gateward: Gateward;
let tenant: Tenant;
let api: Api;
/** An administrator of tenants. */
let root: Api;

beforeAll(async () => {
  gateward = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: 50 } });
  tenant = await gateward.tenant();
  api = tenant.api;
  root = await tenant.apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]);
  await api.agent("coder");
  await api.group("engineering", "coder");
  await api.server("files", "read");
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code, detail: reply.body.detail }).toEqual({ status, code, detail: expect.any(String) });
  expect(reply.headers.get("content-type")).toMatch(/^application\/problem\+json/);
}

function expectField(reply: Reply<Problem>, field: string): void {
  expectCode(reply, 422, "invalid_field");
  expect(reply.body.field).toBe(field);
}

/** Bodies that each create route accepts. `at` makes the names in them differ. */
const agent = (at = 0) => ({ agent: `a${at}`, environment: "production" });
const ban = (at = 0) => ({ kind: "user", subject: `user-${at}` });
const issue = { kind: "agent", agent: "coder" };

describe("names", () => {
  const bad: unknown[] = ["", "A", "-a", "_a", "a.b", "a/b", "a b", "ä", "a\n", "a".repeat(64), 7, null, ["a"]];
  // [path, a body with the name, the field]
  const creates: [string, (name: unknown) => object, string][] = [
    ["/v1/agents", (agent) => ({ agent, environment: "production" }), "agent"],
    ["/v1/groups", (group) => ({ group }), "group"],
    ["/v1/servers", (server) => ({ server, kind: "mcp" }), "server"],
    ["/v1/tenants", (name) => ({ tenant: name }), "tenant"],
    ["/v1/credentials", (agent) => ({ kind: "agent", agent }), "agent"],
    ["/v1/administrators", (administrator) => ({ administrator }), "administrator"],
    ["/v1/credentials", (administrator) => ({ kind: "administrator", administrator, scopes: ["audit:read"] }), "administrator"],
    ["/v1/bans", (subject) => ({ kind: "agent", subject }), "subject"],
  ];
  test.each(creates)("POST %s refuses a name outside its pattern, and names the field", async (path, body, field) => {
    for (const name of bad) expectField(await root.post(path, body(name)), field);
    const whole = body("a");
    delete (whole as Record<string, unknown>)[field];
    expectField(await root.post(path, whole), field);
  });

  test("a tool's name is its server's own: up to 128 characters, in either case", async () => {
    const body = (tool: unknown) => ({ tool, mutates: false, risk: "low" });
    const path = "/v1/servers/files/tools";
    for (const name of ["", "a b", "a\"", "ä", "x".repeat(129), 7, null]) expectField(await api.post(path, body(name)), "tool");
    for (const name of ["Read_File", "repos/get.v1", "x".repeat(128)]) {
      expect((await api.post(path, body(name))).status).toBe(201);
      expect(await api.read(`${path}/${encodeURIComponent(name)}`)).toMatchObject({ server: "files", tool: name, status: "pending" });
    }
  });

  test.each([
    ["/v1/agents/Nobody", "agent"],
    ["/v1/agents/%00", "agent"],
    ["/v1/groups/a%2Fb", "group"],
    ["/v1/servers/%C3%A4", "server"],
    ["/v1/servers/files/tools/%20", "tool"],
    ["/v1/credentials/'", "key_id"],
    ["/v1/bans/-", "ban_id"],
    ["/v1/warrant-roots/-", "root_id"],
    ["/v1/warrant-revocations/0f", "warrant_id"],
  ])("%s is no name", async (path, field) => expectField(await api.get(path), field));
});

describe("fields", () => {
  // [method, path, body, field]
  const wrong: [string, string, object, string][] = [
    ["POST", "/v1/agents", { ...agent(), environment: 7 }, "environment"],
    ["POST", "/v1/agents", { agent: "a" }, "environment"],
    ["POST", "/v1/agents", { ...agent(), risk_tier: "extreme" }, "risk_tier"],
    ["POST", "/v1/agents", { ...agent(), allowed_tools: "all" }, "allowed_tools"],
    ["PATCH", "/v1/agents/coder", { environment: null }, "environment"],
    ["PATCH", "/v1/settings", { risk_denials: 0 }, "risk_denials"],
    ["PATCH", "/v1/settings", { warrant_max_links: 65 }, "warrant_max_links"],
    ["PATCH", "/v1/settings", { warrant_proof_windows: 1 }, "warrant_proof_windows"],
    ["PATCH", "/v1/settings", { warrant_required: "yes" }, "warrant_required"],
    ["PATCH", "/v1/settings", { shield: { sql_injection: "redact" } }, "shield"],
    ["PATCH", "/v1/settings", { shield: { secret: "on" } }, "shield.secret"],
    ["PATCH", "/v1/agents/coder", { public_key: "00".repeat(32) }, "public_key"],
    ["PATCH", "/v1/agents/coder", { warrant_required: null }, "warrant_required"],
    ["POST", "/v1/warrant-roots", { root_id: "r", public_key: "0f" }, "public_key"],
    ["POST", "/v1/warrant-roots", { root_id: "r" }, "public_key"],
    ["POST", "/v1/warrant-revocations", { warrant_id: "tnu_wrt_0f" }, "warrant_id"],
    ["PATCH", "/v1/settings", { risk_window_s: -5 }, "risk_window_s"],
    ["PATCH", "/v1/settings", { risk_quiet_s: 1.5 }, "risk_quiet_s"],
    ["PATCH", "/v1/settings", { taint_s: "x" }, "taint_s"],
    ["POST", "/v1/credentials", { ...issue, kind: "person" }, "kind"],
    ["POST", "/v1/credentials", { ...issue, expires_at: "tomorrow" }, "expires_at"],
    ["POST", "/v1/credentials", { ...issue, max_source_trust: "root" }, "max_source_trust"],
    ["POST", "/v1/credentials", { ...issue, signed: "yes" }, "signed"],
    ["POST", "/v1/credentials", { ...issue, allowed_servers: "*" }, "allowed_servers"],
    ["POST", "/v1/credentials", { kind: "administrator", administrator: "someone" }, "scopes"],
    ["POST", "/v1/servers", { server: "s", kind: "ftp" }, "kind"],
    ["POST", "/v1/servers", { server: "s", kind: "mcp", trust: "some" }, "trust"],
    ["POST", "/v1/servers", { server: "s", kind: "mcp", manifest: "text" }, "manifest"],
    ["POST", "/v1/servers/files/tools", { tool: "t", risk: "low" }, "mutates"],
    ["POST", "/v1/servers/files/tools", { tool: "t", mutates: false, risk: "none" }, "risk"],
    ["PATCH", "/v1/servers/files/tools/read", { canary: 1 }, "canary"],
    ["PATCH", "/v1/servers/files/tools/read", { egress: "yes" }, "egress"],
    ["PATCH", "/v1/servers/files/tools/read", { shield: { sql: "off" } }, "shield.sql"],
    ["PATCH", "/v1/servers/files", { inspects_results: 1 }, "inspects_results"],
    ["POST", "/v1/bans", { ...ban(), kind: "planet" }, "kind"],
    ["POST", "/v1/bans", { ...ban(), expires_at: 7 }, "expires_at"],
    ["POST", "/v1/bans", { kind: "source_address", subject: "10.0.0.0/33" }, "subject"],
    ["POST", "/v1/tenants", { tenant: "t", lanes: 0 }, "lanes"],
  ];
  test.each(wrong)("%s %s with %j names the field that is wrong", async (method, path, body, field) => {
    expectField(await gateward.send(method, root.token, path, body), field);
  });

  // [path, body, the beginning of the wrong field]: for a list, the problem may also name the
  // element.
  const lists: [object, string][] = [
    [{ ...issue, scopes: ["tools:read", "everything"] }, "scopes"],
    [{ ...issue, scopes: ["registry:write"] }, "scopes"],
    [{ ...issue, allowed_tools: [7] }, "allowed_tools"],
    [{ ...issue, allowed_networks: ["10.0.0.0/33"] }, "allowed_networks"],
    [{ ...issue, allowed_networks: ["2001:db8::/129"] }, "allowed_networks"],
    [{ ...issue, allowed_networks: ["localhost"] }, "allowed_networks"],
  ];
  test.each(lists)("POST /v1/credentials with %j names the list that is wrong", async (body, field) => {
    const reply = await api.post("/v1/credentials", body);
    expectCode(reply, 422, "invalid_field");
    expect(reply.body.field?.startsWith(field)).toBe(true);
  });

  const unknown: [string, string, object][] = [
    ["POST", "/v1/agents", agent()],
    ["PATCH", "/v1/agents/coder", {}],
    ["POST", "/v1/groups", { group: "g" }],
    ["POST", "/v1/administrators", { administrator: "p" }],
    ["POST", "/v1/credentials", issue],
    ["PATCH", "/v1/settings", {}],
    ["POST", "/v1/servers", { server: "s", kind: "mcp" }],
    ["PATCH", "/v1/servers/files", {}],
    ["POST", "/v1/servers/files/tools", { tool: "t", mutates: false, risk: "low" }],
    ["PATCH", "/v1/servers/files/tools/read", {}],
    ["POST", "/v1/bans", ban()],
    ["POST", "/v1/tenants", { tenant: "t" }],
  ];
  test.each(unknown)("%s %s refuses a field that it does not know", async (method, path, body) => {
    expectField(await gateward.send(method, root.token, path, { ...body, novelty: 1 }), "novelty");
  });

  test("a state cannot be patched", async () => {
    for (const field of ["status", "frozen", "quarantined", "revoked", "lane", "revision"]) {
      expectField(await api.patch("/v1/agents/coder", { [field]: 0 }), field);
    }
    expectField(await api.patch("/v1/servers/files", { approved: true }), "approved");
    expectField(await api.patch("/v1/servers/files/tools/read", { quarantined: false }), "quarantined");
  });

  test("what is not JSON is malformed, and what does not say that it is JSON is refused", async () => {
    for (const body of ["", "hello", '{"agent":', '{"agent":"a","agent":"b"}']) {
      expect({ body, status: (await api.post("/v1/agents", body)).status }).toEqual({ body, status: 400 });
    }
    const reply = await api.post("/v1/agents", "{}", { headers: { "content-type": "text/plain" } });
    expectCode(reply, 415, "unsupported_media_type");
  });
});

describe("lists", () => {
  test("page after page of many agents, each exactly once", async () => {
    const crowd = await gateward.tenant();
    const names = [...Array(130).keys()].map((at) => `agent-${at}`).sort();
    await crowd.register({ agents: names.map((agent) => ({ agent })) });
    for (const limit of [17, 50, 200]) {
      const agents = await crowd.api.all<Agent>("/v1/agents", limit);
      expect(agents.map(({ agent }) => agent).sort()).toEqual(names);
    }
    expect(itemsOf(await crowd.api.read<Page>("/v1/agents"))).toHaveLength(50);
  });

  // [path, plural, how to create record number `at`]
  const lists: [string, string, (api: Api, at: number) => Promise<unknown>][] = [
    ["/v1/agents", "agents", (api, at) => api.agent(`a${at}`)],
    ["/v1/groups", "groups", (api, at) => api.create("/v1/groups", { group: `g${at}` })],
    ["/v1/groups/all/members", "members", async (api, at) => {
      if (at === 0) await api.create("/v1/groups", { group: "all" });
      await api.agent(`m${at}`);
      await api.change("PUT", `/v1/groups/all/members/agents/m${at}`);
    }],
    ["/v1/administrators", "administrators", (api, at) => api.create("/v1/administrators", { administrator: `p${at}` })],
    ["/v1/credentials?agent=c", "credentials", async (api, at) => {
      if (at === 0) await api.agent("c");
      await api.credential("c");
    }],
    ["/v1/servers", "servers", (api, at) => api.create("/v1/servers", { server: `s${at}`, kind: "mcp" })],
    ["/v1/servers/github/tools", "tools", (api, at) => api.create("/v1/servers/github/tools", { tool: `t${at}`, mutates: false, risk: "low" })],
    ["/v1/bans", "bans", (api, at) => api.create("/v1/bans", ban(at))],
    ["/v1/audit-events", "audit_events", (api, at) => api.create("/v1/groups", { group: `e${at}` })],
  ];
  test.each(lists)("%s pages too", async (path, plural, make) => {
    const { api } = await gateward.tenant();
    for (const at of [0, 1, 2, 3, 4]) await make(api, at);
    const page = await api.read<Page>(path);
    expect(Object.keys(page).sort()).toEqual(["next_cursor", plural].sort());
    expect(page.next_cursor).toBeNull();
    const all = itemsOf(page);
    expect(all.length).toBeGreaterThanOrEqual(5);
    expect(await api.all(path, 2)).toEqual(all);
  });

  test.each(["limit=0", "limit=201", "limit=many", "cursor=!"])("?%s is refused", async (query) => {
    expect([400, 422]).toContain((await api.get(`/v1/agents?${query}`)).status);
  });

  test("tenants are listed to their administrators", async () => {
    const tenants = await root.all<{ tenant: string }>("/v1/tenants", 3);
    expect(tenants.map(({ tenant }) => tenant)).toContain(tenant.name);
    expect(new Set(tenants.map(({ tenant }) => tenant)).size).toBe(tenants.length);
  });
});
