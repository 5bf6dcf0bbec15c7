// Gateways that ask before they let a request pass: the headers of each gateway, and a real nginx with the
// configuration in docs/forward-auth.md.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { DecisionRecord, Problem } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import { decided } from "../support/approvals.ts";
import type { Reply } from "../support/client.ts";
import { Gateward, INSPECTABLE, NEVER_MS, type Tenant, type TestAgent } from "../support/gateward.ts";
import { CONFIGURATION, Nginx, sendRaw } from "../support/nginx.ts";
import { withWrongMac } from "../support/tokens.ts";
import { json, Upstream } from "../support/upstream.ts";

const ASK = "/v1/forward-auth/crm";
const ROUTES = [
  { method: "GET", path: "/customers", tool: "list_customers" },
  { method: "GET", path: "/customers/{customer_id}", tool: "get_customer" },
  { method: "HEAD", path: "/customers/{customer_id}", tool: "get_customer" },
  { method: "DELETE", path: "/customers/{customer_id}", tool: "delete_customer" },
];
const CUSTOMER_TRUST = { "x-gateward-source-trust": "semi_trusted_customer" };
const UNTRUSTED = { "x-gateward-source-trust": "untrusted_external" };

let gateward: Gateward;
/** The API behind the gateway. */
let api: Upstream;
/** The tenant with a policy that redacts. */
let tenant: Tenant;
let agent: TestAgent;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: NEVER_MS } });
  api = await Upstream.start(json({ customer: "c1" }));
  tenant = await gateward.tenant(
    {
      servers: [{ server: "crm", kind: "http", upstream: { url: api.url(), local: true, routes: ROUTES } }],
      tools: [
        { server: "crm", tool: "list_customers", mutates: false, risk: "low" },
        { server: "crm", tool: "delete_customer", mutates: true, risk: "medium" },
      ],
    },
    "demo",
  );
  agent = await tenant.agent();
});
afterAll(async () => {
  await gateward?.close();
  await api?.close();
});

/** The headers with which nginx describes a request, in the documented configuration. */
const nginx = (method: string, uri: string) => ({ "x-original-method": method, "x-original-uri": uri });
/** The same for Traefik and Caddy. */
const traefik = (method: string, uri: string) => ({ "x-forwarded-method": method, "x-forwarded-uri": uri });

/** A gateway's question about a request of the agent's. */
function ask(headers: Record<string, string>, path = ASK, { token } = agent): Promise<Reply<Problem>> {
  return gateward.get(token, path, { headers });
}

/** The headers of an answer that Gateward sets. */
function told({ headers }: Pick<Reply<unknown>, "headers">): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith("x-gateward-")));
}

function expectRefused(reply: Reply<Problem>, status: number, code: string, reasonCode: string): void {
  const got = { status: reply.status, code: reply.body.code, reason: reply.headers.get("x-gateward-reason-code") };
  expect(got).toEqual({ status, code, reason: reasonCode });
  expect(reply.body).toMatchObject({ type: `https://gateward.dev/problems/${code}`, status });
  expect(reply.headers.get("content-type")).toMatch(/^application\/problem\+json/);
}

