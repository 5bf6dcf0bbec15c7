// Servers and their tools: nothing can be called before it is approved, and each mark is removed only by its own undo
// action.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChangedServer, ChangedTool, Problem, Server, Tool, ToolDetail } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { Gateward, passes, readCall, type Tenant, type TestAgent } from "../support/gateward.ts";
import { canonicalize, type JsonValue, sha256Hex } from "../support/receipts.ts";

let gateward: Gateward;
let tenant: Tenant;
let api: Api;
let agent: TestAgent;

beforeAll(async () => {
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  api = tenant.api;
  agent = await tenant.agent();
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

/** Whether the agent may call the tool `read` of a server now. */
function callable(server: string, tool = "read"): Promise<boolean> {
  return passes(gateward, agent.token, readCall({ tool_call: { tool: server, action: tool, parameters: {} } }));
}

let made = 0;
/** A new server with the approved tool `read`. */
async function newServer(): Promise<{ server: string; path: string }> {
  made += 1;
  const server = `server-${made}`;
  await api.server(server, "read");
  return { server, path: `/v1/servers/${server}` };
}

test("a new server and a new tool are pending, and callable once both are approved", async () => {
  const server = await api.create<ChangedServer>("/v1/servers", { server: "fresh", kind: "mcp" });
  expect(server).toEqual({
    server: "fresh",
    kind: "mcp",
    trust: "untrusted",
    status: "pending",
    approved: false,
    disabled: false,
    quarantined: false,
    manifest_sha256: null,
    instructions_sha256: null,
    upstream: null,
    shield: null,
    inspects_results: false,
    skipped_tools: [],
    unsatisfiable_schemas: [],
    instructions: null,
    revision: expect.any(Number),
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const tool = await api.create<ChangedTool>("/v1/servers/fresh/tools", { tool: "read", mutates: false, risk: "low" });
  expect(tool).toEqual({
    server: "fresh",
    tool: "read",
    status: "pending",
    approved: false,
    disabled: false,
    quarantined: false,
    mutates: false,
    egress: false,
    risk: "low",
    canary: false,
    cost: null,
    tainted: "require_approval",
    approval_ttl_s: null,
    input_schema: null,
    argument_roles: null,
    reach: "outside",
    result_trust: null,
    warrant_required: false,
    min_clearance: null,
    shield: null,
    definition_sha256: null,
    unsatisfiable: [],
    revision: expect.any(Number),
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  expect(await callable("fresh")).toBe(false);
  await api.change("POST", "/v1/servers/fresh/tools/read/approve");
  expect(await callable("fresh")).toBe(false);
  await api.change("POST", "/v1/servers/fresh/approve");
  expect(await callable("fresh")).toBe(true);
});

describe("states", () => {
  // [actions, the status afterwards]
  const cases: [string[], string][] = [
    [["disable"], "disabled"],
    [["quarantine"], "quarantined"],
    [["disable", "restore"], "active"],
    [["quarantine", "restore"], "active"],
    [["disable", "quarantine", "restore"], "active"],
    [["disable", "approve"], "disabled"],
    [["quarantine", "approve"], "quarantined"],
    [["quarantine", "disable"], "quarantined"],
  ];
  test.each(cases)("a server, or a tool, after %j is %s, and its calls are decided so", async (actions, status) => {
    const { server, path } = await newServer();
    for (const thing of [path, `${path}/tools/read`]) {
      expect(await callable(server)).toBe(true);
      for (const action of actions) await api.change("POST", `${thing}/${action}`);
      expect(await api.read(thing)).toMatchObject({ status });
      expect(await callable(server)).toBe(status === "active");
      await api.change("POST", `${thing}/restore`);
      expect(await callable(server)).toBe(true);
    }
  });

  test("restore does not approve what is pending", async () => {
    await api.create("/v1/servers", { server: "pending", kind: "mcp" });
    await api.change("POST", "/v1/servers/pending/disable");
    expect(await api.change<Server>("POST", "/v1/servers/pending/restore")).toMatchObject({ status: "pending", approved: false });
  });
});

describe("registering again", () => {
  test.each(["disable", "quarantine"])("a server lifts nothing after %s", async (action) => {
    const { server, path } = await newServer();
    await api.change("POST", `${path}/${action}`);
    const before = await api.read<Server>(path);
    const again = await api.post<Server>("/v1/servers", { server, kind: "http", trust: "trusted" });
    expect([200, 201]).toContain(again.status);
    expect(await api.read(path)).toMatchObject({ kind: "http", trust: "trusted", status: before.status });
    expect(await callable(server)).toBe(false);
  });

  test("a server that is pending does not approve it", async () => {
    const body = { server: "still-pending", kind: "mcp" };
    await api.create("/v1/servers", body);
    await api.create("/v1/servers", body);
    expect(await api.read("/v1/servers/still-pending")).toMatchObject({ status: "pending" });
  });

  test("a tool lifts no quarantine", async () => {
    const { server, path } = await newServer();
    await api.change("POST", `${path}/tools/read/quarantine`);
    const again = await api.post(`${path}/tools`, { tool: "read", mutates: false, risk: "low" });
    expect([200, 201, 409]).toContain(again.status);
    expect(await api.read(`${path}/tools/read`)).toMatchObject({ status: "quarantined" });
    expect(await callable(server)).toBe(false);
  });
});

describe("manifests", () => {
  const manifest = (description: string) => ({ tools: [{ name: "read", description }], n: 1 });

  test.each([
    ["PATCH", (path: string) => path, {}],
    ["POST", () => "/v1/servers", { kind: "mcp" }],
  ] as const)("%s with a changed one puts tools back to pending, and the server into quarantine", async (method, at, rest) => {
    made += 1;
    const server = `manifest-${made}`;
    const path = `/v1/servers/${server}`;
    const body = (description: string) => ({ ...rest, ...(method === "POST" ? { server } : {}), manifest: manifest(description) });
    const created = await api.create<Server>("/v1/servers", { server, kind: "mcp", manifest: manifest("first") });
    expect(created.manifest_sha256).toBe(sha256Hex(canonicalize(manifest("first"))));
    await api.change("POST", `${path}/approve`);
    await api.create(`${path}/tools`, { tool: "read", mutates: false, risk: "low" });
    await api.approveTool(`${path}/tools/read`);
    expect(await callable(server)).toBe(true);

    // The same definition in another spelling is not a change.
    const same = JSON.stringify({ ...body("first"), manifest: { n: 1.0, tools: manifest("first").tools } });
    await api.change(method, at(path), same);
    expect(await callable(server)).toBe(true);

    await api.change(method, at(path), body("second"));
    expect(await api.read(path)).toMatchObject({
      status: "quarantined",
      quarantined: true,
      manifest_sha256: sha256Hex(canonicalize(manifest("second"))),
    });
    expect(await api.read(`${path}/tools/read`)).toMatchObject({ status: "pending", approved: false });
    expect(await callable(server)).toBe(false);
    await api.change("POST", `${path}/restore`);
    expect(await callable(server)).toBe(false);
    await api.approveTool(`${path}/tools/read`);
    expect(await callable(server)).toBe(true);
  });

  test("one registers the tools that it lists, pending, and names those that it cannot", async () => {
    const search = { name: "search", inputSchema: { type: "object", required: ["q"] }, annotations: { readOnlyHint: true } };
    const write = { name: "pages/write" };
    const reaching = { name: "reaching", inputSchema: { $ref: "https://example.com/schema.json" } };
    const created = await api.create<ChangedServer>("/v1/servers", {
      server: "listing",
      kind: "named",
      manifest: { tools: [search, write, reaching, { name: "no name" }] },
    });
    expect(created.skipped_tools).toEqual([
      { name: "reaching", why: expect.stringContaining("inputSchema") },
      { name: "no name", why: expect.any(String) },
    ]);
    const tools = await api.all<Tool>("/v1/servers/listing/tools");
    const of = (tool: JsonValue) => ({ status: "pending", risk: "medium", canary: false, definition_sha256: sha256Hex(canonicalize(tool)) });
    expect(tools).toMatchObject([
      { tool: "pages/write", mutates: true, input_schema: null, argument_roles: {}, reach: "outside", ...of(write) },
      { tool: "search", mutates: false, input_schema: search.inputSchema, ...of(search) },
    ]);
    const roles = { argument_roles: { "/to/*": "sink", "/text": "content" }, reach: "by_sinks", result_trust: { "": "untrusted", "/contacts": "trusted" } };
    expect(await api.change("PATCH", "/v1/servers/listing/tools/pages%2Fwrite", roles)).toMatchObject(roles);
    expect(await api.read("/v1/servers/listing/tools/pages%2Fwrite")).toMatchObject(roles);
    expectCode(await api.patch("/v1/servers/listing/tools/search", { argument_roles: { to: "sink" } }), 422, "invalid_field");
    await api.change("POST", "/v1/servers/listing/approve");
    expect(await callable("listing", "search")).toBe(false);
    await api.approveTool("/v1/servers/listing/tools/search");
    await api.change("PATCH", "/v1/servers/listing/tools/search", { input_schema: null });
    expect(await callable("listing", "search")).toBe(true);
  });

  // Attack: the server changes the definition after a person read it and before they approve it.
  test("a definition that changed after its review is not approved", async () => {
    const path = "/v1/servers/changing";
    const tool = `${path}/tools/read`;
    await api.create("/v1/servers", { server: "changing", kind: "mcp", manifest: manifest("first") });
    await api.change("POST", `${path}/approve`);
    await api.create(`${path}/tools`, { tool: "read", mutates: false, risk: "low" });
    const reviewed = await api.read<ToolDetail>(tool);
    expect(reviewed).toMatchObject({ definition: manifest("first").tools[0], approved_definition: null });
    await api.change("PATCH", path, { manifest: manifest("second") });
    await api.change("POST", `${path}/restore`);
    const { definition_sha256 } = reviewed;
    expectCode(await api.post(`${tool}/approve`, { definition_sha256 }), 409, "definition_changed");
    expectCode(await api.post(`${tool}/approve`), 422, "invalid_field");
    expect(await callable("changing")).toBe(false);
    await api.approveTool(tool);
    expect(await callable("changing")).toBe(true);
    expect(await api.read<ToolDetail>(tool)).toMatchObject({ approved_definition: manifest("second").tools[0] });
  });

  test("an approval says what the tool is, and a tool that fetches what it is told writes, whatever its caller says", async () => {
    const fetch = { name: "fetch", inputSchema: { type: "object", properties: { url: { type: "string" } } }, annotations: { readOnlyHint: true } };
    const search = { name: "search", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };
    await api.create("/v1/servers", { server: "web", kind: "mcp", trust: "trusted", manifest: { tools: [fetch, search] } });
    await api.change("POST", "/v1/servers/web/approve");
    expect(await api.all<Tool>("/v1/servers/web/tools")).toMatchObject([
      { tool: "fetch", mutates: false, egress: true },
      { tool: "search", mutates: false, egress: false },
    ]);
    for (const [tool, definition] of Object.entries({ fetch, search })) {
      const reviewed = { definition_sha256: sha256Hex(canonicalize(definition)), mutates: false, risk: "low" };
      expect(await api.change("POST", `/v1/servers/web/tools/${tool}/approve`, reviewed)).toMatchObject({ status: "active", risk: "low" });
    }
    const decide = (action: string) =>
      gateward.decide(agent.token, readCall({
        tool_call: { tool: "web", action, mutates_state: false, parameters: {} },
        context: { source_trust: "untrusted_external" },
      }));
    expect(await decide("search")).toMatchObject({ decision: "allow" });
    expect(await decide("fetch")).toMatchObject({ decision: "deny", matched_policies: ["base/provenance#untrusted-never-writes"] });
    await api.change("PATCH", "/v1/servers/web/tools/fetch", { egress: false });
    expect(await decide("fetch")).toMatchObject({ decision: "allow" });
    const { audit_events } = (await api.get<{ audit_events: { detail: unknown }[] }>("/v1/audit-events?kind=tool_changed&limit=1")).body;
    expect(audit_events).toMatchObject([{ detail: { tool: "fetch", changes: { egress: false } } }]);
  });

  test("a patch without one leaves the tools as they are", async () => {
    const { server, path } = await newServer();
    await api.change("PATCH", path, { kind: "http" });
    expect(await callable(server)).toBe(true);
  });
});

describe("upstreams", () => {
  const url = "http://127.0.0.1:9/v1";
  const route = { method: "GET", path: "/repos/{owner}/{repo}/issues", tool: "list_issues" };

  test("one is shown whole, changed in part, and taken away", async () => {
    const created = await api.create<Server>("/v1/servers", { server: "api", kind: "http", upstream: { url, local: true, routes: [route] } });
    const whole = {
      url,
      local: true,
      credential: null,
      first_byte_timeout_ms: 30_000,
      whole_timeout_ms: 600_000,
      idle_timeout_ms: 120_000,
      max_result_bytes: 4_194_304,
      denial: "result",
      routes: [route],
      forwarded_headers: [],
      shared_cache: false,
    };
    expect(created.upstream).toEqual(whole);
    const change = async (upstream: unknown) => (await api.change<Server>("PATCH", "/v1/servers/api", { upstream })).upstream;
    const credential = { binding: "UPSTREAM_API", header: "authorization" };
    expect(await change({ credential: { binding: "UPSTREAM_API" }, idle_timeout_ms: 10 })).toEqual({ ...whole, credential, idle_timeout_ms: 10 });
    expect(await change({ credential: null, idle_timeout_ms: null })).toEqual(whole);
    expect((await api.read<Server>("/v1/servers/api")).upstream).toEqual(whole);
    expect(await change(null)).toBeNull();
  });

  test.each([
    ["http", { url: "https://127.0.0.1/", local: false }, "upstream.url"],
    ["http", { url, local: true, credential: { binding: "TOKEN_MAC_KEY" } }, "upstream.credential.binding"],
    ["http", { url, local: true, credential: { binding: "UPSTREAM_A", header: "Host" } }, "upstream.credential.header"],
    ["http", { url, local: true, routes: [{ ...route, path: "/{a}/{a}" }] }, "upstream.routes[0].path"],
    ["http", { url, local: true, whole_timeout_ms: 9 }, "upstream.whole_timeout_ms"],
    ["mcp", { url, local: true, routes: [route] }, "upstream.routes"],
    ["named", { url, local: true }, "upstream"],
  ])("of a server of the kind %s, %j is refused", async (kind, upstream, field) => {
    const reply = await api.post("/v1/servers", { server: "refused", kind, upstream });
    expect({ status: reply.status, code: reply.body.code, field: reply.body.field }).toEqual({ status: 422, code: "invalid_field", field });
  });

  test("a worker that calls no local networks registers none", async () => {
    const strict = await Gateward.start({ vars: { LOCAL_TARGETS: "false" } });
    try {
      const { api } = await strict.tenant();
      const reply = await api.post("/v1/servers", { server: "local", kind: "http", upstream: { url, local: true } });
      expect({ status: reply.status, field: reply.body.field }).toEqual({ status: 422, field: "upstream.local" });
    } finally {
      await strict.close();
    }
  });

  test("a server that cannot be asked for its tools is not registered, unless its manifest is given", async () => {
    const body = { server: "silent", kind: "mcp", upstream: { url, local: true } };
    const reply = await api.post("/v1/servers", body);
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 502, code: "upstream_unreachable" });
    expectCode(await api.get("/v1/servers/silent"), 404, "not_found");
    const created = await api.create<Server>("/v1/servers", { ...body, manifest: { tools: [{ name: "search" }] } });
    expect(created.upstream).toMatchObject({ url, local: true });
    expect(await api.read("/v1/servers/silent/tools/search")).toMatchObject({ status: "pending", mutates: false });
  });
});

describe("deleting a server", () => {
  test("leaves none of its tools callable, and its name is not given again", async () => {
    const { server, path } = await newServer();
    expect(await callable(server)).toBe(true);
    await api.change("DELETE", path);
    expect(await callable(server)).toBe(false);
    for (const gone of [path, `${path}/tools`, `${path}/tools/read`]) expectCode(await api.get(gone), 404, "not_found");
    expect((await api.all<Server>("/v1/servers")).map((row) => row.server)).not.toContain(server);
    expectCode(await api.post("/v1/servers", { server, kind: "mcp" }), 409, "name_taken");
    for (const [method, at, body] of [
      ["PATCH", path, { kind: "http" }],
      ["POST", `${path}/restore`, undefined],
      ["POST", `${path}/approve`, undefined],
      ["POST", `${path}/tools/read/approve`, undefined],
      ["POST", `${path}/tools`, { tool: "new", mutates: false, risk: "low" }],
    ] as const) {
      const { status } = await gateward.send(method, api.token, at, body);
      expect({ at, status }).toEqual({ at, status: expect.toBeOneOf([404, 409]) });
    }
    expect(await callable(server)).toBe(false);
  });
});

describe("tools", () => {
  test("what a patch says of a tool holds from the next call on", async () => {
    const { server, path } = await newServer();
    const untrusted = readCall({ tool_call: { tool: server, action: "read", parameters: {} }, context: { source_trust: "untrusted_external" } });
    expect(await passes(gateward, agent.token, untrusted)).toBe(true);
    await api.change("PATCH", `${path}/tools/read`, { mutates: true });
    expect(await passes(gateward, agent.token, untrusted)).toBe(false);
    await api.change("PATCH", `${path}/tools/read`, { mutates: false, canary: true });
    const other = await tenant.agent("caught");
    const canary = readCall({ agent: { id: "caught" }, tool_call: { tool: server, action: "read", parameters: {} } });
    expect(await gateward.decide(other.token, canary)).toMatchObject({ decision: "quarantine" });
  });

  test("a schema is compiled before it is kept, and what fits it is decided by policies", async () => {
    const { server, path } = await newServer();
    const schema = { type: "object", properties: { n: { type: "integer" } } };
    for (const input_schema of [[], true, { type: "nothing" }, { $ref: "https://example.com/schema.json" }]) {
      const reply = await api.patch(`${path}/tools/read`, { input_schema });
      expect({ status: reply.status, field: reply.body.field }).toEqual({ status: 422, field: "input_schema" });
    }
    expect(await api.change<Tool>("PATCH", `${path}/tools/read`, { input_schema: schema })).toMatchObject({ input_schema: schema, status: "active" });
    const call = (parameters: Record<string, unknown>) => readCall({ tool_call: { tool: server, action: "read", parameters } });
    expect(await gateward.decide(agent.token, call({ n: 1 }))).toMatchObject({ decision: "allow" });
    expect(await gateward.decide(agent.token, call({ n: "1" }))).toMatchObject({ decision: "deny", reason_code: "input_schema_mismatch" });
    await api.create(`${path}/tools`, { tool: "read", mutates: false, risk: "low" });
    expect(await api.read(`${path}/tools/read`)).toMatchObject({ input_schema: schema });
  });

  test("a name with a slash is one part of its path", async () => {
    const { server, path } = await newServer();
    await api.create(`${path}/tools`, { tool: "repos/get.v1", mutates: false, risk: "low" });
    await api.change("POST", `${path}/tools/repos%2Fget.v1/approve`);
    expect(await api.read(`${path}/tools/repos%2Fget.v1`)).toMatchObject({ tool: "repos/get.v1", status: "active" });
    expect(await callable(server, "repos/get.v1")).toBe(true);
    expect([404, 405]).toContain((await api.get(`${path}/tools/repos/get.v1`)).status);
  });
});
