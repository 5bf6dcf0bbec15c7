// Requests that are refused before their body is read: clients that are still sending get the answer.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Gateward, type Tenant } from "../support/gateward.ts";

/** Several times what the runtime drops by itself of a body that nobody reads. */
const BYTES = 5_000_000;
const PYTHON = process.env.GATEWARD_PYTHON ?? "";
const run = promisify(execFile);

let gateward: Gateward;
let tenant: Tenant;
let token: string;
let directory: string;
let file: string;

beforeAll(async () => {
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  ({ token } = await tenant.agent());
  directory = mkdtempSync(join(tmpdir(), "gateward-uploads-"));
  file = join(directory, "body.json");
  writeFileSync(file, JSON.stringify("x".repeat(BYTES)));
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await gateward.close();
});

type Refused = [what: string, path: string, token: () => string, type: string, status: number];
const REFUSED: Refused[] = [
  ["a body that is too large", "/v1/authorize", () => token, "application/json", 413],
  ["another content type", "/v1/authorize", () => token, "text/plain", 415],
  ["a token that Gateward never issued", "/v1/authorize", () => `${token}x`, "application/json", 401],
  ["an administrator's token", "/v1/authorize", () => tenant.admin, "application/json", 403],
  ["a path that does not exist", "/v1/nothing", () => token, "application/json", 404],
  ["a method that the path does not have", "/v1/decisions", () => token, "application/json", 405],
  ["an administration body that is too large", "/v1/agents", () => tenant.admin, "application/json", 413],
  ["an MCP message that is too large", "/mcp/github", () => token, "application/json", 413],
  ["an HTTP tool's body that is too large", "/http/crm/customers", () => token, "application/json", 413],
];

describe.each(REFUSED)("%s", (_, path, credential, type, status) => {
  const url = () => new URL(path, gateward.url).href;
  /** Everything that a client of the command line needs, as its arguments. */
  const all = () => [url(), credential(), type, file];

  test("is answered to Node's fetch", async () => {
    const body = `"${"x".repeat(BYTES)}"`;
    const headers = { authorization: `Bearer ${credential()}`, "content-type": type, accept: "application/json, text/event-stream" };
    expect((await fetch(url(), { method: "POST", headers, body })).status).toBe(status);
    // A body of unknown length.
    const stream = new Blob([body]).stream();
    expect((await fetch(url(), { method: "POST", headers, body: stream, duplex: "half" } as RequestInit)).status).toBe(status);
  });

  test("is answered to curl", async () => {
    const [, bearer] = all();
    const headers = [`Authorization: Bearer ${bearer}`, `Content-Type: ${type}`, "Accept: application/json, text/event-stream", "Expect:"];
    const { stdout } = await run("curl", ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--data-binary", `@${file}`, ...headers.flatMap((header) => ["-H", header]), url()]);
    expect(stdout).toBe(String(status));
  });

  test("is answered to Python's requests", async (context) => {
    if (PYTHON === "") return context.skip("`GATEWARD_PYTHON` names no interpreter");
    const { stdout } = await run(PYTHON, ["tests/clients/upload.py", ...all()]);
    expect(stdout.trim()).toBe(String(status));
  });

  test("is answered to Go's client", async (context) => {
    const binary = process.env.GATEWARD_GO_UPLOAD ?? "";
    if (!existsSync(binary)) return context.skip("`GATEWARD_GO_UPLOAD` names no program");
    const { stdout } = await run(binary, all());
    expect(stdout.trim()).toBe(String(status));
  });
});
