// Answers of an MCP server: its requests to the client, invalid answers, streams that break off.
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Upstream as UpstreamFields } from "../support/api/types.gen.ts";
import { eventually, type Gateward, type Tenant } from "../support/gateward.ts";
import { type Answered, answerIn, PREFIX } from "../support/mcp.ts";
import { call, fails, type Fields, inSession, outcome, Recorder, request, results, stateless, STREAM } from "../support/recorder.ts";
import { type Answering, compressed, dies, endless, event, events, type Exchange, hangs, html, huge, json, redirect, type Upstream } from "../support/upstream.ts";

let recorder: Recorder;
let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;

beforeAll(async () => {
  recorder = await Recorder.start();
  ({ gateward, upstream, tenant } = recorder);
});
afterAll(() => recorder?.close());
beforeEach(() => recorder.reset());

test("a list of more items than a lane is asked about at once stays whole and in order", async () => {
  const resources = Array.from({ length: 700 }, (_, at) => ({ uri: `note://${at}`, name: `n${at}` }));
  upstream.answer = results({ resources });
  const { result } = await answerIn(await recorder.send(request("resources/list", {})));
  expect(result).toMatchObject({ resources });
});

describe("what a server asks in a session", () => {
  const asks = event({ jsonrpc: "2.0", id: "s-1", method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } });

  test("reaches the client where it may ask, and the answer comes back", async () => {
    const id = await recorder.session();
    upstream.answer = (exchange, response) => (exchange.method === "GET" ? events(asks)(exchange, response) : response.writeHead(202).end());
    const stream = await recorder.send(undefined, { method: "GET", headers: inSession(id, { "last-event-id": "e-1" }) });
    expect(await stream.text()).toBe(asks);
    expect(upstream.received[0]?.headers).toMatchObject({ "mcp-session-id": "own-id", "last-event-id": "e-1" });
    const answered = await recorder.send({ jsonrpc: "2.0", id: "s-1", result: {} }, { headers: inSession(id) });
    expect([answered.status, await answered.text()]).toEqual([202, ""]);
    expect(upstream.received[1]?.text).toBe('{"jsonrpc":"2.0","id":"s-1","result":{}}');
  });

  test.each([
    ["may not ask", asks, -1],
    ["asks what there is not", event({ jsonrpc: "2.0", id: "s-1", method: "tasks/list" }), -32601],
  ])("does not where it %s, and the server is told", async (_, message, code) => {
    await recorder.server("mute", {}, []);
    const id = await recorder.session("mute");
    const progress = event({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } });
    const strange = event({ jsonrpc: "2.0", method: "notifications/strange" });
    upstream.answer = (exchange, response) => (exchange.method === "GET" ? events(message, strange, progress)(exchange, response) : response.writeHead(202).end());
    const stream = await recorder.send(undefined, { server: "mute", method: "GET", headers: inSession(id) });
    expect(await stream.text()).toBe(progress);
    await eventually("the server is told", async () => upstream.received.length === 2);
    const [, told] = upstream.received as [Exchange, Exchange];
    expect(JSON.parse(told.text)).toMatchObject({ id: "s-1", error: { code } });
    expect(told.headers["mcp-session-id"]).toBe("own-id");
  });

  test("is looked at only so often", async () => {
    await recorder.server("mute", {}, []);
    const id = await recorder.session("mute");
    upstream.answer = (exchange, response) => (exchange.method === "GET" ? events(asks.repeat(500))(exchange, response) : response.writeHead(202).end());
    const stream = await recorder.send(undefined, { server: "mute", method: "GET", headers: inSession(id) });
    expect(await stream.text()).toBe("");
    // One of them is the stream itself.
    expect(upstream.received.length).toBeLessThanOrEqual(33);
  });

  test("is no way to send answers without end on the session's own stream", async () => {
    const id = await recorder.session();
    const answers = Array.from({ length: 500 }, (_, at) => event({ jsonrpc: "2.0", id: at, result: {} }));
    upstream.answer = events(...answers);
    const stream = await recorder.send(undefined, { method: "GET", headers: inSession(id) });
    expect(await stream.text()).toBe(answers.slice(0, 32).join(""));
  });

  test("beside a batch must be allowed for each of its messages", async () => {
    await recorder.server("asker", {}, []);
    await tenant.register({ tools: [{ server: "asker", tool: "sampling/createMessage", mutates: true, risk: "low" }] });
    await recorder.forget();
    const asked = async (...claims: string[]) => {
      const headers = inSession(await recorder.session("asker"), { "mcp-protocol-version": "2025-03-26" });
      const batch = claims.map((claim, at) => ({ ...call("record", { _meta: { [`${PREFIX}source_trust`]: claim } }), id: at }));
      const answers = batch.map(({ id }) => event({ jsonrpc: "2.0", id, result: { content: [] } }));
      upstream.answer = (exchange, response) => (exchange.text.startsWith("[") ? events(asks, ...answers)(exchange, response) : response.writeHead(202).end());
      return (await (await recorder.send(batch, { server: "asker", headers })).text()).includes("sampling/createMessage");
    };
    expect(await asked("trusted_internal_unsigned", "trusted_internal_unsigned")).toBe(true);
    expect(await asked("untrusted_external", "trusted_internal_unsigned")).toBe(false);
  });

  test("ends with it", async () => {
    const id = await recorder.session();
    upstream.answer = (_, response) => response.writeHead(200).end();
    expect((await recorder.send(undefined, { method: "DELETE", headers: inSession(id) })).status).toBe(200);
    expect(upstream.received[0]).toMatchObject({ method: "DELETE", headers: { "mcp-session-id": "own-id" } });
    upstream.answer = (_, response) => response.writeHead(404).end("gone");
    expect(await outcome(await recorder.send(request("ping"), { headers: inSession(id) }))).toBe("404 -32001");
  });
});

