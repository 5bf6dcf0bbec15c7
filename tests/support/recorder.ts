// An MCP server that records what it gets and answers as a test tells it, Gateward in front of it, and
// MCP's messages as they are on the wire.
import { connect, type Socket } from "node:net";
import { expect } from "vitest";
import type { Upstream as UpstreamFields } from "./api/types.gen.ts";
import { Gateward, INSPECTABLE, type Tenant, type TestAgent } from "./gateward.ts";
import { ACTIONS, type Answered, endpoint } from "./mcp.ts";
import type { ToolRow } from "./registry.ts";
import { type Answering, type Exchange, json, Upstream } from "./upstream.ts";

export const VERSION = "2026-07-28";
export const ENVELOPE = { "io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": { sampling: {}, elicitation: {}, roots: {} } };
export const STREAM = { "content-type": "text/event-stream" };

/** A header that is null is left out. */
export type Fields = Record<string, string | null>;

export interface Wire {
  server?: string;
  method?: string;
  headers?: Fields;
  token?: string | null;
  signal?: AbortSignal;
}

export class Recorder {
  readonly gateward: Gateward;
  readonly upstream: Upstream;
  readonly tenant: Tenant;
  readonly agent: TestAgent;

  private constructor(gateward: Gateward, upstream: Upstream, tenant: Tenant, agent: TestAgent) {
    this.gateward = gateward;
    this.upstream = upstream;
    this.tenant = tenant;
    this.agent = agent;
  }

  static async start(): Promise<Recorder> {
    const upstream = await Upstream.start();
    const gateward = await Gateward.start({ entry: INSPECTABLE, vars: { RATE_CAPACITY: 100_000 } });
    // Its overlay has a policy that redacts.
    const tenant = await gateward.tenant({}, "demo");
    const recorder = new Recorder(gateward, upstream, tenant, await tenant.agent());
    await recorder.server("recorder");
    return recorder;
  }

  async close(): Promise<void> {
    await this.gateward.close();
    await this.upstream.close();
  }

  /** Forgets what it received. From then on it answers every call. */
  reset(): void {
    this.upstream.received.length = 0;
    this.upstream.answer = results({ content: [{ type: "text", text: "recorded" }] });
  }

  /** Registers an MCP server behind the upstream, with the named actions, or with all. */
  async server(name: string, fields: Partial<UpstreamFields> = {}, actions = ACTIONS, trust: "trusted" | "untrusted" = "trusted"): Promise<void> {
    const tool = (tool: string, row: Partial<ToolRow> = {}): ToolRow => ({ server: name, tool, mutates: false, risk: "low", ...row });
    await this.tenant.register({
      servers: [{ server: name, kind: "mcp", trust, upstream: { url: this.upstream.url("/mcp"), local: true, ...fields } }],
      tools: [tool("record"), tool("change", { mutates: true }), tool("closed", { status: "disabled" }), ...actions.map((action) => tool(action))],
    });
    await this.forget();
  }

  /** Registers the server of the demo's whose calls a policy redacts. */
  async redacting(): Promise<void> {
    await this.tenant.register({ servers: [{ server: "crm", kind: "mcp", upstream: { url: this.upstream.url("/mcp"), local: true } }] });
    await this.forget();
  }

  /** Makes the lane read its records again. */
  async forget(): Promise<void> {
    // A lane that does not run remembers nothing.
    await this.tenant.evict().catch(() => undefined);
  }

  /** A request as it is on the wire. */
  send(body: unknown, { server = "recorder", method = "POST", headers = {}, token = this.agent.token, ...rest }: Wire = {}): Promise<Response> {
    const all = {
      authorization: token === null ? null : `Bearer ${token}`,
      accept: "application/json, text/event-stream",
      "content-type": body === undefined ? null : "application/json",
      ...headers,
    };
    const sent = Object.entries(all).filter((header): header is [string, string] => header[1] !== null);
    return fetch(endpoint(this.gateward, server), {
      method,
      headers: sent,
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...rest,
    });
  }

  /** The same on a connection of its own, which the test closes. */
  connect(body: unknown, headers: Fields, server: string): Socket {
    const { hostname, port } = this.gateward.url;
    const socket = connect(Number(port), hostname);
    const text = JSON.stringify(body);
    const fields = {
      host: "localhost",
      authorization: `Bearer ${this.agent.token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      ...headers,
    };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST /mcp/${server} HTTP/1.1\r\n${lines.join("")}\r\n${text}`);
    return socket;
  }

  sendStateless([body, headers]: [unknown, Fields], wire: Wire = {}): Promise<Response> {
    return this.send(body, { ...wire, headers });
  }

  /** A session that the upstream has begun, as the client has it. */
  async session(name = "recorder"): Promise<string> {
    this.upstream.answer = results({ protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } }, { "mcp-session-id": "own-id" });
    const response = await this.send(request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } }), { server: name });
    expect(response.status).toBe(200);
    this.upstream.received.length = 0;
    const id = response.headers.get("mcp-session-id") ?? "";
    expect(id).toMatch(/^[0-9a-f]{32}\.own-id$/);
    return id;
  }
}

export const request = (method: string, params?: object, id: unknown = 1) => ({ jsonrpc: "2.0", id, method, ...(params && { params }) });
export const call = (name: string, params: object = {}) => request("tools/call", { name, arguments: {}, ...params });

/** A request of the stateless revision, and the headers that go with it. */
export function stateless(method: string, { _meta, ...params }: Record<string, unknown> = {}, headers: Fields = {}): [unknown, Fields] {
  const name = params.name ?? params.uri;
  const own = { "mcp-protocol-version": VERSION, "mcp-method": method, ...(typeof name === "string" && { "mcp-name": name }) };
  return [request(method, { ...params, _meta: { ...ENVELOPE, ...(_meta as object) } }), { ...own, ...headers }];
}

export const inSession = (id: string, headers: Fields = {}) => ({ "mcp-session-id": id, "mcp-protocol-version": "2025-11-25", ...headers });

/** Answers a request with this result. */
export function results(result: object, head: Record<string, string> = {}): Answering {
  return (exchange, response) => json({ jsonrpc: "2.0", id: asked(exchange).id, result }, 200, head)(exchange, response);
}

/** Answers a request with this error. */
export function fails(error: object, status = 200): Answering {
  return (exchange, response) => json({ jsonrpc: "2.0", id: asked(exchange).id, error }, status)(exchange, response);
}

/** The message that the upstream got. */
export function asked({ text }: Exchange): { id: unknown; method: string; params: Record<string, unknown> } {
  return JSON.parse(text || "{}") as ReturnType<typeof asked>;
}

/** The status, and the code of the error. */
export async function outcome(response: Response): Promise<string> {
  const text = await response.text();
  const { error } = (text === "" ? {} : JSON.parse(text)) as Answered;
  return `${response.status} ${error?.code ?? "-"}`;
}
