// Tenants: the first administrator, made with a secret; operators who create and delete tenants; and the records that
// stay after a tenant was deleted.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Problem, Tenant as TenantObject } from "../support/api/types.gen.ts";
import { Api, type NewCredential } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { BOOTSTRAP_SECRET, Gateward, MAC_KEY, passes, readCall, type Tenant } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

describe("bootstrap", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start();
  });
  afterAll(() => gateward?.close());

  const bootstrap = (secret: string, tenant = "first", body: object = {}) =>
    gateward.post<Omit<NewCredential, "status"> & Problem>(secret, "/v1/bootstrap", { tenant, ...body });
  const tenantsKept = async () => (await gateward.rows("SELECT tenant FROM tenants")).length;
  let credential: NewCredential;

  test("with a wrong secret makes nobody", async () => {
    for (const wrong of ["wrong", `${BOOTSTRAP_SECRET}0`, BOOTSTRAP_SECRET.slice(0, -1), MAC_KEY, "undefined", ""]) {
      expectCode(await bootstrap(wrong), 401, "unauthorized");
    }
    expect(await tenantsKept()).toBe(0);
  });

  test("refuses a name outside its pattern, and makes nobody", async () => {
    const reply = await bootstrap(BOOTSTRAP_SECRET, "First!");
    expectCode(reply, 422, "invalid_field");
    expect(reply.body.field).toBe("tenant");
    expect(await tenantsKept()).toBe(0);
  });

  test("at once from two sides makes one administrator, of tenants and of its own", async () => {
    const replies = await Promise.all([bootstrap(BOOTSTRAP_SECRET), bootstrap(BOOTSTRAP_SECRET)]);
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409]);
    expectCode(replies.find(({ status }) => status === 409) as Reply<Problem>, 409, "already_bootstrapped");
    credential = replies.find(({ status }) => status === 201)?.body as unknown as NewCredential;
    expect(credential).toMatchObject({ kind: "administrator", administrator: "admin", token: expect.stringMatching(/^gwa_first\./) });
    expect(credential.scopes).toEqual(expect.arrayContaining([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]));
    expect(await gateward.rows("SELECT key_id FROM credentials")).toHaveLength(1);
    const api = new Api(gateward, credential.token);
    expect(await api.read("/v1/tenants/first")).toMatchObject({ tenant: "first", status: "active" });
  });

  test("is closed from then on, also for another tenant and another name", async () => {
    for (const [tenant, body] of [["first", {}], ["second", {}], ["first", { administrator: "intruder" }]] as const) {
      expectCode(await bootstrap(BOOTSTRAP_SECRET, tenant, body), 409, "already_bootstrapped");
    }
    expectCode(await bootstrap("wrong"), 401, "unauthorized");
    expect(await gateward.rows("SELECT key_id FROM credentials")).toHaveLength(1);
  });

  test("opens again when nobody administers tenants any more", async () => {
    const api = new Api(gateward, credential.token);
    const revoke = `/v1/credentials/${credential.key_id}/revoke`;
    expectCode(await api.post<Problem>(revoke), 409, "last_administrator");
    expectCode(await api.delete("/v1/administrators/admin"), 409, "last_administrator");
    await api.change("POST", `${revoke}?last=true`);
    const reply = await bootstrap(BOOTSTRAP_SECRET, "second", { administrator: "ann" });
    expect(reply.status).toBe(201);
    expect(reply.body).toMatchObject({ administrator: "ann" });
    expectCode(await bootstrap(BOOTSTRAP_SECRET, "third"), 409, "already_bootstrapped");
    const own = new Api(gateward, (reply.body as unknown as NewCredential).token);
    await own.read("/v1/settings");

    // The first tenant has no administrator, and an operator of another tenant cannot create one.
    const recovered = await bootstrap(BOOTSTRAP_SECRET, "first", { administrator: "bea" });
    expect(recovered.status).toBe(201);
    expect(recovered.body.scopes).toEqual(expect.arrayContaining(ADMINISTRATOR_SCOPES));
    expect(recovered.body.scopes).not.toContain(TENANTS_SCOPE);
    expectCode(await bootstrap(BOOTSTRAP_SECRET, "first", { administrator: "cleo" }), 409, "already_bootstrapped");
    expect(await new Api(gateward, (recovered.body as unknown as NewCredential).token).read("/v1/settings")).toBeTruthy();
  });
});

describe.each([
  ["no secret", { TOKEN_MAC_KEY: MAC_KEY }],
  ["an empty secret", { TOKEN_MAC_KEY: MAC_KEY, BOOTSTRAP_SECRET: "" }],
])("with %s configured", (_, secrets) => {
  let gateward: Gateward | undefined;
  afterAll(() => gateward?.close());

  test("bootstrap is closed, whatever is presented", async () => {
    gateward = await Gateward.start({ secrets });
    for (const authorization of [null, "Bearer ", "Bearer undefined", "Bearer null", `Bearer ${BOOTSTRAP_SECRET}`, `Bearer ${MAC_KEY}`]) {
      const { status } = await gateward.request("/v1/bootstrap", {
        method: "POST",
        headers: { "content-type": "application/json", ...(authorization === null ? {} : { authorization }) },
        body: JSON.stringify({ tenant: "first" }),
      });
      expect({ authorization, status }).toEqual({ authorization, status: expect.toBeOneOf([401, 403, 503]) });
    }
    expect(await gateward.rows("SELECT tenant FROM tenants")).toEqual([]);
    const tenant = await gateward.tenant();
    expect(await tenant.api.read("/v1/settings")).toBeTruthy();
  });
});

