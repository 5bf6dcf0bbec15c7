// The administration API, as an administrator's program uses it: its objects, and their routes
// with one credential.
import { type Client, type Extras, type Problem, type Reply } from "./client.ts";
import type { Risk, SourceTrust, Status, UpstreamFields } from "./registry.ts";

export interface Agent {
  agent: string;
  environment: string;
  lane: number;
  status: "active" | "frozen" | "quarantined" | "revoked";
  frozen: boolean;
  quarantined: boolean;
  revoked: boolean;
  risk_tier: "low" | "medium" | "high";
  registered_risk_tier: "low" | "medium" | "high";
  groups: string[];
  allowed_tools: string[] | null;
  rate_capacity: number | null;
  rate_refill_per_s: number | null;
  quota_per_day: number | null;
  taint: Taint | null;
  revision: number;
  created_at: string;
  updated_at: string;
}

/** Where taint comes from, and when it ends. */
export interface Taint {
  call?: { decision_id: string; server: string; tool: string };
  ends_at: string;
  last_at: string;
  servers: string[];
  since: string;
}

export interface Group {
  group: string;
  created_at: string;
}

export interface Member {
  group: string;
  kind: "agent" | "administrator";
  member: string;
}

export interface CredentialObject {
  key_id: string;
  kind: "agent" | "administrator";
  agent: string | null;
  administrator: string | null;
  scopes: string[];
  status: "active" | "revoked" | "expired";
  expires_at: string | null;
  max_source_trust: SourceTrust;
  allowed_servers: string[] | null;
  allowed_tools: string[] | null;
  allowed_networks: string[] | null;
  signed: boolean;
  assigns_runs: boolean;
  issued_by: string | null;
  issuer_key_id: string | null;
  revision: number;
  created_at: string;
}

export interface IssuedCredential extends CredentialObject {
  token: string;
  signing_key: string | null;
}

interface Registered {
  status: Status;
  approved: boolean;
  disabled: boolean;
  quarantined: boolean;
  revision: number;
  created_at: string;
  updated_at: string;
}

export interface Server extends Registered {
  server: string;
  kind: "mcp" | "http" | "named";
  trust: "trusted" | "untrusted";
  manifest_sha256: string | null;
  instructions_sha256: string | null;
  upstream: Required<UpstreamFields> | null;
}

/** As it was registered or changed. */
export interface ChangedServer extends Server {
  skipped_tools: { name: string; why: string }[];
  unsatisfiable_schemas: { name: string; why: string }[];
  instructions: string | null;
}

export interface Tool extends Registered {
  server: string;
  tool: string;
  mutates: boolean;
  risk: Risk;
  egress: boolean;
  canary: boolean;
  tainted: "allow" | "require_approval" | "forbid";
  approval_ttl_s: number | null;
  input_schema: Record<string, unknown> | null;
  definition_sha256: string | null;
}

/** As it was registered or changed. */
export interface ChangedTool extends Tool {
  unsatisfiable: string[];
}

/** As it is read alone. */
export interface ToolDetail extends Tool {
  definition: Record<string, unknown> | null;
  approved_definition: Record<string, unknown> | null;
}

export interface Ban {
  ban_id: string;
  kind: "agent" | "user" | "run" | "source_address";
  subject: string;
  reason: string;
  created_by: string;
  created_at: string;
  expires_at: string | null;
}

export interface TenantObject {
  tenant: string;
  status: "active" | "suspended";
  lanes: number;
  rows_per_day: number | null;
  bytes_per_day: number | null;
  retention_days: number | null;
  revision: number;
  created_at: string;
  updated_at: string;
}

export interface Limits {
  rate_capacity: number | null;
  rate_refill_per_s: number | null;
  quota_per_day: number | null;
  risk_denials: number | null;
  risk_window_s: number | null;
  risk_quiet_s: number | null;
  taint_s: number | null;
  revision: number;
}

export interface AuditEvent {
  event_id: string;
  at: string;
  kind: string;
  source: string;
  lane: number | null;
  decision_id: string | null;
  count: number;
  detail: unknown;
}

export type ApprovalStatus = "pending" | "approved" | "rejected" | "cancelled" | "expired" | "used";

export interface Approval {
  approval_id: string;
  status: ApprovalStatus;
  revision: number;
  decision_id: string;
  agent: string;
  server: string;
  tool: string;
  resource: string;
  user_id: string;
  run_id: string;
  source_trust: SourceTrust;
  reason: string;
  matched_policies: string[];
  approver_groups: { group: string; quorum: number }[];
  approvers: { administrator: string; key_id: string; issued_by: string | null; groups: string[]; at: string }[];
  action_hash: string;
  input: Record<string, unknown> | null;
  edited: { action_hash: string; by: string; input: Record<string, unknown> | null } | null;
  closed_by: string | null;
  comment: string | null;
  tampering: number;
  used_by: string | null;
  created_at: string;
  expires_at: string;
  approved_at: string | null;
  closed_at: string | null;
  already_decided: boolean;
}

