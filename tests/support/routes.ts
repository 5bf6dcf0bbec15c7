// The table of all routes of the API and the access that each needs. Tests use it. It is written by hand on purpose:
// if a route is added, or its access changes, a test fails until this table is changed too.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import type { Ban } from "./api/types.gen.ts";
import type { Document, Operation } from "./description.ts";
import { type Gateward, readCall, type Tenant, writeCall } from "./gateward.ts";
import { Key, revocationList } from "./warrants.ts";

/** Names and ids of one tenant's records, by the names of path parameters. */
export interface Ids {
  tenant: string;
  agent: string;
  group: string;
  kind: string;
  member: string;
  administrator: string;
  key_id: string;
  server: string;
  tool: string;
  ban_id: string;
  limit_id: string;
  root_id: string;
  warrant_id: string;
  /** Signed with the root's key. */
  revocation_list: string;
  decision_id: string;
  receipt_id: string;
  log: string;
  tile: string;
  run: string;
  approval_id: string;
}

export interface Route {
  method: string;
  path: string;
  /** The scope of an administrator, or who else has access. */
  scope: string | "nobody's" | "the secret" | "an agent" | "a harness";
  /** A body that the route accepts. */
  body?: (ids: Ids) => object;
  query?: string;
  /** Agents may also read their own records. */
  forAgents?: true;
  /** Of a transparency log, which only a worker with a key for logs has. */
  ofLog?: true;
}

const read = (path: string, more: Partial<Route> = {}): Route => ({ method: "GET", path, scope: "registry:read", ...more });
const write = (method: string, path: string, body?: (ids: Ids) => object): Route => ({
  method,
  path,
  scope: "registry:write",
  ...(body === undefined ? {} : { body }),
});
const actions = (path: string, ...names: string[]): Route[] => names.map((name) => write("POST", `${path}/${name}`));
const tenants = (method: string, path: string, body?: (ids: Ids) => object): Route => ({ ...write(method, path, body), scope: "tenants:admin" });
const records = (path: string, more: Partial<Route> = {}): Route => read(path, { scope: "audit:read", ...more });
const approvals = (method: string, path: string, more: Partial<Route> = {}): Route => ({ method, path, scope: "approvals:decide", ...more });
const open = (path: string): Route => read(path, { scope: "nobody's" });

const SERVER = "/v1/servers/{server}";
const TOOL = `${SERVER}/tools/{tool}`;
const APPROVAL = "/v1/approvals/{approval_id}";
const MEMBER = "/v1/groups/{group}/members/{kind}/{member}";

