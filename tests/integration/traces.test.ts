// W3C Trace Context: what a tool gets of its caller's trace, and where the trace is recorded.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { unstable_readConfig } from "wrangler";
import type { DecisionRecord } from "../support/api/types.gen.ts";
import { Gateward, HINDERED, MAC_KEY, readCall, type Tenant, type TestAgent } from "../support/gateward.ts";
import { endpoint, mcpRows, post } from "../support/mcp.ts";
import { type Exchange, json, Upstream } from "../support/upstream.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const OTHER = "4bf92f3577b34da6a3ce929d0e0e4736";
const parent = (trace = TRACE, flags = "01") => `00-${trace}-b7ad6b7169203331-${flags}`;
const STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
const MALFORMED = ["trace", parent().toUpperCase(), parent("0".repeat(32)), `${parent()}-more`, parent().replace("00-", "ff-")];

let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;
let agent: TestAgent;

beforeAll(async () => {
  upstream = await Upstream.start();
  gateward = await Gateward.start({ vars: { RATE_CAPACITY: 10_000 }, secrets: { TOKEN_MAC_KEY: MAC_KEY } });
  const tools = [{ name: "record", inputSchema: { type: "object" as const } }];
  const { servers, tools: rows } = mcpRows("spoken", tools, { url: upstream.url("/mcp") });
  const routes = [{ method: "GET", path: "/issues", tool: "list_issues" }];
  const api = (server: string, more: object = {}) => ({ server, kind: "http" as const, upstream: { url: upstream.url("/"), local: true, routes, ...more } });
  tenant = await gateward.tenant({
    servers: [...servers, api("api"), api("keyed", { credential: { binding: "UPSTREAM_MISSING" } })],
    tools: [...rows, ...["api", "keyed"].map((server) => ({ server, tool: "list_issues", mutates: false, risk: "low" as const }))],
  });
  agent = await tenant.agent();
});
afterAll(async () => {
  await gateward?.close();
  await upstream?.close();
});
beforeEach(() => {
  upstream.received.length = 0;
  upstream.answer = (exchange, response) => json({ jsonrpc: "2.0", id: (JSON.parse(exchange.text || "{}") as { id?: unknown }).id, result: { content: [] } })(exchange, response);
});

/** The headers of the one request that the tool got. */
function sent(): Exchange["headers"] {
  expect(upstream.received).toHaveLength(1);
  return upstream.received[0]?.headers ?? {};
}

/** The decision's own id for a span. */
const spanOf = (decisionId: unknown) => String(decisionId).replaceAll("-", "").slice(16);

function ask(headers: Record<string, string> = {}, server = "api"): Promise<Response> {
  return fetch(new URL(`/http/${server}/issues`, gateward.url), { headers: { authorization: `Bearer ${agent.token}`, ...headers } });
}

function speak(headers: Record<string, string> = {}, _meta: object = {}, method = "tools/call"): Promise<Response> {
  const params = method === "tools/call" ? { name: "record", arguments: {} } : {};
  return post(endpoint(gateward, "spoken"), agent.token, method, { ...params, _meta }, { headers });
}

async function traceOf(decisionId: unknown): Promise<string | undefined> {
  return (await tenant.api.read<DecisionRecord>(`/v1/decisions/${String(decisionId)}`)).response.trace_id;
}

describe.each([
  ["an HTTP API", ask],
  ["an MCP server", speak],
])("%s", (_, call) => {
  test("gets the caller's trace with the span of the decision, and the decision names the trace", async () => {
    expect((await call({ traceparent: parent(), tracestate: STATE })).status).toBe(200);
    const { traceparent, tracestate, "x-gateward-decision-id": decisionId } = sent();
    expect(traceparent).toBe(`00-${TRACE}-${spanOf(decisionId)}-01`);
    expect(tracestate).toBe(STATE);
    expect(await traceOf(decisionId)).toBe(TRACE);
  });

  test.each(["", ...MALFORMED])("gets a new trace for `%s`, and the decision names none", async (malformed) => {
    expect((await call({ ...(malformed !== "" && { traceparent: malformed }), tracestate: STATE })).status).toBe(200);
    const { traceparent, tracestate, "x-gateward-decision-id": decisionId } = sent();
    expect(traceparent).toMatch(new RegExp(`^00-(?!${TRACE})[0-9a-f]{32}-${spanOf(decisionId)}-00$`));
    expect(tracestate).toBeUndefined();
    expect(await traceOf(decisionId)).toBeUndefined();
  });

  test("gets no `tracestate` that is too long", async () => {
    expect((await call({ traceparent: parent(), tracestate: `a=${"x".repeat(511)}` })).status).toBe(200);
    expect(sent().traceparent).toContain(TRACE);
    expect(sent()).not.toHaveProperty("tracestate");
  });
});

