// Credentials: shown once, stored as hashes, restricted as requested, rotated without a gap, and never with more rights
// than their issuer has.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Credential, Problem } from "../support/api/types.gen.ts";
import { Api, type NewCredential } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { eventually, Gateward, MAC_KEY, passes, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { sha256Hex } from "../support/receipts.ts";
import { hasValidMac } from "../support/tokens.ts";

let gateward: Gateward;
let tenant: Tenant;
let api: Api;

beforeAll(async () => {
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  api = tenant.api;
  await api.agent("coder");
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

describe("a new credential", () => {
  test("of an agent reads and writes, and has exactly the fields of the contract", async () => {
    const issued = await api.create<NewCredential>("/v1/credentials", { kind: "agent", agent: "coder" });
    const { token, signing_key, ...kept } = issued;
    expect(kept).toEqual({
      key_id: expect.stringMatching(/^[a-z0-9][a-z0-9_-]{0,62}$/),
      kind: "agent",
      agent: "coder",
      administrator: null,
      scopes: ["tools:read", "tools:write"],
      status: "active",
      expires_at: null,
      max_source_trust: "unknown",
      allowed_servers: null,
      allowed_tools: null,
      allowed_networks: null,
      signed: false,
      assigns_runs: false,
      issued_by: "admin",
      issuer_key_id: tenant.administrator.keyId,
      revision: expect.any(Number),
      created_at: expect.any(String),
    });
    expect(signing_key).toBeNull();
    expect(token.startsWith(`gw_${tenant.name}.coder.0.${kept.key_id}.`)).toBe(true);
    expect(hasValidMac(token, MAC_KEY)).toBe(true);
    expect(await api.read(`/v1/credentials/${kept.key_id}`)).toEqual(kept);
    expect(await gateward.decide(token, readCall())).toMatchObject({ decision: "allow", root_trust_level: "unknown" });
  });

  test("of an administrator has a name that rotation keeps", async () => {
    const issued = await api.administrator("ann", ["registry:read", "registry:write"]);
    expect(issued).toMatchObject({ kind: "administrator", agent: null, administrator: "ann", scopes: ["registry:read", "registry:write"] });
    expect(issued.token.startsWith(`gwa_${tenant.name}.${issued.key_id}.`)).toBe(true);
    expect(await new Api(gateward, issued.token).read("/v1/agents/coder")).toMatchObject({ agent: "coder" });
    expectCode(await api.post(`/v1/credentials/${issued.key_id}/rotate`, {}), 403, "forbidden");
    const rotated = await new Api(gateward, issued.token).create<NewCredential>(`/v1/credentials/${issued.key_id}/rotate`, {});
    expect(rotated).toMatchObject({ administrator: "ann", scopes: issued.scopes, issued_by: "ann", issuer_key_id: issued.key_id });
  });

  test("has a secret of 256 bits, which is shown once and stored as SHA-256 alone", async () => {
    const issued = await api.credential("coder", { signed: true });
    const secret = issued.token.split(".")[4] ?? "";
    expect(Buffer.from(secret, "base64url")).toHaveLength(32);
    const again = await Promise.all([
      api.read(`/v1/credentials/${issued.key_id}`),
      api.all("/v1/credentials"),
      api.all("/v1/credentials?agent=coder"),
      api.all("/v1/audit-events"),
      api.post("/v1/credentials", { kind: "agent", agent: "coder" }, { idempotencyKey: "once" }),
      api.post("/v1/credentials", { kind: "agent", agent: "coder" }, { idempotencyKey: "once" }),
    ]);
    const tables = await gateward.rows<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'");
    const stored = JSON.stringify(await Promise.all(tables.map(({ name }) => gateward.rows(`SELECT * FROM "${name}"`))));
    expect(stored).toContain(sha256Hex(secret));
    for (const text of [secret, issued.token, issued.signing_key ?? "", ...again.slice(4).flatMap((reply) => tokensIn(reply))]) {
      expect(text.length).toBeGreaterThan(40);
      expect(stored).not.toContain(text);
      expect(JSON.stringify(again.slice(0, 4))).not.toContain(text);
    }
    const [row] = await gateward.rows("SELECT secret_sha256 FROM credentials WHERE tenant = ?1 AND key_id = ?2", tenant.name, issued.key_id);
    expect(row).toEqual({ secret_sha256: sha256Hex(secret) });
  });

  function tokensIn(value: unknown): string[] {
    return JSON.stringify(value).match(/gwa?_[A-Za-z0-9._-]{40,}/g) ?? [];
  }
});

describe("what a credential is narrowed to", () => {
  const body = readCall();
  // [what, fields, whether github/list_issues passes]
  const cases: [string, object, boolean][] = [
    ["no list of servers", { allowed_servers: null }, true],
    ["no server", { allowed_servers: [] }, false],
    ["its server", { allowed_servers: ["github"] }, true],
    ["a glob of its server", { allowed_servers: ["crm", "git*"] }, true],
    ["another server", { allowed_servers: ["crm", "github-*"] }, false],
    ["no list of tools", { allowed_tools: null }, true],
    ["no tool", { allowed_tools: [] }, false],
    ["its tool", { allowed_tools: ["github/list_issues"] }, true],
    ["a glob of its tool", { allowed_tools: ["github/list_*ssues"] }, true],
    ["a glob across the slash", { allowed_tools: ["*issues"] }, true],
    ["another tool", { allowed_tools: ["github/get_issue", "list_issues"] }, false],
    ["its server, and another's tool", { allowed_servers: ["github"], allowed_tools: ["crm/*"] }, false],
    ["no list of networks", { allowed_networks: null }, true],
    ["no network", { allowed_networks: [] }, false],
    ["the scope that reads", { scopes: ["tools:read"] }, true],
    ["the scope that writes", { scopes: ["tools:write"] }, false],
    ["no scope", { scopes: [] }, false],
  ];
  test.each(cases)("%s", async (_, fields, expected) => {
    const issued = await api.credential("coder", fields);
    expect(issued).toMatchObject(fields);
    expect(await passes(gateward, issued.token, body)).toBe(expected);
  });

  test("agent and credential must both grant a tool", async () => {
    await api.agent("narrow", { allowed_tools: ["github/*"] });
    const { token } = await api.credential("narrow", { allowed_tools: ["*/list_issues", "crm/*"] });
    const call = (action: string) => readCall({ agent: { id: "narrow" }, tool_call: { action, parameters: { repo: "a/b", number: 1 } } });
    expect(await passes(gateward, token, readCall({ agent: { id: "narrow" } }))).toBe(true);
    expect(await passes(gateward, token, call("get_issue"))).toBe(false);
  });

  // [networks, connecting address, whether it passes]. Locally, the caller itself sends the header
  // with the address. At Cloudflare's edge, Cloudflare sets it.
  const networks: [string[], string, boolean][] = [
    [["203.0.113.0/24"], "203.0.113.7", true],
    [["203.0.113.0/24"], "203.0.114.7", false],
    [["203.0.113.7"], "203.0.113.7", true],
    [["203.0.113.7"], "203.0.113.8", false],
    [["203.0.113.7/32", "198.51.100.0/25"], "198.51.100.127", true],
    [["203.0.113.7/32", "198.51.100.0/25"], "198.51.100.128", false],
    [["0.0.0.0/0"], "203.0.113.7", true],
    [["0.0.0.0/0"], "2001:db8::1", false],
    [["2001:db8::/32"], "2001:db8:ffff::1", true],
    [["2001:db8::/32"], "2001:db9::1", false],
    [["2001:db8::1"], "2001:0db8:0:0::0001", true],
    [["::/0"], "203.0.113.7", false],
    [["203.0.113.0/24"], "not an address", false],
  ];
  test.each(networks)("networks %j, called from %s: %s", async (allowed_networks, address, expected) => {
    const { token } = await api.credential("coder", { allowed_networks });
    expect(await passes(gateward, token, body, { headers: { "cf-connecting-ip": address } })).toBe(expected);
  });

  test("no other header stands for the connecting address", async () => {
    const { token } = await api.credential("coder", { allowed_networks: ["203.0.113.0/24"] });
    const headers = Object.fromEntries(
      ["x-forwarded-for", "x-real-ip", "true-client-ip", "forwarded", "cf-connecting-ipv6", "cf-pseudo-ipv4"].map((name) => [name, "203.0.113.7"]),
    );
    expect(await passes(gateward, token, body, { headers })).toBe(false);
  });

  // Attack: if no platform sets the header, a caller can write any address into it.
  test.each([
    ["none", "", false, false],
    ["another one", "x-real-ip", false, true],
  ])("a header that no setting names is not believed: it names %s", async (_, header, ofCloudflare, ofOther) => {
    const elsewhere = await Gateward.start({ vars: { CONNECTING_ADDRESS_HEADER: header } });
    try {
      const tenant = await elsewhere.tenant();
      await tenant.agent();
      const claims = (name: string) => ({ headers: { [name]: "203.0.113.7" } });
      const { token } = await tenant.api.credential("coder", { allowed_networks: ["203.0.113.0/24"] });
      expect(await passes(elsewhere, token, body, claims("cf-connecting-ip"))).toBe(ofCloudflare);
      expect(await passes(elsewhere, token, body, claims("x-real-ip"))).toBe(ofOther);
      // If a call has no address, the bans of all networks apply to it.
      const anywhere = await tenant.api.credential("coder");
      expect(await passes(elsewhere, anywhere.token, body, claims("cf-connecting-ip"))).toBe(true);
      await tenant.api.create("/v1/bans", { kind: "source_address", subject: "198.51.100.0/24" });
      expect(await passes(elsewhere, anywhere.token, body, claims("cf-connecting-ip"))).toBe(false);
      expect(await passes(elsewhere, anywhere.token, body, claims("x-real-ip"))).toBe(ofOther);
    } finally {
      await elsewhere.close();
    }
  });

  test("networks hold for administrators too", async () => {
    const { token } = await api.administrator("remote", ["registry:read"], { allowed_networks: ["203.0.113.0/24"] });
    const get = async (address: string) => (await gateward.get(token, "/v1/agents", { headers: { "cf-connecting-ip": address } })).status;
    expect(await get("203.0.113.7")).toBe(200);
    expect([401, 403]).toContain(await get("203.0.114.7"));
  });
});

describe("the end of a credential", () => {
  test("comes when it expires", async () => {
    const expires_at = new Date(Date.now() + 1_500).toISOString();
    const { key_id, token } = await api.credential("coder", { expires_at });
    const administrator = await api.administrator("temporary", ["registry:read"], { expires_at });
    expect(await passes(gateward, token, readCall())).toBe(true);
    await eventually("it has expired", async () => !(await passes(gateward, token, readCall())));
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at));
    expectCode(await gateward.post(token, "/v1/authorize", readCall()), 401, "credential_expired");
    expectCode(await gateward.get(administrator.token, "/v1/agents"), 401, "credential_expired");
    expect(await api.read(`/v1/credentials/${key_id}`)).toMatchObject({ status: "expired", expires_at });
  });

  test("comes with its revocation, from the next call on", async () => {
    const { key_id, token } = await api.credential("coder");
    const administrator = await api.administrator("leaver", ["registry:read"]);
    expect(await passes(gateward, token, readCall())).toBe(true);
    expect(await api.change("POST", `/v1/credentials/${key_id}/revoke`)).toMatchObject({ key_id, status: "revoked" });
    await api.change("POST", `/v1/credentials/${administrator.key_id}/revoke`);
    expectCode(await gateward.post(token, "/v1/authorize", readCall()), 401, "unauthorized");
    expectCode(await gateward.get(administrator.token, "/v1/agents"), 401, "unauthorized");
    expectCode(await api.post(`/v1/credentials/${key_id}/rotate`, {}), 409, "state_conflict");
  });
});

describe("rotation", () => {
  test("gives another credential with the same attributes; the old one works until the overlap ends", async () => {
    const fields = { scopes: ["tools:read"], max_source_trust: "untrusted_external", allowed_tools: ["github/*"], allowed_networks: ["127.0.0.0/8"] };
    const old = await api.credential("coder", fields);
    const rotated = await api.create<NewCredential>(`/v1/credentials/${old.key_id}/rotate`, { overlap_s: 2 });
    expect(rotated.key_id).not.toBe(old.key_id);
    expect(rotated.token).not.toBe(old.token);
    expect(rotated).toMatchObject({ ...fields, kind: "agent", agent: "coder", expires_at: null, status: "active" });
    for (const { token } of [old, rotated]) expect(await passes(gateward, token, readCall())).toBe(true);
    const { expires_at } = await api.read<Credential>(`/v1/credentials/${old.key_id}`);
    expect(Math.abs(Date.parse(expires_at ?? "") - Date.now())).toBeLessThanOrEqual(2_000);
    await eventually("the overlap ends", async () => !(await passes(gateward, old.token, readCall())));
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at ?? ""));
    expect(await passes(gateward, rotated.token, readCall())).toBe(true);
  });

  test("without an overlap ends the old one at once", async () => {
    const old = await api.credential("coder");
    expect(await passes(gateward, old.token, readCall())).toBe(true);
    const { token } = await api.create<NewCredential>(`/v1/credentials/${old.key_id}/rotate`, { overlap_s: 0 });
    expect(await passes(gateward, old.token, readCall())).toBe(false);
    expect(await passes(gateward, token, readCall())).toBe(true);
  });

  test("never lengthens the old one's life", async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const old = await api.credential("coder", { expires_at });
    await api.create(`/v1/credentials/${old.key_id}/rotate`, { overlap_s: 3_600 });
    expect(await api.read(`/v1/credentials/${old.key_id}`)).toMatchObject({ expires_at });
  });

  test.each([-1, 2_592_001, 1.5, "1"])("an overlap of %j s is refused", async (overlap_s) => {
    const { key_id } = await api.credential("coder");
    const reply = await api.post(`/v1/credentials/${key_id}/rotate`, { overlap_s });
    expectCode(reply, 422, "invalid_field");
    expect(reply.body.field).toBe("overlap_s");
  });
});