describe("an error of a server", () => {
  const elicitation = { mode: "url", elicitationId: "e", url: "https://example.com/login", message: "log in" };
  const needs = (data: unknown) => ({ code: -32042, message: "needs", data });
  beforeAll(async () => {
    await recorder.server("shy", {}, []);
  });

  test("asks the client for something only where the server may", async () => {
    upstream.answer = fails(needs({ elicitations: [elicitation], [`${PREFIX}decision_id`]: "forged", more: 1.5 }));
    expect((await answerIn(await recorder.send(call("record")))).error).toEqual(needs({ elicitations: [elicitation], more: 1.5 }));
    const refused = await recorder.send(call("record"), { server: "shy" });
    const text = await refused.text();
    expect(JSON.parse(text)).toMatchObject({ id: 1, error: { code: -31403, message: "the server may not ask the client for elicitation/create" } });
    expect(text).not.toContain("example.com");
  });

  test("in a stream likewise", async () => {
    upstream.answer = events(event({ jsonrpc: "2.0", id: 1, error: needs({ elicitations: [elicitation] }) }));
    expect((await answerIn(await recorder.send(call("record"), { server: "shy" }))).error?.code).toBe(-31403);
  });

  test.each<[string, unknown]>([
    ["is no object", "secret"],
    ["asks for what cannot be read", needs({ elicitations: { secret: 1 } })],
  ])("is replaced where it %s", async (_, error) => {
    upstream.answer = fails(error as object);
    const text = await (await recorder.send(call("record"))).text();
    expect(JSON.parse(text)).toMatchObject({ id: 1, error: { code: -32603 } });
    expect(text).not.toContain("secret");
  });

  test("that is any other passes as it is", async () => {
    const error = { code: -32000, message: "no", data: [1.5] };
    upstream.answer = fails(error);
    expect((await answerIn(await recorder.send(call("record"), { server: "shy" }))).error).toEqual(error);
  });
});

