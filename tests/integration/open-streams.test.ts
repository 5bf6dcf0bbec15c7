// What a server sends on streams that are open when their agent is stopped, and calls whose caller leaves while they
// are decided.
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Api } from "../support/administration.ts";
import { eventually, Gateward, HINDERED, type Tenant, type TestAgent } from "../support/gateward.ts";
import { endpoint, mcpRows, post } from "../support/mcp.ts";
import { inSession, request, results, stateless } from "../support/recorder.ts";
import { type Answering, endless, event, type Exchange, json, Upstream } from "../support/upstream.ts";

/** A server whose agents are stopped, and one that is disabled itself. */
const SERVER = "recorder";
const CLOSING = "closing";
const TICK = event({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } });
const TICK_MS = 200;
/** `RECHECK_INTERVAL_MS` of worker/edge/src/handlers/mcp/recheck.rs. */
const RECHECK_INTERVAL_MS = 10_000;
const RESULT = { resultType: "complete", content: [{ type: "text", text: "recorded" }] };

let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;
let api: Api;

beforeAll(async () => {
  upstream = await Upstream.start();
  gateward = await Gateward.start({ entry: HINDERED });
  const tools = ["record", "slow"].map((name) => ({ name, inputSchema: { type: "object" as const } }));
  const rows = [SERVER, CLOSING].map((server) => mcpRows(server, tools, { url: upstream.url("/mcp") }));
  const shop = { url: upstream.url("/v3/"), local: true, routes: [{ method: "GET", path: "/orders", tool: "list" }] };
  tenant = await gateward.tenant({
    servers: [...rows.flatMap(({ servers }) => servers), { server: "shop", kind: "http", upstream: shop }],
    tools: [...rows.flatMap(({ tools }) => tools), { server: "shop", tool: "list", mutates: false, risk: "low" }],
  });
  api = tenant.api;
});
afterAll(async () => {
  await gateward?.close();
  await upstream?.close();
});

/** A stream that somebody reads. */
class Reading {
  text = "";
  over = false;

  constructor(response: Response) {
    void this.#read(response).finally(() => (this.over = true));
  }

  get ticks(): number {
    return this.text.split(TICK).length - 1;
  }

  async #read({ body }: Response): Promise<void> {
    try {
      for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) this.text += chunk;
    } catch {
      // The test closed it.
    }
  }
}

/** A request in a session, or the one that opens it. */
function send({ token }: TestAgent, server: string, method: string, body?: unknown, headers: Record<string, string | null> = {}, signal?: AbortSignal): Promise<Response> {
  const own = { authorization: `Bearer ${token}`, accept: "application/json, text/event-stream", ...(body !== undefined && { "content-type": "application/json" }) };
  return fetch(endpoint(gateward, server), {
    method,
    headers: { ...own, ...(headers as Record<string, string>) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
}

async function session(agent: TestAgent, server: string): Promise<Record<string, string | null>> {
  const response = await send(agent, server, "POST", request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } }));
  expect([response.status, response.headers.has("mcp-session-id")]).toEqual([200, true]);
  return inSession(response.headers.get("mcp-session-id") ?? "");
}

/** The session's own stream. */
async function listen(agent: TestAgent, server: string, signal?: AbortSignal): Promise<Reading> {
  const response = await send(agent, server, "GET", undefined, await session(agent, server), signal);
  expect(response.status).toBe(200);
  return new Reading(response);
}

/** A call whose answer is a stream. */
async function call(agent: TestAgent, server: string, name = "record"): Promise<Reading> {
  const response = await post(endpoint(gateward, server), agent.token, "tools/call", { name, arguments: {}, _meta: { progressToken: 1 } });
  expect(response.status).toBe(200);
  return new Reading(response);
}

const callOf = ({ name }: TestAgent): Exchange | undefined =>
  upstream.received.find(({ headers, text }) => headers["x-gateward-agent"] === name && text.includes("tools/call"));

