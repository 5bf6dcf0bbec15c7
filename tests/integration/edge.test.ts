// What the worker answers before any lane is asked: routes, bounds, credentials, bodies.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeRequest, AuthorizeResponse, Problem } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import { type Changes, Gateward, MAC_KEY, NEVER_MS, readCall, type Tenant, type TestAgent } from "../support/gateward.ts";
import { mintAgentToken, sign, withWrongMac } from "../support/tokens.ts";

let gateward: Gateward;
let tenant: Tenant;
let agent: TestAgent;

beforeAll(async () => {
  gateward = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: NEVER_MS } });
  tenant = await gateward.tenant();
  agent = await tenant.agent();
});
afterAll(() => gateward?.close());

/** Checks the parts that all problems have in common. */
function expectProblem(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
  expect(reply.headers.get("content-type")).toMatch(/^application\/problem\+json/);
  expect(reply.body).toMatchObject({ type: `https://gateward.dev/problems/${code}`, status });
  expect(reply.body.title).not.toBe("");
  expect(reply.body.detail).not.toBe("");
  expect(reply.headers.get("x-request-id")).toBeTruthy();
}

function json(token: string, body: string): RequestInit {
  return {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
  };
}

describe("routes", () => {
  test("healthz answers without a credential", async () => {
    const reply = await gateward.request("/healthz");
    expect(reply).toMatchObject({ status: 200, body: { status: "ok" } });
  });

  test("readyz answers when D1 and a lane really do", async () => {
    expect((await gateward.request("/readyz")).status).toBe(200);
  });

  test("version tells commit, bundle digest and how many policies and tools it has", async () => {
    const reply = await gateward.request<Record<string, unknown>>("/version");
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      commit: expect.any(String),
      bundle: expect.stringMatching(/^[0-9a-f]{64}$/),
      policies: expect.any(Number),
      tools: expect.any(Number),
    });
    expect(reply.body.policies).toBeGreaterThan(0);
    expect(reply.body.tools).toBeGreaterThan(0);
  });

  const wrong: [string, string, string, number, string, string | null][] = [
    ["an unknown path", "GET", "/v1/nothing", 404, "not_found", null],
    ["the root", "GET", "/", 404, "not_found", null],
    ["a path with a slash too many", "POST", "/v1/authorize/", 404, "not_found", null],
    ["GET of authorize", "GET", "/v1/authorize", 405, "method_not_allowed", "POST"],
    ["DELETE of decisions", "DELETE", "/v1/decisions", 405, "method_not_allowed", "GET, HEAD"],
    ["PUT of a decision", "PUT", "/v1/decisions/0", 405, "method_not_allowed", "GET"],
    ["POST to receipts", "POST", "/v1/receipts", 405, "method_not_allowed", "GET"],
    ["POST to healthz", "POST", "/healthz", 405, "method_not_allowed", "GET"],
  ];
  test.each(wrong)("%s is refused", async (_, method, path, status, code, allow) => {
    const reply = await gateward.request<Problem>(path, {
      method,
      headers: { authorization: `Bearer ${tenant.admin}` },
    });
    expectProblem(reply, status, code);
    if (allow === null) return;
    expect(reply.headers.get("allow")).toContain(allow);
    expect(reply.body.detail).toBe(`this path only accepts ${reply.headers.get("allow")}`);
  });

  test.each(["/healthz", "/readyz", "/version", "/openapi.json", "/v1/agents", "/v1/agents/coder", "/v1/agents/nobody", "/v1/decisions", "/v1/nothing"])(
    "HEAD of %s has the status and headers of GET, and no body",
    async (path) => {
      const ask = async (method: string) => {
        const headers = { authorization: `Bearer ${tenant.admin}`, "x-request-id": "same" };
        const response = await fetch(new URL(path, gateward.url), { method, headers });
        // Node ends the connection after a HEAD.
        const { date, connection, ...fields } = Object.fromEntries(response.headers);
        return { status: response.status, fields, text: await response.text() };
      };
      const [got, head] = [await ask("GET"), await ask("HEAD")];
      expect(got.fields["content-length"]).toBe(String(Buffer.byteLength(got.text)));
      expect(head).toEqual({ ...got, text: "" });
    },
  );

  test("HEAD of what has no GET is refused", async () => {
    for (const path of ["/v1/authorize", "/v1/agents/coder/freeze"]) {
      const { status, headers } = await fetch(new URL(path, gateward.url), { method: "HEAD" });
      expect({ status, allow: headers.get("allow") }).toEqual({ status: 405, allow: "POST" });
    }
  });

  test("every answer has its own request id", async () => {
    const ids = new Set<string | null>();
    for (const path of ["/healthz", "/version", "/v1/nothing", "/v1/decisions"]) {
      ids.add((await gateward.request(path)).headers.get("x-request-id"));
    }
    expect(ids.size).toBe(4);
    expect(ids).not.toContain(null);
  });

  test("a caller's own request id is kept if it is a plain token", async () => {
    for (const [given, kept] of [["trace-1.2_3", true], ["with space", false], ["x".repeat(65), false]] as const) {
      const reply = await gateward.request("/healthz", { headers: { "x-request-id": given } });
      expect({ given, kept: reply.headers.get("x-request-id") === given }).toEqual({ given, kept });
    }
  });

  test("a problem names the request that its header names", async () => {
    const reply = await gateward.request<Problem>("/v1/nothing");
    expect(reply.body.request_id).toBe(reply.headers.get("x-request-id"));
  });
});