export const ROUTES: Route[] = [
  open("/healthz"),
  open("/readyz"),
  open("/version"),
  open("/openapi.json"),
  read("/metrics", { scope: "metrics:read" }),
  { method: "POST", path: "/v1/bootstrap", scope: "the secret", body: () => ({ tenant: "first" }) },
  { method: "POST", path: "/v1/authorize", scope: "an agent", body: ({ agent }) => readCall({ agent: { id: agent } }) },
  { method: "POST", path: "/v1/decisions/{decision_id}/outcome", scope: "an agent", body: () => ({ outcome: "succeeded" }) },
  { method: "POST", path: "/v1/runs", scope: "a harness", body: ({ run }) => ({ run_id: run, instruction: "Pay.", plan: [{ tool: "bank/pay", arguments: { "/to": "ada" } }] }) },
  { method: "POST", path: "/v1/runs/{run}/observations", scope: "a harness", body: ({ server, tool }) => ({ server, tool, result: { a: [1] } }) },

  tenants("GET", "/v1/tenants"),
  tenants("POST", "/v1/tenants", ({ tenant }) => ({ tenant: `${tenant}-2` })),
  tenants("GET", "/v1/tenants/{tenant}"),
  tenants("PATCH", "/v1/tenants/{tenant}", () => ({ lanes: 2 })),
  tenants("DELETE", "/v1/tenants/{tenant}"),

  read("/v1/settings"),
  write("PATCH", "/v1/settings", () => ({ risk_denials: 7 })),

  read("/v1/limits"),
  write("POST", "/v1/limits", ({ agent }) => ({ limit_id: `${agent}-2`, subject_kind: "agent", subject: agent, rule: { kind: "concurrency", max: "9" } })),
  read("/v1/limits/{limit_id}"),
  write("PATCH", "/v1/limits/{limit_id}", () => ({ rule: { max: "8" } })),
  write("DELETE", "/v1/limits/{limit_id}"),
  read("/v1/limits/status", { query: "agent={agent}", forAgents: true }),

  read("/v1/webhook"),
  write("PUT", "/v1/webhook", () => ({ url: "https://hooks.example.com/gateward" })),
  write("DELETE", "/v1/webhook"),

  read("/v1/agents"),
  write("POST", "/v1/agents", ({ agent }) => ({ agent: `${agent}-2`, environment: "production" })),
  read("/v1/agents/{agent}"),
  write("PATCH", "/v1/agents/{agent}", () => ({ risk_tier: "medium" })),
  write("DELETE", "/v1/agents/{agent}"),
  ...actions("/v1/agents/{agent}", "freeze", "unfreeze", "revoke", "restore", "untaint", "quarantine"),

  read("/v1/groups"),
  write("POST", "/v1/groups", ({ group }) => ({ group: `${group}-2` })),
  read("/v1/groups/{group}"),
  write("DELETE", "/v1/groups/{group}"),
  ...actions("/v1/groups/{group}", "protect", "unprotect"),
  read("/v1/groups/{group}/members"),
  write("PUT", MEMBER),
  write("DELETE", MEMBER),

  read("/v1/credentials"),
  write("POST", "/v1/credentials", ({ administrator }) => ({ kind: "administrator", administrator, scopes: ["registry:read"] })),
  read("/v1/credentials/{key_id}"),
  write("POST", "/v1/credentials/{key_id}/rotate", () => ({ overlap_s: 0 })),
  write("POST", "/v1/credentials/{key_id}/revoke"),

  read("/v1/administrators"),
  write("POST", "/v1/administrators", ({ administrator }) => ({ administrator: `${administrator}-2` })),
  read("/v1/administrators/{administrator}"),
  write("DELETE", "/v1/administrators/{administrator}"),

  read("/v1/servers"),
  write("POST", "/v1/servers", ({ server }) => ({ server: `${server}-2`, kind: "mcp" })),
  read(SERVER),
  write("PATCH", SERVER, () => ({ kind: "http" })),
  write("DELETE", SERVER),
  ...actions(SERVER, "approve", "disable", "quarantine", "restore"),
  read(`${SERVER}/tools`),
  write("POST", `${SERVER}/tools`, () => ({ tool: "another", mutates: true, risk: "high" })),
  read(TOOL),
  write("PATCH", TOOL, () => ({ risk: "critical" })),
  ...actions(TOOL, "approve", "disable", "quarantine", "restore"),

  read("/v1/bans"),
  write("POST", "/v1/bans", ({ agent }) => ({ kind: "agent", subject: agent })),
  read("/v1/bans/{ban_id}"),
  write("DELETE", "/v1/bans/{ban_id}"),

  read("/v1/warrant-roots"),
  write("POST", "/v1/warrant-roots", ({ root_id }) => ({ root_id: `${root_id}-2`, public_key: newKey() })),
  read("/v1/warrant-roots/{root_id}"),
  write("PATCH", "/v1/warrant-roots/{root_id}", () => ({ status: "disabled" })),
  write("PUT", "/v1/warrant-roots/{root_id}/revocation-list", ({ revocation_list }) => ({ list: revocation_list })),
  write("DELETE", "/v1/warrant-roots/{root_id}"),
  read("/v1/warrant-revocations"),
  write("POST", "/v1/warrant-revocations", () => ({ warrant_id: randomBytes(16).toString("hex") })),
  read("/v1/warrant-revocations/{warrant_id}"),

  approvals("GET", "/v1/approvals", { forAgents: true }),
  approvals("GET", APPROVAL, { forAgents: true }),
  ...["approve", "reject", "cancel"].map((verdict) => approvals("POST", `${APPROVAL}/${verdict}`, { body: () => ({ comment: "seen" }) })),

  records("/v1/audit-events"),
  records("/v1/decisions", { forAgents: true }),
  records("/v1/decisions/{decision_id}", { forAgents: true }),
  records("/v1/receipts", { query: "lane=0&from=1" }),
  records("/v1/receipts/{receipt_id}"),
  records("/v1/receipts/ends", { query: "lane=0" }),
  ...["keys", "checkpoint", "tile/{tile}"].map((path) => records(`/v1/log/{log}/${path}`, { ofLog: true })),
  records("/v1/log/{log}/inclusion", { query: "index=0", ofLog: true }),
  records("/v1/log/{log}/consistency", { query: "from=0", ofLog: true }),
  records("/v1/registry-events", { query: "after=0" }),
  records("/v1/receipts/verify", { method: "POST", body: () => ({ lane: 0, from: 1, to: 1 }) }),
];

