// Registry rows as SQL. Tests bind the values to D1's statements, and benches send the statements as text.
// Every change raises the tenant's epoch in the same batch. Otherwise lanes would go on deciding with the
// records that they hold.
import type { Risk, SourceTrust, ToolStatus, Upstream as UpstreamFields } from "./api/types.gen.ts";
import type { Credential } from "./tokens.ts";

type SqlValue = string | number | null;

export interface Statement {
  sql: string;
  values: SqlValue[];
}

export interface AgentRow {
  agent: string;
  lane?: number;
  status?: "active" | "frozen" | "revoked" | "quarantined";
  environment?: string;
  risk_tier?: "low" | "medium" | "high";
  /** Replaces the agent's groups. If absent, the groups stay. */
  groups?: string[];
  allowed_tools?: string[];
  /** The rule of a limit that covers the agent's requests. Its id is `rate-` and the agent's name. If absent, the limit stays. */
  request_rate?: { capacity: number; refill_per_s: number };
}

export interface CredentialRow {
  credential: Credential;
  /** Absent for an administrator's. */
  agent?: string;
  administrator?: string;
  scopes?: string[];
  max_source_trust?: SourceTrust;
  status?: "active" | "revoked";
  expires_at_ms?: number;
  allowed_servers?: string[];
  allowed_tools?: string[];
  allowed_networks?: string[];
  signed?: boolean;
  /** It belongs to a harness. */
  assigns_runs?: boolean;
}

export interface ServerRow {
  server: string;
  kind: "mcp" | "http" | "named";
  trust?: "trusted" | "untrusted";
  status?: ToolStatus;
  upstream?: UpstreamFields;
  /** Of the instructions that were pinned. */
  instructions_sha256?: string;
  shield?: ShieldModes;
  inspects_results?: boolean;
}

/** Modes of categories. */
export type ShieldModes = Record<string, "off" | "detect" | "redact" | "block">;

export interface ToolRow {
  server: string;
  tool: string;
  mutates: boolean;
  egress?: boolean;
  risk: Risk;
  canary?: boolean;
  status?: ToolStatus;
  /** What a tainted call of it needs. */
  tainted?: "allow" | "require_approval" | "deny_unknown" | "forbid";
  /** A JSON Schema. */
  input_schema?: object;
}

/** An absent setting stays. */
export interface TenantSettingsRow {
  risk_denials?: number | null;
  risk_window_s?: number | null;
  risk_quiet_s?: number | null;
  /** Of the tenant itself. */
  rows_per_day?: number | null;
  bytes_per_day?: number | null;
  retention_days?: number | null;
}

export interface RegistryRows {
  tenant: string;
  status?: "active" | "suspended" | "deleted";
  lanes?: number;
  settings?: TenantSettingsRow;
  agents?: AgentRow[];
  credentials?: CredentialRow[];
  servers?: ServerRow[];
  tools?: ToolRow[];
}

export const AGENT_SCOPES = ["tools:read", "tools:write"];
/** The scopes of a tenant's first administrator: everything in the tenant. */
export const ADMINISTRATOR_SCOPES = ["approvals:decide", "registry:read", "registry:write", "audit:read", "metrics:read"];
/** Creates and deletes tenants. */
export const TENANTS_SCOPE = "tenants:admin";
export const ADMINISTRATOR = "admin";
export const ENVIRONMENT = "production";

/** Servers and tools that policies/tools/*.json describe, as the demo tenant registers them. */
export const DEMO_SERVERS: ServerRow[] = [
  { server: "github", kind: "mcp", trust: "trusted" },
  { server: "crm", kind: "http", trust: "trusted" },
  { server: "vault", kind: "named", trust: "trusted" },
];
export const DEMO_TOOLS: ToolRow[] = [
  { server: "github", tool: "list_issues", mutates: false, risk: "low" },
  { server: "github", tool: "get_issue", mutates: false, risk: "low" },
  { server: "github", tool: "create_issue", mutates: true, risk: "medium" },
  { server: "github", tool: "merge_pull_request", mutates: true, risk: "high" },
  { server: "crm", tool: "get_customer", mutates: false, risk: "medium" },
  { server: "crm", tool: "refund", mutates: true, risk: "critical" },
  { server: "vault", tool: "read_root_key", mutates: false, risk: "critical", canary: true },
];

