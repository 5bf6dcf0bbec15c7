// What `make start` serves, for one page: a Gateward with the demo tenant, and a directory that looks like
// the project's.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { BOOTSTRAP_SECRET, Gateward, MAC_KEY } from "../support/gateward.ts";
import type { Block } from "./page.ts";
import { makeSandbox, type Printed, run } from "./shell.ts";

/** The address of Gateward in the pages. */
const GATEWARD = "127.0.0.1:8787";
/** The port of the example server in the pages. */
const EXAMPLE_SERVER_PORT = "39101";
const SET_UP = `const { setUpDemo } = await import(process.argv[1]); await setUpDemo(process.argv[2]);`;

/** Runs the blocks against a new Gateward, with these secrets in addition. */
export async function runOnDemo(blocks: Block[], limitMs: number, secrets: Record<string, string> = {}): Promise<(Printed | undefined)[]> {
  const directory = mkdtempSync(join(tmpdir(), "gateward-docs-"));
  // Pages wait a fixed time for a flush, so flushes must be fast even on a busy machine.
  const gateward = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: 100 }, secrets: { TOKEN_MAC_KEY: MAC_KEY, BOOTSTRAP_SECRET, ...secrets } });
  const front = await frontOf(gateward.url);
  try {
    makeSandbox(directory);
    writeFileSync(join(directory, ".dev.vars"), `TOKEN_MAC_KEY="${MAC_KEY}"\nBOOTSTRAP_SECRET="${BOOTSTRAP_SECRET}"\n`);
    const environment = { GATEWARD_URL: `http://127.0.0.1:${portOf(front)}`, GATEWARD_PORT: portOf(front) };
    const setUp = ["--input-type=module", "--eval", SET_UP, resolve("scripts/demo-tenant.ts"), BOOTSTRAP_SECRET];
    await promisify(execFile)(process.execPath, setUp, { cwd: directory, env: { ...process.env, ...environment } });

    const ports: [string, string][] = [[GATEWARD, `127.0.0.1:${portOf(front)}`], [EXAMPLE_SERVER_PORT, await freePort()]];
    const here = (text: string) => ports.reduce((text, [shown, used]) => text.replaceAll(shown, used), text);
    const shown = (text: string) => ports.reduce((text, [shown, used]) => text.replaceAll(used, shown), text);
    const local = blocks.map((block) => ({ ...block, commands: here(block.commands), first: block.first && here(block.first) }));
    const printed = await run(local, directory, environment, limitMs);
    return printed.map((result) => result && { ...result, text: shown(result.text) });
  } finally {
    front.closeAllConnections();
    front.close();
    await gateward.close();
    rmSync(directory, { recursive: true });
  }
}

/** Says which address connected, as Cloudflare and `wrangler dev` do. */
async function frontOf(target: URL): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    const { method, url, socket } = incoming;
    const headers = { ...incoming.headers, "cf-connecting-ip": socket.remoteAddress };
    const passed = request(new URL(url ?? "/", target), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    // If the client disconnects, the request ends, as it would without this proxy.
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  return listening(server);
}

async function freePort(): Promise<string> {
  const probe = await listening(createServer());
  const port = portOf(probe);
  probe.close();
  await once(probe, "close");
  return port;
}

async function listening(server: Server): Promise<Server> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const portOf = (server: Server) => String((server.address() as AddressInfo).port);
