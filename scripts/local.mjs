// The local instance: its secret, its embedded database and the demo tenant's credentials.
// Everything it keeps is ignored by git: `.dev.vars`, `.wrangler/` and `.gateward/`.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { toSqlText } from "../tests/support/registry.ts";
import { hasValidMac, mintAdministratorToken, mintAgentToken } from "../tests/support/tokens.ts";

export const DEMO_TENANT = "demo";

const port = Number(process.env.GATEWARD_PORT ?? 8787);
/** Where `make start` serves. */
export const LOCAL = { host: "127.0.0.1", port, url: `http://127.0.0.1:${port}` };

const DEV_VARS = ".dev.vars";
const STATE = ".gateward";
const CREDENTIALS = `${STATE}/demo.json`;
/** Readable by nobody else: both files hold secrets. */
const PRIVATE = { mode: 0o600 };

/** The worker's secret, made on first use. */
export function macKey() {
  const text = existsSync(DEV_VARS) ? readFileSync(DEV_VARS, "utf8") : "";
  const found = /^TOKEN_MAC_KEY *= *"?([^"\n]*)"?$/m.exec(text)?.[1];
  if (found !== undefined) return found;
  const key = randomBytes(32).toString("hex");
  const separator = text === "" || text.endsWith("\n") ? "" : "\n";
  writeFileSync(DEV_VARS, `${text}${separator}TOKEN_MAC_KEY="${key}"\n`, PRIVATE);
  return key;
}

/**
 * The demo tenant's credentials: the same ones at every start, as long as the secret is the same.
 * @returns {Record<"coder" | "support" | "administrator", import("../tests/support/tokens.ts").Credential>}
 */
export function demoCredentials() {
  const key = macKey();
  if (existsSync(CREDENTIALS)) {
    const kept = JSON.parse(readFileSync(CREDENTIALS, "utf8"));
    if (["coder", "support", "administrator"].every((name) => hasValidMac(kept[name].token, key))) return kept;
  }
  const credentials = {
    coder: mintAgentToken(key, DEMO_TENANT, "coder"),
    support: mintAgentToken(key, DEMO_TENANT, "support"),
    administrator: mintAdministratorToken(key, DEMO_TENANT),
  };
  mkdirSync(STATE, { recursive: true });
  writeFileSync(CREDENTIALS, `${JSON.stringify(credentials, null, 2)}\n`, PRIVATE);
  return credentials;
}

/** The environment for wrangler: no telemetry, and no second build. */
export const WRANGLER_ENV = { ...process.env, WRANGLER_SEND_METRICS: "false", GATEWARD_PREBUILT: "1" };

/**
 * Runs wrangler to its end; what it says shows only when it fails.
 * @param {string[]} args
 */
export async function wrangler(...args) {
  try {
    await promisify(execFile)("wrangler", args, { env: WRANGLER_ENV });
  } catch (error) {
    const { stdout = "", stderr = "" } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
    throw new Error(`\`wrangler ${args.join(" ")}\` failed:\n${stdout}${stderr}`);
  }
}

/**
 * Runs statements on the embedded database, whether or not the worker is running.
 * @param {import("../tests/support/registry.ts").Statement[]} statements
 */
export async function executeLocally(statements) {
  mkdirSync(STATE, { recursive: true });
  const file = `${STATE}/statements.sql`;
  writeFileSync(file, toSqlText(statements));
  await wrangler("d1", "execute", "DB", "--local", "--file", file);
}

/**
 * The answer of GET /readyz; `null` when nobody answers at all.
 * @param {string} url
 */
export async function readiness(url) {
  try {
    return await fetch(new URL("/readyz", url));
  } catch {
    return null;
  }
}

/** How long a worker may take from its start to its first answer. */
const READY_LIMIT_MS = 60_000;
const READY_POLL_MS = 100;

/**
 * Waits until the worker at `url` answers that it is ready.
 * @param {string} url
 * @param {() => boolean} alive whether the process that should answer still runs
 * @param {number} [limitMs]
 */
export async function untilReady(url, alive, limitMs = READY_LIMIT_MS) {
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

/**
 * Runs `main`; an error becomes one line and a non-zero exit.
 * @param {() => Promise<void>} main
 */
export async function run(main) {
  try {
    await main();
  } catch (error) {
    console.error(`gateward: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
}