describe("credentials", () => {
  const secret = "s".repeat(43);
  const shapes: [string, () => string | null][] = [
    ["no credential", () => null],
    ["another scheme", () => `Basic ${agent.token}`],
    ["no token after Bearer", () => "Bearer "],
    ["a token of another form", () => "Bearer secret-token"],
    ["a token with a wrong MAC", () => `Bearer ${withWrongMac(agent.token)}`],
    ["a token with another agent's name", () => `Bearer ${agent.token.replace(".coder.", ".other.")}`],
    ["a token signed by another key", () => `Bearer ${mintAgentToken(MAC_KEY.replace("a", "b"), tenant.name, "coder").token}`],
    ["a token with a lane in another spelling", () => `Bearer ${sign(`gw_${tenant.name}.coder.00.k1.${secret}`, MAC_KEY)}`],
    ["a token of a lane that cannot be", () => `Bearer ${sign(`gw_${tenant.name}.coder.4096.k1.${secret}`, MAC_KEY)}`],
    ["a token of a name that cannot be", () => `Bearer ${sign(`gw_${tenant.name}.Coder.0.k1.${secret}`, MAC_KEY)}`],
    ["a very long token", () => `Bearer gw_${"a".repeat(5_000)}`],
  ];
  test.each(shapes)("%s is 401 and reaches no lane", async (_, authorization) => {
    const before = await gateward.laneIds();
    const header = authorization();
    const reply = await gateward.request<Problem>("/v1/authorize", {
      method: "POST",
      headers: { "content-type": "application/json", ...(header === null ? {} : { authorization: header }) },
      body: JSON.stringify(readCall()),
    });
    expectProblem(reply, 401, "unauthorized");
    expect(reply.headers.get("www-authenticate")).toMatch(/^Bearer/);
    expect(await gateward.laneIds()).toEqual(before);
  });

  test("a forged token for a tenant that exists creates no lane of it", async () => {
    const quiet = await gateward.tenant();
    const quietAgent = await quiet.agent();
    const before = await gateward.laneIds();
    await gateward.post(withWrongMac(quietAgent.token), "/v1/authorize", readCall());
    expect(await gateward.laneIds()).toEqual(before);
    await gateward.decide(quietAgent.token, readCall());
    expect(await gateward.laneIds()).toHaveLength(before.length + 1);
  });

  const administrators: [string, string][] = [
    ["GET", "/v1/receipts?lane=0&from=1"],
    ["GET", "/v1/receipts/rcpt_0_1"],
    ["POST", "/v1/receipts/verify"],
  ];
  test.each(administrators)("%s %s is closed to an agent's token", async (method, path) => {
    const reply = await gateward.request<Problem>(path, {
      ...(method === "POST" ? json(agent.token, '{"lane":0,"from":1,"to":1}') : {}),
      method,
      headers: { authorization: `Bearer ${agent.token}`, "content-type": "application/json" },
    });
    expectProblem(reply, 403, "forbidden");
  });

  test("an administrator's token decides nothing", async () => {
    expectProblem(await gateward.post(tenant.admin, "/v1/authorize", readCall()), 403, "forbidden");
  });

  test("an administrator's wrong secret is 401, though its MAC holds", async () => {
    const key = tenant.admin.split(".")[1];
    const reply = await gateward.get<Problem>(sign(`gwa_${tenant.name}.${key}.${secret}`, MAC_KEY), "/v1/decisions");
    expectProblem(reply, 401, "unauthorized");
  });
});

