// Runs the MCP project's conformance suite for one revision and compares the results: each check that fails must be
// listed in `expected-<revision>.yaml` with its reason, and each listed check must fail.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const REVISIONS = ["2026-07-28", "2025-11-25"] as const;
export type Revision = (typeof REVISIONS)[number];

/** A bound against hanging: a run takes seconds. */
const RUN_LIMIT_MS = 180_000;
const SUITE = join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/conformance/dist/index.js");
/** Characters of a failure's message: some quote whole messages, and then list them. */
const MAX_MESSAGE = 400;
/** A scenario or one check of it, as the suite reads it, and why it fails. */
const EXPECTATION = /^ {2}- ([^\s:]+)(?::(\S+))? # \S/;

interface Check {
  id: string;
  status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  errorMessage?: string;
}

export interface Outcome {
  /** Checks that passed. */
  passed: number;
  /** Checks that failed or were left out, and that are not expected to: `<scenario>:<check>: <why>`. */
  failed: string[];
  /** Checks that failed as expected. */
  expected: string[];
  /** Expected failures that did not occur. */
  stale: string[];
}

export async function runSuite(revision: Revision, url: string, signal?: AbortSignal): Promise<Outcome> {
  const results = mkdtempSync(join(tmpdir(), "gateward-conformance-"));
  try {
    const expectations = join(import.meta.dirname, `expected-${revision}.yaml`);
    const args = ["server", "--url", url, "--requirements", revision, "--expected-failures", expectations, "-o", results];
    const suite = spawn(process.execPath, [SUITE, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: RUN_LIMIT_MS,
      killSignal: "SIGKILL",
      ...(signal && { signal }),
    });
    const output: Buffer[] = [];
    for (const stream of [suite.stdout, suite.stderr]) stream.on("data", (chunk: Buffer) => output.push(chunk));
    const [status] = await once(suite, "close");
    const outcome = judged(readScenarios(results), readExpectations(expectations));
    // The suite itself judges the scenarios that the revision requires, by the same file.
    if (status !== 0 && outcome.failed.length + outcome.stale.length === 0) {
      throw new Error(`the suite ended with status ${status}:\n${Buffer.concat(output)}`);
    }
    return outcome;
  } finally {
    rmSync(results, { recursive: true, force: true });
  }
}

/** The checks of each scenario, from the directory that the suite makes for it. */
function readScenarios(results: string): Map<string, Check[]> {
  const scenarios = readdirSync(results).map((directory): [string, Check[]] => {
    const scenario = directory.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    const path = join(results, directory, "checks.json");
    if (!existsSync(path)) return [scenario, [{ id: "end", status: "FAILURE", errorMessage: "the scenario did not come to its end" }]];
    return [scenario, JSON.parse(readFileSync(path, "utf8")) as Check[]];
  });
  return new Map(scenarios);
}

/** The names in the file, `<scenario>` or `<scenario>:<check>`. */
function readExpectations(path: string): string[] {
  const entries = readFileSync(path, "utf8").split("\n").filter((line) => /^ *-/.test(line));
  return entries.map((line) => {
    const [, scenario, check] = EXPECTATION.exec(line) ?? [];
    if (scenario === undefined) throw new Error(`\`${path}\` has an entry without its reason: \`${line}\``);
    return check === undefined ? scenario : `${scenario}:${check}`;
  });
}

function judged(scenarios: Map<string, Check[]>, expectations: string[]): Outcome {
  const outcome: Outcome = { passed: 0, failed: [], expected: [], stale: [] };
  const seen = new Set<string>();
  for (const [scenario, checks] of scenarios) {
    for (const { id, status, errorMessage = "" } of checks) {
      if (status === "INFO") continue;
      const name = `${scenario}:${id}`;
      const expectation = expectations.find((entry) => entry === scenario || entry === name);
      if (status === "SUCCESS") outcome.passed += 1;
      else if (expectation === undefined) outcome.failed.push(`${name}: ${status} ${errorMessage.slice(0, MAX_MESSAGE)}`);
      else {
        outcome.expected.push(name);
        seen.add(expectation);
      }
    }
  }
  outcome.stale = expectations.filter((entry) => !seen.has(entry));
  return outcome;
}