describe("nobody grants what it has not", () => {
  const own = ["registry:read", "registry:write"];

  test.each([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE].filter((scope) => !own.includes(scope)))("%s", async (scope) => {
    const limited = await tenant.apiWith(own);
    const reply = await limited.post("/v1/credentials", { kind: "administrator", administrator: "friend", scopes: [...own, scope] });
    expect([403, 422]).toContain(reply.status);
    expect((await limited.administrator("friend", own)).scopes).toEqual(own);
  });

  test("nor what its own credential is narrowed by: its end, its networks, its signature", async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const narrow = { expires_at, allowed_networks: ["127.0.0.0/8"] };
    const { token } = await api.administrator("narrow", ["registry:write"], narrow);
    await api.create("/v1/administrators", { administrator: "next" });
    const narrowed = new Api(gateward, token);
    const issue = (fields: object) => narrowed.post("/v1/credentials", { kind: "administrator", administrator: "next", scopes: ["registry:write"], ...fields });
    for (const wider of [
      {},
      { expires_at },
      { ...narrow, expires_at: new Date(Date.now() + 7_200_000).toISOString() },
      { ...narrow, allowed_networks: ["127.0.0.1", "10.0.0.0/8"] },
      { ...narrow, allowed_networks: ["0.0.0.0/0"] },
    ]) expectCode(await issue(wider), 403, "forbidden");
    expect((await issue(narrow)).status).toBe(201);
    expect((await issue({ ...narrow, allowed_networks: ["127.0.0.1"] })).status).toBe(201);
    expect((await issue({ ...narrow, allowed_networks: [] })).status).toBe(201);
  });

  test("nor gets a stronger credential by rotating it", async () => {
    const limited = await tenant.apiWith(own);
    const strong = await api.administrator("strong", ADMINISTRATOR_SCOPES);
    const reply = await limited.post(`/v1/credentials/${strong.key_id}/rotate`, { overlap_s: 0 });
    expect([403, 422]).toContain(reply.status);
    expect(await new Api(gateward, strong.token).read("/v1/audit-events?limit=1")).toBeTruthy();
  });

  test("no agent gets a scope of administrators, and no administrator one of agents' tools", async () => {
    for (const scope of [...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]) {
      const reply = await api.post("/v1/credentials", { kind: "agent", agent: "coder", scopes: ["tools:read", scope] });
      expect({ scope, status: reply.status, code: reply.body.code }).toEqual({ scope, status: 422, code: "invalid_field" });
    }
    const limited = await tenant.apiWith(own);
    const reply = await limited.post("/v1/credentials", { kind: "administrator", administrator: "tooler", scopes: ["tools:write"] });
    expect([403, 422]).toContain(reply.status);
  });
});

test("an agent of another tenant, or none, gets no credential", async () => {
  const other = await gateward.tenant();
  await other.agent("theirs");
  for (const agent of ["theirs", "nobody"]) {
    expect([404, 422]).toContain((await api.post("/v1/credentials", { kind: "agent", agent })).status);
  }
});

test("a write needs trust that the credential may claim", async () => {
  const { token } = await api.create<NewCredential>("/v1/credentials", { kind: "agent", agent: "coder" });
  expect(await passes(gateward, token, writeCall())).toBe(false);
  expect(await passes(gateward, (await api.credential("coder")).token, writeCall())).toBe(true);
});
