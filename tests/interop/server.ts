// The MCP server that every client calls. It answers with JSON bodies, so a cancelled call has no response yet, not
// even a head. In this situation a cancellation is lost most easily.
import { fromJsonSchema, type McpServer, SdkError, type ServerContext } from "@modelcontextprotocol/server";
import { type Arguments, type Calling, objectOf, type Schema, text } from "../conformance/fixture-tools.ts";
import { Fixture } from "../conformance/fixture-server.ts";
import type { Era } from "./node/driver.ts";

/** How long a slow call takes if nobody cancels it: longer than any test waits for that. */
const SLOW_MS = 60_000;

/** What the server saw of a slow call. */
export interface SlowCall {
  /** In which era it was made. */
  era: Era;
  /** How it was told to stop, or `null`. */
  cancelled: "connection closed" | "session ended" | "notification" | null;
}

export class Server {
  /** By the key that the call was made with. */
  readonly slowCalls = new Map<string, SlowCall>();
  readonly #fixture: Fixture;

  private constructor(fixture: Fixture) {
    this.#fixture = fixture;
  }

  /** A server that supports the revisions of this era and of earlier ones. */
  static async start(era: Era): Promise<Server> {
    const server: Server = new Server(await Fixture.start({ json: true, sessionsOnly: era === "session", populate: (mcp) => server.#populate(mcp) }));
    return server;
  }

  get url(): string {
    return this.#fixture.url;
  }

  close(): Promise<void> {
    return this.#fixture.close();
  }

  #populate(server: McpServer): void {
    const add = (name: string, description: string, calling: Calling, schema: Schema = objectOf()) =>
      server.registerTool(name, { description, inputSchema: fromJsonSchema<Arguments>(schema) }, calling);
    add("echo", "Answers with its message", async ({ message }) => text(`Echo: ${message}`), objectOf({ message: { type: "string" } }));
    add("add", "Adds two integers", async ({ a, b }) => text(String(Number(a) + Number(b))), objectOf({ a: { type: "integer" }, b: { type: "integer" } }));
    add("write", "Writes a file", async ({ path }) => text(`wrote ${path}`), objectOf({ path: { type: "string" } }));
    add("fail", "Fails", async () => ({ ...text("the disk is full"), isError: true }));
    add("secret", "Answers with a secret", async () => text("a secret"));
    add("slow", "Takes a minute", (args, context) => this.#slow(String(args.key), context), objectOf({ key: { type: "string" } }));
  }

  async #slow(key: string, { http, mcpReq }: ServerContext): ReturnType<Calling> {
    const request = http?.req;
    const call: SlowCall = { era: request?.headers.has("mcp-session-id") ? "session" : "stateless", cancelled: null };
    this.slowCalls.set(key, call);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, SLOW_MS);
      const stop = (how: SlowCall["cancelled"]) => {
        call.cancelled ??= how;
        clearTimeout(timer);
        resolve();
      };
      request?.signal.addEventListener("abort", () => stop("connection closed"));
      // If there are no sessions, the SDK ends a request when its connection is closed.
      const ended = call.era === "session" ? "session ended" : "connection closed";
      mcpReq.signal.addEventListener("abort", () => stop(mcpReq.signal.reason instanceof SdkError ? ended : "notification"));
    });
    return text("finished");
  }
}
