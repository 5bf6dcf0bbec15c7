// The cost of one decision, and of a scrape: hops to lanes and other objects, rows written in their SQLite, statements to D1.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuthorizeRequest, LimitRequest } from "../support/api/types.gen.ts";
import { COUNTING, eventually, Gateward, NEVER_MS, readCall, writeCall } from "../support/gateward.ts";
import { answerIn, endpoint, mcpRows, post } from "../support/mcp.ts";
import { json, Upstream } from "../support/upstream.ts";

let gateward: Gateward;

beforeAll(async () => {
  gateward = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: NEVER_MS, REGISTRY_TTL_MS: NEVER_MS }, entry: COUNTING });
});
afterAll(() => gateward?.close());

interface Cost {
  hops: number;
  statements: number;
  rows: number;
}

/** The cost so far, including the decision on `body`. */
async function spent(token: string, body: AuthorizeRequest): Promise<Cost> {
  const { status, headers } = await gateward.post(token, "/v1/authorize", body);
  expect(status).toBe(200);
  return costOf(headers);
}

/** The cost so far, as an answer's headers tell it. */
function costOf(headers: Headers): Cost {
  const [hops, statements, rows] = ["hops", "statements", "rows"].map((what) => Number(headers.get(`x-spent-${what}`)));
  return { hops: hops ?? NaN, statements: statements ?? NaN, rows: rows ?? NaN };
}

const cases: [string, (at: number) => AuthorizeRequest, Cost][] = [
  ["an allowed read", () => readCall(), { hops: 1, statements: 0, rows: 1 }],
  ["an allowed write", () => writeCall(), { hops: 1, statements: 0, rows: 1 }],
  ["a denial", () => writeCall({ context: { source_trust: "unknown" } }), { hops: 1, statements: 0, rows: 1 }],
  // The decision; the approval and its entry in the index of expiries; the webhook's message and its entry in the
  // index of due messages.
  ["a pending approval", () => writeCall({ context: { source_trust: "semi_trusted_customer" } }), { hops: 1, statements: 0, rows: 5 }],
  ["a call with a request id", (at) => readCall({ request_id: `r${at}` }), { hops: 1, statements: 0, rows: 2 }],
  ["a replay", () => readCall({ request_id: "same" }), { hops: 1, statements: 0, rows: 0 }],
  ["a dry run", () => readCall({ dry_run: true }), { hops: 1, statements: 0, rows: 0 }],
];
test.each(cases)("warm, %s costs one hop, no D1, and its rows", async (_, body, expected) => {
  const tenant = await gateward.tenant();
  const { token } = await tenant.agent();
  await gateward.decide(token, readCall());
  let before = await spent(token, body(0));
  for (const at of [1, 2, 3]) {
    const after = await spent(token, body(at));
    expect({
      hops: after.hops - before.hops,
      statements: after.statements - before.statements,
      rows: after.rows - before.rows,
    }).toEqual(expected);
    before = after;
  }
});

test("warm, a call under a limit of its agent's requests costs as much as one without a limit", async () => {
  const tenant = await gateward.tenant();
  const { token } = await tenant.agent("coder", { request_rate: { capacity: 1_000, refill_per_s: 1 } });
  await gateward.decide(token, readCall());
  const before = await spent(token, readCall());
  const after = await spent(token, readCall());
  expect({ hops: after.hops - before.hops, statements: after.statements - before.statements, rows: after.rows - before.rows }).toEqual({ hops: 1, statements: 0, rows: 1 });
});

test.each<[string, Pick<LimitRequest, "subject_kind" | "subject" | "rule">, number]>([
  ["a quota of its agent", { subject_kind: "agent", subject: "coder", rule: { kind: "quota", max: "1000", window: "month" } }, 1],
  // The decision with what was used, and the reservation that a report can settle.
  ["an amount of its agent", { subject_kind: "agent", subject: "coder", rule: { kind: "amount", max: "1000", pointer: "/number", window: "month" } }, 2],
  ["a quota of the tenant, of which its lane has a lease", { subject_kind: "tenant", subject: "*", rule: { kind: "quota", max: "1000", window: "month" } }, 1],
])("warm, a call under %s costs one hop, no D1, and its rows", async (_, limit, rows) => {
  const tenant = await gateward.tenant();
  const { token } = await tenant.agent();
  await tenant.api.create("/v1/limits", { limit_id: "counted", ...limit });
  const call = writeCall();
  await gateward.decide(token, call);
  let before = await spent(token, call);
  for (const _ of [1, 2, 3]) {
    const after = await spent(token, call);
    expect({ hops: after.hops - before.hops, statements: after.statements - before.statements, rows: after.rows - before.rows }).toEqual({ hops: 1, statements: 0, rows });
    before = after;
  }
});

