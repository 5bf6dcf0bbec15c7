// The document at /openapi.json: it is valid, it has exactly the worker's routes, bodies and answers match it, and an
// answer that does not match is found.
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Problem } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import { Description, type Document } from "../support/description.ts";
import { BOOTSTRAP_SECRET, Gateward, type Tenant, writeCall } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { anonymous, type Ids, operationsOf, pathOf, populate, ROUTES } from "../support/routes.ts";

let gateward: Gateward;
let tenant: Tenant;
let ids: Ids;
let agentToken: string;
/** Has every scope. */
let token: string;
let document: Document;
let description: Description;
let bootstrapped: Reply<unknown>;

beforeAll(async () => {
  gateward = await Gateward.start();
  // Later there is an administrator already.
  bootstrapped = await gateward.post(BOOTSTRAP_SECRET, "/v1/bootstrap", { tenant: "first" });
  tenant = await gateward.tenant();
  ({ ids, token: agentToken } = await populate(gateward, tenant, 2));
  ({ token } = await tenant.apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]));
  document = (await gateward.request<Document>("/openapi.json")).body;
  description = new Description(document);
});
afterAll(() => gateward?.close());

const named = (method: string, path: string) => `${method} ${anonymous(path)}`;

test("it is a valid document of OpenAPI 3.1", async () => {
  expect(document.openapi).toMatch(/^3\.1\./);
  const { valid, errors } = await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>);
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
});

