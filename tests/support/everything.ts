// The MCP project's own example server, in a separate process.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { eventually } from "./gateward.ts";

const PROGRAM = join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js");

export class Everything {
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(url: string, process: ChildProcess) {
    this.url = url;
    this.#process = process;
  }

  static async start(): Promise<Everything> {
    const port = await freePort();
    // The server returns its environment to every caller.
    const child = spawn(process.execPath, [PROGRAM, "streamableHttp"], { env: { PORT: String(port) }, stdio: "ignore" });
    const everything = new Everything(`http://127.0.0.1:${port}/mcp`, child);
    try {
      await eventually("the example server answers", () => answers(everything));
    } catch (error) {
      await everything.close();
      throw error;
    }
    return everything;
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  async close(): Promise<void> {
    if (!this.running) return;
    this.#process.kill("SIGKILL");
    await once(this.#process, "exit");
  }
}

async function answers({ url, running }: Everything): Promise<boolean> {
  if (!running) throw new Error("the example server stopped");
  try {
    await (await fetch(url)).text();
    return true;
  } catch {
    return false;
  }
}

/** A port that nothing listens on now. The program cannot choose a port itself. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