test("warm, a call that a window of the tenant counts costs one more hop, and no D1", async () => {
  const demo = await gateward.tenant({}, "demo");
  const { name, token } = await demo.agent("refunder", { groups: ["support"] });
  // Each is the first refund to its customer, so it passes.
  const refund = async (customer_id: string) => {
    const tool_call = { tool: "crm", action: "refund", mutates_state: true, parameters: { customer_id, amount: 20, currency: "EUR" } };
    const { status, headers, body } = await gateward.post(token, "/v1/authorize", readCall({ agent: { id: name }, tool_call, context: { source_trust: "trusted_internal_signed" } }));
    expect({ status, body }).toMatchObject({ status: 200, body: { decision: "allow" } });
    return costOf(headers);
  };
  let before = await refund("c-0");
  for (const customer of ["c-1", "c-2", "c-3"]) {
    const after = await refund(customer);
    expect({ hops: after.hops - before.hops, statements: after.statements - before.statements }).toEqual({ hops: 2, statements: 0 });
    before = after;
  }
});

test("a scrape costs three statements to D1 and no hop, for any number of lanes and tools", async () => {
  const tenant = await gateward.tenant({ lanes: 4 });
  const { token } = await tenant.apiWith(["metrics:read"]);
  const scrape = async () => {
    const { status, headers, body } = await gateward.get<string>(token, "/metrics");
    expect(status).toBe(200);
    return { cost: costOf(headers), tools: body.split("gateward_decisions_total{").length - 1 };
  };
  for (const tools of [0, 40]) {
    const series = Array.from({ length: tools }, (_, at) => `('${tenant.name}', 'decisions', '["allow","policy_allow"]', '["crm","tool_${at}"]', 1)`);
    if (tools > 0) await gateward.execute(`INSERT INTO metric_counters (tenant, metric, labels, names, count) VALUES ${series.join(", ")}`);
    const before = await scrape();
    const after = await scrape();
    expect(after.tools).toBe(tools);
    expect({ hops: after.cost.hops - before.cost.hops, statements: after.cost.statements - before.cost.statements }).toEqual({ hops: 0, statements: 3 });
  }
});

test("warm, a call that is forwarded costs one hop before its server is asked, and one afterwards", async () => {
  const hops = async () => Number((await gateward.request("/healthz").then(({ headers }) => headers)).get("x-spent-hops"));
  const upstream = await Upstream.start();
  try {
    const tools = [{ name: "record", inputSchema: { type: "object" as const } }];
    const tenant = await gateward.tenant(mcpRows("recorder", tools, { url: upstream.url("/mcp") }));
    const { token } = await tenant.agent();
    let asked = NaN;
    upstream.answer = async (exchange, response) => {
      asked = await hops();
      const { id } = JSON.parse(exchange.text) as { id: number };
      json({ jsonrpc: "2.0", id, result: { resultType: "complete", content: [] } })(exchange, response);
    };
    const call = async () => answerIn(await post(endpoint(gateward, "recorder"), token, "tools/call", { name: "record", arguments: {} }));
    await call();
    for (const _ of [1, 2, 3]) {
      // The outcome of the previous call may still be on its way.
      await new Promise((resolve) => setTimeout(resolve, 200));
      const before = await hops();
      expect((await call()).result).toMatchObject({ content: [] });
      expect(asked - before).toBe(1);
      await eventually("the outcome is told", async () => (await hops()) - before === 2);
    }
  } finally {
    await upstream.close();
  }
});

test("a list with a tool that cannot be registered reads D1 once in some seconds, and not each time", async () => {
  const statements = async () => Number((await gateward.request("/healthz")).headers.get("x-spent-statements"));
  const upstream = await Upstream.start();
  try {
    const tool = { name: "record", inputSchema: { type: "object" as const } };
    const tenant = await gateward.tenant(mcpRows("lister", [tool], { url: upstream.url("/mcp") }));
    const { token } = await tenant.agent();
    const unusable = { name: "unusable", inputSchema: { type: "object", $ref: "https://example.com/schema" } };
    upstream.answer = (exchange, response) => {
      const { id } = JSON.parse(exchange.text) as { id: number };
      json({ jsonrpc: "2.0", id, result: { resultType: "complete", tools: [tool, unusable] } })(exchange, response);
    };
    const list = async () => {
      const { result } = await answerIn(await post(endpoint(gateward, "lister"), token, "tools/list"));
      expect((result?.tools as { name: string }[]).map(({ name }) => name)).toEqual(["record"]);
    };
    await list();
    const before = await statements();
    const lists = 20;
    for (let at = 0; at < lists; at++) await list();
    // The reads are in the background.
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await statements()) - before).toBeLessThan(lists / 2);
  } finally {
    await upstream.close();
  }
});
