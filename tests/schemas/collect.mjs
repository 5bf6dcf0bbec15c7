// @ts-nocheck: a script that is run by hand.
// Asks MCP servers over stdio for their tools, to see whether Gateward takes them (docs/mcp.md, Schemas). CI does not
// need it.
//
//     node tests/schemas/collect.mjs servers.json lists
//     GATEWARD_TOOL_LISTS=$PWD/lists cargo test -p gateward-core --test servers -- --ignored
//
// servers.json: [{"name": "time", "command": ["mcp-server-time", "--local-timezone", "UTC"], "env": {}}]. Install the
// servers' packages outside the repository; keys in `env` may be made up, since listing tools calls nothing.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";

const DEADLINE_MS = 40_000;
const STDERR_SHOWN = 600;
const [, , list, out] = process.argv;

/** The pages of `tools/list`, as they came. */
async function pages({ command: [program, ...args], env }) {
  const server = spawn(program, args, { env: { PATH: process.env.PATH, HOME: tmpdir(), ...env } });
  let stderr = "";
  server.stderr.on("data", (text) => {
    stderr = (stderr + text).slice(-STDERR_SHOWN);
  });
  let fail;
  const failed = new Promise((_, reject) => {
    fail = (why) => reject(new Error(`${why}: ${stderr}`));
  });
  failed.catch(() => undefined);
  server.on("exit", (code) => fail(`it ended with ${code}`));
  server.on("error", (error) => fail(error.message));
  server.stdin.on("error", () => undefined);
  const timer = setTimeout(() => fail("it did not answer in time"), DEADLINE_MS);
  const waiting = new Map();
  const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  createInterface({ input: server.stdout }).on("line", (line) => {
    if (!line.startsWith("{")) return;
    const message = JSON.parse(line);
    if (message.method !== undefined) {
      // What it asks of a client is refused.
      if (message.id !== undefined) send({ id: message.id, error: { code: -32601, message: "not here" } });
      return;
    }
    waiting.get(message.id)?.({ message, line });
  });
  let id = 0;
  const ask = (method, params) => {
    id += 1;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    send({ id, method, params });
    return Promise.race([failed, answered]);
  };
  try {
    const clientInfo = { name: "gateward", version: "1" };
    const capabilities = { elicitation: {}, roots: {}, sampling: {} };
    await ask("initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo });
    send({ method: "notifications/initialized" });
    const lines = [];
    let cursor;
    do {
      const { message, line } = await ask("tools/list", cursor === undefined ? {} : { cursor });
      if (message.error) throw new Error(JSON.stringify(message.error));
      lines.push(line);
      cursor = message.result.nextCursor;
    } while (cursor);
    return lines;
  } finally {
    clearTimeout(timer);
    server.kill("SIGKILL");
  }
}

mkdirSync(out, { recursive: true });
for (const server of JSON.parse(readFileSync(list, "utf8"))) {
  try {
    const lines = await pages(server);
    writeFileSync(`${out}/${server.name}.jsonl`, `${lines.join("\n")}\n`);
    console.log(`${server.name}: listed`);
  } catch (error) {
    console.log(`${server.name}: ${error.message}`);
  }
}
process.exit(0);
