// MCP servers behind Gateward, and clients that reach them through it.
import { type CallToolResult, Client, type ClientOptions, StreamableHTTPClientTransport, type Tool } from "@modelcontextprotocol/client";
import type { Upstream as UpstreamFields } from "./api/types.gen.ts";
import type { Gateward, TestAgent } from "./gateward.ts";
import type { ServerRow, ToolRow } from "./registry.ts";

/** The prefix of Gateward's keys in `_meta`. */
export const PREFIX = "dev.gateward/";
/** MCP methods that are authorized like tools of a server, but are not in its list of tools. */
export const ACTIONS = ["resources/read", "prompts/get", "sampling/createMessage", "elicitation/create", "roots/list"];

export type Negotiation = NonNullable<NonNullable<ClientOptions["versionNegotiation"]>["mode"]>;

/** A client, and the transport that knows its session. */
export interface Connected {
  client: Client;
  transport: StreamableHTTPClientTransport;
}

export async function connect(url: URL | string, mode: Negotiation, { token, ...options }: ClientOptions & { token?: string } = {}): Promise<Connected> {
  const client = new Client({ name: "gateward-tests", version: "1.0.0" }, { versionNegotiation: { mode }, ...options });
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  return { client, transport };
}

export function endpoint(gateward: Gateward, server: string): URL {
  return new URL(`/mcp/${server}`, gateward.url);
}

export function connectThrough(gateward: Gateward, server: string, { token }: TestAgent, mode: Negotiation, options: ClientOptions = {}): Promise<Connected> {
  return connect(endpoint(gateward, server), mode, { token, ...options });
}

/** The tools that the server lists without Gateward. */
export async function toolsAt(url: string): Promise<Tool[]> {
  const { client } = await connect(url, "auto");
  const { tools } = await client.listTools();
  await client.close();
  return tools;
}

/** A server with its tools, all approved and only reading, except for changes to tools by name. */
export function mcpRows(
  server: string,
  tools: Tool[],
  upstream: UpstreamFields,
  changes: Record<string, Partial<ToolRow> | null> = {},
): { servers: ServerRow[]; tools: ToolRow[] } {
  const row = (tool: string): ToolRow => ({ server, tool, mutates: false, risk: "low", ...changes[tool] });
  const listed = tools.map(({ name, inputSchema }) => ({ ...row(name), input_schema: inputSchema }));
  return {
    servers: [{ server, kind: "mcp", upstream: { local: true, ...upstream } }],
    tools: [...listed, ...ACTIONS.map(row)].filter(({ tool }) => changes[tool] !== null),
  };
}

/** What a tool's result says as text. */
export function textOf({ content }: CallToolResult): string {
  return content.map((block) => (block.type === "text" ? block.text : `<${block.type}>`)).join("\n");
}

let requests = 0;
/** A request of the revision without sessions, as it is sent. */
export function post(
  url: URL | string,
  token: string,
  method: string,
  { _meta, ...params }: Record<string, unknown> = {},
  { headers, ...init }: RequestInit = {},
): Promise<Response> {
  requests += 1;
  const version = "2026-07-28";
  const envelope = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, sampling: {}, roots: {} },
  };
  const name = params.name ?? params.uri;
  return fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": version,
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: requests, method, params: { ...params, _meta: { ...envelope, ...(_meta as object) } } }),
    ...init,
  });
}

/** The answer to a request. */
export interface Answered {
  result?: Record<string, unknown> & { _meta?: Record<string, unknown> };
  error?: { code: number; message: string; data?: unknown };
}

/** The answer in a response, whether it is the body or a stream's last event. */
export async function answerIn(response: Response): Promise<Answered> {
  const text = await response.text();
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text) as Answered;
  const data = text.split("\n").filter((line) => line.startsWith("data:")).at(-1);
  return JSON.parse(data?.slice("data:".length) ?? "null") as Answered;
}
