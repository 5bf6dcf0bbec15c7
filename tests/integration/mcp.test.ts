// `/mcp/{server}` on the wire: refusals, and changes of messages. Lists are in mcp-lists.test.ts, answers in
// mcp-answers.test.ts, clients in mcp-clients.test.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually, type Tenant } from "../support/gateward.ts";
import { type Answered, answerIn, PREFIX } from "../support/mcp.ts";
import { asked, call, type Fields, inSession, outcome, Recorder, request, results, stateless, VERSION, type Wire } from "../support/recorder.ts";
import { type Exchange, html, json, type Upstream } from "../support/upstream.ts";

let recorder: Recorder;
let upstream: Upstream;
let tenant: Tenant;

beforeAll(async () => {
  recorder = await Recorder.start();
  ({ upstream, tenant } = recorder);
});
afterAll(() => recorder?.close());
beforeEach(() => recorder.reset());

describe("what is malformed is answered, and not forwarded", () => {
  test.each<[string, unknown, Wire, string]>([
    ["invalid JSON", "{", {}, "400 -32700"],
    ["nothing", "", {}, "400 -32700"],
    ["JSON that is no message", "{}", {}, "400 -32600"],
    ["neither a request nor an answer", { jsonrpc: "2.0", id: 1 }, {}, "200 -32600"],
    ["an id of null", request("ping", undefined, null), {}, "400 -32600"],
    ["an id of a fraction", request("ping", undefined, 1.5), {}, "400 -32600"],
    ["an id of an array", request("ping", undefined, [1]), {}, "400 -32600"],
    ["an id of an object", request("ping", undefined, {}), {}, "400 -32600"],
    ["an id beyond 2^53", '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', {}, "400 -32600"],
    ["parameters that are an array", request("ping", [1]), {}, "200 -32602"],
    ["a key that stands twice", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"record","name":"change"}}', {}, "200 -32600"],
    ["a key that stands twice deep in the arguments", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"record","arguments":{"a":[{"b":1,"b":2}]}}}', {}, "200 -32600"],
    ["an integer beyond 2^53 in the arguments", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"record","arguments":{"a":9007199254740993}}}', {}, "200 -32600"],
    ["an argument of 1 MB", call("record", { arguments: { text: "x".repeat(1_000_000) } }), {}, "413 -31413"],
    ["a message of 64 KiB that is no call", request("ping", { text: "x".repeat(65_536) }), {}, "200 -32600"],
    ["a method that does not exist", request("tools/destroy"), {}, "200 -32601"],
    ["a notification that does not exist", { jsonrpc: "2.0", method: "notifications/strange" }, {}, "400 -32601"],
    ["a method that is refused by name", request("tasks/get", { taskId: "1" }), {}, "200 -32601"],
    ["a method of the other era", request("server/discover", {}), {}, "200 -32601"],
    ["a call that is a notification", { jsonrpc: "2.0", method: "tools/call", params: { name: "record" } }, {}, "400 -32600"],
    ["a notification that is a request", request("notifications/initialized"), {}, "200 -32600"],
    ["a call of nothing", request("tools/call", {}), {}, "200 -32602"],
    ["a call of an action", call("resources/read"), {}, "200 -32602"],
    ["arguments that are no object", call("record", { arguments: [1] }), {}, "200 -32602"],
    ["a resource without URI", request("resources/read", {}), {}, "200 -32602"],
    ["a claim that cannot be read", call("record", { _meta: { [`${PREFIX}run_id`]: 5 } }), {}, "200 -31400"],
    ["an answer outside of a session", { jsonrpc: "2.0", id: 1, result: {} }, {}, "400 -32600"],
    ["an unknown revision", request("ping"), { headers: { "mcp-protocol-version": "2025-01-01" } }, "400 -32000"],
    ["a batch in a revision without", [request("ping")], { headers: { "mcp-protocol-version": "2025-06-18" } }, "400 -32600"],
    ["an empty batch", [], {}, "400 -32600"],
    ["a body of another type", request("ping"), { headers: { "content-type": "text/plain" } }, "415 -31415"],
    ["a client that takes no streams", request("ping"), { headers: { accept: "application/json" } }, "406 -32000"],
    ["a page of another origin", request("ping"), { headers: { origin: "http://evil.example.com" } }, "403 -32600"],
    ["no credential", request("ping"), { token: null }, "401 -31401"],
    ["a session that was made up", request("ping"), { headers: { "mcp-session-id": "own-id" } }, "404 -32001"],
    ["another HTTP method", request("ping"), { method: "PUT" }, "405 -32000"],
    ["a stream without a session", undefined, { method: "GET" }, "400 -32000"],
    ["a stream that the client does not take", undefined, { method: "GET", headers: { accept: "application/json" } }, "406 -32000"],
    ["a stream in the revision without", undefined, { method: "GET", headers: { "mcp-protocol-version": VERSION } }, "405 -32000"],
    ["a session's end without a session", undefined, { method: "DELETE" }, "400 -32000"],
  ])("%s", async (_, body, wire, expected) => {
    const response = await recorder.send(body, wire);
    expect(response.headers.get("content-type")).toBe("application/json");
    if (response.status === 401) expect(response.headers.get("www-authenticate")).toBe('Bearer realm="gateward"');
    // An error of one message is an answer to it.
    if (response.status === 200) expect(await response.clone().json()).toMatchObject({ id: 1 });
    expect(await outcome(response)).toBe(expected);
    expect(upstream.received).toEqual([]);
  });

  test.each(["GET", "DELETE"])("an unknown revision, of a session's %s", async (method) => {
    const headers = inSession(await recorder.session());
    for (const version of ["2024-11-05", "x"]) {
      const refused = await recorder.send(undefined, { method, headers: { ...headers, "mcp-protocol-version": version } });
      expect(await outcome(refused)).toBe("400 -32000");
    }
    expect(upstream.received).toEqual([]);
    upstream.answer = (_, response) => response.writeHead(405).end();
    for (const version of ["2025-03-26", null]) await recorder.send(undefined, { method, headers: { ...headers, "mcp-protocol-version": version } });
    expect(upstream.received).toHaveLength(2);
  });

  test("an administrator's credential", async () => {
    expect(await outcome(await recorder.send(request("ping"), { token: tenant.admin }))).toBe("403 -31403");
    expect(upstream.received).toEqual([]);
  });

  const parameter = { name: "record", arguments: { region: "eu", n: 42 } };
  test.each<[string, [unknown, Fields], string]>([
    ["no version", stateless("tools/list", {}, { "mcp-protocol-version": null }), "400 -32020"],
    ["another version", stateless("tools/list", {}, { "mcp-protocol-version": "2025-11-25" }), "400 -32020"],
    ["no method", stateless("tools/list", {}, { "mcp-method": null }), "400 -32020"],
    ["another method", stateless("tools/list", {}, { "mcp-method": "tools/call" }), "400 -32020"],
    ["a method in capitals", stateless("tools/list", {}, { "mcp-method": "TOOLS/LIST" }), "400 -32020"],
    ["no name", stateless("tools/call", parameter, { "mcp-name": null }), "400 -32020"],
    ["another name", stateless("tools/call", parameter, { "mcp-name": "change" }), "400 -32020"],
    ["a name that is no base64", stateless("tools/call", parameter, { "mcp-name": "=?base64?cmVjb3Jk!?=" }), "400 -32020"],
    ["another argument", stateless("tools/call", parameter, { "mcp-param-region": "us" }), "400 -32020"],
    ["an argument that is no base64", stateless("tools/call", parameter, { "mcp-param-region": "=?base64?ZXU?=" }), "400 -32020"],
    ["no envelope", [request("tools/list"), { "mcp-protocol-version": VERSION, "mcp-method": "tools/list" }], "400 -32602"],
    ["an unknown version", stateless("tools/list", { _meta: { "io.modelcontextprotocol/protocolVersion": "2027-01-01" } }, { "mcp-protocol-version": "2027-01-01" }), "400 -32022"],
    ["a method that was taken out", stateless("ping"), "404 -32601"],
    ["a method that does not exist", stateless("tools/destroy"), "404 -32601"],
    ["a state that was made up", stateless("tools/call", { ...parameter, requestState: "state" }), "200 -32602"],
    ["answers beside an approval, which is for the call without", stateless("tools/call", { ...parameter, inputResponses: { k: {} }, _meta: { [`${PREFIX}approval_id`]: "a" } }), "200 -32602"],
  ])("in the stateless revision: %s", async (_, sent, expected) => {
    expect(await outcome(await recorder.sendStateless(sent))).toBe(expected);
    expect(upstream.received).toEqual([]);
  });

  test("an agent over its rate, which is told when to try again", async () => {
    const { token } = await tenant.agent("hasty", { request_rate: { capacity: 1, refill_per_s: 0.01 } });
    expect((await recorder.send(request("ping"), { token })).headers.get("ratelimit")).toMatch(/^"rate-hasty";r=0;t=\d+$/);
    const refused = await recorder.send(call("record"), { token });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refused.headers.get("ratelimit")).toMatch(/^"rate-hasty";r=0;t=\d+$/);
    expect((await answerIn(refused)).error).toMatchObject({
      code: -31429,
      message: expect.stringMatching(/^Too many requests in a short time: /),
      data: { code: "rate_limited", retry_after_s: expect.any(Number), violated_limits: [{ limit_id: "rate-hasty", kind: "rate", max: "1", remaining: "0" }] },
    });
    expect(refused.status).toBe(200);
    expect(upstream.received).toHaveLength(1);
  });

  /** Registers the tool with a schema that maps `region` and `n`, but not `query`. */
  async function mapped(): Promise<void> {
    const properties = { region: { type: "string", "x-mcp-header": "Region" }, n: { type: "integer", "x-mcp-header": "N" }, query: {} };
    await recorder.server("mapped");
    await tenant.register({ tools: [{ server: "mapped", tool: "record", mutates: false, risk: "low", input_schema: { type: "object", properties } }] });
    await recorder.forget();
  }

  test.each<[string, Fields]>([
    ["the value of another argument", { "mcp-param-region": "us" }],
    ["no argument of the schema's mapping", { "mcp-param-query": "us" }],
    ["no argument at all, beside one that agrees", { "mcp-param-region": "eu", "mcp-param-tenant": "eu" }],
  ])("a header that mirrors %s", async (_, headers) => {
    await mapped();
    const arguments_ = { region: "eu", query: "us" };
    const response = await recorder.sendStateless(stateless("tools/call", { name: "record", arguments: arguments_ }, headers), { server: "mapped" });
    expect(response.status).toBe(400);
    expect((await answerIn(response)).error).toMatchObject({ code: -32020, data: { [`${PREFIX}reason_code`]: "header_mismatch" } });
    expect(upstream.received).toEqual([]);
  });

  test("a subscription that lists more names than the agent has requests left", async () => {
    const { token } = await tenant.agent("subscriber", { request_rate: { capacity: 10, refill_per_s: 0.01 } });
    const listen = (count: number) => {
      const uris = Array.from({ length: count }, (_, at) => `a://${at}`);
      return recorder.sendStateless(stateless("subscriptions/listen", { notifications: { resourceSubscriptions: uris } }), { token });
    };
    upstream.answer = results({ resultType: "complete" });
    expect((await listen(7)).headers.get("ratelimit")).toMatch(/^"rate-subscriber";r=3;t=\d+$/);
    expect(await outcome(await listen(4))).toBe("200 -31429");
    expect(upstream.received).toHaveLength(1);
  });

  test("headers that agree are passed on", async () => {
    await mapped();
    const sent = stateless("tools/call", parameter, { "mcp-param-region": "=?base64?ZXU=?=", "mcp-param-n": "42.0" });
    upstream.answer = results({ resultType: "complete", content: [] });
    expect((await recorder.sendStateless(sent, { server: "mapped" })).status).toBe(200);
    expect(upstream.received).toHaveLength(1);
    expect(upstream.received[0]?.headers).toMatchObject({ "mcp-param-region": "=?base64?ZXU=?=", "mcp-param-n": "42.0", "mcp-name": "record", "mcp-protocol-version": VERSION });
  });
});

