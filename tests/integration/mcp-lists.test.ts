// Lists of an MCP server, for clients and at its registration.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually, type Gateward, type Tenant } from "../support/gateward.ts";
import { answerIn } from "../support/mcp.ts";
import { asked, call, Recorder, request, results, stateless, VERSION } from "../support/recorder.ts";
import { type Answering, event, html, json, redirect, type Upstream } from "../support/upstream.ts";

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

describe("a list", () => {
  const tool = (name: string, description = "") => ({ name, description, inputSchema: { type: "object", $defs: { x: { const: 1 } } } });
  const pages: Record<string, object> = {
    "": { tools: [tool("change"), tool("closed"), tool("record")], nextCursor: "2" },
    2: { tools: [tool("unheard-of")], nextCursor: "3", ttlMs: 3_600_000, cacheScope: "public" },
    3: { tools: [] },
  };
  const listing: Answering = (exchange, response) => {
    const { params } = asked(exchange);
    results({ resultType: "complete", ...pages[String(params?.cursor ?? "")] })(exchange, response);
  };

  test("leaves out, page by page, what no call could do", async () => {
    upstream.answer = listing;
    const page = async (cursor?: string) => (await answerIn(await recorder.sendStateless(stateless("tools/list", cursor === undefined ? {} : { cursor })))).result;
    expect(await page()).toEqual({ resultType: "complete", tools: [tool("change"), tool("record")], nextCursor: "2", ttlMs: 0, cacheScope: "private" });
    expect(await page("2")).toEqual({ resultType: "complete", tools: [], nextCursor: "3", ttlMs: 60_000, cacheScope: "private" });
    expect(await page("3")).toEqual({ resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private" });
    const { result } = await answerIn(await recorder.send(request("tools/list")));
    expect(result).toEqual({ resultType: "complete", tools: [tool("change"), tool("record")], nextCursor: "2" });
  });

  test("leaves out writes that the credential can never claim enough trust for, and shows those that wait for approval", async () => {
    for (const [max_source_trust, names] of [
      ["semi_trusted_customer", ["change", "record"]],
      ["untrusted_external", ["record"]],
      ["unknown", ["record"]],
    ] as const) {
      const { token } = await tenant.agent(`agent-${max_source_trust}`, {}, { max_source_trust });
      upstream.answer = listing;
      const { result } = await answerIn(await recorder.send(request("tools/list"), { token }));
      expect((result?.tools as { name: string }[]).map(({ name }) => name)).toEqual(names);
      // Whatever the caller claims.
      const headers = { "x-gateward-source-trust": "trusted_internal_signed" };
      upstream.answer = results({ content: [] });
      const written = await answerIn(await recorder.send(call("change"), { token, headers }));
      expect(written.result?._meta).toMatchObject({ "dev.gateward/decision": names.length === 2 ? "require_approval" : "deny" });
    }
  });

  test("comes in a stream too", async () => {
    upstream.answer = (_, response) => {
      response.writeHead(200, { "content-type": "Text/Event-Stream; charset=utf-8" });
      response.end(`: hello\n\n${event({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: 1 } })}${event({ jsonrpc: "2.0", id: 1, result: pages[""] }, "7")}`);
    };
    const text = await (await recorder.send(request("tools/list"))).text();
    // A comment keeps the connection open. It is passed on without its text.
    expect(text).toContain(":\n\n");
    expect(text).toContain("notifications/message");
    expect(text).toContain("id: 7\nevent: message\ndata: ");
    expect(text).not.toContain("closed");
  });

  test("has what is new registered, to wait for approval, and what changed likewise", async () => {
    await recorder.server("growing");
    const list = async (description: string) => {
      upstream.answer = results({ tools: [tool("record"), tool("fresh", description)] });
      const { result } = await answerIn(await recorder.send(request("tools/list"), { server: "growing" }));
      return (result?.tools as { name: string }[]).map(({ name }) => name);
    };
    const path = "/v1/servers/growing/tools/fresh";
    const isApproved = async () => (await gateward.get<{ approved?: boolean }>(tenant.admin, path)).body.approved;
    expect(await list("as it was")).toEqual(["record"]);
    await eventually("the tool is registered", async () => (await isApproved()) === false);
    await tenant.api.approveTool(path);
    expect(await list("as it was")).toEqual(["record", "fresh"]);
    expect(await list("with instructions")).toEqual(["record"]);
    await eventually("the tool waits again", async () => (await isApproved()) === false);
    expect((await answerIn(await recorder.send(call("fresh"), { server: "growing" }))).result).toMatchObject({ isError: true });
  });

  test("that is none is refused", async () => {
    for (const result of [{}, { tools: {} }, { tools: Array.from({ length: 1_001 }, () => tool("record")) }]) {
      upstream.answer = results(result);
      expect((await answerIn(await recorder.send(request("tools/list")))).error?.code).toBe(-32603);
    }
  });
});

describe("a server that is registered", () => {
  const tools = [{ name: "first", inputSchema: { type: "object" } }, { name: "second", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }];
  /** Pages of one tool each, and the methods that were asked for. */
  const paged: Answering = (exchange, response) => {
    const { method, params } = asked(exchange);
    const at = Number(params?.cursor ?? 0);
    if (exchange.method === "DELETE" || method?.startsWith("notifications/")) return response.writeHead(202).end();
    const capabilities = { tools: {}, prompts: {} };
    if (method === "server/discover" && stateful) return json({ jsonrpc: "2.0", id: null, error: { code: -32000, message: "no session" } }, 400)(exchange, response);
    if (method === "server/discover") return results({ resultType: "complete", supportedVersions: [VERSION], capabilities })(exchange, response);
    if (method === "initialize") return results({ protocolVersion: "2025-06-18", capabilities, serverInfo: {} }, { "mcp-session-id": "own-id" })(exchange, response);
    const result = { tools: [tools[at]], ...(at + 1 < tools.length && { nextCursor: String(at + 1) }) };
    response.writeHead(200, { "content-type": "Text/Event-Stream" }).end(event({ jsonrpc: "2.0", id: asked(exchange).id, result }));
  };
  let stateful = false;

  test.each([
    ["stateless", false, ["server/discover", "tools/list", "tools/list"]],
    ["in a session", true, ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/list", "DELETE"]],
  ])("is asked for its tools, which wait for approval: %s", async (name, sessions, expected) => {
    stateful = sessions;
    upstream.answer = paged;
    const server = `listed-${name.replaceAll(" ", "-")}`;
    const { status } = await tenant.api.post("/v1/servers", { server, kind: "mcp", upstream: { url: upstream.url("/mcp"), local: true } });
    expect(status).toBe(201);
    expect(upstream.received.map((exchange) => asked(exchange).method ?? exchange.method)).toEqual(expected);
    const registered = await tenant.api.all<{ tool: string; approved: boolean; mutates: boolean }>(`/v1/servers/${server}/tools`);
    expect(registered.map(({ tool, approved, mutates }) => [tool, approved, mutates])).toEqual([
      ["first", false, true],
      ["prompts/get", false, false],
      ["second", false, false],
    ]);
  });

  test.each<[string, Answering, string]>([
    ["answers HTML", html("<p>hello</p>"), "502 upstream_invalid"],
    ["lists without end", (exchange, response) => {
      const { method } = asked(exchange);
      results(method === "tools/list" ? { tools: [], nextCursor: "x" } : { supportedVersions: [VERSION], capabilities: { tools: {} } })(exchange, response);
    }, "502 upstream_invalid"],
    ["sends elsewhere", redirect("http://127.0.0.1:9/"), "502 upstream_invalid"],
  ])("but %s, is not registered", async (name, answer, expected) => {
    upstream.answer = answer;
    const server = name.replaceAll(" ", "-").toLowerCase();
    const { status, body } = await tenant.api.post<{ code: string }>("/v1/servers", { server, kind: "mcp", upstream: { url: upstream.url("/mcp"), local: true } });
    expect(`${status} ${body.code}`).toBe(expected);
    expect((await gateward.get(tenant.admin, `/v1/servers/${server}`)).status).toBe(404);
  });
});