export interface ApprovalPage {
  approvals: Approval[];
  next_cursor: string | null;
  flushed_through: { lane: number; seq: number; at: string }[];
}

/** Of a write that not every lane of the tenant took. */
export interface Pending {
  pending_lanes?: number[];
}

/** One credential's view of the API. */
export class Api {
  readonly client: Client;
  readonly token: string;

  constructor(client: Client, token: string) {
    this.client = client;
    this.token = token;
  }

  get<Body = Problem>(path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.client.get(this.token, path, extras);
  }

  post<Body = Problem>(path: string, body?: unknown, extras?: Extras): Promise<Reply<Body>> {
    return this.client.post(this.token, path, body, extras);
  }

  patch<Body = Problem>(path: string, body: unknown, extras?: Extras): Promise<Reply<Body>> {
    return this.client.patch(this.token, path, body, extras);
  }

  put<Body = Problem>(path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.client.put(this.token, path, extras);
  }

  delete<Body = Problem>(path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.client.delete(this.token, path, extras);
  }

  /** What is at `path`, which must be there. */
  async read<Body>(path: string): Promise<Body> {
    return done(`GET ${path}`, await this.get<Body>(path));
  }

  /** A change that every lane must take. */
  async change<Body>(method: "POST" | "PATCH" | "PUT" | "DELETE", path: string, body?: unknown, extras?: Extras): Promise<Body> {
    return done(`${method} ${path}`, await this.client.send<Body>(method, this.token, path, body, extras));
  }

  create<Body>(path: string, body: unknown): Promise<Body> {
    return this.change("POST", path, body);
  }

  agent(name: string, fields: object = {}): Promise<Agent> {
    return this.create("/v1/agents", { agent: name, environment: "production", ...fields });
  }

  /** What an administrator does to an agent, in this order. */
  async act(name: string, ...actions: string[]): Promise<Agent> {
    for (const action of actions) await this.change("POST", `/v1/agents/${name}/${action}`);
    return this.read(`/v1/agents/${name}`);
  }

  /** A credential of an agent; its claims count for as much as any can. */
  credential(agent: string, fields: object = {}): Promise<IssuedCredential> {
    return this.create("/v1/credentials", { kind: "agent", agent, max_source_trust: "trusted_internal_signed", ...fields });
  }

  /** A credential of an administrator, who is created if the name is new. */
  async administrator(name: string, scopes: string[], fields: object = {}): Promise<IssuedCredential> {
    const { status } = await this.post("/v1/administrators", { administrator: name });
    if (status !== 201 && status !== 409) throw new Error(`the administrator ${name} was answered ${status}`);
    return this.create("/v1/credentials", { kind: "administrator", administrator: name, scopes, ...fields });
  }

  async group(name: string, ...agents: string[]): Promise<void> {
    await this.create("/v1/groups", { group: name });
    for (const agent of agents) await this.change("PUT", `/v1/groups/${name}/members/agents/${agent}`);
  }

  /** A server and its tools that read, all of them approved. */
  async server(name: string, ...tools: string[]): Promise<void> {
    const path = `/v1/servers/${name}`;
    await this.create("/v1/servers", { server: name, kind: "mcp" });
    await this.change("POST", `${path}/approve`);
    for (const tool of tools) {
      await this.create(`${path}/tools`, { tool, mutates: false, risk: "low" });
      await this.change("POST", `${path}/tools/${encodeURIComponent(tool)}/approve`);
    }
  }

  /** Approves the tool at this path as it is now. */
  async approveTool(path: string): Promise<Tool> {
    const { definition_sha256 } = await this.read<Tool>(path);
    return this.change("POST", `${path}/approve`, definition_sha256 === null ? undefined : { definition_sha256 });
  }

  /** All of a list, page after page. */
  async all<Item>(path: string, limit = 200): Promise<Item[]> {
    const items: Item[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const url: URL = new URL(path, this.client.url);
      url.searchParams.set("limit", String(limit));
      if (cursor !== "") url.searchParams.set("cursor", cursor);
      const page: Page = await this.read<Page>(`${url.pathname}${url.search}`);
      items.push(...itemsOf<Item>(page));
      cursor = page.next_cursor;
    }
    return items;
  }
}

/** A page of a list, whose name is its plural. */
export interface Page {
  next_cursor: string | null;
  [plural: string]: unknown;
}

export function itemsOf<Item>(page: Page): Item[] {
  const lists = Object.entries(page).flatMap(([name, value]) => (Array.isArray(value) && name !== "flushed_through" ? [value as Item[]] : []));
  if (lists.length !== 1 || lists[0] === undefined) throw new Error(`expected one list, got ${JSON.stringify(page)}`);
  return lists[0];
}

function done<Body>(what: string, { status, body }: Reply<Body>): Body {
  if (![200, 201, 204].includes(status)) throw new Error(`${what} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