describe("what is forwarded", () => {
  test.each<[string, [unknown, Fields]]>([
    ["a list", stateless("tools/list", {}, { "mcp-name": "change", "mcp-param-secret": "x" })],
    ["reading a resource", stateless("resources/read", { uri: "a://b" }, { "mcp-param-secret": "x" })],
  ])("has no headers that mirror nothing of the body: %s", async (_, sent) => {
    upstream.answer = results({ resultType: "complete", tools: [], contents: [] });
    expect((await recorder.sendStateless(sent)).status).toBeLessThan(400);
    const [{ headers }] = upstream.received as [Exchange];
    expect([headers["mcp-name"], headers["mcp-param-secret"]]).toEqual([asked(upstream.received[0] as Exchange).params.uri, undefined]);
  });

  test("keeps its bytes", async () => {
    const body = '{ "params":{"arguments":{"z":1.50,"a":"\\u00e9"},"name":"record"},"id":"x" ,"method":"tools/call","jsonrpc":"2.0"}';
    expect((await recorder.send(body)).status).toBe(200);
    expect(upstream.received[0]?.text).toBe(body);
  });

  test("has nothing of what Gateward alone is told, and no tasks", async () => {
    const _meta = { [`${PREFIX}run_id`]: "r", [`${PREFIX}user_id`]: "u", progressToken: 7 };
    await recorder.send(call("record", { _meta, task: { ttl: 5 } }));
    expect(asked(upstream.received[0] as Exchange).params).toEqual({ name: "record", arguments: {}, _meta: { progressToken: 7 } });
  });

  test("lacks what a policy redacts, at any depth and in headers, and says so", async () => {
    await recorder.redacting();
    const properties = { customer_id: { "x-mcp-header": "Customer" }, contact: { properties: { email: { "x-mcp-header": "Mail" } } } };
    await tenant.register({ tools: [{ server: "crm", tool: "get_customer", mutates: false, risk: "medium", input_schema: { properties } }] });
    await recorder.forget();
    upstream.answer = results({ resultType: "complete", content: [] });
    const params = {
      name: "get_customer",
      arguments: { customer_id: "c-1", contact: { email: "a@example.com", phone: "555" } },
      _meta: { [`${PREFIX}contains_sensitive_data`]: true },
    };
    const sent = stateless("tools/call", params, { "mcp-param-mail": "a@example.com", "mcp-param-customer": "c-1" });
    const { result } = await answerIn(await recorder.sendStateless(sent, { server: "crm" }));
    expect(result?._meta).toEqual({ [`${PREFIX}decision_id`]: expect.any(String), [`${PREFIX}redacted_fields`]: ["email", "phone"] });
    const [got] = upstream.received as [Exchange];
    expect(asked(got).params.arguments).toEqual({ customer_id: "c-1", contact: {} });
    expect(got.headers["mcp-param-customer"]).toBe("c-1");
    expect(`${got.rawHeaders.join()} ${got.text}`).not.toMatch(/a@example\.com|555/);
  });

  test("lacks the same of what the client answers to a server that asked", async () => {
    await recorder.redacting();
    upstream.answer = results({ resultType: "complete", content: [] });
    const inputResponses = { k: { action: "accept", content: { name: "n", contact: [{ email: "b@example.com" }] } } };
    const params = { name: "get_customer", arguments: { customer_id: "c-1" }, inputResponses, _meta: { [`${PREFIX}contains_sensitive_data`]: true } };
    expect((await answerIn(await recorder.sendStateless(stateless("tools/call", params), { server: "crm" }))).result).toMatchObject({ resultType: "complete" });
    expect(asked(upstream.received[0] as Exchange).params.inputResponses).toEqual({ k: { action: "accept", content: { name: "n", contact: [{}] } } });
  });

  test("of a batch is what is allowed; the answers come together", async () => {
    upstream.answer = ({ text }, response) => {
      const batch = JSON.parse(text) as { id: unknown }[];
      json(batch.map(({ id }) => ({ jsonrpc: "2.0", id, result: { content: [] } })))({} as Exchange, response);
    };
    const batch = [call("record"), { ...call("closed"), id: 2 }, { ...request("tools/destroy"), id: 3 }, { jsonrpc: "2.0", method: "notifications/strange" }];
    const response = await recorder.send(batch, { headers: { "mcp-protocol-version": "2025-03-26" } });
    expect(response.status).toBe(200);
    const answers = (await response.json()) as (Answered & { id: number })[];
    expect(new Map(answers.map(({ id, result, error }) => [id, error?.code ?? result?.isError ?? "result"]))).toEqual(new Map<number, unknown>([[1, "result"], [2, true], [3, -32601]]));
    expect(JSON.parse(upstream.received[0]?.text ?? "")).toEqual([call("record")]);
    expect(upstream.received).toHaveLength(1);
  });
});

