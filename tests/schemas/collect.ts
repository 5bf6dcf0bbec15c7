// Asks MCP servers over stdio for their tools, to see whether Gateward accepts them (docs/mcp.md, Schemas). CI does
// not need it.
//
//     npx node tests/schemas/collect.ts servers.json lists
//     GATEWARD_TOOL_LISTS=$PWD/lists cargo test -p gateward-admin --test all servers:: -- --ignored
//
// servers.json: [{"name": "time", "command": ["mcp-server-time", "--local-timezone", "UTC"], "env": {}}]. Install the
// servers' packages outside the repository. Keys in `env` may be made up, because listing tools calls nothing.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";

const DEADLINE_MS = 40_000;
const STDERR_SHOWN = 600;

interface Server {
  name: string;
  command: [string, ...string[]];
  env?: Record<string, string>;
}

interface Message {
  id?: number;
  method?: string;
  result?: { nextCursor?: string };
  error?: unknown;
}

/** The pages of `tools/list`, byte for byte. */
async function pages({ command: [program, ...args], env }: Server): Promise<string[]> {
  const server = spawn(program, args, { env: { PATH: process.env.PATH, HOME: tmpdir(), ...env } });
  let stderr = "";
  server.stderr.on("data", (text: Buffer) => {
    stderr = `${stderr}${text}`.slice(-STDERR_SHOWN);
  });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  const fail = (why: string) => reject(new Error(`${why}: ${stderr}`));
  server.on("exit", (code) => fail(`it ended with ${code}`));
  server.on("error", (error) => fail(error.message));
  server.stdin.on("error", () => undefined);
  const timer = setTimeout(() => fail("it did not answer in time"), DEADLINE_MS);
  const waiting = new Map<number, (answer: { message: Message; line: string }) => void>();
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  createInterface({ input: server.stdout }).on("line", (line) => {
    if (!line.startsWith("{")) return;
    const message = JSON.parse(line) as Message;
    if (message.method === undefined) waiting.get(message.id ?? NaN)?.({ message, line });
    // All of its requests to the client are refused.
    else if (message.id !== undefined) send({ id: message.id, error: { code: -32601, message: "not here" } });
  });
  let id = 0;
  const ask = (method: string, params: object) => {
    id += 1;
    const { promise: answered, resolve } = Promise.withResolvers<{ message: Message; line: string }>();
    waiting.set(id, resolve);
    send({ id, method, params });
    return Promise.race([failed, answered]);
  };
  try {
    const clientInfo = { name: "gateward", version: "1" };
    const capabilities = { elicitation: {}, roots: {}, sampling: {} };
    await ask("initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo });
    send({ method: "notifications/initialized" });
    const lines: string[] = [];
    let cursor: string | undefined;
    do {
      const { message, line } = await ask("tools/list", cursor === undefined ? {} : { cursor });
      if (message.error !== undefined) throw new Error(JSON.stringify(message.error));
      lines.push(line);
      cursor = message.result?.nextCursor;
    } while (cursor);
    return lines;
  } finally {
    clearTimeout(timer);
    server.kill("SIGKILL");
  }
}

const [, , list, out] = process.argv;
if (list === undefined || out === undefined) throw new Error("usage: collect.ts servers.json directory");
mkdirSync(out, { recursive: true });
for (const server of JSON.parse(readFileSync(list, "utf8")) as Server[]) {
  try {
    const lines = await pages(server);
    writeFileSync(`${out}/${server.name}.jsonl`, `${lines.join("\n")}\n`);
    console.log(`${server.name}: listed`);
  } catch (error) {
    console.log(`${server.name}: ${(error as Error).message}`);
  }
}
process.exit(0);
