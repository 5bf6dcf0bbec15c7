// What an MCP server receives through Gateward, and how its answers are passed on.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditEvent } from "../support/api/types.gen.ts";
import { Gateward, MAC_KEY, type Tenant, type TestAgent } from "../support/gateward.ts";
import { answerIn, endpoint, mcpRows, post, PREFIX } from "../support/mcp.ts";
import { type Answering, event, json, Upstream } from "../support/upstream.ts";

const RECORDER = "recorder";
/** The tenant that the upstream's credential is bound to. */
const TENANT = "bound";
const CREDENTIAL = "Bearer an-upstream-credential";
const RESULT = { resultType: "complete", content: [{ type: "text", text: "recorded" }] };

let recorder: Upstream;
let gateward: Gateward;
let tenant: Tenant;

beforeAll(async () => {
  recorder = await Upstream.start();
  const { origin } = new URL(recorder.url());
  gateward = await Gateward.start({ secrets: { TOKEN_MAC_KEY: MAC_KEY, UPSTREAM_TEST: `${TENANT} ${origin} ${CREDENTIAL}` } });
  const tools = ["record", "change"].map((name) => ({ name, inputSchema: { type: "object" as const } }));
  const upstream = { url: recorder.url("/mcp"), credential: { binding: "UPSTREAM_TEST" } };
  tenant = await gateward.tenant(mcpRows(RECORDER, tools, upstream, { change: { mutates: true } }), TENANT);
});
afterAll(async () => {
  await gateward?.close();
  await recorder?.close();
});

function call({ token }: TestAgent, name: string, params: Record<string, unknown> = {}, init: RequestInit = {}): Promise<Response> {
  return post(endpoint(gateward, RECORDER), token, "tools/call", { name, arguments: {}, ...params }, init);
}

/** From now on, the recorder answers like this. It forgets what it received. */
function expectCalls(answer: Answering = (exchange, response) => json({ jsonrpc: "2.0", id: idOf(exchange.text), result: RESULT })(exchange, response)): void {
  recorder.answer = answer;
  recorder.received.length = 0;
}

function idOf(text: string): unknown {
  return (JSON.parse(text) as { id?: unknown }).id;
}

test("a call that a limit denies is told what is left and what can pass, and reaches no upstream", async () => {
  const agent = await tenant.agent("limited");
  const rule = { kind: "amount", max: "10", pointer: "/amount", window: "month" };
  await tenant.api.create("/v1/limits", { limit_id: "amounts", subject_kind: "agent", subject: agent.name, rule });
  expectCalls();
  const paid = async (amount?: number) => (await answerIn(await call(agent, "record", { arguments: { amount } }))).result;
  const denied = (reason_code: string, limit: object, text: RegExp) => ({
    isError: true,
    content: [{ type: "text", text: expect.stringMatching(text) }],
    _meta: { [`${PREFIX}reason_code`]: reason_code, [`${PREFIX}violated_limits`]: [{ limit_id: "amounts", kind: "amount", max: "10", window: "month", ...limit }] },
  });
  expect(await paid(8)).toMatchObject(RESULT);
  expect(await paid(3)).toMatchObject(
    denied("amount_exhausted", { remaining: "2", requested: "3" }, /The limit `amounts` allows 10 per month; 2 is left, and this call needs 3\. Try again at .* A call with a number that is small enough can pass\.$/),
  );
  expect(await paid()).toMatchObject(denied("limit_unreadable", { requested: null }, /Correct the arguments and make the call again\.$/));
  const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "record", arguments: { amount: 1000 }, _meta } });
  const inexact = await call(agent, "record", {}, { body: body.replace("1000", "1.00000000000000005") });
  expect((await answerIn(inexact)).result).toMatchObject(denied("limit_unreadable", { requested: null }, /must be a string/));
  expect(await paid(2)).toMatchObject(RESULT);
  expect(await paid(1)).toMatchObject(denied("amount_exhausted", { remaining: "0", requested: "1" }, /Make the call again only at the time that is named, if one is\.$/));
  expect(recorder.received).toHaveLength(2);
});

test("an upstream gets its own credential and who calls, and not the agent's token", async () => {
  const agent = await tenant.agent("courier");
  expectCalls();
  const headers = { "x-gateward-agent": "somebody", "x-gateward-other": "thing", cookie: "session=1", "x-gateward-run-id": "run-7" };
  const { result } = await answerIn(await call(agent, "record", { arguments: { a: 1 } }, { headers }));
  expect(result).toMatchObject(RESULT);
  expect(recorder.received).toHaveLength(1);
  const [{ method, path, headers: sent, rawHeaders, text } = { headers: {}, rawHeaders: [], text: "{}" }] = recorder.received;
  expect([method, path]).toEqual(["POST", "/mcp"]);
  expect(sent).toMatchObject({ authorization: CREDENTIAL, "mcp-method": "tools/call", "mcp-name": "record" });
  expect(sent.cookie).toBeUndefined();
  expect(Object.fromEntries(Object.entries(sent).filter(([name]) => name.startsWith("x-gateward-")))).toEqual({
    "x-gateward-tenant": TENANT,
    "x-gateward-agent": agent.name,
    "x-gateward-decision-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  expect(JSON.parse(text)).toMatchObject({ method: "tools/call", params: { name: "record", arguments: { a: 1 } } });
  const secrets = agent.token.split(".").slice(-2);
  for (const secret of secrets) expect(`${rawHeaders.join("\n")}\n${text}`).not.toContain(secret);
});

test("an upstream gets nothing of a call that was denied", async () => {
  const agent = await tenant.agent("denied");
  expectCalls();
  const untrusted = { _meta: { [`${PREFIX}source_trust`]: "untrusted_external" } };
  const { result } = await answerIn(await call(agent, "change", untrusted));
  expect(result).toMatchObject({
    isError: true,
    resultType: "complete",
    _meta: { [`${PREFIX}reason_code`]: "policy_forbid", [`${PREFIX}policies`]: ["base/provenance#untrusted-never-writes"] },
  });
  expect((await answerIn(await call(agent, "unheard-of"))).result).toMatchObject({ isError: true });
  expect(recorder.received).toEqual([]);
});

test("a stream comes back piece by piece", async () => {
  const agent = await tenant.agent("patient");
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  expectCalls(async ({ text }, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(event({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } }));
    // The client has the first event before the second is sent.
    await released;
    response.end(event({ jsonrpc: "2.0", id: idOf(text), result: RESULT }));
  });
  const response = await call(agent, "record", { _meta: { progressToken: 1 } });
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  let received = "";
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    received += chunk;
    if (received.includes("notifications/progress")) release();
  }
  expect(received).toContain("recorded");
});

test("the credential is written down nowhere", async () => {
  const agent = await tenant.agent("noted");
  expectCalls();
  await answerIn(await call(agent, "record"));
  expect(recorder.received.map(({ headers }) => headers.authorization)).toEqual([CREDENTIAL]);
  const events = await tenant.api.all<AuditEvent>("/v1/audit-events");
  expect(JSON.stringify([events, await tenant.snapshot(), gateward.logs()])).not.toContain(CREDENTIAL);
});
