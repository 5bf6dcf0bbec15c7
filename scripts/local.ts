// The local instance: its secrets, its embedded database, the demo tenant's tokens, and the command line. Git
// ignores all that it keeps: `.dev.vars`, `.wrangler/` and `.gateward/`.
import { execFile, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";

export const DEMO_TENANT = "demo";

const port = Number(process.env.GATEWARD_PORT ?? 8787);
/** Where `make start` serves. */
export const LOCAL = { host: "127.0.0.1", port, url: `http://127.0.0.1:${port}` };

const DEV_VARS = ".dev.vars";
export const STATE = ".gateward";
/** The demo administrator's token. */
export const ADMINISTRATOR_TOKEN = `${STATE}/admin.token`;

export function agentTokenFile(agent: string): string {
  return `${STATE}/${agent}.token`;
}

/** The text of a file without white space around it; empty if there is no such file. */
export function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8").trim() : "";
}

/** The worker's secrets, each generated on first use. */
export function workerSecrets() {
  return { TOKEN_MAC_KEY: workerSecret("TOKEN_MAC_KEY"), BOOTSTRAP_SECRET: workerSecret("BOOTSTRAP_SECRET"), LOG_KEY: workerSecret("LOG_KEY"), LOG_ORIGIN: workerSecret("LOG_ORIGIN", "gateward.example") };
}

function workerSecret(name: string, secret = randomBytes(32).toString("hex")): string {
  const text = existsSync(DEV_VARS) ? readFileSync(DEV_VARS, "utf8") : "";
  const found = new RegExp(`^${name} *= *"?([^"\\n]*)"?$`, "m").exec(text)?.[1];
  if (found !== undefined) return found;
  const separator = text === "" || text.endsWith("\n") ? "" : "\n";
  writeFileSync(DEV_VARS, `${text}${separator}${name}="${secret}"\n`, { mode: 0o600 });
  return secret;
}

/** The command line, where `cargo build` puts it. */
export const COMMAND_LINE = `${process.env.CARGO_TARGET_DIR ?? "target"}/debug/gateward`;

/** Builds the worker, unless a target has just built it. */
export function buildWorker(): void {
  execFileSync("scripts/build-wasm.sh", { stdio: "inherit", env: { GATEWARD_PROFILE: "wasm-test", ...process.env } });
}

/** Builds the command line, unless a target has just built it. */
export function buildCommandLine(): void {
  if (process.env.GATEWARD_PREBUILT === "1") return;
  execFileSync("cargo", ["build", "--quiet", "--package", "gateward"], { stdio: "inherit" });
}

/** The command line failed. */
export class CommandFailed extends Error {
  /** The API's code, if the API refused. */
  readonly code: string | undefined;
  /** What it printed before. */
  readonly printed: string;

  constructor(args: string[], stderr: string, stdout: string) {
    super(`\`gateward ${args.join(" ")}\` failed: ${stderr.trim()}`);
    this.printed = stdout;
    this.code = /^gateward: ([a-z_]+): /m.exec(stderr)?.[1];
  }
}

/** Exit status of a change that is committed, but that not every lane has confirmed. */
const PENDING = 3;

/** Runs the command line as the demo's administrator. It returns the API's JSON, or `null` if the answer is empty. */
export async function gateward<Body>(url: string, args: string[], env: Record<string, string> = {}): Promise<Body> {
  const output = await printedBy(url, ["--json", ...args], env);
  return JSON.parse(output.trim() === "" ? "null" : output) as Body;
}

/** Runs the command line as the demo's administrator. It returns what the command prints. */
export async function printedBy(url: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  // GATEWARD_TOKEN would take precedence over the file.
  const identity = { GATEWARD_URL: url, GATEWARD_TOKEN: "", GATEWARD_TOKEN_FILE: ADMINISTRATOR_TOKEN };
  try {
    const options = { env: { ...process.env, ...identity, ...env } };
    return (await promisify(execFile)(COMMAND_LINE, args, options)).stdout;
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as { code?: number | string; stdout?: string; stderr?: string };
    if (code !== PENDING) throw new CommandFailed(args, stderr === "" ? String(error) : stderr, stdout);
    process.stderr.write(stderr);
    return stdout;
  }
}

/** Shows a command of the administrator, and runs it. It returns what the command prints. */
export function showCommand(url: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  console.log(`$ gateward ${args.map((arg) => (/[\s*"]/.test(arg) ? `'${arg}'` : arg)).join(" ")}`);
  return printedBy(url, args, env);
}

/** Prints what the next part of a demo shows. */
export function title(words: string): void {
  console.log(`\n== ${words} ==\n`);
}

/** The environment for wrangler: no telemetry, and no second build. */
export const WRANGLER_ENV = { ...process.env, WRANGLER_SEND_METRICS: "false", GATEWARD_PREBUILT: "1" };

/** Runs wrangler to its end; its output shows only if it fails. */
export async function wrangler(...args: string[]): Promise<void> {
  try {
    await promisify(execFile)("wrangler", args, { env: WRANGLER_ENV });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`\`wrangler ${args.join(" ")}\` failed:\n${stdout}${stderr}`);
  }
}

/** The answer of GET /readyz; `null` if nothing answers. */
export async function readiness(url: string): Promise<Response | null> {
  try {
    return await fetch(new URL("/readyz", url));
  } catch {
    return null;
  }
}

/** How long a worker may take from its start to its first answer. */
const READY_LIMIT_MS = 60_000;
const READY_POLL_MS = 100;

/** Waits until the worker at `url` answers that it is ready. `alive` says whether its process still runs. */
export async function untilReady(url: string, alive: () => boolean, limitMs = READY_LIMIT_MS): Promise<void> {
  const deadline = Date.now() + limitMs;
  for (let last = "no answer"; ; ) {
    const response = await readiness(url);
    if (response?.ok) return;
    if (response !== null) last = `${response.status} ${await response.text()}`;
    if (!alive()) throw new Error("the worker stopped before it was ready");
    if (Date.now() > deadline) throw new Error(`the worker is not ready: ${last}`);
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
}

/** A first start builds the Wasm. */
const START_LIMIT_MS = 1_800_000;

/** Plays a demo against the worker that runs, or against one that it starts and stops. */
export async function playDemo(play: (url: string) => Promise<void>): Promise<void> {
  const url = process.env.GATEWARD_URL ?? LOCAL.url;
  const prepared = () => {
    if (textOf(ADMINISTRATOR_TOKEN) === "") {
      throw new Error(`there is no token in ${ADMINISTRATOR_TOKEN}: \`make start\` puts it there`);
    }
    buildCommandLine();
    return play(url);
  };
  if ((await readiness(url)) !== null) return prepared();
  if (process.env.GATEWARD_URL !== undefined) throw new Error(`nothing answers on ${url}: start Gateward there, or unset GATEWARD_URL`);
  console.log(`Nothing answers on ${url}: starting Gateward for the demo.`);
  const server = spawn(process.execPath, ["scripts/start.ts"], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const exited = once(server, "exit");
  const stop = () => server.kill("SIGTERM");
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    await Promise.race([
      once(server, "message", { signal: AbortSignal.timeout(START_LIMIT_MS) }),
      exited.then(() => {
        throw new Error("Gateward stopped before it was ready");
      }),
    ]);
    await prepared();
  } finally {
    stop();
    await exited;
  }
}