describe("what a client that folds case would take for something else", () => {
  const secret = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } };

  test.each<[string, [unknown, Fields], object]>([
    ["`Tools` next to `tools`", stateless("tools/list"), { tools: [], Tools: [{ name: "secret", inputSchema: { type: "object" } }] }],
    ["`InputRequests`", stateless("tools/call", { name: "record", arguments: {} }), { resultType: "input_required", InputRequests: { secret } }],
    ["`Params` of what it asks", stateless("tools/call", { name: "record", arguments: {} }), { inputRequests: { k: { method: "roots/list", Params: { secret } } } }],
    ["`ResultType`", stateless("tools/call", { name: "record", arguments: {} }), { ResultType: "task", taskId: "secret" }],
    ["`Instructions`", stateless("server/discover"), { capabilities: {}, Instructions: "secret" }],
    ["`Tasks` among capabilities", stateless("server/discover"), { capabilities: { tools: {}, Extensions: { secret } } }],
  ])("is no result: %s", async (_, sent, result) => {
    upstream.answer = results(result);
    const text = await (await recorder.sendStateless(sent)).text();
    expect(JSON.parse(text)).toMatchObject({ id: 1, error: { code: -32603 } });
    expect(text).not.toContain("secret");
  });

  test.each<[string, unknown]>([
    ["`Elicitations` in its data", { code: -32042, message: "needs", data: { elicitations: [], Elicitations: [{ url: "https://secret.example" }] } }],
    ["`Data`", { code: -32042, message: "needs", Data: { elicitations: [{ url: "https://secret.example" }] } }],
  ])("is no error: %s", async (_, error) => {
    upstream.answer = fails(error as object);
    const text = await (await recorder.send(call("record"))).text();
    expect(JSON.parse(text)).toMatchObject({ id: 1, error: { code: -32603 } });
    expect(text).not.toContain("secret");
  });

  test.each<[string, object]>([
    ["`Method` next to `method`", { method: "notifications/message", params: {}, Method: secret.method }],
    ["`METHOD` and an id next to it", { id: "s-1", method: "ping", METHOD: secret.method, params: secret.params }],
    ["`Result` next to `result`", { id: 1, result: { content: [] }, Result: { tools: [] } }],
    ["`result` next to `method`", { id: 1, method: "ping", result: { tools: [] } }],
    ["two parameters", { id: "s-1", ...secret, params: { ...secret.params, Messages: [] } }],
  ])("is no message of a stream: %s", async (_, message) => {
    upstream.answer = events(event({ jsonrpc: "2.0", ...message }), event({ jsonrpc: "2.0", id: 1, result: { content: [] } }));
    const text = await (await recorder.send(call("record"))).text();
    expect(text.match(/^data:/gm)).toHaveLength(1);
    expect(text).not.toContain(secret.method);
    expect(text).toContain('"content":[]');
  });

  test("passes where it is data; members that JSON-RPC does not know do not", async () => {
    const result = { content: [{ type: "text", text: "{}", Text: "x" }], structuredContent: { a: 1, A: 2, Tools: [], method: "x", Method: "y" } };
    upstream.answer = (exchange, response) => json({ jsonrpc: "2.0", id: 1, result, extra: "secret" })(exchange, response);
    const text = await (await recorder.send(call("record"))).text();
    const { _meta, ...passed } = (JSON.parse(text) as Answered).result ?? {};
    expect(passed).toEqual(result);
    expect(text).not.toContain("extra");
  });
});