describe("an MCP server", () => {
  test("gets the trace of `_meta`, and the message as it was sent", async () => {
    const _meta = { traceparent: parent(), tracestate: STATE };
    expect((await speak({}, _meta)).status).toBe(200);
    const { traceparent, tracestate, "x-gateward-decision-id": decisionId } = sent();
    expect(traceparent).toBe(`00-${TRACE}-${spanOf(decisionId)}-01`);
    expect(tracestate).toBe(STATE);
    expect(await traceOf(decisionId)).toBe(TRACE);
    expect(JSON.parse(upstream.received[0]?.text ?? "")).toMatchObject({ params: { _meta } });
  });

  test("gets the trace of the header, if both name one", async () => {
    expect((await speak({ traceparent: parent() }, { traceparent: parent(OTHER) })).status).toBe(200);
    expect(sent().traceparent).toContain(TRACE);
  });

  test.each<[string, object]>([
    ["a number", { traceparent: 7 }],
    ["an object", { traceparent: { id: TRACE } }],
    ["a line break in its state", { traceparent: parent(), tracestate: "a=1\nx-forged: 1" }],
  ])("is never refused a message for its trace: %s", async (_, _meta) => {
    expect((await speak({}, _meta)).status).toBe(200);
    expect(sent().traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
    expect(sent()).not.toHaveProperty("tracestate");
    expect(sent()).not.toHaveProperty("x-forged");
  });

  test("gets a span of its own with a message that needs no decision", async () => {
    upstream.answer = (exchange, response) => json({ jsonrpc: "2.0", id: (JSON.parse(exchange.text) as { id: unknown }).id, result: { tools: [] } })(exchange, response);
    const spans = new Set<string | undefined>();
    for (let at = 0; at < 2; at += 1) {
      upstream.received.length = 0;
      expect((await speak({ traceparent: parent() }, {}, "tools/list")).status).toBe(200);
      expect(sent().traceparent).toMatch(new RegExp(`^00-${TRACE}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`));
      spans.add(String(sent().traceparent));
    }
    expect(spans.size).toBe(2);
  });
});

test("a decision without a proxy names its caller's trace, and a repeated request id has the first one", async () => {
  const decide = (headers: Record<string, string>, request_id?: string) => gateward.decide(agent.token, readCall(request_id === undefined ? {} : { request_id }), { headers });
  const first = await decide({ traceparent: parent() }, "traced");
  expect(first.trace_id).toBe(TRACE);
  expect(await decide({ traceparent: parent(OTHER) }, "traced")).toEqual(first);
  expect(await decide({})).not.toHaveProperty("trace_id");
  for (const traceparent of MALFORMED) expect(await decide({ traceparent })).not.toHaveProperty("trace_id");
});

test("forward-auth notes the caller's trace in the decision", async () => {
  const headers = { authorization: `Bearer ${agent.token}`, "x-original-method": "GET", "x-original-uri": "/issues", traceparent: parent() };
  const reply = await fetch(new URL("/v1/forward-auth/api", gateward.url), { headers });
  expect(reply.status).toBe(200);
  expect(await traceOf(reply.headers.get("x-gateward-decision-id"))).toBe(TRACE);
});

test("the platform logs no URL and no header of a request", () => {
  const { observability } = unstable_readConfig({ config: "wrangler.toml" });
  expect(observability?.logs).toEqual({ enabled: true, invocation_logs: false });
});

test("a failure is logged with the request, the trace and the tenant", async () => {
  const reply = await ask({ traceparent: parent(), "x-request-id": "req-7" }, "keyed");
  expect(reply.status).toBe(503);
  const lines = gateward.lines().filter(({ request_id }) => request_id === "req-7");
  expect(lines).toEqual([
    {
      time: expect.any(String),
      level: "error",
      event: "upstream_credential_unusable",
      message: "The credential for a server cannot be used.",
      tenant: tenant.name,
      request_id: "req-7",
      trace_id: TRACE,
      detail: "`UPSTREAM_MISSING`: the secret does not exist",
    },
  ]);
});

test("a window, a counter, a lane and a database that do not answer are logged with the request and the trace", async () => {
  const hindered = await Gateward.start({ entry: HINDERED });
  try {
    const own = await hindered.tenant();
    const [coder, refunder] = [await own.agent(), await own.agent("refunder", { groups: ["support"] })];
    const headers = (id: string) => ({ headers: { traceparent: parent(), "x-request-id": id } });
    await hindered.skew({ requests: true });
    expect((await hindered.post(coder.token, "/v1/authorize", readCall(), headers("req-10"))).status).toBe(503);
    await hindered.skew({});
    const unavailable = hindered.lines().filter(({ event }) => event === "lane_unavailable");
    expect(unavailable).toMatchObject([{ request_id: "req-10", trace_id: TRACE }]);

    await hindered.hold("windows");
    const call = readCall({
      agent: { id: refunder.name },
      tool_call: { tool: "crm", action: "refund", mutates_state: true, parameters: { customer_id: "c-1", amount: 20, currency: "EUR" } },
      context: { source_trust: "trusted_internal_signed" },
    });
    const denied = await hindered.decide(refunder.token, call, headers("req-8"));
    expect(denied).toMatchObject({ reason_code: "velocity_unavailable", trace_id: TRACE });
    const lines = hindered.lines().filter(({ event }) => event === "window_not_answered");
    expect(lines).toMatchObject([{ tenant: own.name, lane: 0, request_id: "req-8", trace_id: TRACE }]);

    await hindered.release();
    await own.api.create("/v1/limits", { limit_id: "daily", subject_kind: "tenant", subject: "*", rule: { kind: "quota", max: "9", window: "day" } });
    await hindered.hold("leases");
    expect(await hindered.decide(coder.token, readCall(), headers("req-9"))).toMatchObject({ reason_code: "limit_unavailable" });
    const unleased = hindered.lines().filter(({ event }) => event === "limit_not_leased");
    expect(unleased).toMatchObject([{ tenant: own.name, lane: 0, request_id: "req-9", trace_id: TRACE }]);
    // Each line has the cause itself.
    for (const { detail } of [...lines, ...unleased]) expect(detail).toContain("no answer in time");
    expect(hindered.lines().filter(({ event }) => event === "lane_unavailable")).toHaveLength(1);

    await hindered.databaseIs("failing");
    expect((await hindered.get(own.admin, "/v1/agents", headers("req-11"))).status).toBe(503);
    const failed = hindered.lines().filter(({ request_id }) => request_id === "req-11");
    expect(failed).toMatchObject([{ event: "database_failed", trace_id: TRACE }]);
    await hindered.databaseIs("up");
  } finally {
    await hindered.release();
    await hindered.close();
  }
});