describe("bodies", () => {
  const missing = ["agent", "agent.id", "agent.environment", "tool_call", "tool_call.tool", "tool_call.action",
    "tool_call.mutates_state", "tool_call.parameters", "context", "context.source_trust",
    "context.contains_sensitive_data"];
  test.each(missing)("without `%s` is malformed, and the answer says so", async (path) => {
    const body: Record<string, unknown> = structuredClone({ ...readCall() });
    const [section, field] = path.split(".") as [string, string?];
    if (field === undefined) delete body[section];
    else delete (body[section] as Record<string, unknown>)[field];
    const reply = await gateward.post<Problem>(agent.token, "/v1/authorize", body);
    expectProblem(reply, 400, "malformed_request");
    expect(reply.body.detail).toContain(`\`${path}\``);
  });

  const good = JSON.stringify(readCall());
  const wrong: [string, string, string, string][] = [
    ["no JSON", "hello", "malformed_request", "line 1 column 1"],
    ["an empty body", "", "malformed_request", "line 1 column 0"],
    ["half a body", good.slice(0, -20), "malformed_request", "line 1"],
    ["text after the body", `${good} x`, "malformed_request", "trailing"],
    ["an array", "[]", "malformed_request", "an array"],
    ["a number for a section", good.replace(/"agent":{[^}]*}/, '"agent":7'), "malformed_request", "`agent`"],
    ["a number for a name", good.replace('"coder"', "7"), "malformed_request", "`agent.id`"],
    ["text for a flag", good.replace('"mutates_state":false', '"mutates_state":"no"'), "malformed_request", "`tool_call.mutates_state`"],
    ["an array of parameters", good.replace('"parameters":{"repo":"acme/shop"}', '"parameters":[]'), "malformed_request", "`tool_call.parameters`"],
    ["a server's name that cannot be", good.replace('"github"', '"GitHub!"'), "malformed_request", "`tool_call.tool`"],
    ["a tool's name that cannot be", good.replace('"list_issues"', '"list issues"'), "malformed_request", "`tool_call.action`"],
    ["an empty request id", good.replace(/}$/, ',"request_id":""}'), "malformed_request", "`request_id`"],
    ["a long request id", good.replace(/}$/, `,"request_id":"${"r".repeat(129)}"}`), "malformed_request", "`request_id`"],
    ["a timestamp that is none", good.replace(/}$/, ',"timestamp":"yesterday"}'), "malformed_request", "`timestamp`"],
    ["a nonce without a timestamp", good.replace(/}$/, ',"nonce":"n1"}'), "malformed_request", "`timestamp`"],
    ["text for dry_run", good.replace(/}$/, ',"dry_run":"true"}'), "malformed_request", "`dry_run`"],
    ["a key that stands twice", good.replace('{"repo":', '{"repo":"evil","repo":'), "input_invalid", "`repo`"],
    ["an integer beyond 2^53", good.replace('{"repo":', '{"n":9007199254740993,"repo":'), "input_invalid", "9007199254740993"],
    ["a lone surrogate", good.replace("acme/shop", "\\ud800"), "malformed_request", "line 1"],
  ];
  test.each(wrong)("%s is refused, and the answer says where", async (_, body, code, where) => {
    const reply = await gateward.request<Problem>("/v1/authorize", json(agent.token, body));
    expectProblem(reply, 400, code);
    expect(reply.body.detail).toContain(where);
  });

  test("bytes that are no UTF-8 are refused", async () => {
    const bytes = Buffer.from(good);
    bytes[good.indexOf("acme")] = 0xff;
    const reply = await gateward.request<Problem>("/v1/authorize", { ...json(agent.token, ""), body: bytes });
    expectProblem(reply, 400, "malformed_request");
  });

  const types: [string, string | null, boolean][] = [
    ["none", null, false],
    ["text/plain", "text/plain", false],
    ["a form", "application/x-www-form-urlencoded", false],
    ["a longer name", "application/jsonp", false],
    ["application/json", "application/json", true],
    ["application/json with a charset", "application/json; charset=utf-8", true],
    ["another case", "Application/JSON", true],
  ];
  test.each(types)("content type: %s", async (_, type, accepted) => {
    const headers = { authorization: `Bearer ${agent.token}`, ...(type === null ? {} : { "content-type": type }) };
    // A body of bytes: fetch gives text a content type of its own.
    const reply = await gateward.request<Problem>("/v1/authorize", { method: "POST", headers, body: Buffer.from(good) });
    if (accepted) expect(reply.status).toBe(200);
    else expectProblem(reply, 415, "unsupported_media_type");
  });

  test("unknown fields are ignored, and null is absent", async () => {
    const body = JSON.parse(good);
    const answer = await gateward.decide(agent.token, {
      ...body,
      novelty: { a: [1] },
      agent: { ...body.agent, tenant: "other" },
      request_id: null,
      user: null,
    });
    expect(answer.decision).toBe("allow");
  });

  test("no problem tells anything internal", async () => {
    const reply = await gateward.request<Problem>("/v1/authorize", json(agent.token, '{"agent":'));
    expect(JSON.stringify(reply.body)).not.toMatch(/\.rs|panicked|wasm|sqlite|stack/i);
  });
});