describe("both ways", () => {
  test("it has every route, and no other", () => {
    const documented = operationsOf(document).map(({ method, path }) => named(method, path));
    expect(documented.sort()).toEqual(ROUTES.map(({ method, path }) => named(method, path)).sort());
  });

  test("every operation that it has is answered by the worker", async () => {
    for (const { method, path } of operationsOf(document)) {
      const concrete = path.replace(/\{\w+\}/g, "x");
      const { status } = await gateward.request(concrete, { method });
      const open = ROUTES.some((route) => route.path === path && route.scope === "nobody's");
      expect({ method, path, status }).toEqual({ method, path, status: open ? 200 : 401 });
    }
  });

  test("a method that it does not have is 405, with those that it has in Allow", async () => {
    const patterns = Object.entries(document.paths).map(([path]) => ({
      pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`),
      methods: operationsOf({ ...document, paths: { [path]: document.paths[path] ?? {} } }).map(({ method }) => method),
    }));
    for (const path of Object.keys(document.paths)) {
      const concrete = path.replace(/\{\w+\}/g, "x");
      const methods = patterns.filter(({ pattern }) => pattern.test(concrete)).flatMap((route) => route.methods);
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"].filter((method) => !methods.includes(method))) {
        const reply = await gateward.send<Problem>(method, token, concrete);
        expect({ method, path, status: reply.status, code: reply.body.code }).toEqual({ method, path, status: 405, code: "method_not_allowed" });
        expect(reply.headers.get("allow")).toBeTruthy();
      }
    }
  });

  test("a path that it does not have is 404", async () => {
    const paths = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, "x"));
    for (const path of [...paths.flatMap((path) => [`${path}/`, `${path}/x/x/x`, `/x${path}`]), "/v1", "/v2/agents", "/v1/agents/x/destroy"]) {
      expect({ path, status: (await gateward.get(token, path)).status }).toEqual({ path, status: 404 });
    }
  });
});

describe("what it says of", () => {
  test("bodies holds for those that routes take, and for none with a field that they do not know", () => {
    for (const { method, path, operation } of operationsOf(document).filter(({ operation }) => operation.requestBody !== undefined)) {
      const validate = description.validator("paths", path, method.toLowerCase(), "requestBody", "content", "application/json", "schema");
      const body = ROUTES.find((route) => named(route.method, route.path) === named(method, path))?.body?.(ids);
      if (body === undefined) continue;
      expect({ path, valid: validate(body), errors: validate.errors }).toEqual({ path, valid: true, errors: null });
      // A call may have members that Gateward ignores.
      if (!["authorize", "verify_receipts"].includes(operation.operationId)) {
        expect({ path, valid: validate({ ...body, novelty: 1 }) }).toEqual({ path, valid: false });
      }
    }
  });

  // Each answer is compared with the document, as in all tests: described-answers-setup.ts.
  test("answers holds for the success of every operation", async () => {
    const harness = await tenant.api.credential(ids.agent, { assigns_runs: true, scopes: ["tools:read"] });
    const sam = await tenant.approver("sam", "security");
    const held = async () => {
      const call = writeCall({ agent: { id: ids.agent }, context: { source_trust: "semi_trusted_customer" } });
      return (await gateward.decide(agentToken, call)).approval?.approval_id ?? "";
    };
    const credentials: Record<string, string> = { "an agent": agentToken, "a harness": harness.token, "approvals:decide": sam.token, "registry:write": tenant.admin };
    // A protected group needs members and their approval: approvers.test.ts has those. A log needs a key: logs.test.ts has it.
    const routes = ROUTES.filter(({ path, ofLog }) => !path.endsWith("protect") && !ofLog);
    const inOrder = [
      ...routes.filter(({ method, path }) => method !== "DELETE" && !path.endsWith("/revoke")),
      ...routes.filter(({ path }) => path.endsWith("/revoke")),
      // Delete a member before its group, and an agent before its tenant.
      ...routes.filter(({ method }) => method === "DELETE").reverse(),
    ];
    // This comes before an action stops the agent.
    const approvals = new Map([["reject", await held()], ["cancel", await held()]]);
    for (const route of inOrder) {
      const { method, path, scope } = route;
      const approval_id = approvals.get(path.split("/").at(-1) ?? "") ?? ids.approval_id;
      // Nobody can delete their own tenant. The other tenant was created here.
      const named = { ...ids, approval_id, ...(method === "DELETE" && { tenant: `${ids.tenant}-2` }) };
      const reply = () => gateward.send(method, credentials[scope] ?? token, pathOf(route, named), route.body?.(ids));
      const { status, body } = path === "/v1/bootstrap" ? bootstrapped : await reply();
      expect({ method, path, success: status >= 200 && status < 300, body }).toEqual({ method, path, success: true, body });
    }
  });
});

describe("an answer", () => {
  const BODY = { version: 2, kind: "registry", tenant: "t", lane: 0, seq: 1, time: "2026-01-01T00:00:00.000Z", agent: "a", administrator: "", change: "agent_tainted", decision_id: "", epoch: 0, prev_hash: "0" };
  const RECEIPT = { receipt_id: "rcpt_0_1", lane: 0, seq: 1, receipt_hash: "1", prev_receipt_hash: "0", canon_version: "rfc8785", body: BODY };
  const limits = ["grace_high_risk_s", "grace_read_s", "grace_write_s", "log_public", "risk_denials", "risk_quiet_s", "risk_window_s", "shield", "taint_s", "warrant_alone_trust", "warrant_max_links", "warrant_proof_windows", "warrant_reads_once", "warrant_required"];
  const LIMITS = { revision: 1, ...Object.fromEntries(limits.map((limit) => [limit, null])) };
  const PROBLEM = { type: "t", title: "t", status: 404, detail: "d", code: "not_found", request_id: "r" };
  const json = { "x-request-id": "r", "content-type": "application/json" };
  const problem = { "x-request-id": "r", "content-type": "application/problem+json" };
  const found = (method: string, path: string, status: number, headers: Record<string, string>, body: unknown) =>
    description.violationsOf({ method, path, status, headers: new Headers(headers), text: JSON.stringify(body) });
  const receipt = (body: object) => found("GET", "/v1/receipts/rcpt_0_1", 200, json, { ...RECEIPT, body });

  test("as the document says has no violation", () => {
    expect(receipt(BODY)).toEqual([]);
    expect(found("GET", "/v1/settings", 200, { ...json, etag: '"1"' }, LIMITS)).toEqual([]);
    expect(found("GET", "/v1/receipts/rcpt_0_1", 404, problem, PROBLEM)).toEqual([]);
    expect(found("GET", "/v1/nothing", 404, problem, PROBLEM)).toEqual([]);
  });

  const wrong: [string, () => string[], string][] = [
    ["an unknown kind", () => receipt({ ...BODY, kind: "other" }), "/body/kind must be one of approval, dead_letter, decision, lane_checkpoint, outcome, registry, registry_event"],
    ["a member of another kind", () => receipt({ ...BODY, kind: "outcome" }), "/body must have required property 'bytes'"],
    ["an unknown member", () => receipt({ ...BODY, novelty: 1 }), "/body has the member `novelty`, which the document does not have"],
    ["an unknown member at the root", () => found("GET", "/healthz", 200, json, { status: "ok", novelty: 1 }), "its body has the member `novelty`, which the document does not have"],
    ["an unknown member of a composed object", () => found("GET", "/v1/settings", 200, { ...json, etag: '"1"' }, { ...LIMITS, novelty: 1 }), "its body has the member `novelty`, which the document does not have"],
    ["a missing member", () => found("GET", "/healthz", 200, json, {}), "its body must have required property 'status'"],
    ["an invalid time", () => receipt({ ...BODY, time: "now" }), '/body/time must match format "date-time"'],
    ["an unlisted status", () => found("GET", "/healthz", 418, json, {}), "the document lists no status 418 for check_health: {}"],
    ["an unlisted code", () => found("GET", "/v1/receipts/rcpt_0_1", 404, problem, { ...PROBLEM, code: "name_taken" }), "its code is `name_taken`, not one of not_found"],
    ["another status in its body", () => found("GET", "/v1/receipts/rcpt_0_1", 404, problem, { ...PROBLEM, status: 400 }), "its body says status 400"],
    ["another content type", () => found("GET", "/healthz", 200, { ...json, "content-type": "text/plain" }, { status: "ok" }), "its content type is `text/plain`, not one of application/json"],
    ["no JSON", () => description.violationsOf({ method: "GET", path: "/healthz", status: 200, headers: new Headers(json), text: "ok" }), "its body is not JSON: ok"],
    ["no request id", () => found("GET", "/healthz", 200, { "content-type": "application/json" }, { status: "ok" }), "it has no header `X-Request-Id`"],
    ["a promised header missing", () => found("GET", "/v1/receipts/rcpt_0_1", 401, problem, { ...PROBLEM, status: 401, code: "unauthorized" }), "it has no header `www-authenticate`"],
    ["a header that is not promised", () => found("GET", "/healthz", 200, { ...json, etag: '"1"' }, { status: "ok" }), "the document does not list its header `etag`"],
    ["a success of an unknown path", () => found("GET", "/v1/nothing", 200, json, {}), "the document has no GET /v1/nothing, so it must be 404 or 405 or 503"],
    ["a refused method without those that are allowed", () => found("PUT", "/healthz", 405, problem, { ...PROBLEM, status: 405, code: "method_not_allowed" }), "it has no header `Allow`"],
  ];
  test.each(wrong)("with %s is found", (_, violations, expected) => {
    expect(violations()).toContain(expected);
  });
});