describe("a server whose answer is none", () => {
  test.each<[string, Answering, string]>([
    ["HTML", html("<p>secret</p>"), "200 -32603"],
    ["HTML with an error's status", html("<p>secret</p>", 500), "200 -32603"],
    ["JSON that is no message", json({ secret: true }), "200 -32603"],
    ["an answer to another request", json({ jsonrpc: "2.0", id: 99, result: { secret: true } }), "200 -32603"],
    ["a result without an object", json({ jsonrpc: "2.0", id: 1, result: "secret" }), "200 -32603"],
    ["a redirect", redirect("http://127.0.0.1:9/secret"), "200 -32603"],
    ["a refusal of its credential", json({ jsonrpc: "2.0", id: 1, error: { code: -1, message: "secret" } }, 401, { "www-authenticate": "secret" }), "200 -32603"],
    ["nothing of that path", html("<p>secret</p>", 404), "404 -32000"],
  ])("%s", async (_, answer, expected) => {
    upstream.answer = answer;
    const response = await recorder.send(call("record"));
    expect(response.headers.get("www-authenticate")).toBeNull();
    const text = await response.text();
    expect(`${response.status} ${(JSON.parse(text) as Answered).error?.code}`).toBe(expected);
    expect(text).not.toContain("secret");
    expect(upstream.received).toHaveLength(1);
  });

  test.each<[string, Answering, string]>([
    ["of one message", fails({ code: -32603, message: "broken" }, 500), "200 -32603"],
    ["over the server's rate", fails({ code: -32029, message: "slow down" }, 429), "200 -32029"],
    ["of the transport", fails({ code: -32000, message: "no session" }, 400), "400 -32000"],
    ["of the session", fails({ code: -32001, message: "Session not found" }, 404), "404 -32001"],
  ])("an error %s has its status, and 200 if it is an answer to the request", async (_, answer, expected) => {
    upstream.answer = answer;
    expect(await outcome(await recorder.send(call("record")))).toBe(expected);
  });

  test("of an older era lets a client fall back", async () => {
    const error = { jsonrpc: "2.0", error: { code: -32000, message: "Bad Request: Server not initialized" }, id: null };
    upstream.answer = json(error, 400);
    const response = await recorder.sendStateless(stateless("server/discover"));
    expect([response.status, await response.json()]).toEqual([400, error]);
  });

  test.each<[string, Partial<UpstreamFields>, Answering, string]>([
    ["is not there", { url: "http://127.0.0.1:9/mcp" }, json({}), "200 -31502"],
    ["does not begin in time", { first_byte_timeout_ms: 100 }, hangs(), "200 -31504"],
    ["says too much", { max_result_bytes: 1_024 }, huge(5_000), "200 -31502"],
    ["says too much when it is decompressed", { max_result_bytes: 1_024 }, compressed(100_000), "200 -31502"],
  ])("because it %s", async (name, fields, answer, expected) => {
    await recorder.server(name.replaceAll(" ", "-"), fields);
    upstream.answer = answer;
    const response = await recorder.send(call("record"), { server: name.replaceAll(" ", "-") });
    expect(response.headers.get("ratelimit")).toMatch(/^"agent";r=\d+;t=\d+$/);
    expect(await outcome(response)).toBe(expected);
  });

  test("because the call could not be sent: the outcome says so", async () => {
    await recorder.server("keyless", { credential: { binding: "UPSTREAM_NONE" } });
    const { name, token } = await tenant.agent("unsent");
    expect(await outcome(await recorder.send(call("record"), { server: "keyless", token }))).toBe("200 -31503");
    await tenant.flushed();
    const decisions = await tenant.records<{ agent: string; decision_id: string }>("decisions");
    const [, receipt] = await tenant.receiptsOf(decisions.find(({ agent }) => agent === name)?.decision_id);
    expect(receipt).toMatchObject({ kind: "outcome", ending: "refused", status: 0 });
    expect(upstream.received).toEqual([]);
  });

  const progress = event({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } });
  test.each<[string, Partial<UpstreamFields>, Answering, string, string[]]>([
    ["dies in the middle", {}, dies(progress, 20), "upstream_failed", ["upstream_failed"]],
    ["never ends", { whole_timeout_ms: 300 }, endless(progress, 20), "timed_out", ["upstream_timed_out"]],
    ["falls silent", { idle_timeout_ms: 100 }, endless(progress, 60_000), "timed_out", ["upstream_timed_out"]],
    ["never ends an event", { max_result_bytes: 2_048 }, endless("data: x\n", 5), "too_large", ["upstream_result_too_large"]],
    ["ends without an answer", {}, events(progress), "complete", []],
  ])("because its stream %s: the client's ends, with an error", async (name, fields, answer, ending, noted) => {
    const server_name = name.replaceAll(" ", "-");
    await recorder.server(server_name, fields);
    upstream.answer = (exchange, response) => {
      response.writeHead(200, STREAM);
      return answer(exchange, response);
    };
    const response = await recorder.send(call("record"), { server: server_name });
    expect(response.status).toBe(200);
    const text = await response.text();
    if (name !== "never ends an event") expect(text.startsWith(progress)).toBe(true);
    const last = text.trimEnd().split("\n").at(-1)?.slice("data: ".length);
    expect(JSON.parse(last ?? "")).toMatchObject({ id: 1, error: { code: -32603 } });
    const decisionId = upstream.received[0]?.headers["x-gateward-decision-id"];
    const [decision, outcome] = await tenant.receiptsOf(decisionId);
    expect(decision).toMatchObject({ kind: "decision", decision: "allow" });
    expect(outcome).toMatchObject({ kind: "outcome", ending, status: 200 });
    const events = await gateward.rows<{ kind: string }>("SELECT kind FROM audit_events WHERE tenant = ?1 AND decision_id = ?2 ORDER BY kind", tenant.name, String(decisionId));
    expect(events.map(({ kind }) => kind)).toEqual(["decision", ...noted]);
  });
});

