// The audit of administrators' writes.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditEvent, Problem } from "../support/api/types.gen.ts";
import { Gateward } from "../support/gateward.ts";
import { ADMINISTRATOR } from "../support/registry.ts";
import { newKey } from "../support/routes.ts";

let gateward: Gateward;

beforeAll(async () => {
  gateward = await Gateward.start();
});
afterAll(() => gateward?.close());

test("it keeps every write: what, when, and which administrator", async () => {
  const { api } = await gateward.tenant();
  // The part of a change that a lane carries out has its own event.
  const events = async () =>
    (await api.all<AuditEvent>("/v1/audit-events")).filter(({ event_id }) => event_id.startsWith("registry."));
  let key = "";
  let banned = "";
  // [method, path, body, the kind of the event]
  const writes: [string, () => string, object | undefined, string][] = [
    ["POST", () => "/v1/agents", { agent: "a0", environment: "production" }, "agent"],
    ["PATCH", () => "/v1/agents/a0", { risk_tier: "medium" }, "agent"],
    ...["freeze", "unfreeze", "quarantine", "restore"].map(
      (action): [string, () => string, undefined, string] => ["POST", () => `/v1/agents/a0/${action}`, undefined, "agent"]),
    ["POST", () => "/v1/groups", { group: "g" }, "group"],
    ["PUT", () => "/v1/groups/g/members/agents/a0", undefined, "group"],
    ["DELETE", () => "/v1/groups/g/members/agents/a0", undefined, "group"],
    ["POST", () => "/v1/administrators", { administrator: "p" }, "administrator"],
    ["PUT", () => "/v1/groups/g/members/administrators/p", undefined, "group"],
    ["DELETE", () => "/v1/administrators/p", undefined, "administrator"],
    ["DELETE", () => "/v1/groups/g", undefined, "group"],
    ["POST", () => "/v1/credentials", { kind: "agent", agent: "a0" }, "credential"],
    ["POST", () => `/v1/credentials/${key}/rotate`, {}, "credential"],
    ["POST", () => `/v1/credentials/${key}/revoke`, undefined, "credential"],
    ["POST", () => "/v1/servers", { server: "s", kind: "mcp" }, "server"],
    ["PATCH", () => "/v1/servers/s", { kind: "http" }, "server"],
    ["POST", () => "/v1/servers/s/tools", { tool: "t", mutates: false, risk: "low" }, "tool"],
    ["PATCH", () => "/v1/servers/s/tools/t", { risk: "high" }, "tool"],
    ...["approve", "disable", "quarantine", "restore"].flatMap((action): [string, () => string, undefined, string][] => [
      ["POST", () => `/v1/servers/s/${action}`, undefined, "server"],
      ["POST", () => `/v1/servers/s/tools/t/${action}`, undefined, "tool"],
    ]),
    ["DELETE", () => "/v1/servers/s", undefined, "server"],
    ["POST", () => "/v1/bans", { kind: "user", subject: "u" }, "ban"],
    ["DELETE", () => `/v1/bans/${banned}`, undefined, "ban"],
    ["PATCH", () => "/v1/settings", { risk_denials: 5 }, "settings"],
    ["POST", () => "/v1/limits", { limit_id: "l", subject_kind: "agent", subject: "a0", rule: { kind: "concurrency", max: "1" } }, "limit"],
    ["PATCH", () => "/v1/limits/l", { rule: { max: "2" } }, "limit"],
    ["DELETE", () => "/v1/limits/l", undefined, "limit"],
    ["POST", () => "/v1/warrant-roots", { root_id: "r", public_key: newKey() }, "warrant_root"],
    ["PATCH", () => "/v1/warrant-roots/r", { status: "disabled" }, "warrant_root"],
    ["DELETE", () => "/v1/warrant-roots/r", undefined, "warrant_root"],
    ["POST", () => "/v1/warrant-revocations", { warrant_id: "0f".repeat(16) }, "warrant_revoked"],
    ["POST", () => "/v1/agents/a0/revoke", undefined, "agent"],
    ["DELETE", () => "/v1/agents/a0", undefined, "agent"],
  ];
  let known = new Set((await events()).map(({ event_id }) => event_id));
  for (const [method, path, body, about] of writes) {
    const reply = await gateward.send<{ key_id?: string; ban_id?: string } & Problem>(method, api.token, path(), body);
    expect({ method, path: path(), status: reply.status, code: reply.body?.code }).toEqual({
      method, path: path(), status: expect.toBeOneOf([200, 201, 204]), code: undefined,
    });
    if (path() === "/v1/credentials") key = reply.body.key_id ?? "";
    banned = reply.body?.ban_id ?? banned;
    const all = await events();
    const added = all.filter(({ event_id }) => !known.has(event_id));
    expect({ method, path: path(), added }).toEqual({
      method,
      path: path(),
      added: [expect.objectContaining({
        event_id: expect.stringMatching(/^registry\.\d+$/),
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        kind: expect.stringContaining(about),
        source: ADMINISTRATOR,
        count: 1,
      })],
    });
    known = new Set(all.map(({ event_id }) => event_id));
  }
});

test("it is listed newest first, and filtered by kind and time", async () => {
  const { api } = await gateward.tenant();
  await api.agent("one");
  await api.create("/v1/groups", { group: "g" });
  const all = await api.all<AuditEvent>("/v1/audit-events");
  const times = all.map(({ at }) => at);
  expect(times).toEqual(times.toSorted().toReversed());
  const [newest] = all;
  const ofKind = await api.all<AuditEvent>(`/v1/audit-events?kind=${newest?.kind}`);
  expect(ofKind).toEqual(all.filter(({ kind }) => kind === newest?.kind));
  expect(await api.all("/v1/audit-events?kind=never_happened")).toEqual([]);
  expect(await api.all("/v1/audit-events?to=2000-01-01T00:00:00Z")).toEqual([]);
  expect(await api.all("/v1/audit-events?from=2100-01-01T00:00:00Z")).toEqual([]);
  expect(await api.all("/v1/audit-events?from=2000-01-01T00:00:00Z")).toEqual(all);
});
