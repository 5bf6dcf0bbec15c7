// The MCP server against which the conformance suite runs, through Gateward. It has everything that the suite's
// scenarios name, in the revision without sessions and in those with them.
//
// If it is run alone, it prints its URL and serves until it is stopped.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type NodeIncomingMessageLike, toNodeHandler } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  createRequestStateCodec,
  type EventStore,
  hostHeaderValidationResponse,
  isLegacyRequest,
  type JSONRPCMessage,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpHttpHandler,
  McpServer,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport as SessionTransport,
} from "@modelcontextprotocol/server";
import { addContents } from "./fixture-contents.ts";
import { addRounds, type RoundState } from "./fixture-rounds.ts";
import { addTools } from "./fixture-tools.ts";

const PATH = "/mcp";
/** How long a client waits before it asks again for a stream that was closed. */
const RETRY_MS = 500;
const PUBLIC = { cacheScope: "public", ttlMs: 60_000 } as const;

export interface FixtureOptions {
  /** Adds the server's tools, prompts and resources; by default those that the conformance suite uses. */
  populate?: (server: McpServer) => void;
  /** Answers with JSON bodies only: a response's head is not sent before its result. */
  json?: boolean;
  /** Supports only the revisions with sessions. */
  sessionsOnly?: boolean;
}

export class Fixture {
  readonly #options: FixtureOptions;
  readonly #http: HttpServer;
  readonly #sessions = new Map<string, SessionTransport>();
  /** A request without a session may return the state that another request got. */
  readonly #states = createRequestStateCodec<RoundState>({ key: crypto.getRandomValues(new Uint8Array(32)) });
  readonly #modern: McpHttpHandler;

  private constructor(options: FixtureOptions) {
    this.#options = options;
    this.#modern = createMcpHandler(() => this.#server(), { legacy: "reject", responseMode: options.json ? "json" : "auto" });
    const handler = toNodeHandler({ fetch: (request) => this.#fetch(request) });
    // The types differ only in which members may be undefined.
    this.#http = createServer((request, response) => void handler(request as NodeIncomingMessageLike, response));
  }

  static async start(options: FixtureOptions = {}): Promise<Fixture> {
    const fixture = new Fixture(options);
    fixture.#http.listen(0, "127.0.0.1");
    await once(fixture.#http, "listening");
    return fixture;
  }

  get url(): string {
    return `http://localhost:${(this.#http.address() as AddressInfo).port}${PATH}`;
  }

  async close(): Promise<void> {
    await this.#modern.close();
    for (const session of this.#sessions.values()) await session.close();
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, "close");
  }

  /** One for each session, or for each request if there are no sessions. */
  #server(): McpServer {
    const server = new McpServer(
      { name: "gateward-fixture", version: "1.0.0" },
      {
        capabilities: {
          tools: { listChanged: true },
          resources: { subscribe: true, listChanged: true },
          prompts: { listChanged: true },
          logging: {},
          completions: {},
        },
        requestState: { verify: this.#states.verify },
        // Gateward must filter these: it lists for each agent only what this agent may use.
        cacheHints: { "tools/list": PUBLIC, "prompts/list": PUBLIC, "resources/list": PUBLIC },
      },
    );
    const { populate = this.#populate } = this.#options;
    populate(server);
    return server;
  }

  readonly #populate = (server: McpServer): void => {
    addTools(server, this.#modern.notify);
    addRounds(server, this.#states);
    addContents(server);
  };

  async #fetch(request: Request): Promise<Response> {
    const refused =
      hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
      originValidationResponse(request, localhostAllowedOrigins());
    if (refused !== undefined) return refused;
    if (new URL(request.url).pathname !== PATH) return new Response(null, { status: 404 });
    return this.#options.sessionsOnly || (await isLegacyRequest(request)) ? this.#inSession(request) : this.#modern.fetch(request);
  }

  /** A request that names a session goes to this session. A request that names none can only begin one. */
  async #inSession(request: Request): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    if (id !== null) {
      return this.#sessions.get(id)?.handleRequest(request) ?? jsonRpcError(404, -32001, "Session not found");
    }
    const transport: SessionTransport = new SessionTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: this.#options.json ?? false,
      eventStore: new Events(),
      retryInterval: RETRY_MS,
      onsessioninitialized: (session) => void this.#sessions.set(session, transport),
      onsessionclosed: (session) => void this.#sessions.delete(session),
    });
    await this.#server().connect(transport);
    return transport.handleRequest(request);
  }
}

/** What a session sent, for clients that reconnect. */
class Events implements EventStore {
  readonly #sent: { stream: string; message: JSONRPCMessage }[] = [];

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    return String(this.#sent.push({ stream, message }));
  }

  /** Ids count from 1, so that an event's id is also how many go before the next. */
  async replayEventsAfter(id: string, { send }: { send(id: string, message: JSONRPCMessage): Promise<void> }): Promise<string> {
    const stream = this.#sent[Number(id) - 1]?.stream ?? "";
    for (const [at, event] of this.#sent.entries()) {
      // An event that only begins a stream has no message.
      if (at >= Number(id) && event.stream === stream && "jsonrpc" in event.message) await send(String(at + 1), event.message);
    }
    return stream;
  }
}

function jsonRpcError(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await Fixture.start()).url);
}