describe("a client that closes its connection", () => {
  const silent: Answering = (_, response) => response.writeHead(200, STREAM).flushHeaders();
  const slowJson: Answering = (_, response) => response.writeHead(200, { "content-type": "application/json" }).write("{");
  const ticking: Answering = (exchange, response) => {
    response.writeHead(200, STREAM);
    return endless(": tick\n\n", 20)(exchange, response);
  };
  // The runtime sees a reset at once. A connection that is closed in the normal way, it sees only
  // when it writes.
  const eras: [string, [unknown, Fields]][] = [
    ["a session era", [call("record"), {}]],
    ["2026-07-28", stateless("tools/call", { name: "record", arguments: {} })],
  ];
  const servers: [string, Answering][] = [
    ["has not answered", hangs()],
    ["sends JSON slowly", slowJson],
    ["has begun a stream and is silent", silent],
    ["streams", ticking],
  ];
  const normally = eras.flatMap(([era, sent]) => servers.map(([state, answer]) => ({ era, sent, how: "normally", close: (socket: Socket) => socket.destroy(), state, answer })));
  const reset = { how: "with a reset", close: (socket: Socket) => socket.resetAndDestroy() };
  const cases = normally.flatMap((one, at) => (at === 0 ? [one, { ...one, ...reset }] : [one]));

  // The server's own limits would also end the request, but later than a client waits.
  beforeAll(() => recorder.server("slow", { first_byte_timeout_ms: 1_500, idle_timeout_ms: 1_500 }));

  test.each(cases)("$how cancels the request to a server that $state, in $era", async ({ sent: [body, headers], close, answer }) => {
    upstream.answer = answer;
    const socket = recorder.connect(body, headers, "slow");
    await eventually("the server is asked", async () => upstream.received.length === 1);
    close(socket);
    await upstream.received[0]?.over;
    expect(upstream.received[0]?.hungUp).toBe(true);
    const [, outcome] = await tenant.receiptsOf(upstream.received[0]?.headers["x-gateward-decision-id"]);
    expect(outcome).toMatchObject({ kind: "outcome", ending: "caller_gone" });
  });

  test("with a whole stream still to come, after some of it was read, cancels the request too", async () => {
    upstream.answer = ticking;
    const socket = recorder.connect(call("record"), {}, "slow");
    await once(socket, "data");
    socket.destroy();
    await upstream.received[0]?.over;
    expect(upstream.received[0]?.hungUp).toBe(true);
  });
});

describe("an answer that takes long", () => {
  const error = { code: -32001, message: "no such note" };
  const later = (answer: Answering): Answering => async (exchange, response) => {
    await pause(700);
    return answer(exchange, response);
  };
  const progress = event({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } });
  const answered = (exchange: Exchange) => event({ jsonrpc: "2.0", id: (JSON.parse(exchange.text) as { id: unknown }).id, result: { content: [] } });

  test.each<[string, Answering, object[]]>([
    ["JSON", results({ content: [{ type: "text", text: "a\u2028b" }] }), [{ id: 1, result: { content: [{ type: "text", text: "a\u2028b" }] } }]],
    ["an error", fails(error), [{ id: 1, error }]],
    ["a stream", (exchange, response) => response.writeHead(200, STREAM).end(progress + answered(exchange)), [{ method: "notifications/progress" }, { id: 1, result: { content: [] } }]],
    ["a page", html("<p>secret</p>"), [{ id: 1, error: { code: -32603 } }]],
    ["no session", html("<p>secret</p>", 404), [{ id: 1, error: { code: -32000 } }]],
    ["an error about no request", json({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } }, 404), [{ id: 1, error: { code: -32001 } }]],
    ["a stream without a body", (_, response) => response.writeHead(204, STREAM).end(), []],
  ])("is a stream of events from the start, with %s as its end", async (_, answer, expected) => {
    upstream.answer = later(answer);
    const response = await recorder.send(call("record"));
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
    expect(lines.map((line) => JSON.parse(line.slice("data: ".length)) as unknown)).toMatchObject(expected);
  });

  test.each<[string, unknown, Fields]>([
    ["it answers a batch", [request("ping", {}, 1), request("ping", {}, 2)], { "mcp-protocol-version": "2025-03-26" }],
    ["the client names no streams", call("record"), { accept: "*/*" }],
  ])("is whole where %s", async (_, body, headers) => {
    upstream.answer = later((exchange, response) => {
      const answer = ({ id }: { id: unknown }) => ({ jsonrpc: "2.0", id, result: { content: [] } });
      const asked = JSON.parse(exchange.text) as { id: unknown } | { id: unknown }[];
      return json(Array.isArray(asked) ? asked.map(answer) : answer(asked))(exchange, response);
    });
    const response = await recorder.send(body, { headers });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
  });

  test("is whole where it opens a session: its head has the session", async () => {
    upstream.answer = later(results({ protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } }, { "mcp-session-id": "own-id" }));
    const response = await recorder.send(request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } }));
    expect(response.headers.get("mcp-session-id")).toMatch(/\.own-id$/);
    expect(response.headers.get("content-type")).toBe("application/json");
  });
});
