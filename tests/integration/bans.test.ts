// Bans and limits, which stop or slow an agent without changing the agent's record.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeResponse, Ban, SettingsView, Problem } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { type Changes, eventually, Gateward, passes, readCall, type Tenant } from "../support/gateward.ts";
import { ADMINISTRATOR } from "../support/registry.ts";

let gateward: Gateward;
let tenant: Tenant;
let api: Api;

beforeAll(async () => {
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  api = tenant.api;
});
afterAll(() => gateward?.close());

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

describe("bans", () => {
  interface Way {
    kind: Ban["kind"];
    subject: string;
    /** The members that make a call match the ban, and those that make it not match. */
    banned: Changes;
    other: Changes;
    from?: [banned: string, other: string];
  }
  const ways: Way[] = [
    { kind: "agent", subject: "banned", banned: { agent: { id: "banned" } }, other: { agent: { id: "other" } } },
    { kind: "user", subject: "User-1", banned: { user: { id: "User-1" } }, other: { user: { id: "user-1" } } },
    { kind: "run", subject: "run 1/ü", banned: { trace: { run_id: "run 1/ü" } }, other: { trace: { run_id: "run 1" } } },
    { kind: "source_address", subject: "203.0.113.0/24", banned: {}, other: {}, from: ["203.0.113.7", "203.0.114.7"] },
    { kind: "source_address", subject: "198.51.100.7", banned: {}, other: {}, from: ["198.51.100.7", "198.51.100.8"] },
    { kind: "source_address", subject: "2001:db8::/32", banned: {}, other: {}, from: ["2001:db8:7::1", "2001:db9::1"] },
  ];
  test.each(ways)("of $kind $subject stops its calls and no others, until lifted or expired", async ({ kind, subject, banned, other, from }) => {
    const tenant = await gateward.tenant();
    const { api } = tenant;
    const tokens = new Map<string, string>();
    for (const name of ["banned", "other"]) tokens.set(name, (await tenant.agent(name)).token);
    const call = (changes: Changes, address?: string) => {
      const id = changes.agent?.id ?? "banned";
      const headers: Record<string, string> = address === undefined ? {} : { "cf-connecting-ip": address };
      return passes(gateward, tokens.get(id) ?? "", readCall({ ...changes, agent: { id } }), { headers });
    };
    expect(await call(banned, from?.[0])).toBe(true);

    const ban = await api.create<Ban>("/v1/bans", { kind, subject, reason: "seen on the news" });
    expect(ban).toEqual({
      ban_id: expect.stringMatching(/./),
      kind,
      subject: expect.any(String),
      reason: "seen on the news",
      created_by: ADMINISTRATOR,
      created_at: expect.any(String),
      expires_at: null,
    });
    expect(await api.read(`/v1/bans/${ban.ban_id}`)).toEqual(ban);
    expect(await call(banned, from?.[0])).toBe(false);
    expect(await call(other, from?.[1])).toBe(true);
    await tenant.evict();
    expect(await call(banned, from?.[0])).toBe(false);
    await api.change("DELETE", `/v1/bans/${ban.ban_id}`);
    expectCode(await api.get(`/v1/bans/${ban.ban_id}`), 404, "not_found");
    expect(await call(banned, from?.[0])).toBe(true);

    const expires_at = new Date(Date.now() + 1_500).toISOString();
    await api.create("/v1/bans", { kind, subject, expires_at });
    expect(await call(banned, from?.[0])).toBe(false);
    await eventually("the ban expires", () => call(banned, from?.[0]));
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at));
  });

  test("of two on one subject, lifting one leaves the other", async () => {
    const { token } = await tenant.agent("twice");
    const body = readCall({ agent: { id: "twice" } });
    const first = await api.create<Ban>("/v1/bans", { kind: "agent", subject: "twice" });
    await api.create("/v1/bans", { kind: "agent", subject: "twice" });
    await api.change("DELETE", `/v1/bans/${first.ban_id}`);
    expect(await passes(gateward, token, body)).toBe(false);
  });

  test("an address that stands in another header bans nobody and spares nobody", async () => {
    const { token } = await tenant.agent("proxied");
    await api.create("/v1/bans", { kind: "source_address", subject: "192.0.2.1" });
    const call = (headers: Record<string, string>) => passes(gateward, token, readCall({ agent: { id: "proxied" } }), { headers });
    expect(await call({ "x-forwarded-for": "192.0.2.1" })).toBe(true);
    expect(await call({ "cf-connecting-ip": "192.0.2.1", "x-forwarded-for": "192.0.2.2" })).toBe(false);
  });

  test("a banned agent's stored answer is not given again", async () => {
    const { token } = await tenant.agent("stored");
    const body = readCall({ agent: { id: "stored" }, request_id: "r1" });
    expect(await passes(gateward, token, body)).toBe(true);
    await api.create("/v1/bans", { kind: "agent", subject: "stored" });
    expect(await passes(gateward, token, body)).toBe(false);
  });
});

describe("limits", () => {
  /** The policy of the agent's bucket, from the headers of the next answer. */
  async function bucket(token: string, id: string): Promise<string | null> {
    const { status, headers } = await gateward.post<AuthorizeResponse>(token, "/v1/authorize", readCall({ agent: { id } }));
    expect(status).toBe(200);
    return headers.get("ratelimit-policy");
  }

  test("of a tenant are read and patched, null clears", async () => {
    const { api } = await gateward.tenant();
    const none = { risk_denials: null, risk_window_s: null, risk_quiet_s: null, taint_s: null, grace_read_s: null, grace_write_s: null, grace_high_risk_s: null, warrant_max_links: null, warrant_proof_windows: null, warrant_reads_once: null, warrant_required: null, warrant_alone_trust: null, log_public: null, shield: null };
    expect(await api.read("/v1/settings")).toEqual({ ...none, revision: expect.any(Number) });
    const some = { risk_denials: 3, risk_window_s: 60, risk_quiet_s: 5, taint_s: 600, grace_read_s: 0, grace_write_s: 60, grace_high_risk_s: 3_600, warrant_max_links: 64, warrant_proof_windows: 2, warrant_reads_once: true, warrant_required: false, warrant_alone_trust: "unknown", log_public: true, shield: { secret: "redact", sql_injection: "block" } };
    expect(await api.change<SettingsView>("PATCH", "/v1/settings", some)).toMatchObject(some);
    expect(await api.change<SettingsView>("PATCH", "/v1/settings", { risk_denials: null })).toMatchObject({ ...some, risk_denials: null });
    expect(await api.read("/v1/settings")).toMatchObject({ ...some, risk_denials: null });
  });

  test("an agent's own limit of requests holds before that of each agent, and that before the worker's rate", async () => {
    const tenant = await gateward.tenant();
    const { api } = tenant;
    const { name, token } = await tenant.agent("paced");
    expect(await bucket(token, name)).toBe('"agent";q=600;w=6');
    const limit = (limit_id: string, subject: string, capacity: number) =>
      api.create("/v1/limits", { limit_id, subject_kind: "agent", subject, covers: "requests", rule: { kind: "rate", capacity, refill_per_s: 10 } });
    await limit("each", "*", 50);
    expect(await bucket(token, name)).toBe('"each";q=50;w=5');
    await limit("own", name, 20);
    expect(await bucket(token, name)).toBe('"own";q=20;w=2');
    await api.change("DELETE", "/v1/limits/own");
    expect(await bucket(token, name)).toBe('"each";q=50;w=5');
    await api.change("DELETE", "/v1/limits/each");
    expect(await bucket(token, name)).toBe('"agent";q=600;w=6');
  });
});