/** The public key of a new pair, as hex. The last 32 bytes of an SPKI are the key itself. */
export function newKey(): string {
  return generateKeyPairSync("ed25519").publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
}

/** Routes for administrators. */
export const ADMINISTRATION = ROUTES.filter(({ scope }) => scope.includes(":"));

/** The path with the values of `ids` in it, and its query. */
export function pathOf({ path, query }: Route, ids: Ids): string {
  const whole = query === undefined ? path : `${path}?${query}`;
  return whole.replace(/\{(\w+)\}/g, (_, name: keyof Ids) => encodeURIComponent(ids[name]));
}

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/** The path without the names of its parameters. */
export const anonymous = (path: string) => path.replace(/\{\w+\}/g, "{}");

export function operationsOf({ paths }: Document): { method: string; path: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/**
 * Creates one record of each kind in a tenant, with names that no other tenant has, this many decisions of the agent,
 * and one more that waits for an approval. Also returns the agent's token.
 */
export async function populate(gateward: Gateward, tenant: Tenant, decisions: number): Promise<{ ids: Ids; token: string; mark: string }> {
  const { api } = tenant;
  const mark = randomBytes(6).toString("hex");
  const ids = {
    tenant: tenant.name,
    agent: `agent-${mark}`,
    group: `group-${mark}`,
    kind: "agents",
    member: `agent-${mark}`,
    administrator: `admin-${mark}`,
    server: `server-${mark}`,
    tool: `tool-${mark}`,
    log: `${tenant.name}.lane-0`,
    tile: "0/000.p/1",
  };
  await api.agent(ids.agent);
  await api.group(ids.group, ids.agent);
  await api.create("/v1/administrators", { administrator: ids.administrator });
  await api.server(ids.server, ids.tool);
  const { key_id, token } = await api.credential(ids.agent);
  const { ban_id } = await api.create<Ban>("/v1/bans", { kind: "user", subject: `user-${mark}`, reason: mark });
  const limit_id = `limit-${mark}`;
  await api.create("/v1/limits", { limit_id, subject_kind: "agent", subject: ids.agent, rule: { kind: "budget", max: "1000000", window: "month" } });
  const root_id = `root-${mark}`;
  const root = new Key(randomBytes(32));
  await api.create("/v1/warrant-roots", { root_id, public_key: root.hex });
  const warrant_id = randomBytes(16).toString("hex");
  await api.create("/v1/warrant-revocations", { warrant_id, reason: mark });
  const revocation_list = revocationList(root, [randomBytes(16).toString("hex")], 1);
  await api.change("PUT", "/v1/webhook", { url: `https://hooks.example.com/${mark}` });
  let decision_id = "";
  let receipt_id = "";
  for (let at = 0; at < decisions; at += 1) {
    const answer = await gateward.decide(token, readCall({ agent: { id: ids.agent }, trace: { run_id: `run-${mark}` } }));
    decision_id = answer.decision_id;
    receipt_id = answer.receipt?.receipt_id ?? "";
  }
  const held = writeCall({ agent: { id: ids.agent }, context: { source_trust: "semi_trusted_customer" }, trace: { run_id: `run-${mark}` } });
  const approval_id = (await gateward.decide(token, held)).approval?.approval_id ?? "";
  return { ids: { ...ids, key_id, ban_id, limit_id, root_id, warrant_id, revocation_list, decision_id, receipt_id, run: `run-${mark}`, approval_id }, token, mark };
}