/** Writes the rows, in place of rows with the same key, and bumps the epoch. */
export function upserts(rows: RegistryRows, nowMs = Date.now()): Statement[] {
  const { tenant } = rows;
  const created_at_ms = nowMs;
  const times = { created_at_ms, updated_at_ms: nowMs };
  const statements = [
    upsert("tenants", ["tenant"], {
      tenant,
      ...(rows.status === undefined ? {} : { status: rows.status }),
      ...(rows.lanes === undefined ? {} : { lanes: rows.lanes }),
      ...rows.settings,
      ...times,
    }),
  ];
  for (const { agent, lane = 0, status = "active", environment = ENVIRONMENT, groups, ...rest } of rows.agents ?? []) {
    statements.push(
      upsert("agents", ["tenant", "agent"], {
        tenant,
        agent,
        lane,
        frozen: Number(status === "frozen"),
        quarantined: Number(status === "quarantined"),
        revoked: Number(status === "revoked"),
        environment,
        risk_tier: rest.risk_tier ?? "low",
        allowed_tools: list(rest.allowed_tools),
        ...times,
      }),
    );
    if (rest.request_rate !== undefined) {
      statements.push(
        upsert("limits", ["tenant", "limit_id"], {
          tenant,
          limit_id: `rate-${agent}`,
          subject_kind: "agent",
          subject: agent,
          covers: "requests",
          rule: JSON.stringify({ kind: "rate", ...rest.request_rate }),
          created_by: ADMINISTRATOR,
          revision: 1,
          ...times,
        }),
      );
    }
    if (groups !== undefined) statements.push(...memberships(tenant, agent, groups, created_at_ms));
  }
  for (const { credential, agent, ...rest } of rows.credentials ?? []) {
    if (agent === undefined) {
      const subject = rest.administrator ?? ADMINISTRATOR;
      const first = Number(subject === ADMINISTRATOR);
      statements.push(upsert("subjects", ["tenant", "subject"], { tenant, subject, created_by: "_bootstrap", first, created_at_ms }));
    }
    statements.push(
      upsert("credentials", ["tenant", "key_id"], {
        tenant,
        key_id: credential.keyId,
        kind: agent === undefined ? "administrator" : "agent",
        agent: agent ?? null,
        administrator: agent === undefined ? (rest.administrator ?? ADMINISTRATOR) : null,
        secret_sha256: credential.secretSha256,
        scopes: JSON.stringify(rest.scopes ?? (agent === undefined ? ADMINISTRATOR_SCOPES : AGENT_SCOPES)),
        max_source_trust: rest.max_source_trust ?? "trusted_internal_signed",
        status: rest.status ?? "active",
        expires_at_ms: rest.expires_at_ms ?? null,
        allowed_servers: list(rest.allowed_servers),
        allowed_tools: list(rest.allowed_tools),
        allowed_networks: list(rest.allowed_networks),
        signed: Number(rest.signed ?? false),
        assigns_runs: Number(rest.assigns_runs ?? false),
        created_at_ms,
      }),
    );
  }
  for (const { server, kind, trust = "trusted", status = "active", upstream, instructions_sha256 = null, shield, inspects_results = false } of rows.servers ?? []) {
    statements.push(
      upsert("servers", ["tenant", "server"], {
        tenant,
        server,
        kind,
        trust,
        upstream: json(upstream),
        instructions_sha256,
        shield: json(shield),
        inspects_results: Number(inspects_results),
        ...flags(status),
        ...times,
      }),
    );
  }
  for (const { server, tool, mutates, egress = false, risk, canary = false, status = "active", tainted = "require_approval", input_schema } of rows.tools ?? []) {
    statements.push(
      upsert("tools", ["tenant", "server", "tool"], {
        tenant,
        server,
        tool,
        ...flags(status),
        mutates: Number(mutates),
        egress: Number(egress),
        risk,
        canary: Number(canary),
        tainted,
        input_schema: json(input_schema),
        ...times,
      }),
    );
  }
  statements.push({ sql: "UPDATE tenants SET epoch = epoch + 1 WHERE tenant = ?1", values: [tenant] });
  return statements;
}

/** The agent in these groups and no others. */
function memberships(tenant: string, agent: string, groups: string[], created_at_ms: number): Statement[] {
  return [
    { sql: "DELETE FROM group_members WHERE tenant = ?1 AND kind = 'agent' AND member = ?2", values: [tenant, agent] },
    ...groups.flatMap((group_name) => [
      upsert("groups", ["tenant", "group_name"], { tenant, group_name, created_at_ms }),
      upsert("group_members", ["tenant", "group_name", "kind", "member"], { tenant, group_name, kind: "agent", member: agent }),
    ]),
  ];
}

/** The marks of a server or tool that give it this status. */
function flags(status: ToolStatus): Record<string, number> {
  return {
    approved: Number(status !== "pending"),
    disabled: Number(status === "disabled"),
    quarantined: Number(status === "quarantined"),
  };
}

/** An absent list restricts nothing. An empty list allows nothing. */
function list(values: string[] | undefined): string | null {
  return json(values);
}

function json(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** The statements as one SQL text, values written out as literals. */
export function toSqlText(statements: Statement[]): string {
  return statements
    .map(({ sql, values }) => `${sql.replace(/\?(\d+)/g, (_, at) => literal(values[Number(at) - 1] ?? null))};\n`)
    .join("");
}

function upsert(table: string, key: string[], row: Record<string, SqlValue>): Statement {
  const columns = Object.keys(row);
  const changes = columns
    .filter((column) => !key.includes(column) && column !== "created_at_ms")
    .map((column) => `${column} = excluded.${column}`);
  const action = changes.length === 0 ? "NOTHING" : `UPDATE SET ${changes.join(", ")}`;
  return {
    sql:
      `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map((_, at) => `?${at + 1}`).join(", ")}) ` +
      `ON CONFLICT (${key.join(", ")}) DO ${action}`,
    values: Object.values(row),
  };
}

function literal(value: SqlValue): string {
  if (value === null) return "NULL";
  return typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`;
}