test("what a server sends on an open stream ends when its agent may not call any more", async () => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const initialized = results({ protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } }, { "mcp-session-id": "own-id" });
  const late: Answering = async (exchange, response) => {
    await released;
    results(RESULT)(exchange, response);
  };
  upstream.answer = (exchange, response) => {
    const is = (text: string) => exchange.text.includes(`"${text}"`);
    const answer = is("initialize") ? initialized : is("ping") ? results({}) : is("slow") ? late : endless(TICK, TICK_MS);
    return answer(exchange, response);
  };

  // Its rate is enough for what it sends itself: it opens a session and its stream, and another session.
  const steady = await tenant.agent("steady", { request_rate: { capacity: 3, refill_per_s: 0.001 } });
  const closing = new AbortController();
  const steadyStream = await listen(steady, SERVER, closing.signal);
  const slow = await tenant.agent("slow");
  const slowAnswer = await call(slow, SERVER, "slow");

  const stops: Record<string, (agent: TestAgent) => Promise<unknown>> = {
    expired: async () => undefined,
    revoked: ({ name }) => api.change("POST", `/v1/agents/${name}/revoke`),
    frozen: ({ name }) => api.change("POST", `/v1/agents/${name}/freeze`),
    banned: ({ name }) => api.create("/v1/bans", { kind: "agent", subject: name }),
    unidentified: ({ credential }) => api.change("POST", `/v1/credentials/${credential.keyId}/revoke`),
    closed: () => api.change("POST", `/v1/servers/${CLOSING}/disable`),
  };
  const stopped: { agent: TestAgent; streams: Reading[] }[] = [];
  for (const name of Object.keys(stops)) {
    // It expires before its streams are checked again.
    const agent = await tenant.agent(name, {}, name === "expired" ? { expires_at_ms: Date.now() + RECHECK_INTERVAL_MS } : {});
    const server = name === "closed" ? CLOSING : SERVER;
    stopped.push({ agent, streams: [await listen(agent, server), await call(agent, server)] });
  }
  const streams = stopped.flatMap((one) => one.streams);
  await eventually("each stream has something", async () => [steadyStream, ...streams].every(({ ticks }) => ticks > 0));

  for (const { agent } of stopped) await stops[agent.name]?.(agent);
  await api.change("POST", `/v1/agents/${slow.name}/revoke`);
  await eventually("the streams end", async () => streams.every(({ over }) => over));
  for (const { agent, streams: [session, answer] } of stopped) {
    // Nothing but ticks and comments.
    expect(session?.text.replaceAll(TICK, "").replaceAll(": keep-alive\n\n", ""), agent.name).toBe("");
    expect(answer?.text, agent.name).toContain("-32603");
    const exchange = callOf(agent);
    expect((await tenant.receiptsOf(exchange?.headers["x-gateward-decision-id"]))[1], agent.name).toMatchObject({ kind: "outcome", ending: "refused", status: 200 });
    await exchange?.over;
    expect(exchange?.hungUp, agent.name).toBe(true);
  }

  // The same holds for an answer that is not a stream.
  expect(slowAnswer.over).toBe(false);
  release();
  await eventually("the late answer ends", async () => slowAnswer.over);
  expect(slowAnswer.text).toContain('"error"');
  expect(slowAnswer.text).not.toContain("recorded");
  expect((await tenant.receiptsOf(callOf(slow)?.headers["x-gateward-decision-id"]))[1]).toMatchObject({ kind: "outcome", ending: "refused", status: 200 });

  // The stream of an agent that may still call was opened first, so it was checked too. That took nothing of its rate.
  const before = steadyStream.ticks;
  await eventually("the other stream goes on", async () => steadyStream.ticks > before + 1);
  expect(steadyStream.over).toBe(false);
  const headers = await session(steady, SERVER);
  expect(await (await send(steady, SERVER, "POST", request("ping"), headers)).text()).toContain("rate_limited");
  closing.abort();
});

test.each([
  ["an API", "GET /http/shop/orders", undefined],
  ["an MCP server", `POST /mcp/${SERVER}`, stateless("tools/call", { name: "record", arguments: {} })],
])("a call of %s whose caller leaves while it is decided is not sent, and has an outcome", async (what, line, message) => {
  upstream.answer = json({});
  const agent = await tenant.agent(`leaves-${what.replaceAll(" ", "-").toLowerCase()}`);
  const [body, fields] = message ?? [undefined, {}];
  const text = body === undefined ? "" : JSON.stringify(body);
  const headers = {
    host: "gate",
    authorization: `Bearer ${agent.token}`,
    accept: "application/json, text/event-stream",
    ...(text !== "" && { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
    ...fields,
  };
  upstream.received.length = 0;
  const before = await gateward.held();
  await gateward.hold("calls");
  try {
    const socket = connect(Number(gateward.url.port), gateward.url.hostname);
    socket.write(`${line} HTTP/1.1\r\n${Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${text}`);
    await eventually("the call is on its way to the lane", async () => (await gateward.held()) > before);
    socket.resetAndDestroy();
    // The runtime notices a reset in some 20 ms. The worker waits for the lane for 4.5 s.
    await pause(1_000);
  } finally {
    await gateward.release();
  }
  let decisions: { decision_id: string }[] = [];
  await eventually("the decision is in D1", async () => {
    decisions = await gateward.rows("SELECT decision_id FROM decisions WHERE tenant = ?1 AND agent = ?2", tenant.name, agent.name);
    return decisions.length > 0;
  });
  const [decision, outcome] = await tenant.receiptsOf(decisions[0]?.decision_id);
  expect(decision).toMatchObject({ kind: "decision", decision: "allow" });
  expect(outcome).toMatchObject({ kind: "outcome", ending: "caller_gone", status: 0 });
  expect(upstream.received).toEqual([]);
});
