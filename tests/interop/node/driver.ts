// Lets one MCP client library do what the runner asks, and reports what it showed its user. The protocol is that of
// python/driver.py.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

/** Of revisions: up to 2025-11-25, and from 2026-07-28 on. */
export type Era = "session" | "stateless";

/** What a library shows of a call's result. */
export interface Shown {
  text: string;
  is_error: boolean;
}

/** A library that is connected. If a method fails, its error is what the library shows its user. */
export interface Connection {
  tools(): Promise<string[]>;
  call(name: string, args: Record<string, unknown>, meta: Record<string, unknown> | undefined, signal: AbortSignal): Promise<Shown>;
  close(): Promise<void>;
}

export interface Library {
  ableToSendMeta: boolean;
  connect(url: URL, headers: Record<string, string>): Promise<Connection>;
}

export type Command =
  | { do: "connect"; url: string; headers: Record<string, string> }
  | { do: "tools" | "abort" | "close" }
  | { do: "call" | "begin"; name: string; arguments: Record<string, unknown>; meta?: Record<string, unknown> };

interface Told {
  error: string;
  code: unknown;
  type: string;
}

/** An error as its user reads it. */
function told(error: unknown): Told {
  const { code = null, name = "" } = error as { code?: unknown; name?: string };
  return { error: error instanceof Error ? error.message : String(error), code, type: name };
}

export async function serve({ ableToSendMeta, connect }: Library): Promise<void> {
  let connection: Connection | undefined;
  let pending: { abort: AbortController; over: Promise<unknown> } | undefined;
  const current = (): Connection => {
    if (connection === undefined) throw new Error("the driver is not connected");
    return connection;
  };

  async function act(command: Command): Promise<object> {
    switch (command.do) {
      case "connect":
        connection = await connect(new URL(command.url), command.headers);
        return { able_to_send_meta: ableToSendMeta };
      case "tools":
        return { tools: await current().tools() };
      case "call":
        return current().call(command.name, command.arguments, command.meta, new AbortController().signal);
      case "begin": {
        const abort = new AbortController();
        const over = current().call(command.name, command.arguments, command.meta, abort.signal).catch(() => undefined);
        pending = { abort, over };
        return {};
      }
      case "abort":
        pending?.abort.abort();
        await pending?.over;
        return {};
      case "close":
        await current().close();
        connection = undefined;
        return {};
    }
  }

  for await (const line of createInterface({ input: process.stdin })) {
    const answer = await act(JSON.parse(line) as Command).catch(told);
    console.log(JSON.stringify(answer));
  }
  process.exit();
}

/** The text of a result's content. */
export function textOf(content: unknown): string {
  return (content as { text?: string }[]).map(({ text = "" }) => text).join("\n");
}

/** A path in the packages of package.json here, which are installed apart from the project's. */
export function pathInPackages(path: string): string {
  return join(process.env.GATEWARD_INTEROP_PACKAGES ?? "", "node_modules", path);
}

/** One of those packages. */
export function fromPackages(name: string): Promise<unknown> {
  const { resolve } = createRequire(pathInPackages("package.json"));
  return import(pathToFileURL(resolve(name)).href);
}