test("a notification over the agent's rate is dropped: an error would end the session of some clients", async () => {
  const { token } = await tenant.agent("progressing", { request_rate: { capacity: 1, refill_per_s: 0.001 } });
  expect((await recorder.send(request("ping"), { token })).status).toBe(200);
  upstream.received.length = 0;
  const progress = { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } };
  const dropped = await recorder.send(progress, { token });
  expect([dropped.status, await dropped.text()]).toEqual([202, ""]);
  expect(dropped.headers.get("ratelimit")).toMatch(/^"rate-progressing";r=0;/);
  expect(upstream.received).toEqual([]);
});

test("messages that call nothing are charged and counted", async () => {
  const { token, name } = await tenant.agent("chatty", { request_rate: { capacity: 4, refill_per_s: 0.001 } });
  upstream.answer = results({});
  const answers = [];
  for (let sent = 0; sent < 5; sent++) answers.push(await outcome(await recorder.send(request("ping"), { token })));
  expect(answers).toEqual(["200 -", "200 -", "200 -", "200 -", "200 -31429"]);
  const counted = async () => {
    const events = await tenant.records<{ kind: string; source: string; count: number }>("audit_events");
    return events.filter(({ kind, source }) => kind === "message_passed" && source === name);
  };
  await eventually("all of them are counted", async () => (await counted()).reduce((total, { count }) => total + count, 0) === 4);
});

