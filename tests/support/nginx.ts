// A real nginx on a socket of its own, with nothing of the machine's configuration.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingHttpHeaders, request, type RequestOptions } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { eventually } from "./gateward.ts";

/** Its configuration, as in docs/forward-auth.md. */
export const CONFIGURATION = "tests/nginx/gateward.conf";

export interface Answered {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** A request with its path and query as they are: `fetch` would resolve `..`. */
export async function sendRaw(options: RequestOptions, body = ""): Promise<Answered> {
  const sent = request({ agent: false, ...options });
  sent.end(body);
  const [response] = await once(sent, "response");
  return { status: response.statusCode, headers: response.headers, text: await text(response) };
}

export class Nginx {
  readonly #process: ChildProcess;
  readonly #directory: string;

  private constructor(process: ChildProcess, directory: string) {
    this.#process = process;
    this.#directory = directory;
  }

  /** In front of an API, asking Gateward. */
  static async start(gateward: URL, api: URL): Promise<Nginx> {
    const binary = execFileSync("scripts/nginx.sh", { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
    const directory = mkdtempSync(join(tmpdir(), "gateward-nginx-"));
    writeFileSync(join(directory, "nginx.conf"), around(directory, gateward, api));
    const process = spawn(binary, ["-p", directory, "-c", join(directory, "nginx.conf"), "-e", "stderr"], { stdio: ["ignore", "ignore", "inherit"] });
    const nginx = new Nginx(process, directory);
    await eventually("nginx listens", () => {
      if (process.exitCode !== null) throw new Error(`nginx ended with ${process.exitCode}`);
      return nginx.get("/").then(() => true, () => false);
    });
    return nginx;
  }

  send(method: string, path: string, headers: Record<string, string> = {}, body = ""): Promise<Answered> {
    return sendRaw({ socketPath: socketIn(this.#directory), method, path, headers: { host: "crm.example", ...headers } }, body);
  }

  get(path: string, headers?: Record<string, string>): Promise<Answered> {
    return this.send("GET", path, headers);
  }

  async close(): Promise<void> {
    this.#process.kill("SIGTERM");
    if (this.#process.exitCode === null) await once(this.#process, "exit");
    rmSync(this.#directory, { recursive: true });
  }
}

const socketIn = (directory: string) => join(directory, "socket");

/** The configuration around it, as in the documentation, with its own files. */
function around(directory: string, gateward: URL, api: URL): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${directory}/${kind};`);
  return `
    daemon off;
    master_process off;
    pid ${directory}/pid;
    error_log stderr crit;
    events {}
    http {
      access_log off;
      ${temporary.join("\n      ")}
      upstream gateward { server ${gateward.host}; }
      upstream crm { server ${api.host}; }
      server {
        listen unix:${socketIn(directory)};
        include ${resolve(CONFIGURATION)};
      }
    }`;
}