describe("a request that is allowed", () => {
  const questions: [string, string, string, Record<string, string>][] = [
    ["nginx", "GET", ASK, nginx("GET", "/customers/c1?fields=a&fields=b")],
    ["ingress-nginx", "GET", ASK, { "x-original-method": "GET", "x-original-url": "https://crm.example/customers/c1?fields=a&fields=b" }],
    ["Traefik, by GET", "GET", ASK, traefik("GET", "/customers/c1?fields=a&fields=b")],
    ["Traefik, by POST", "POST", ASK, traefik("GET", "/customers/c1?fields=a&fields=b")],
    ["a gateway whose address has the server in the query", "GET", "/v1/forward-auth?server=crm", nginx("GET", "/customers/c1?fields=a&fields=b")],
    ["Envoy", "GET", `${ASK}/customers/c1?fields=a&fields=b`, {}],
    ["two gateways that say the same", "GET", ASK, { ...nginx("GET", "/customers/c1"), ...traefik("GET", "/customers/c1") }],
  ];
  test.each(questions)("is 200 with who asks and what was decided: %s", async (_, method, path, headers) => {
    const reply = await gateward.send(method, agent.token, path, undefined, { headers });
    expect(reply).toMatchObject({ status: 200, body: {} });
    expect(told(reply)).toEqual({
      "x-gateward-tenant": "demo",
      "x-gateward-agent": "coder",
      "x-gateward-decision": "allow",
      "x-gateward-decision-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
      "x-gateward-reason-code": "policy_allow",
      "x-gateward-policies": "base/provenance#reads-pass",
    });
    expect(reply.headers.get("ratelimit")).toMatch(/^"agent";r=\d+;t=\d+$/);
    expect(reply.headers.get("ratelimit-policy")).toMatch(/^"agent";q=\d+;w=\d+$/);
  });

  test("is decided and recorded as the call of the tool that its route names", async () => {
    const reply = await ask(nginx("GET", "/customers/c%31"));
    const id = reply.headers.get("x-gateward-decision-id");
    const { body } = await gateward.get<DecisionRecord>(agent.token, `/v1/decisions/${id}`);
    expect(body).toMatchObject({ decision_id: id, agent: "coder", server: "crm", tool: "get_customer", decision: "allow" });
  });

  test("can be one without a body to answer", async () => {
    const response = await fetch(new URL(`${ASK}/customers/c1`, gateward.url), { method: "HEAD", headers: { authorization: `Bearer ${agent.token}` } });
    expect({ status: response.status, decision: response.headers.get("x-gateward-decision") }).toEqual({ status: 200, decision: "allow" });
  });

  test("names Gateward's caller whatever the caller calls itself", async () => {
    const reply = await ask({ ...nginx("GET", "/customers"), "x-gateward-agent": "root", "x-gateward-tenant": "other", "x-gateward-decision": "allow" });
    expect(told(reply)).toMatchObject({ "x-gateward-tenant": "demo", "x-gateward-agent": "coder" });
  });
});

