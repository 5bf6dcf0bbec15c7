// Clients that well-known generators make from the document at /openapi.json, used against Gateward:
// openapi-python-client for Python, and @hey-api/openapi-ts for TypeScript.
import { execFile, spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Gateward, readCall, type Tenant, type TestAgent, writeCall } from "../support/gateward.ts";
import { json, Upstream } from "../support/upstream.ts";

/** Where `scripts/clients.sh` put them. */
const { GATEWARD_GENERATOR_PYTHON: PYTHON, GATEWARD_GENERATOR_TYPESCRIPT: TYPESCRIPT } = process.env;
const PROGRAMS = "tests/clients/openapi";
const NODE_MODULES = resolve("node_modules");

let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;
let agent: TestAgent;
/** A directory for what is generated. */
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "gateward-clients-"));
  upstream = await Upstream.start();
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  agent = await tenant.agent();
  await tenant.register({ servers: [{ server: "api", kind: "http", upstream: { url: upstream.url(), local: true, routes: [{ method: "GET", path: "/issues", tool: "list_issues" }] } }] });
  await tenant.register({ tools: [{ server: "api", tool: "list_issues", mutates: false, risk: "low" }] });
  // A receipt of each kind: decision, outcome, approval and registry.
  upstream.answer = json([]);
  await (await fetch(new URL("/http/api/issues", gateward.url), { headers: { authorization: `Bearer ${agent.token}` } })).text();
  const { approval } = await gateward.decide(agent.token, writeCall({ context: { source_trust: "semi_trusted_customer" } }));
  const sam = await tenant.approver("sam", "security");
  await sam.change("POST", `/v1/approvals/${approval?.approval_id}/approve`);
  await tenant.api.act(agent.name, "untaint");
});
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await gateward?.close();
  await upstream?.close();
});

/** The output of a program that gets `input` as JSON. */
async function run(program: string, parameters: string[], name: string, environment: Record<string, string> = {}): Promise<unknown> {
  const input = {
    url: gateward.url.origin,
    agent_token: agent.token,
    administrator_token: tenant.admin,
    agent: `made-by-${name}`,
    call: readCall({ trace: { run_id: name } }),
  };
  const child = spawn(program, parameters, { env: { PATH: process.env.PATH ?? "", ...environment }, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(JSON.stringify(input));
  return JSON.parse(await text(child.stdout));
}

/** The same, from answers of the API without a generated client. */
async function expected(name: string): Promise<object> {
  const receipts = (await gateward.receipts(tenant.admin)).map(({ receipt_id, body }) => ({ receipt_id, body }));
  const said = receipts.map(({ body }) => {
    switch (body.kind) {
      case "decision":
        return `decision ${body.decision} ${body.reason_code} ${body.server}/${body.tool}`;
      case "approval":
        return `approval ${body.change} ${body.status} ${body.approval_id}`;
      case "outcome":
        return `outcome ${body.ending} ${body.status} ${body.result_sha256}`;
      case "dead_letter":
        return `dead_letter ${body.change} ${body.message_id} ${body.attempts}`;
      case "registry":
        return `${body.kind} ${body.change} ${body.administrator}`;
    }
  });
  return {
    decided: { decision: "allow", receipt: receipts.at(-1)?.receipt_id },
    receipts: said,
    created: { agent: `made-by-${name}`, lane: 0, allowed_tools: null },
    refused: { status: 409, code: "name_taken" },
  };
}

const kinds = (got: { receipts: string[] }) => new Set(got.receipts.map((receipt) => receipt.split(" ")[0]));

describe("a generated client decides, lists, creates, and reads problems and receipts of every kind", () => {
  test.skipIf(PYTHON === undefined)("in Python", async () => {
    // The generator formats what it writes with `ruff`, which is beside it.
    const env = { ...process.env, PATH: `${dirname(PYTHON ?? "")}:${process.env.PATH}` };
    await promisify(execFile)(PYTHON ?? "", ["-m", "openapi_python_client", "generate", "--path", "docs/openapi.json", "--meta", "none", "--output-path", join(directory, "gateward_client"), "--fail-on-warning"], { env });
    const got = await run(PYTHON ?? "", [join(PROGRAMS, "client.py")], "python", { PYTHONPATH: directory });
    await check("python", got);
  });

  test.skipIf(TYPESCRIPT === undefined)("in TypeScript, which the compiler has checked", async () => {
    const module = join(directory, "typescript");
    cpSync(PROGRAMS, module, { recursive: true });
    symlinkSync(NODE_MODULES, join(module, "node_modules"));
    const configuration = { input: resolve("docs/openapi.json"), output: { path: join(module, "gateward"), module: { extension: ".ts" } } };
    const file = join(directory, "openapi-ts.config.json");
    writeFileSync(file, JSON.stringify(configuration));
    await promisify(execFile)(process.execPath, [TYPESCRIPT ?? "", "--file", file, "--no-log-file"]);
    await promisify(execFile)(process.execPath, [join(NODE_MODULES, "typescript/lib/tsc.js"), "--project", module]);
    const got = await run(process.execPath, [join(module, "client.ts")], "typescript");
    await check("typescript", got);
  });
});

async function check(name: string, got: unknown): Promise<void> {
  const { decisions, ...rest } = got as { decisions: string[]; receipts: string[] };
  expect(rest).toEqual(await expected(name));
  expect(kinds(rest)).toEqual(new Set(["decision", "approval", "outcome", "registry"]));
  const known = (await tenant.records<{ decision_id: string }>("decisions")).map(({ decision_id }) => decision_id);
  expect(known).toEqual(expect.arrayContaining(decisions));
  expect(decisions.length).toBeGreaterThan(0);
}
