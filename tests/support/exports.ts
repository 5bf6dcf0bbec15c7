// Exports of a worker's logs, and the two programs that verify them, which share no code: `gateward verify`, and
// tests/verifier/verify.py.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MAC_KEY } from "./gateward.ts";
import { ED25519, Signer } from "./tlog.ts";

/** `make test` builds it. */
const BINARY = "target/debug/gateward";
/** Without it, only one program verifies. */
export const PYTHON = process.env.GATEWARD_VERIFIER_PYTHON;
if (PYTHON === undefined && process.env.CI !== undefined) throw new Error("CI needs `GATEWARD_VERIFIER_PYTHON`, as scripts/clients.sh prints it");

const HOST = "gateward.test";
const SEED = Buffer.alloc(32, 9);
/** Of a worker whose logs are exported. */
export const LOG_SECRETS = { TOKEN_MAC_KEY: MAC_KEY, LOG_KEY: SEED.toString("hex"), LOG_ORIGIN: HOST };

export const originOf = (log: string) => `${HOST}/v1/log/${log}`;
/** Signs for a log as the worker does, or with another seed, as an attacker would. */
export const logSigner = (log: string, seed = SEED) => new Signer(originOf(log), ED25519, seed);

export interface Run {
  code: number;
  said: string;
}

/** What `gateward --json verify` says. */
export interface Report {
  verified: boolean;
  faults: { fault: string; log: string | null; first_receipt: number | null; last_receipt: number | null; line: number; detail: string }[];
  logs: { log: string; receipts: number; first_receipt: number | null; last_receipt: number | null; size: number; root: string }[];
  cosignatures: unknown[];
  notes: { log: string; note: string }[];
  /** What `verify.py` printed; undefined if it was not run. */
  other: string | undefined;
}

function run(program: string, args: string[], variables: Record<string, string> = {}): Promise<Run & { stdout: string }> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env.PATH ?? "", ...variables }, maxBuffer: 2 ** 26 };
    execFile(program, args, options, (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr, stdout }));
  });
}

/** A directory of exports. */
export class Exports {
  readonly #directory = mkdtempSync(join(tmpdir(), "gateward-exports-"));
  #files = 0;

  constructor() {
    if (!existsSync(BINARY)) throw new Error(`\`${BINARY}\` is missing: run \`make test\`, which builds it`);
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }

  /** The path of a file that does not exist, or that has this text. */
  file(text?: string | Uint8Array): string {
    this.#files += 1;
    const file = join(this.#directory, `${this.#files}.ndjson`);
    if (text !== undefined) writeFileSync(file, text);
    return file;
  }

  /** Runs `gateward` with a credential. */
  gateward(url: URL, token: string, ...args: string[]): Promise<Run> {
    return run(BINARY, args, { GATEWARD_URL: url.href, GATEWARD_TOKEN: token });
  }

  /** Runs `gateward export`. */
  to(file: string, url: URL, token: string): Promise<Run> {
    return this.gateward(url, token, "export", "--output", file);
  }

  /** The file of an export that must succeed. */
  async of(url: URL, token: string): Promise<string> {
    const file = this.file();
    const { code, said } = await this.to(file, url, token);
    if (code !== 0) throw new Error(`the export ended with ${code}: ${said}`);
    return file;
  }

  /** Returns the findings of both programs. They must agree on whether the export verifies. */
  async verify(file: string, tenant: string, ...options: string[]): Promise<Report> {
    const args = [file, "--key", logSigner(`${tenant}.head`).vkey, ...options];
    const found = await run(BINARY, ["--json", "verify", ...args]);
    let report: Report;
    try {
      report = JSON.parse(found.stdout) as Report;
    } catch {
      throw new Error(`\`gateward verify\` ended with ${found.code}: ${found.said}`);
    }
    if (report.verified !== (found.code === 0)) throw new Error(`\`gateward verify\` ended with ${found.code}, and said ${found.said}`);
    if (PYTHON === undefined) return { ...report, other: undefined };
    const other = await run(PYTHON, ["-B", "tests/verifier/verify.py", ...args]);
    if (other.code !== found.code) throw new Error(`the programs disagree:\n${found.said}\n${other.said}`);
    return { ...report, other: other.said };
  }
}

/** The lines of an export. */
export function linesOf(file: string): Line[] {
  return readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

export type Line =
  | { type: "export"; version: number; tenant: string; origin: string; created_at: string }
  | { type: "log"; log: string; first: number; begin: number; edge: string[]; prev_hash: string }
  | Entry
  | { type: "missing"; log: string; index: number; leaf_hash: string }
  | { type: "event"; log: string; index: number; event: string | null }
  | { type: "checkpoint"; log: string; note: string }
  | { type: "end"; entries: number };

export interface Entry {
  type: "entry";
  log: string;
  index: number;
  body: string;
}