describe("a request that is not allowed", () => {
  const credentials: [string, () => Record<string, string>][] = [
    ["no credential", () => ({})],
    ["a credential that Gateward never issued", () => ({ authorization: `Bearer ${withWrongMac(agent.token)}` })],
    ["another scheme", () => ({ authorization: "Basic YTpi" })],
  ];
  test.each(credentials)("is 401 with WWW-Authenticate: %s", async (_, headers) => {
    const reply = await gateward.request<Problem>(ASK, { headers: { ...nginx("GET", "/customers"), ...headers() } });
    expectRefused(reply, 401, "unauthorized", "unauthorized");
    expect(reply.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });

  const refused: [string, Record<string, string>, string, string][] = [
    ["a write that untrusted text caused", { ...nginx("DELETE", "/customers/c1"), ...UNTRUSTED }, "call_denied", "policy_forbid"],
    ["what needs approval", { ...nginx("DELETE", "/customers/c1"), ...CUSTOMER_TRUST }, "call_denied", "policy_require_approval"],
    ["what must be redacted", { ...nginx("GET", "/customers/c1"), "x-gateward-contains-sensitive-data": "true" }, "call_denied", "policy_redact"],
    ["a method that no route has", nginx("PUT", "/customers/c1"), "call_denied", "route_unmapped"],
    ["HEAD where only GET is mapped", nginx("HEAD", "/customers"), "call_denied", "route_unmapped"],
    ["a path that no route has", nginx("GET", "/customers/c1/orders"), "call_denied", "route_unmapped"],
    ["dots in the path", nginx("GET", "/customers/../customers"), "call_denied", "route_unmapped"],
    ["encoded dots in the path", nginx("GET", "/customers/%2e%2e"), "call_denied", "route_unmapped"],
    ["an encoded slash in the path", nginx("GET", "/customers/a%2Fb"), "call_denied", "route_unmapped"],
    ["an empty segment in the path", traefik("GET", "//customers"), "call_denied", "route_unmapped"],
    ["an argument in path and query", nginx("GET", "/customers/c1?customer_id=c2"), "call_denied", "input_invalid"],
    ["an argument that the tool does not have", nginx("GET", "/customers/c1?admin=1"), "call_denied", "input_schema_mismatch"],
    ["headers of two gateways that differ", { ...nginx("GET", "/customers"), ...traefik("GET", "/customers/c1") }, "original_request_conflict", "original_request_conflict"],
    ["methods of two gateways that differ", { ...nginx("GET", "/customers"), "x-forwarded-method": "DELETE" }, "original_request_conflict", "original_request_conflict"],
    ["no headers of a gateway", {}, "original_request_unknown", "original_request_unknown"],
    ["a URI without its method", { "x-original-uri": "/customers" }, "original_request_unknown", "original_request_unknown"],
    ["half of each of two gateways", { "x-original-uri": "/customers", "x-forwarded-method": "GET" }, "original_request_unknown", "original_request_unknown"],
    ["a URI that is too long", nginx("GET", `/customers?q=${"a".repeat(8_192)}`), "original_request_unknown", "original_request_unknown"],
    ["a statement that cannot be read", { ...nginx("GET", "/customers"), "x-gateward-contains-sensitive-data": "maybe" }, "malformed_request", "malformed_request"],
  ];
  test.each(refused)("is 403: %s", async (_, headers, code, reasonCode) => {
    expectRefused(await ask(headers), 403, code, reasonCode);
  });

  const addresses: [string, string, string][] = [
    ["no server", "/v1/forward-auth", "original_request_unknown"],
    ["a server in path and query", `${ASK}?server=crm`, "original_request_unknown"],
    ["an unknown option", `${ASK}?fail=open`, "original_request_unknown"],
    ["a server that is not registered", "/v1/forward-auth/erp", "server_unknown"],
    ["a server that is no HTTP API", "/v1/forward-auth/github", "upstream_missing"],
    ["Envoy's path, and another in a header", `${ASK}/customers/c1`, "original_request_conflict"],
  ];
  test.each(addresses)("is 403: %s", async (_, path, reasonCode) => {
    const reply = await ask(nginx("GET", "/customers"), path);
    expect({ status: reply.status, reason: reply.headers.get("x-gateward-reason-code") }).toEqual({ status: 403, reason: reasonCode });
  });

  test.each(["/customers/../customers", "/../github/customers", "/customers/%2e%2e/customers", "/customers\\..\\x"])(
    "is 403 for what Envoy does not normalize: %s",
    async (path) => {
      const { hostname, port } = gateward.url;
      const headers = { authorization: `Bearer ${agent.token}` };
      const reply = await sendRaw({ hostname, port, path: `${ASK}${path}`, headers });
      expect({ status: reply.status, reason: reply.headers["x-gateward-reason-code"] }).toEqual({ status: 403, reason: "route_unmapped" });
    },
  );

  test("is 403 with an administrator's credential", async () => {
    expectRefused(await gateward.get(tenant.admin, ASK, { headers: nginx("GET", "/customers") }), 403, "forbidden", "forbidden");
  });

  test("is told in headers too, and why in words", async () => {
    const reply = await ask({ ...nginx("DELETE", "/customers/c1"), ...UNTRUSTED });
    expect(told(reply)).toMatchObject({ "x-gateward-agent": "coder", "x-gateward-decision": "deny", "x-gateward-policies": "base/provenance#untrusted-never-writes" });
    expect(reply.body.detail).toMatch(/untrusted/);
    const redact = await ask({ ...nginx("GET", "/customers/c1"), "x-gateward-contains-sensitive-data": "true" });
    expect(redact.headers.get("x-gateward-decision")).toBe("deny");
    expect(redact.body.detail).toMatch(/cannot remove the fields `email`, `phone`/);
  });
});

test("a request that needs approval passes once with the approval's id", async () => {
  const sam: Api = await tenant.approver("sam", "security");
  const question = { ...nginx("DELETE", "/customers/c7"), ...CUSTOMER_TRUST };
  const held = await ask(question);
  const id = held.headers.get("x-gateward-approval-id") ?? "";
  expect(held.headers.get("x-gateward-decision")).toBe("require_approval");
  await decided(sam, "approve", id);
  const with_id = { ...question, "x-gateward-approval-id": id };
  expect((await ask({ ...with_id, ...nginx("DELETE", "/customers/c8") })).headers.get("x-gateward-reason-code")).toBe("approval_mismatch");
  expect((await ask(with_id)).status).toBe(200);
  expect((await ask(with_id)).headers.get("x-gateward-reason-code")).toBe("approval_used");
});

describe("an agent over its rate", () => {
  test.each([
    ["is 403", ASK, 403],
    ["is 429 where the gateway takes it", `${ASK}?rate_limited=429`, 429],
    ["is 403 where the gateway asks for it", `${ASK}?rate_limited=403`, 403],
    ["is 429 for Envoy", `${ASK}/customers`, 429],
  ])("%s", async (_, path, status) => {
    const limited = await tenant.agent("limited", { request_rate: { capacity: 1, refill_per_s: 0.001 } });
    await tenant.evict();
    const headers = path.endsWith("customers") ? {} : nginx("GET", "/customers");
    const replies = [await ask(headers, path, limited), await ask(headers, path, limited)];
    const last = replies.at(-1) as Reply<Problem>;
    expectRefused(last, status, "rate_limited", "rate_limited");
    expect(Number(last.headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

describe("nginx", () => {
  let nginx: Nginx;

  beforeAll(async () => {
    nginx = await Nginx.start(gateward.url, new URL(api.url()));
  });
  afterAll(() => nginx?.close());
  beforeEach(() => {
    api.received.length = 0;
  });

  const authorization = () => ({ authorization: `Bearer ${agent.token}` });

  test("is configured as the documentation shows", () => {
    const shown = /^```nginx\n(# In a `server`.*?)^```$/ms.exec(readFileSync("docs/forward-auth.md", "utf8"));
    expect(shown?.[1]).toBe(readFileSync(CONFIGURATION, "utf8"));
  });

  test("lets an allowed request pass as it came, with what Gateward says of the caller", async () => {
    const spoofed = {
      "x-gateward-tenant": "other",
      "x-gateward-agent": "root",
      "x-gateward-decision-id": "mine",
      "x-gateward-decision": "allow",
      "x-gateward-policies": "mine",
      "x-http-method-override": "DELETE",
      "x-original-uri": "/customers/c2",
      "x-original-url": "/customers/c2",
      "x-rewrite-url": "/customers/c2",
      "x-forwarded-uri": "/customers/c2",
      "x-original-method": "DELETE",
    };
    const reply = await nginx.get("/customers/c%311?fields=a&fields=b", { ...authorization(), ...spoofed, "x-gateward-run-id": "r1", accept: "application/json" });
    expect(reply).toMatchObject({ status: 200, text: '{"customer":"c1"}' });
    const [got] = api.received;
    expect(api.received).toHaveLength(1);
    expect(got).toMatchObject({ method: "GET", path: "/customers/c%311?fields=a&fields=b" });
    expect(got?.headers).toMatchObject({ host: "crm.example", accept: "application/json" });
    const own = Object.entries(got?.headers ?? {}).filter(([name]) => /^x-|^authorization$/.test(name));
    expect(Object.fromEntries(own)).toEqual({
      "x-gateward-tenant": "demo",
      "x-gateward-agent": "coder",
      "x-gateward-decision-id": reply.headers["x-gateward-decision-id"],
      // It passes nothing to the API that was not decided.
      "x-forwarded-uri": "/customers/c2",
      "x-original-method": "DELETE",
    });
    expect(reply.headers).toMatchObject({ "x-gateward-decision": "allow", "x-gateward-policies": "base/provenance#reads-pass", ratelimit: expect.any(String) });
  });

  test("passes a body on that Gateward never sees", async () => {
    await tenant.change({
      servers: [{ server: "crm", kind: "http", upstream: { url: api.url(), local: true, routes: [...ROUTES, { method: "POST", path: "/customers", tool: "list_customers" }] } }],
    });
    const reply = await nginx.send("POST", "/customers", { ...authorization(), "content-type": "application/json", "transfer-encoding": "chunked" }, '{"name":"n"}');
    expect(reply.status).toBe(200);
    expect(api.received).toMatchObject([{ method: "POST", text: '{"name":"n"}' }]);
  });

  test("refuses without a credential, and asks for one", async () => {
    const reply = await nginx.get("/customers");
    expect({ status: reply.status, authenticate: reply.headers["www-authenticate"] }).toEqual({ status: 401, authenticate: 'Bearer realm="gateward"' });
    expect(api.received).toEqual([]);
  });

  const refused: [string, string, string, Record<string, string>, string][] = [
    ["a write that untrusted text caused", "DELETE", "/customers/c1", UNTRUSTED, "policy_forbid"],
    ["a path that no route has", "GET", "/admin", {}, "route_unmapped"],
    ["dots that nginx would resolve", "GET", "/customers/../customers", {}, "route_unmapped"],
    ["encoded dots", "GET", "/customers/%2e%2e/customers", {}, "route_unmapped"],
    ["two slashes that nginx would merge", "GET", "//customers", {}, "route_unmapped"],
    ["an encoded slash", "GET", "/customers/a%2Fb", {}, "route_unmapped"],
    ["what would be a fragment", "GET", "/customers#/../admin", {}, "route_unmapped"],
    ["an argument that stands twice", "GET", "/customers/c1?customer_id=c2", {}, "input_invalid"],
    ["headers of a gateway that is not there", "DELETE", "/customers/c1", { ...UNTRUSTED, ...traefik("GET", "/customers") }, "policy_forbid"],
  ];
  test.each(refused)("refuses %s", async (_, method, path, headers, reasonCode) => {
    const reply = await nginx.send(method, path, { ...authorization(), ...headers });
    expect({ status: reply.status, reason: reply.headers["x-gateward-reason-code"] }).toEqual({ status: 403, reason: reasonCode });
    expect(api.received).toEqual([]);
  });

  test("tells which approval is wanted, and takes it", async () => {
    const sam = await tenant.approver("sue", "security");
    const held = await nginx.send("DELETE", "/customers/c9", { ...authorization(), ...CUSTOMER_TRUST });
    expect({ status: held.status, decision: held.headers["x-gateward-decision"] }).toEqual({ status: 403, decision: "require_approval" });
    const id = String(held.headers["x-gateward-approval-id"]);
    await decided(sam, "approve", id);
    const passed = await nginx.send("DELETE", "/customers/c9", { ...authorization(), ...CUSTOMER_TRUST, "x-gateward-approval-id": id });
    expect(passed.status).toBe(200);
    expect(api.received).toMatchObject([{ method: "DELETE", path: "/customers/c9" }]);
    expect(api.received[0]?.headers).not.toHaveProperty("x-gateward-approval-id");
  });

  test("answers 429 with Retry-After to an agent over its rate", async () => {
    const { token } = await tenant.agent("hasty", { request_rate: { capacity: 1, refill_per_s: 0.001 } });
    const headers = { authorization: `Bearer ${token}` };
    expect((await nginx.get("/customers", headers)).status).toBe(200);
    const reply = await nginx.get("/customers", headers);
    expect(reply.status).toBe(429);
    expect(Number(reply.headers["retry-after"])).toBeGreaterThan(0);
    expect(reply.headers.ratelimit).toMatch(/^"rate-hasty";r=0;/);
    expect(api.received).toHaveLength(1);
  });

  test("passes the API's own failures on", async () => {
    api.answer = json({ code: "own" }, 500);
    expect(await nginx.get("/customers", authorization())).toMatchObject({ status: 500, text: '{"code":"own"}' });
    api.answer = json({ customer: "c1" });
  });

  test("lets nothing pass when Gateward does not answer", async () => {
    const closed = await Upstream.start();
    const url = new URL(closed.url());
    await closed.close();
    const alone = await Nginx.start(url, new URL(api.url()));
    try {
      expect((await alone.get("/customers", authorization())).status).toBe(500);
      expect(api.received).toEqual([]);
    } finally {
      await alone.close();
    }
  });
});