describe("sizes", () => {
  const parameters = (value: string) => JSON.stringify(readCall()).replace(/"parameters":{[^}]*}/, `"parameters":{"value":${value}}`);
  const nested = (depth: number) => parameters("[".repeat(depth) + "]".repeat(depth));
  const cases: [string, () => string, number, string][] = [
    ["a body of 1 MB", () => parameters(`"${"x".repeat(1_000_000)}"`), 413, "body_too_large"],
    ["a string of 5 MB", () => parameters(`"${"x".repeat(5_000_000)}"`), 413, "body_too_large"],
    ["10,000 nested arrays", () => nested(10_000), 400, "malformed_request"],
    ["nesting just beyond the bound", () => nested(31), 400, "malformed_request"],
    ["100,000 nested arrays", () => nested(100_000), 400, "malformed_request"],
    ["10,000 nested objects", () => parameters('{"a":'.repeat(10_000) + "1" + "}".repeat(10_000)), 400, "malformed_request"],
    ["10,001 values", () => parameters(`[${Array(10_001).fill("0").join(",")}]`), 400, "malformed_request"],
    ["200 KB of opening brackets", () => "[".repeat(200_000), 400, "malformed_request"],
  ];
  test.each(cases)("%s gets a clear error, and the worker goes on", async (_, body, status, code) => {
    expectProblem(await gateward.request<Problem>("/v1/authorize", json(agent.token, body())), status, code);
    expect((await gateward.decide(agent.token, readCall())).decision).toBe("allow");
  });

  test("a body that says no length is refused as soon as it is too large", async () => {
    const endless = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < 16; at += 1) controller.enqueue(new Uint8Array(65_536).fill(0x20));
        controller.close();
      },
    });
    const reply = await gateward.request<Problem>("/v1/authorize", { ...json(agent.token, ""), body: endless, duplex: "half" });
    expectProblem(reply, 413, "body_too_large");
  });

  // A call exactly at a bound must be decided, within the stack of Wasm. A call with one more must
  // be refused. list_issues is described with typed arguments, so these go to tools that only the
  // registry knows. The numbers are those of worker/core/src/bounds.rs.
  const LONGEST_TOOL = "t".repeat(128);
  const call = (value: unknown, changes: Changes = {}) =>
    readCall({ ...changes, tool_call: { action: LONGEST_TOOL, parameters: { value }, ...changes.tool_call } });
  const nest = (levels: number, wrap: (inner: unknown) => unknown, inner: unknown): unknown =>
    levels === 0 ? inner : nest(levels - 1, wrap, wrap(inner));
  const values = (value: unknown): number =>
    1 + (typeof value === "object" && value !== null ? Object.values(value).reduce((sum: number, inner) => sum + values(inner), 0) : 0);
  const others = values(call([]));
  const bytes = JSON.stringify(call("")).length;

  const bounds: [string, (excess: 0 | 1) => AuthorizeRequest][] = [
    ["32 levels of arrays", (excess) => call(nest(28 + excess, (inner) => [inner], []))],
    ["32 levels of objects", (excess) => call(nest(28 + excess, (a) => ({ a }), {}))],
    ["10,000 values", (excess) => call(Array(10_000 - others + excess).fill(1))],
    ["10,000 values, most of them records", (excess) => call(Array(10_000 - others + excess).fill({}))],
    ["a body of 256 KiB", (excess) => call("x".repeat(262_144 - bytes + excess))],
    ["a tool's name of 128 bytes", (excess) => call(1, excess ? { tool_call: { action: `${LONGEST_TOOL}t` } } : {})],
    ["a resource of 2,048 bytes", (excess) => call(1, { tool_call: { resource: "r".repeat(2_048 + excess) } })],
    ["a request id of 128 bytes", (excess) => call(1, { request_id: "q".repeat(128 + excess) })],
    ["a user id of 256 bytes", (excess) => call(1, { user: { id: "u".repeat(256 + excess) } })],
    ["a run id of 256 bytes", (excess) => call(1, { trace: { run_id: "n".repeat(256 + excess) } })],
  ];
  test.each(bounds)("%s is decided, and one more is refused", async (_, body) => {
    const roomy = await gateward.tenant({ tools: [{ server: "github", tool: LONGEST_TOOL, mutates: false, risk: "low" }] });
    const { token } = await roomy.agent();
    const reply = await gateward.request<AuthorizeResponse>("/v1/authorize", json(token, JSON.stringify(body(0))));
    expect({ status: reply.status, decision: reply.body.decision, reason: reply.body.reason_code }).toEqual({
      status: 200,
      decision: "allow",
      reason: "policy_allow",
    });
    const refused = await gateward.request<Problem>("/v1/authorize", json(token, JSON.stringify(body(1))));
    expect([400, 413]).toContain(refused.status);
  });

  test("one argument with an endless name and many values is answered in short", async () => {
    const name = "n".repeat(130_000);
    const body = JSON.stringify(readCall({ tool_call: { parameters: { [name]: Array(9_000).fill(1) } } }));
    const reply = await gateward.request<AuthorizeResponse>("/v1/authorize", json(agent.token, body));
    expect(reply.status).toBe(200);
    expect(JSON.stringify(reply.body).length).toBeLessThan(2_000);
  });
});
