// The document at /openapi.json: it is valid, it has every route and no other, and answers are as
// it says.
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Problem } from "../support/client.ts";
import { Gateward, type Tenant } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { anonymous, type Document, type Ids, type Operation, operationsOf, pathOf, populate, type Route, ROUTES } from "../support/routes.ts";

let gateward: Gateward;
let tenant: Tenant;
let ids: Ids;
let agentToken: string;
/** Has every scope. */
let token: string;
let document: Document;

beforeAll(async () => {
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  ({ ids, token: agentToken } = await populate(gateward, tenant, 2));
  ({ token } = await tenant.apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]));
  document = (await gateward.request<Document>("/openapi.json")).body;
});
afterAll(() => gateward?.close());

test("it is a valid document of OpenAPI 3.1", async () => {
  expect(document.openapi).toMatch(/^3\.1\./);
  const { valid, errors } = await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>);
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
});

describe("both ways", () => {
  const named = (method: string, path: string) => `${method} ${anonymous(path)}`;

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
  /** Compiles a schema of the document, with the references in it. */
  function compiler() {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, logger: false });
    ajvFormats.default(ajv);
    ajv.addSchema(document, "document");
    // Within the document, so that its own references hold.
    return (...pointer: string[]) =>
      ajv.compile({ $ref: `document#/${pointer.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")}` });
  }
  /** Where the schema of an answer stands: in the operation, or where that refers to. */
  function answerAt(route: Route, status: number, type: string): string[] {
    const [path, method, { responses }] = find(route);
    const key = [String(status), `${String(status)[0]}XX`, "default"].find((key) => responses[key] !== undefined) ?? "";
    const reference = responses[key]?.$ref;
    return [...(reference === undefined ? ["paths", path, method, "responses", key] : reference.slice("#/".length).split("/")), "content", type, "schema"];
  }
  const find = ({ method, path }: Route): [string, string, Operation] => {
    const found = operationsOf(document).find((operation) => operation.method === method && anonymous(operation.path) === anonymous(path));
    if (found === undefined) throw new Error(`${method} ${path} is not in the document`);
    return [found.path, method.toLowerCase(), found.operation];
  };

  test("bodies holds for those that routes take, and for none with a field that they do not know", () => {
    const compile = compiler();
    for (const route of ROUTES.filter(({ body }) => body !== undefined)) {
      const [path, method] = find(route);
      const validate = compile("paths", path, method, "requestBody", "content", "application/json", "schema");
      const body = route.body?.(ids);
      expect({ path, valid: validate(body), errors: validate.errors }).toEqual({ path, valid: true, errors: null });
      // A call may say more than Gateward looks at.
      if (!["/v1/authorize", "/v1/receipts/verify"].includes(route.path)) {
        expect({ path, valid: validate({ ...body, novelty: 1 }) }).toEqual({ path, valid: false });
      }
    }
  });

  test("answers holds for every read", async () => {
    const compile = compiler();
    for (const route of ROUTES.filter(({ method }) => method === "GET")) {
      const { path } = route;
      const reply = await gateward.get<object>(token, pathOf(route, ids));
      expect({ path, status: reply.status }).toEqual({ path, status: 200 });
      const validate = compile(...answerAt(route, 200, "application/json"));
      expect({ path, valid: validate(reply.body), errors: validate.errors }).toEqual({ path, valid: true, errors: null });
    }
  });

  test("answers holds for decisions on approvals", async () => {
    const compile = compiler();
    const sam = await tenant.approver("sam", "security");
    for (const [path, verdict] of [["/v1/approvals/{approval_id}/approve", "approved"], ["/v1/approvals/{approval_id}/cancel", "cancelled"]] as const) {
      const route = ROUTES.find((route) => route.path === path) as Route;
      const reply = await sam.post<{ status: string }>(pathOf(route, ids), verdict === "approved" ? { edit: { number: 7 } } : {});
      expect({ path, status: reply.status, state: reply.body.status }).toEqual({ path, status: 200, state: verdict });
      const validate = compile(...answerAt(route, 200, "application/json"));
      expect({ path, valid: validate(reply.body), errors: validate.errors }).toEqual({ path, valid: true, errors: null });
      const problem = await sam.post<Problem>(pathOf(route, ids), "{");
      const refused = compile(...answerAt(route, problem.status, "application/problem+json"));
      expect({ path, valid: refused(problem.body), errors: refused.errors }).toEqual({ path, valid: true, errors: null });
    }
  });

  test("answers holds for what is created, for decisions, and for problems", async () => {
    const compile = compiler();
    const creates = ROUTES.filter(({ method, path }) => method === "POST" && ["agents", "groups", "administrators", "credentials", "servers", "bans", "tenants"].some((noun) => path === `/v1/${noun}`));
    for (const route of [...creates, ...ROUTES.filter(({ scope }) => scope === "an agent")]) {
      const { path } = route;
      const decides = route.scope === "an agent";
      const reply = await gateward.post<object>(decides ? agentToken : token, path, route.body?.(ids));
      const status = decides ? 200 : 201;
      expect({ path, status: reply.status }).toEqual({ path, status });
      const validate = compile(...answerAt(route, status, "application/json"));
      expect({ path, valid: validate(reply.body), errors: validate.errors }).toEqual({ path, valid: true, errors: null });

      const problem = await gateward.post<Problem>(token, path, "{");
      const refused = compile(...answerAt(route, problem.status, "application/problem+json"));
      expect({ path, valid: refused(problem.body), errors: refused.errors }).toEqual({ path, valid: true, errors: null });
    }
  });
});
