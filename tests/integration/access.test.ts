// Access to routes: each needs one scope. The only routes without a credential are those without anybody's data.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Problem } from "../support/api/types.gen.ts";
import { Gateward, INSPECTABLE, readCall, type Tenant } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { ADMINISTRATION, type Ids, pathOf, populate, type Route, ROUTES } from "../support/routes.ts";
import { withWrongMac } from "../support/tokens.ts";

const ALL_SCOPES = [...ADMINISTRATOR_SCOPES, TENANTS_SCOPE];

let gateward: Gateward;
let tenant: Tenant;
let ids: Ids;
/** The token of the agent among the ids. */
let agentToken: string;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  tenant = await gateward.tenant();
  ({ ids, token: agentToken } = await populate(gateward, tenant, 1));
  await tenant.flushed();
});
afterAll(() => gateward?.close());

/** Sends a request to every route. Checks the answers, and that nothing was written. */
async function expectRefused(routes: Route[], token: (route: Route) => string | null, status: number, code: string): Promise<void> {
  const before = await tenant.snapshot();
  const answers = [];
  for (const route of routes) {
    const { method, body } = route;
    const authorization = token(route);
    const reply = await gateward.request<Problem>(pathOf(route, ids), {
      method,
      headers: { "content-type": "application/json", ...(authorization === null ? {} : { authorization }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body(ids)) }),
    });
    answers.push({ route: `${method} ${route.path}`, status: reply.status, code: reply.body.code });
  }
  expect(answers).toEqual(routes.map(({ method, path }) => ({ route: `${method} ${path}`, status, code })));
  expect(await tenant.snapshot()).toEqual(before);
}

const closed = ROUTES.filter(({ scope }) => scope !== "nobody's");

describe("without a credential", () => {
  test("every route but health, version and the document answers 401", async () => {
    await expectRefused(closed, () => null, 401, "unauthorized");
    for (const { path } of ROUTES.filter(({ scope }) => scope === "nobody's")) {
      expect({ path, status: (await gateward.request(path)).status }).toEqual({ path, status: 200 });
    }
  });

  test.each([
    ["a forged one", () => `Bearer ${withWrongMac(tenant.admin)}`],
    ["one of another scheme", () => `Basic ${tenant.admin}`],
    ["an empty one", () => "Bearer "],
  ])("and with %s too", async (_, authorization) => expectRefused(closed, authorization, 401, "unauthorized"));
});

describe("with an administrator's credential", () => {
  test.each([...new Set(ADMINISTRATION.map(({ scope }) => scope))])("that has every scope but %s, its routes answer 403, and write nothing", async (scope) => {
    const { token } = await tenant.apiWith(ALL_SCOPES.filter((other) => other !== scope));
    await expectRefused(ADMINISTRATION.filter((route) => route.scope === scope), () => `Bearer ${token}`, 403, "forbidden");
  });

  test("that has no scope, every route answers 403", async () => {
    const { token } = await tenant.apiWith([]);
    await expectRefused(ADMINISTRATION, () => `Bearer ${token}`, 403, "forbidden");
  });

  test("that has a route's scope and no other, it may read", async () => {
    for (const route of ADMINISTRATION.filter(({ method, ofLog }) => method === "GET" && !ofLog)) {
      const api = await tenant.apiWith([route.scope]);
      const { status } = await api.get(pathOf(route, ids));
      expect({ path: route.path, status }).toEqual({ path: route.path, status: 200 });
    }
  });

  test("that may write but not read, it may write", async () => {
    const api = await tenant.apiWith(["registry:write"]);
    expect((await api.post("/v1/groups", { group: "written" })).status).toBe(201);
    expect((await api.get("/v1/groups/written")).status).toBe(403);
  });

  test("no tool is called", async () => {
    const { token } = await tenant.apiWith(ALL_SCOPES);
    const reply = await gateward.post<Problem>(token, "/v1/authorize", readCall({ agent: { id: ids.agent } }));
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 403, code: "forbidden" });
  });
});

describe("with an agent's credential", () => {
  test("nothing is administered, and nothing but the agent's own decisions and approvals is read", async () => {
    await expectRefused(ADMINISTRATION.filter(({ forAgents }) => !forAgents), () => `Bearer ${agentToken}`, 403, "forbidden");
    for (const route of ADMINISTRATION.filter(({ forAgents }) => forAgents)) {
      expect((await gateward.get(agentToken, pathOf(route, ids))).status).toBe(200);
    }
  });

  test("not even one that was given administrators' scopes behind the API's back", async () => {
    const { token } = await tenant.agent("smuggler", {}, { scopes: ["tools:read", ...ALL_SCOPES] });
    await expectRefused(ADMINISTRATION.filter(({ forAgents }) => !forAgents), () => `Bearer ${token}`, 403, "forbidden");
  });
});
