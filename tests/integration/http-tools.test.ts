// `/http/{server}/{path}`: HTTP APIs behind Gateward.
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Upstream as UpstreamFields } from "../support/api/types.gen.ts";
import { eventually, Gateward, INSPECTABLE, type Tenant, type TestAgent } from "../support/gateward.ts";
import { dies, endless, hangs, html, huge, json, redirect, Upstream } from "../support/upstream.ts";

const SECRET = "Bearer upstream-secret";
const ROUTES = [
  { method: "GET", path: "/repos/{owner}/{repo}/issues", tool: "list_issues" },
  { method: "POST", path: "/repos/{owner}/{repo}/issues", tool: "create_issue" },
  { method: "GET", path: "/admin/{name}", tool: "read_root_key" },
];

let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;
let agent: TestAgent;

beforeAll(async () => {
  upstream = await Upstream.start();
  // The tenant's overlay has a policy that redacts.
  const name = "demo";
  gateward = await Gateward.start({
    entry: INSPECTABLE,
    vars: { RATE_CAPACITY: 10_000 },
    secrets: {
      TOKEN_MAC_KEY: "a-mac-key-for-tests-of-40-characters-000",
      UPSTREAM_API: `${name} ${new URL(upstream.url()).origin} ${SECRET}`,
      UPSTREAM_OTHER: `other ${new URL(upstream.url()).origin} ${SECRET}`,
    },
  });
  tenant = await gateward.tenant({}, name);
  agent = await tenant.agent();
  await tenant.register({ servers: [{ server: "spoken", kind: "mcp", upstream: { url: upstream.url(), local: true } }] });
  await server("api");
});
afterAll(async () => {
  await gateward.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.received.length = 0;
  upstream.answer = json({ ok: true });
});

async function change(rows: Parameters<Tenant["register"]>[0]): Promise<void> {
  await tenant.register(rows);
  // A lane that does not run has nothing in memory.
  await tenant.evict().catch(() => undefined);
}

/** `null` leaves it out. */
type Changes = Omit<Partial<UpstreamFields>, "credential"> & { credential?: UpstreamFields["credential"] | null };

/** Registers an HTTP API behind the upstream, with changes. */
async function server(name: string, fields: Changes = {}, trust: "trusted" | "untrusted" = "trusted"): Promise<void> {
  const { credential = { binding: "UPSTREAM_API" }, ...rest } = fields;
  await change({
    servers: [
      {
        server: name,
        kind: "http",
        trust,
        upstream: { url: upstream.url("/v3/"), local: true, routes: ROUTES, ...rest, ...(credential !== null && { credential }) },
      },
    ],
    tools: [
      { server: name, tool: "list_issues", mutates: false, risk: "low" },
      { server: name, tool: "create_issue", mutates: true, risk: "medium", input_schema: { type: "object", required: ["title"], properties: { title: { type: "string" }, amount: { maximum: 100 } } } },
    ],
  });
}

function ask(path: string, { headers, ...init }: RequestInit = {}, token = agent.token): Promise<Response> {
  return fetch(new URL(path, gateward.url), { redirect: "manual", headers: { authorization: `Bearer ${token}`, ...headers }, ...init });
}

