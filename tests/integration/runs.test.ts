// Runs that a harness starts, and the run credentials with which agents make calls in them.
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { IssuedRun, Problem } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import { type Gateward, MAC_KEY, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { answerIn, PREFIX } from "../support/mcp.ts";
import { asked, call, type Fields, Recorder, results } from "../support/recorder.ts";
import type { Upstream } from "../support/upstream.ts";

const INSTRUCTION = "Pay the invoice of ada@example.com.";
const HELD = "policy_require_approval";

let recorder: Recorder;
let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;

beforeAll(async () => {
  recorder = await Recorder.start();
  ({ gateward, upstream, tenant } = recorder);
  await recorder.server("wild", {}, undefined, "untrusted");
});
afterAll(() => recorder?.close());
beforeEach(() => recorder.reset());

let agents = 0;
/** An agent of a harness with its own credential. It has read nothing yet. */
async function harness(row: Parameters<Tenant["agent"]>[2] = {}): Promise<{ name: string; token: string; keyId: string }> {
  agents += 1;
  const { name, token, credential } = await tenant.agent(`agent-${agents}`, {}, { assigns_runs: true, ...row });
  return { name, token, keyId: credential.keyId };
}

const start = (token: string, body: object = {}): Promise<Reply<IssuedRun & Problem>> => gateward.post(token, "/v1/runs", { instruction: INSTRUCTION, ...body });

async function started(token: string, body: object = {}): Promise<IssuedRun> {
  const { status, body: run } = await start(token, body);
  expect({ status, run }).toEqual({ status: 201, run });
  return run;
}

const refusal = ({ status, body }: Reply<Problem>) => `${status} ${body.code}`;

/** The result of a call through MCP: the reason code of a denial, an error's code, or `passed`. */
async function through(token: string, tool: string, headers: Fields = {}, params: object = {}, server = "recorder"): Promise<unknown> {
  const response = await recorder.send(call(tool, params), { token, headers, server });
  if (response.status === 401) return 401;
  const { result, error } = await answerIn(response);
  return error?.code ?? result?._meta?.[`${PREFIX}reason_code`] ?? "passed";
}

const inRun = (run: string): Fields => ({ "x-gateward-run-id": run });

describe("a run", () => {
  test("is started with an instruction, and again under the same id", async () => {
    const { token } = await harness();
    const before = Date.now();
    const run = await started(token);
    expect(run.run_id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(run.credential).toMatch(/^gwr_/);
    const lasts = Date.parse(run.expires_at) - before;
    expect(lasts).toBeGreaterThan(3_590_000);
    expect(lasts).toBeLessThan(3_610_000);
    const plan = [{ tool: "recorder/change", arguments: { "/to": ["ada@example.com"], "/amount": 10 } }];
    const again = await started(token, { run_id: run.run_id, plan, expires_in_s: 60 });
    expect(again.run_id).toBe(run.run_id);
    expect(Date.parse(again.expires_at)).toBeLessThan(Date.parse(run.expires_at));
  });

  test.each<[string, object, string]>([
    ["no instruction", { instruction: "" }, "422 invalid_field"],
    ["an instruction that is too long", { instruction: "x".repeat(16 * 1024 + 1) }, "422 invalid_field"],
    ["a run id that is too long", { run_id: "x".repeat(257) }, "422 invalid_field"],
    ["a credential that never expires", { expires_in_s: 86_401 }, "422 invalid_field"],
    ["a plan that names no tool", { plan: [{ tool: "change" }] }, "422 invalid_field"],
    ["a member that does not exist", { novelty: 1 }, "422 invalid_field"],
  ])("is not started with %s", async (_, body, expected) => {
    const { token } = await harness();
    expect(refusal(await start(token, body))).toBe(expected);
  });

  test.each<[string, () => Promise<string>, string]>([
    ["an agent that is not a harness", async () => (await harness({ assigns_runs: false })).token, "403 forbidden"],
    ["an administrator", async () => tenant.admin, "403 forbidden"],
    ["a run credential", async () => (await started((await harness()).token)).credential, "403 forbidden"],
  ])("is neither started nor told a result by %s", async (_, caller, expected) => {
    const token = await caller();
    const report = { server: "recorder", tool: "record", result: "ada@example.com" };
    expect(refusal(await start(token))).toBe(expected);
    expect(refusal(await gateward.post<Problem>(token, "/v1/runs/r1/observations", report))).toBe(expected);
  });

  test("is told a result by its harness", async () => {
    const { token } = await harness();
    const { run_id } = await started(token);
    const path = `/v1/runs/${run_id}/observations`;
    const report = { server: "recorder", tool: "record", result: { mail: "ada@example.com", id: 5 } };
    expect(await gateward.post(token, path, report)).toMatchObject({ status: 200, body: { recorded: true } });
    expect(refusal(await gateward.post<Problem>(token, path, { ...report, server: "No Name" }))).toBe("422 invalid_field");
    expect(refusal(await gateward.post<Problem>(token, `/v1/runs/${"x".repeat(257)}/observations`, report))).toBe("422 invalid_field");
  });
});

describe("a run credential", () => {
  test("makes calls in its run, through MCP and when it asks", async () => {
    const { name, token } = await harness();
    const { credential, run_id } = await started(token);
    expect(await through(credential, "record")).toBe("passed");
    expect(await through(credential, "record", inRun(run_id))).toBe("passed");
    expect(await gateward.decide(credential, readCall({ agent: { id: name } }))).toMatchObject({ decision: "allow" });
    expect(await gateward.decide(credential, readCall({ agent: { id: name }, trace: { run_id } }))).toMatchObject({ decision: "allow" });
  });

  test("cannot leave its run, also not for a cleaner one, and names no user", async () => {
    const { name, token } = await harness();
    const run = await started(token);
    expect(await through(run.credential, "record", {}, {}, "wild")).toBe("passed");
    const meta = (fields: object) => ({ _meta: Object.fromEntries(Object.entries(fields).map(([key, value]) => [PREFIX + key, value])) });
    const claims: [Fields, object][] = [
      [inRun("other"), {}],
      [{}, meta({ run_id: "other" })],
      [{ "x-gateward-user-id": "ada" }, {}],
      [{}, meta({ user_role: "administrator" })],
    ];
    upstream.received.length = 0;
    for (const [headers, params] of claims) expect(await through(run.credential, "change", headers, params), JSON.stringify([headers, params])).toBe(-31400);
    expect(upstream.received).toEqual([]);
    const asks = [{ trace: { run_id: "other" } }, { user: { id: "ada" } }, { user: { role: "administrator" } }];
    for (const claim of asks) {
      const reply = await gateward.post<Problem>(run.credential, "/v1/authorize", writeCall({ agent: { id: name }, ...claim }));
      expect(refusal(reply), JSON.stringify(claim)).toBe("400 malformed_request");
    }
    // The taint is that of the run, which another run does not have.
    expect(await through(run.credential, "change")).not.toBe("passed");
    const other = await started(token);
    expect(await through(other.credential, "change")).toBe("passed");
    // The agent's own credential has the taint of all runs, so it gains nothing.
    expect(await through(token, "change")).toBe(HELD);
  });

  test("reads an approval of its run, and nothing else", async () => {
    const { name, token } = await harness();
    const [one, other] = [await started(token), await started(token)];
    const held = writeCall({ agent: { id: name }, context: { source_trust: "semi_trusted_customer" } });
    const decided = await gateward.decide(one.credential, held);
    const path = `/v1/approvals/${decided.approval?.approval_id}`;
    expect((await gateward.get(one.credential, path)).status).toBe(200);
    expect(refusal(await gateward.get<Problem>(other.credential, path))).toBe("404 not_found");
    for (const closed of ["/v1/approvals", "/v1/decisions", `/v1/decisions/${decided.decision_id}`, "/v1/agents"]) {
      expect(refusal(await gateward.get<Problem>(one.credential, closed)), closed).toBe("403 forbidden");
    }
    expect(refusal(await gateward.post<Problem>(one.credential, `${path}/approve`, {}))).toBe("403 forbidden");
  });

  test("with a forged seal, another end or another run is not valid", async () => {
    const { token } = await harness();
    const { credential, run_id } = await started(token);
    const part = (at: number, text: string) => credential.split(".").with(at, text).join(".");
    const unkeyed = createHmac("sha256", "0".repeat(32)).update(credential).digest("hex").slice(0, 32);
    const forged = [
      // Do not change the case: hexadecimal digits have the same value in both cases.
      credential.slice(0, -1) + (credential.endsWith("0") ? "1" : "0"),
      part(7, unkeyed),
      part(7, ""),
      part(6, "9999999999"),
      part(5, Buffer.from(`${run_id}x`).toString("base64url")),
      part(1, "coder"),
      credential.replace("gwr_", "gw_"),
      "gwr_",
    ];
    for (const text of forged) expect(await through(text, "record"), text).toBe(401);
  });

  // The seal is computed here once more, so its form is pinned.
  test("is not valid after its end", async () => {
    const { token } = await harness();
    const { credential } = await started(token);
    const sealed = (message: string) => `${message}.${createHmac("sha256", MAC_KEY).update(`run-credential:${message}`).digest("hex").slice(0, 32)}`;
    const message = credential.slice(0, credential.lastIndexOf("."));
    expect(sealed(message)).toBe(credential);
    const ends = (at_s: number) => sealed(message.split(".").with(6, String(at_s)).join("."));
    const now_s = Math.floor(Date.now() / 1_000);
    expect(await through(ends(now_s + 60), "record")).toBe("passed");
    expect(refusal(await gateward.get<Problem>(ends(now_s - 1), "/v1/approvals/appr_0_1"))).toBe("401 credential_expired");
    expect(await through(ends(now_s - 1), "record")).toBe(401);
    // The credential that it was issued with has not ended, and neither has another run credential.
    expect([await through(token, "record"), await through(credential, "record")]).toEqual(["passed", "passed"]);
  });

  test("ends with the credential that it was issued with", async () => {
    const { token, keyId } = await harness();
    const { credential } = await started(token);
    expect(await through(credential, "record")).toBe("passed");
    expect((await tenant.api.post(`/v1/credentials/${keyId}/revoke`)).status).toBe(200);
    expect(await through(credential, "record")).toBe(401);
    expect(refusal(await gateward.get<Problem>(credential, "/v1/approvals/appr_0_1"))).toBe("401 unauthorized");
  });
});

describe("an instruction in `_meta`", () => {
  const stated = (instruction: unknown) => ({ _meta: { [`${PREFIX}instruction`]: instruction, progressToken: 5 } });

  test("is taken from a harness, for a run, and is not forwarded", async () => {
    const { token } = await harness();
    upstream.answer = results({ content: [] });
    for (const _ of [1, 2]) expect(await through(token, "record", inRun("r1"), stated(INSTRUCTION))).toBe("passed");
    expect(upstream.received.map((exchange) => asked(exchange).params._meta)).toEqual([{ progressToken: 5 }, { progressToken: 5 }]);
  });

  test.each<[string, (token: string) => Promise<unknown>, unknown]>([
    ["without a run", (token) => through(token, "record", {}, stated(INSTRUCTION)), -31400],
    ["that is no text", (token) => through(token, "record", inRun("r1"), stated(5)), -32602],
    ["that is too long", (token) => through(token, "record", inRun("r1"), stated("x".repeat(16 * 1024 + 1))), -32602],
    ["of an agent with a run credential", async (token) => through((await started(token)).credential, "record", {}, stated(INSTRUCTION)), -31403],
    ["of an agent that is not a harness", async () => through((await harness({ assigns_runs: false })).token, "record", inRun("r1"), stated(INSTRUCTION)), -31403],
  ])("%s is refused", async (_, send, expected) => {
    const { token } = await harness();
    expect(await send(token)).toBe(expected);
    expect(upstream.received).toEqual([]);
  });
});