describe("a tenant", () => {
  let gateward: Gateward;
  let home: Tenant;
  /** An administrator of tenants. */
  let root: Api;
  beforeAll(async () => {
    gateward = await Gateward.start();
    home = await gateward.tenant();
    root = await home.apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]);
  });
  afterAll(() => gateward?.close());

  interface Made {
    tenant: TenantObject;
    credential: NewCredential;
  }
  /** A tenant made through the API, its administrator, and an agent that may read. */
  async function make(name: string): Promise<{ made: Made; api: Api; reads: () => Promise<boolean>; token: string }> {
    const made = await root.create<Made>("/v1/tenants", { tenant: name, administrator: "ann" });
    const api = new Api(gateward, made.credential.token);
    await api.agent("coder");
    await api.server("files", "read");
    const { token } = await api.credential("coder");
    const body = readCall({ tool_call: { tool: "files", action: "read", parameters: {} } });
    return { made, api, token, reads: () => passes(gateward, token, body) };
  }

  test("is made with an administrator who may do all in it, and nothing beyond", async () => {
    const { made, api, reads } = await make("made");
    expect(made.tenant).toEqual({
      tenant: "made",
      status: "active",
      lanes: 1,
      rows_per_day: null,
      bytes_per_day: null,
      retention_days: null,
      destinations: null,
      revision: expect.any(Number),
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(made.credential).toMatchObject({ kind: "administrator", administrator: "ann", token: expect.stringMatching(/^gwa_made\./) });
    expect(made.credential.scopes).toEqual(expect.arrayContaining(ADMINISTRATOR_SCOPES));
    expect(made.credential.scopes).not.toContain(TENANTS_SCOPE);
    expect(await root.read("/v1/tenants/made")).toMatchObject({ tenant: "made", lanes: 1 });
    expect(await reads()).toBe(true);
    expectCode(await api.get("/v1/tenants"), 403, "forbidden");
    expectCode(await api.get("/v1/tenants/made"), 403, "forbidden");
    expectCode(await root.post("/v1/tenants", { tenant: "made" }), 409, "name_taken");
  });

  test("that is suspended calls nothing until it is active again", async () => {
    const { token, reads } = await make("paused");
    expect(await reads()).toBe(true);
    await root.change("PATCH", "/v1/tenants/paused", { status: "suspended" });
    const body = readCall({ tool_call: { tool: "files", action: "read", parameters: {} } });
    expect(await gateward.decide(token, body)).toMatchObject({ decision: "deny", reason_code: "tenant_inactive" });
    await root.change("PATCH", "/v1/tenants/paused", { status: "active" });
    expect(await reads()).toBe(true);
  });

  test("grows in lanes and never shrinks; its agents stay where they are", async () => {
    const { api, reads } = await make("growing");
    expect(await root.change("PATCH", "/v1/tenants/growing", { lanes: 4 })).toMatchObject({ lanes: 4 });
    for (const lanes of [3, 0, 4097]) {
      expect([409, 422]).toContain((await root.patch("/v1/tenants/growing", { lanes })).status);
    }
    expect(await root.read("/v1/tenants/growing")).toMatchObject({ lanes: 4 });
    expect(await api.read("/v1/agents/coder")).toMatchObject({ lane: 0 });
    expect(await reads()).toBe(true);
    const lanes = new Set<number>();
    for (let at = 0; at < 40 && lanes.size < 4; at += 1) lanes.add((await api.agent(`agent-${at}`)).lane);
    expect([...lanes].sort()).toEqual([0, 1, 2, 3]);
  });

  test("has destinations of its own, in one form", async () => {
    await make("owning");
    const path = "/v1/tenants/owning";
    const destinations = { accounts: ["DE89 3704 0044 0532 0130 00"], domains: ["Acme.example"] };
    const normal = { accounts: ["de89370400440532013000"], domains: ["acme.example"], hosts: [] };
    expect(await root.change("PATCH", path, { destinations })).toMatchObject({ destinations: normal });
    expect(await root.read(path)).toMatchObject({ destinations: normal });
    for (const wrong of [{ hosts: ["https://acme.example"] }, { domains: ["*.acme.example"] }, { accounts: ["?"] }, { people: [] }]) {
      expectCode(await root.patch(path, { destinations: wrong }), 422, "invalid_field");
    }
    expect(await root.change("PATCH", path, { destinations: null })).toMatchObject({ destinations: null });
  });

  test("that is deleted calls nothing, administers nothing, and its name is not given again", async () => {
    const { api, reads } = await make("ended");
    expect(await reads()).toBe(true);
    await root.change("DELETE", "/v1/tenants/ended");
    expect(await reads()).toBe(false);
    expectCode(await api.get("/v1/agents"), 401, "unauthorized");
    expectCode(await api.post("/v1/groups", { group: "late" }), 401, "unauthorized");
    expectCode(await root.get("/v1/tenants/ended"), 404, "not_found");
    expect((await root.all<TenantObject>("/v1/tenants")).map(({ tenant }) => tenant)).not.toContain("ended");
    expectCode(await root.post("/v1/tenants", { tenant: "ended" }), 409, "name_taken");
    expect([404, 409]).toContain((await root.patch("/v1/tenants/ended", { status: "active" })).status);
    expect(await reads()).toBe(false);
  });
});