describe("what is denied", () => {
  // Attack: an agent that may call nothing delivers text to a server in messages that call no tool.
  test("is everything that an agent without grants sends to a server; nothing reaches it", async () => {
    const { name, token } = await tenant.agent("ungranted", { allowed_tools: ["recorder/*"] });
    const initialize = request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "secret text", version: "1" } });
    upstream.answer = results({ protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" }, instructions: "obey" }, { "mcp-session-id": "own-id" });
    const session = (await recorder.send(initialize, { token })).headers.get("mcp-session-id") ?? "";
    expect(session).not.toBe("");
    recorder.reset();

    const [listed, fields] = stateless("tools/list");
    const sent: [string, unknown, Wire][] = [
      ["initialize", initialize, {}],
      ["a notification", { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "secret text", progress: 1 } }, { headers: inSession(session) }],
      ["an invented response", { jsonrpc: "2.0", id: 7, result: { content: "secret text" } }, { headers: inSession(session) }],
      ["ping", request("ping"), { headers: inSession(session) }],
      ["a list", request("tools/list"), { headers: inSession(session) }],
      ["a completion", request("completion/complete", { ref: { type: "ref/prompt", name: "secret text" }, argument: { name: "a", value: "secret text" } }), { headers: inSession(session) }],
      ["a stream", undefined, { method: "GET", headers: inSession(session) }],
      ["the session's end", undefined, { method: "DELETE", headers: inSession(session) }],
      ["a list of the other era", listed, { headers: fields }],
    ];
    // No grant at all, and grants that match no tool of this server.
    for (const allowed_tools of [[], ["crm/*", "recorder"]]) {
      await tenant.change({ agents: [{ agent: name, groups: ["engineering"], allowed_tools }] });
      for (const [what, body, wire] of sent) {
        const response = await recorder.send(body, { token, ...wire });
        const text = await response.text();
        expect({ what, denied: response.status === 403 || text.includes("tool_not_granted"), text: text.includes("obey") }).toEqual({ what, denied: true, text: false });
      }
    }
    expect(upstream.received).toEqual([]);
  });

  test("is a result, or an error where the server is registered so", async () => {
    const { result } = await answerIn(await recorder.send(call("closed")));
    expect(result).toEqual({
      content: [{ type: "text", text: expect.stringMatching(/^The call of recorder\/closed was denied and did not run\. .* Asking for approval would not help/) }],
      isError: true,
      _meta: {
        [`${PREFIX}decision_id`]: expect.any(String),
        [`${PREFIX}decision`]: "deny",
        [`${PREFIX}reason_code`]: "tool_inactive",
        [`${PREFIX}policies`]: [],
      },
    });
    await recorder.server("strict", { denial: "error" });
    const refused = await recorder.send(call("closed"), { server: "strict" });
    expect(refused.status).toBe(200);
    expect((await answerIn(refused)).error).toMatchObject({ code: -31403, data: { [`${PREFIX}reason_code`]: "tool_inactive" } });
    expect(upstream.received).toEqual([]);
  });

  test("is an error, where it is no tool", async () => {
    await recorder.server("bare", {}, []);
    const ask = (method: string, params: object) => recorder.send(request(method, params), { server: "bare" }).then(answerIn);
    for (const [method, params] of [
      ["resources/read", { uri: "a://b" }],
      ["prompts/get", { name: "p" }],
      ["resources/subscribe", { uri: "a://b" }],
      ["completion/complete", { ref: { type: "ref/prompt", name: "p" }, argument: { name: "x", value: "" } }],
    ] as const) {
      expect((await ask(method, params)).error?.code, method).toBe(-31403);
    }
    expect(upstream.received).toEqual([]);
  });

  test("is all of a batch of which one claim cannot be read, before any of it is decided", async () => {
    const { token, name } = await tenant.agent("unclear");
    const batch = [call("record"), { ...call("record", { _meta: { [`${PREFIX}run_id`]: 5 } }), id: 2 }];
    expect(await outcome(await recorder.send(batch, { token }))).toBe("400 -31400");
    expect((await recorder.send(call("record"), { token })).status).toBe(200);
    await tenant.flushed();
    const decisions = await tenant.records<{ agent: string }>("decisions");
    expect(decisions.filter(({ agent }) => agent === name)).toHaveLength(1);
    expect(upstream.received).toHaveLength(1);
  });

  test.each([
    ["trusted_internal_unsigned", "untrusted_external"],
    ["untrusted_external", "trusted_internal_unsigned"],
  ])("is what one claim lowered, whatever the other says: %s in `_meta`, %s in a header", async (claim, header) => {
    const { token } = await tenant.agent(`of-${claim.replaceAll("_", "-")}`);
    const body = call("change", { _meta: { [`${PREFIX}source_trust`]: claim } });
    const { result } = await answerIn(await recorder.send(body, { token, headers: { "x-gateward-source-trust": header } }));
    expect(result?._meta).toMatchObject({ [`${PREFIX}reason_code`]: "policy_forbid" });
    expect(upstream.received).toEqual([]);
  });

  test("may be an HTTP method, by Gateward or by the server; the others are named", async () => {
    const allow = async (wire: Wire) => {
      const response = await recorder.send(undefined, wire);
      return [response.status, response.headers.get("allow")];
    };
    expect(await allow({ method: "PUT" })).toEqual([405, "POST, GET, DELETE"]);
    expect(await allow({ method: "GET", headers: { "mcp-protocol-version": VERSION } })).toEqual([405, "POST"]);
    const headers = inSession(await recorder.session());
    const error = { jsonrpc: "2.0", error: { code: -32000, message: "Method not allowed." }, id: null };
    for (const answer of [json(error, 405), html("no", 405)]) {
      upstream.answer = answer;
      expect(await allow({ method: "GET", headers })).toEqual([405, "POST, DELETE"]);
    }
  });

  test("may be a server that nobody registered", async () => {
    const { error } = await answerIn(await recorder.send(request("tools/list"), { server: "nowhere" }));
    expect(error).toMatchObject({ code: -31403, data: { [`${PREFIX}reason_code`]: "server_unknown" } });
  });

});

// The specification decides this (SEP-1303): a model can correct them. So it also holds if other denials are errors.
test.each(["result", "error"] as const)("arguments that do not match are a result that says what is allowed, where denials are: %s", async (denial) => {
  const server = `typed-${denial}`;
  await recorder.server(server, { denial });
  const input_schema = { type: "object", properties: { n: { type: "integer" }, color: { enum: ["red", "blue"] } } };
  await tenant.register({ tools: [{ server, tool: "typed", mutates: false, risk: "low", input_schema }] });
  const { result, error } = await answerIn(await recorder.send(call("typed", { arguments: { n: "one", color: "green" } }), { server }));
  expect(error).toBeUndefined();
  const text =
    `The call of ${server}/typed was denied and did not run. The arguments do not match the tool's schema: ` +
    '`/color` must be one of `"red"`, `"blue"` (`enum`); `/n` must be of type integer (`type`). ' +
    "Correct the arguments and make the call again.";
  expect(result).toMatchObject({
    content: [{ type: "text", text }],
    isError: true,
    _meta: { [`${PREFIX}reason_code`]: "input_schema_mismatch" },
  });
  expect(upstream.received).toEqual([]);
});