function create(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return ask("/http/api/repos/acme/shop/issues", {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
}

async function problem(response: Response): Promise<string> {
  const { code } = (await response.json()) as { code: string };
  return `${response.status} ${code} ${response.headers.get("x-gateward-reason-code") ?? ""}`.trim();
}

describe("what is allowed", () => {
  test("reaches the upstream with its own credential, and comes back as it is", async () => {
    upstream.answer = json([{ title: "a" }], 200, { server: "nginx", "x-powered-by": "PHP", etag: '"1"', "x-gateward-decision": "forged" });
    const response = await ask("/http/api/repos/acme/shop/issues?state=open&label=a%20b", {
      headers: { cookie: "session=1", "x-gateward-agent": "root", "x-forwarded-for": "192.0.2.1", "x-trace": "t", "idempotency-key": "k", accept: "application/json" },
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual([{ title: "a" }]);
    expect(Object.fromEntries(response.headers)).toMatchObject({ etag: '"1"', "x-gateward-decision": "allow", "content-type": "application/json" });
    expect(response.headers.has("server")).toBe(false);
    expect(response.headers.has("x-powered-by")).toBe(false);
    expect(response.headers.get("ratelimit")).toMatch(/^"agent";r=\d+;t=\d+$/);
    const [{ path, headers } = { path: "", headers: {} }] = upstream.received;
    expect(path).toBe("/v3/repos/acme/shop/issues?state=open&label=a%20b");
    expect(headers).toMatchObject({ authorization: SECRET, "x-gateward-tenant": tenant.name, "x-gateward-agent": "coder", "idempotency-key": "k" });
    for (const name of ["cookie", "x-forwarded-for", "cf-connecting-ip", "x-trace"]) expect(headers).not.toHaveProperty(name);
    expect(JSON.stringify(upstream.received)).not.toContain(agent.token);
  });

  test("carries its body on byte for byte", async () => {
    const response = await create({ title: "b", z: 1, a: [1.5, { k: null }] });
    expect(response.status).toBe(200);
    expect(upstream.received[0]?.text).toBe('{"title":"b","z":1,"a":[1.5,{"k":null}]}');
  });

  test("goes without the fields that are redacted, wherever they stand", async () => {
    await change({
      servers: [{ server: "crm", kind: "http", upstream: { url: upstream.url(), local: true, routes: [{ method: "POST", path: "/customers/{customer_id}", tool: "get_customer" }] } }],
    });
    const response = await ask("/http/crm/customers/c1?include_email=1", {
      method: "POST",
      body: JSON.stringify({ contact: { email: "a@example.com", phone: "1" }, fields: ["name"] }),
      headers: { "content-type": "application/json", "x-gateward-contains-sensitive-data": "true" },
    });
    expect(await problem(response)).toBe("403 call_denied input_schema_mismatch");
    const redacted = await ask("/http/crm/customers/c1", {
      method: "POST",
      body: JSON.stringify({ contact: { email: "a@example.com", phone: "1" }, fields: ["name"] }),
      headers: { "content-type": "application/json", "x-gateward-contains-sensitive-data": "true" },
    });
    expect([redacted.status, redacted.headers.get("x-gateward-decision")]).toEqual([200, "redact"]);
    expect(upstream.received.map(({ text }) => text)).toEqual(['{"contact":{},"fields":["name"]}']);
  });

  test("brings the caller's headers that are registered, besides those that every API gets", async () => {
    await server("versioned", { forwarded_headers: ["x-api-version"] });
    const headers = { "x-api-version": "2", "x-tenant": "root" };
    expect((await ask("/http/versioned/repos/acme/shop/issues", { headers })).status).toBe(200);
    const [got] = upstream.received;
    expect(got?.headers).toMatchObject({ "x-api-version": "2" });
    expect(got?.headers).not.toHaveProperty("x-tenant");
  });

  test("is stored by no shared cache, unless the server is registered so", async () => {
    await server("shared", { shared_cache: true });
    const stored = async (name: string, said: Record<string, string>) => {
      upstream.answer = json({}, 200, said);
      const { headers } = await ask(`/http/${name}/repos/acme/shop/issues`);
      return [headers.get("cache-control"), headers.get("cdn-cache-control")];
    };
    const said = { "cache-control": "public, s-maxage=60, max-age=60", "cdn-cache-control": "max-age=60" };
    expect(await stored("api", said)).toEqual(["private, max-age=60", null]);
    expect(await stored("api", {})).toEqual(["private", null]);
    expect(await stored("api", { "cache-control": "no-store" })).toEqual(["private, no-store", null]);
    expect(await stored("shared", said)).toEqual([said["cache-control"], "max-age=60"]);
  });

  test("is stored by no cache at all if it has untrusted text", async () => {
    await server("outside", { shared_cache: true }, "untrusted");
    const { token } = await tenant.agent("reader");
    upstream.answer = json({}, 200, { "cache-control": "public, max-age=60, must-understand", "cdn-cache-control": "max-age=60" });
    const { headers } = await ask("/http/outside/repos/acme/shop/issues", {}, token);
    expect([headers.get("cache-control"), headers.get("cdn-cache-control")]).toEqual(["no-store", null]);
  });

  test("brings no header in which the caller could stand before the credential, or be another", async () => {
    await server("keyed", { credential: { binding: "UPSTREAM_API", header: "x-api-key" } });
    const response = await ask("/http/keyed/repos/acme/shop/issues", { headers: { "x-api-key": "mine", x_gateward_agent: "root", "content-encoding": "gzip" } });
    expect(response.status).toBe(200);
    const [{ headers } = { headers: {} }] = upstream.received;
    expect(headers).toMatchObject({ "x-api-key": SECRET });
    for (const name of ["x_gateward_agent", "content-encoding", "content-type", "authorization"]) expect(headers).not.toHaveProperty(name);
  });

  test("a HEAD tells of a length that no answer could have", async () => {
    await server("heads", { max_result_bytes: 2_000, routes: [{ method: "HEAD", path: "/repos/{owner}/{repo}/issues", tool: "list_issues" }] });
    upstream.answer = (_, response) => response.writeHead(200, { "content-length": "5000" }).end();
    expect((await ask("/http/heads/repos/acme/shop/issues", { method: "HEAD" })).status).toBe(200);
  });

  test.each([204, 205, 304])("an answer without a body, %d, has none here", async (status) => {
    // Node sends a body with a 205.
    upstream.answer = (_, response) => response.writeHead(status).end("a body");
    const response = await ask("/http/api/repos/acme/shop/issues");
    expect([response.status, await response.text()]).toEqual([status, ""]);
  });

  const address = { issue: "/v3/repos/acme/shop/issues/7?a=b", through: "/http/api/repos/acme/shop/issues/7?a=b" };
  test.each<[string, () => string, string | null]>([
    ["to another host is passed on, not followed", () => "http://169.254.169.254/latest", "http://169.254.169.254/latest"],
    ["to a path of the API leads through Gateward", () => address.issue, address.through],
    ["to a URL of the API leads through Gateward", () => upstream.url(address.issue), address.through],
    ["to a relative path of the API leads through Gateward", () => "issues/7?a=b", address.through],
    // The API of the tests is on Gateward's host.
    ["to a path of Gateward's has no address", () => "/http/api/admin/key", null],
    ["to a URL of Gateward's has no address", () => new URL("/v1/agents", gateward.url).href, null],
    ["to Gateward's host has no address", () => `//${gateward.url.host}/http/api/admin/key`, null],
  ])("a redirect %s", async (_, location, expected) => {
    upstream.answer = redirect(location());
    const response = await ask("/http/api/repos/acme/shop/issues");
    expect([response.status, response.headers.get("location")]).toEqual([307, expected]);
    expect(upstream.received).toHaveLength(1);
  });

  test("the address of what was created leads through Gateward", async () => {
    upstream.answer = json({}, 201, { location: address.issue, "content-location": "/v1/agents" });
    const response = await create({ title: "t" });
    expect([response.status, response.headers.get("location"), response.headers.has("content-location")]).toEqual([201, address.through, false]);
  });

  test("has a second receipt of its outcome, which names the first", async () => {
    upstream.answer = html("<p>moved</p>", 410);
    const response = await ask("/http/api/repos/acme/shop/issues");
    await response.text();
    const [decision, outcome] = await tenant.receiptsOf(response.headers.get("x-gateward-decision-id"));
    expect(decision).toMatchObject({ kind: "decision", decision: "allow", tool: "list_issues", resource: "/repos/acme/shop/issues" });
    expect(outcome).toMatchObject({
      kind: "outcome",
      ending: "complete",
      status: 410,
      bytes: 12,
      agent: "coder",
      server: "api",
      // The hash of `<p>moved</p>`, by sha256sum.
      result_sha256: "94c4781e30b7ac1d375ee52e7a03d04ff548444bed5d4cbea90316a2b7da0a2f",
    });
    const receipts = await gateward.receipts(tenant.admin);
    const hash = receipts.find(({ seq }) => seq === decision?.seq)?.receipt_hash;
    expect(outcome?.decision_hash).toBe(hash);

    // The decision shows it, whether it was flushed or not.
    const id = response.headers.get("x-gateward-decision-id");
    for (const flushed of [false, true]) {
      if (flushed) await tenant.flushed();
      const { body } = await gateward.get<{ outcome: object }>(tenant.admin, `/v1/decisions/${id}`);
      expect(body.outcome).toEqual({
        receipt_id: `rcpt_0_${outcome?.seq}`,
        at: outcome?.time,
        ending: "complete",
        status: 410,
        bytes: 12,
        duration_ms: outcome?.duration_ms,
        result_sha256: outcome?.result_sha256,
      });
    }
  });
});

describe("what is not allowed is not forwarded", () => {
  test.each<[string, string, RequestInit, string]>([
    ["an unmapped path", "/http/api/repos/acme", {}, "403 call_denied route_unmapped"],
    ["an unmapped method", "/http/api/repos/acme/shop/issues", { method: "DELETE" }, "403 call_denied route_unmapped"],
    ["a path of two readings", "/http/api/repos/acme/shop%2F..%2Fissues", {}, "403 call_denied route_unmapped"],
    ["a field from two places", "/http/api/repos/acme/shop/issues?owner=evil", {}, "403 call_denied input_invalid"],
    ["two names that differ in case, in one body", "/http/api/repos/acme/shop/issues", { method: "POST", body: '{"title":"t","amount":1,"Amount":5000}', headers: { "content-type": "application/json" } }, "403 call_denied input_invalid"],
    ["two names that differ in case, in query and body", "/http/api/repos/acme/shop/issues?Amount=5000", { method: "POST", body: '{"title":"t","amount":1}', headers: { "content-type": "application/json" } }, "403 call_denied input_invalid"],
    ["two names that differ in their encoding", "/http/api/repos/acme/shop/issues?%2561mount=5000", { method: "POST", body: '{"title":"t","amount":1}', headers: { "content-type": "application/json" } }, "403 call_denied input_invalid"],
    ["a name that differs in case from the schema's", "/http/api/repos/acme/shop/issues", { method: "POST", body: '{"title":"t","Amount":5000}', headers: { "content-type": "application/json" } }, "403 call_denied input_invalid"],
    ["a field of the path in another case", "/http/api/repos/acme/shop/issues?Owner=evil", {}, "403 call_denied input_invalid"],
    ["a tool that is not registered", "/http/api/admin/key", {}, "403 call_denied tool_unknown"],
    ["a server that is not registered", "/http/nowhere/x", {}, "403 call_denied server_unknown"],
    ["a server that Gateward does not stand in front of", "/http/vault/x", {}, "403 call_denied upstream_missing"],
    ["a server that speaks MCP", "/http/spoken/x", {}, "403 call_denied upstream_missing"],
    ["text of untrusted origin that writes", "/http/api/repos/acme/shop/issues", { method: "POST", body: '{"title":"t"}', headers: { "content-type": "application/json", "x-gateward-source-trust": "untrusted_external" } }, "403 call_denied policy_forbid"],
    ["arguments that do not fit", "/http/api/repos/acme/shop/issues", { method: "POST", body: '{"title":7}', headers: { "content-type": "application/json" } }, "403 call_denied input_schema_mismatch"],
    ["a body that is no JSON", "/http/api/repos/acme/shop/issues", { method: "POST", body: "{", headers: { "content-type": "application/json" } }, "400 malformed_request"],
    ["a key that stands twice", "/http/api/repos/acme/shop/issues", { method: "POST", body: '{"title":"a","title":"b"}', headers: { "content-type": "application/json" } }, "400 input_invalid"],
    ["a body of another kind", "/http/api/repos/acme/shop/issues", { method: "POST", body: "title=a", headers: { "content-type": "application/x-www-form-urlencoded" } }, "415 unsupported_media_type"],
    ["a body that is too large", "/http/api/repos/acme/shop/issues", { method: "POST", body: JSON.stringify({ title: "x".repeat(1_000_000) }), headers: { "content-type": "application/json" } }, "413 body_too_large"],
    ["a claim that cannot be read", "/http/api/repos/acme/shop/issues", { headers: { "x-gateward-contains-sensitive-data": "perhaps" } }, "400 malformed_request"],
  ])("%s", async (_, path, init, expected) => {
    expect(await problem(await ask(path, init))).toBe(expected);
    expect(upstream.received).toEqual([]);
  });

  test("a path that fits a literal route only in another case", async () => {
    await server("people", {
      routes: [
        { method: "GET", path: "/users/me", tool: "read_root_key" },
        { method: "GET", path: "/users/{user}", tool: "list_issues" },
      ],
    });
    expect((await ask("/http/people/users/mel")).status).toBe(200);
    expect(await problem(await ask("/http/people/users/Me"))).toBe("403 call_denied route_unmapped");
    expect(await problem(await ask("/http/people/users/M%45"))).toBe("403 call_denied route_unmapped");
    expect(upstream.received).toHaveLength(1);
  });

  test("without a credential, or with an administrator's", async () => {
    const refused = await ask("/http/api/repos/acme/shop/issues", {}, "gw_nobody");
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="gateward"']);
    expect(await problem(await ask("/http/api/repos/acme/shop/issues", {}, tenant.admin))).toBe("403 forbidden");
    expect(upstream.received).toEqual([]);
  });

  test("what needs approval names it, and passes once it is given", async () => {
    const claim = { "x-gateward-source-trust": "semi_trusted_customer" };
    const asked = await create({ title: "c" }, claim);
    expect(await problem(asked)).toBe("403 call_denied policy_require_approval");
    const id = asked.headers.get("x-gateward-approval-id") ?? "";
    expect(upstream.received).toEqual([]);
    const approver = await tenant.approver("ada", "security");
    expect((await approver.post(`/v1/approvals/${id}/approve`)).status).toBe(200);
    expect((await create({ title: "c" }, { ...claim, "x-gateward-approval-id": id })).status).toBe(200);
    expect(upstream.received).toHaveLength(1);
  });
});

describe("an upstream that", () => {
  const hanging = hangs();

  async function askOf(name: string, fields: Changes): Promise<Response> {
    await server(name, fields);
    return ask(`/http/${name}/repos/acme/shop/issues`);
  }

  test("is nowhere, is unreachable", async () => {
    const closed = await Upstream.start();
    const url = closed.url();
    await closed.close();
    const response = await askOf("closed", { url, credential: null });
    const id = response.headers.get("x-gateward-decision-id");
    expect(await problem(response)).toBe("502 upstream_unreachable policy_allow");
    expect((await tenant.receiptsOf(id))[1]).toMatchObject({ kind: "outcome", ending: "upstream_failed", status: 0, bytes: 0 });
  });

  test("does not begin its answer in time, is given up", async () => {
    upstream.answer = hangs();
    const response = await askOf("hangs", { first_byte_timeout_ms: 100 });
    const id = response.headers.get("x-gateward-decision-id");
    expect(await problem(response)).toBe("504 upstream_timeout policy_allow");
    expect((await tenant.receiptsOf(id))[1]).toMatchObject({ ending: "timed_out" });
    await upstream.received[0]?.over;
    expect(upstream.received[0]?.hungUp).toBe(true);
  });

  test.each<[string, Changes, string]>([
    ["falls silent", { idle_timeout_ms: 100 }, "timed_out"],
    ["never ends", { whole_timeout_ms: 300 }, "timed_out"],
    ["says too much", { max_result_bytes: 20 }, "too_large"],
  ])("%s, is cut off, and the caller's answer ends", async (name, fields, ending) => {
    upstream.answer = name === "falls silent" ? endless("first", 60_000) : endless("0123456789", 20);
    const response = await askOf(name.replaceAll(" ", "-"), fields);
    expect(response.status).toBe(200);
    await response.text();
    const [, outcome] = await tenant.receiptsOf(response.headers.get("x-gateward-decision-id"));
    expect(outcome).toMatchObject({ kind: "outcome", ending, status: 200 });
    await upstream.received[0]?.over;
    expect(upstream.received[0]?.hungUp).toBe(true);
  });

  test("says beforehand that it will say too much, is refused", async () => {
    upstream.answer = json("x".repeat(5_000), 200, { "content-length": "5002" });
    expect(await problem(await askOf("announces", { max_result_bytes: 2_000 }))).toBe("502 upstream_invalid policy_allow");
    upstream.answer = huge(5_000);
    const response = await askOf("does-not-announce", { max_result_bytes: 2_000 });
    expect(response.status).toBe(200);
    expect((await response.text()).length).toBeLessThanOrEqual(2_000);
  });

  test("dies in the middle, ends the caller's answer, with an audit event", async () => {
    upstream.answer = dies("data: one\n\n", 20, "data: two\n\n", 20);
    const response = await ask("/http/api/repos/acme/shop/issues");
    expect(await response.text()).toBe("data: one\n\ndata: two\n\n");
    const id = response.headers.get("x-gateward-decision-id");
    expect((await tenant.receiptsOf(id))[1]).toMatchObject({ ending: "upstream_failed", status: 200, bytes: 22 });
    const events = await gateward.rows<{ kind: string }>("SELECT kind FROM audit_events WHERE tenant = ?1 AND decision_id = ?2 ORDER BY kind", tenant.name, id);
    expect(events.map(({ kind }) => kind)).toEqual(["decision", "upstream_failed"]);
  });

  test.each([
    ["the caller goes in the middle of it", endless("data: tick\n\n", 20)],
    ["the caller goes before it begins", hanging],
  ])("is left when %s, and that is written down", async (_, answer) => {
    upstream.answer = answer;
    const socket = connect(Number(gateward.url.port), gateward.url.hostname);
    socket.write(`GET /http/api/repos/acme/shop/issues HTTP/1.1\r\nhost: gate\r\nauthorization: Bearer ${agent.token}\r\n\r\n`);
    await eventually("the upstream is asked", async () => upstream.received.length === 1);
    if (answer !== hanging) await once(socket, "data");
    socket.resetAndDestroy();
    await upstream.received[0]?.over;
    expect(upstream.received[0]?.hungUp).toBe(true);
    const id = upstream.received[0]?.headers["x-gateward-decision-id"];
    expect((await tenant.receiptsOf(String(id)))[1]).toMatchObject({ ending: "caller_gone" });
  });

  test.each<[string, Changes, string]>([
    ["is local, without being registered so", { local: false }, "502 upstream_forbidden policy_allow"],
    ["needs a secret of another tenant", { credential: { binding: "UPSTREAM_OTHER" } }, "503 misconfigured policy_allow"],
    ["needs a secret for another origin", { url: "http://localhost:9/", credential: { binding: "UPSTREAM_API" } }, "503 misconfigured policy_allow"],
    ["needs a secret that is none of upstreams'", { credential: { binding: "TOKEN_MAC_KEY" } }, "503 misconfigured policy_allow"],
    ["needs a secret that does not exist", { credential: { binding: "UPSTREAM_NONE" } }, "503 misconfigured policy_allow"],
  ])("%s, is not asked", async (_, fields, expected) => {
    const response = await askOf("refused", fields);
    const id = response.headers.get("x-gateward-decision-id");
    expect(await problem(response)).toBe(expected);
    expect(upstream.received).toEqual([]);
    expect((await tenant.receiptsOf(id))[1]).toMatchObject({ kind: "outcome", ending: "refused", status: 0 });
  });
});

test("an untrusted server taints the agent that called it, whichever run it names", async () => {
  await server("web", {}, "untrusted");
  const run = (id: string) => ({ "x-gateward-run-id": id });
  expect((await create({ title: "before" }, run("r1"))).status).toBe(200);
  expect((await ask("/http/web/repos/acme/shop/issues", { headers: run("r1") })).status).toBe(200);
  upstream.received.length = 0;
  for (const name of ["r1", "r2", "r3"]) {
    expect(await problem(await create({ title: "after" }, run(name)))).toBe("403 call_denied policy_require_approval");
  }
  expect(upstream.received).toEqual([]);
});
