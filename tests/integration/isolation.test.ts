// Tenants are isolated from each other: every route is tried with one tenant's credentials and the other's ids.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Problem } from "../support/api/types.gen.ts";
import type { Document } from "../support/description.ts";
import { Gateward, INSPECTABLE, passes, readCall, type Tenant } from "../support/gateward.ts";
import { anonymous, type Ids, operationsOf, pathOf, populate, type Route, ROUTES } from "../support/routes.ts";
import { Key, revocationList } from "../support/warrants.ts";

let gateward: Gateward;
/** Whose credentials are used. */
let intruder: { tenant: Tenant; ids: Ids; tokens: Record<"administrator" | "agent", string> };
/** Whose records are requested. */
let owner: { tenant: Tenant; ids: Ids; token: string; mark: string };
let before: unknown;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  const [one, other] = [await gateward.tenant(), await gateward.tenant()];
  const mine = await populate(gateward, one, 1);
  intruder = { tenant: one, ids: mine.ids, tokens: { administrator: one.admin, agent: mine.token } };
  // Enough decisions that the intruder has no receipt with the newest receipt's number.
  owner = { tenant: other, ...(await populate(gateward, other, 5)) };
  for (const tenant of [one, other]) await tenant.flushed();
  before = await owned();
});
afterAll(() => gateward?.close());

/** Everything that the owner has: rows in D1, and the chain as the API returns it. */
async function owned(): Promise<unknown> {
  return { rows: await owner.tenant.snapshot(), receipts: await gateward.receipts(owner.tenant.admin) };
}

async function ask(route: Route, token: string, ids: Ids): Promise<{ status: number; text: string }> {
  const { method, body } = route;
  const { status, body: answer } = await gateward.send<Problem>(method, token, pathOf(route, ids), body?.(ids));
  return { status, text: JSON.stringify(answer) };
}

const tried = ROUTES.filter(({ scope }) => scope !== "nobody's");
const named = ({ method, path }: { method: string; path: string }) => `${method} ${anonymous(path)}`;

test("the routes tried are those that there are", async () => {
  const { body } = await gateward.request<Document>("/openapi.json");
  expect(operationsOf(body).map(named).sort()).toEqual(ROUTES.map(named).sort());
});

/** Names and ids of the right form that nobody has. */
const nothing: Ids = {
  tenant: "t-nothing",
  agent: "nothing",
  group: "nothing",
  kind: "agents",
  member: "nothing",
  administrator: "nothing",
  key_id: "k000000000000",
  server: "nothing",
  tool: "nothing",
  ban_id: "nothing",
  limit_id: "nothing",
  root_id: "nothing",
  warrant_id: "0".repeat(32),
  revocation_list: revocationList(new Key(1), ["0".repeat(32)], 1),
  decision_id: "00000000-0000-7000-8000-000000000000",
  receipt_id: "rcpt_0_999999",
  log: "t-nothing.lane-0",
  tile: "0/000.p/1",
  run: "nothing",
  approval_id: "appr_0_999999",
};

describe("the intruder's own things take none of the owner's", () => {
  // [name, the route, which of the owner's ids are in its path]
  const mixed: [string, string, string, (keyof Ids)[]][] = [
    ["a member of its group", "PUT", "/v1/groups/{group}/members/{kind}/{member}", ["member"]],
    ["a tool of its server", "GET", "/v1/servers/{server}/tools/{tool}", ["tool"]],
    ["a tool of its server, to approve", "POST", "/v1/servers/{server}/tools/{tool}/approve", ["tool"]],
  ];
  test.each(mixed)("%s", async (_, method, path, keys) => {
    const ids = { ...intruder.ids, ...Object.fromEntries(keys.map((key) => [key, owner.ids[key]])) };
    const { status } = await ask({ method, path, scope: "" }, intruder.tokens.administrator, ids);
    expect([403, 404, 422]).toContain(status);
    expect(await owned()).toEqual(before);
  });

  test("a credential for its agent", async () => {
    const reply = await intruder.tenant.api.post("/v1/credentials", { kind: "agent", agent: owner.ids.agent, scopes: ["tools:read"] });
    expect([404, 422]).toContain(reply.status);
    expect(await owned()).toEqual(before);
  });

  test("a page behind its cursor", async () => {
    for (const path of ["/v1/agents", "/v1/bans", "/v1/credentials", "/v1/audit-events", "/v1/decisions", "/v1/approvals"]) {
      const page = await owner.tenant.api.get<{ next_cursor: string | null }>(`${path}?limit=1`);
      if (page.body.next_cursor === null) continue;
      const reply = await intruder.tenant.api.get(`${path}?limit=200&cursor=${encodeURIComponent(page.body.next_cursor)}`);
      expect([200, 400, 422]).toContain(reply.status);
      expect(JSON.stringify(reply.body)).not.toContain(owner.mark);
    }
  });
});

describe.each(["administrator", "agent"] as const)("with the credential of another tenant's %s", (who) => {
  test.each(tried.filter(({ path }) => path.includes("{")))("$method $path finds nothing, and writes nothing", async (route) => {
    const { status, text } = await ask(route, intruder.tokens[who], owner.ids);
    expect(status).toBeOneOf([403, 404]);
    // Whatever the answer is, it is the same as for something that does not exist.
    const { status: ofNothing } = await ask(route, intruder.tokens[who], { ...nothing, kind: "agents" });
    expect(status).toBe(ofNothing);
    expect(text).not.toContain(owner.tenant.name);
    expect(await owned()).toEqual(before);
  });

  // Reads come first, because later writes store the other tenant's names.
  const without = tried.filter(({ path }) => !path.includes("{"));
  const reads = without.filter(({ method }) => method === "GET");
  test.each([...reads, ...without.filter((route) => !reads.includes(route))])("$method $path acts on its own tenant, even with the other's names", async (route) => {
    const { status, text } = await ask(route, intruder.tokens[who], owner.ids);
    expect(status).toBeLessThan(500);
    if (route.method === "GET") expect(text).not.toContain(owner.mark);
    expect(await owned()).toEqual(before);
  });
});

test("bans and limits of one tenant do not hold for another", async () => {
  await intruder.tenant.api.create("/v1/bans", { kind: "agent", subject: owner.ids.agent });
  await intruder.tenant.api.create("/v1/limits", { limit_id: "one-request", subject_kind: "agent", subject: "*", covers: "requests", rule: { kind: "rate", capacity: 1, refill_per_s: 0.001 } });
  for (let at = 0; at < 3; at += 1) {
    expect(await passes(gateward, owner.token, readCall({ agent: { id: owner.ids.agent } }))).toBe(true);
  }
});
