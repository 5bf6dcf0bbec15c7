// The kinds of calls that the benches send: the request, and the expected answer. bench/core/src/decide.rs
// decides the same calls natively, and one that needs approval, which is not here: an agent can have only a
// few open approvals, so a worker cannot be loaded with such calls.
import type { AuthorizeRequest, SourceTrust } from "../../tests/support/api/types.gen.ts";
import { ENVIRONMENT } from "../../tests/support/registry.ts";

export type Kind = "allow_read" | "allow_write" | "deny_policy" | "redact" | "deny_unknown_tool" | "unauthorized";

export interface Expected {
  status: number;
  /** Members of the answer's JSON. */
  fields: Record<string, string>;
  /** A text that each answer of this outcome contains, and no other answer. */
  text: string;
}

export const TENANT = "demo";
export const AGENT = "coder";

interface Context {
  trust?: SourceTrust;
  sensitive?: boolean;
  agent?: string;
}

/** A body of POST /v1/authorize. The default trust is the highest that an unsigned request has. */
export function callBody(
  tool: string,
  action: string,
  parameters: Record<string, unknown>,
  { trust = "trusted_internal_unsigned", sensitive = false, agent = AGENT }: Context = {},
): AuthorizeRequest {
  return {
    agent: { id: agent, environment: ENVIRONMENT },
    // The registry says which tools mutate; what a caller says can only make a read stricter.
    tool_call: { tool, action, mutates_state: false, parameters },
    context: { source_trust: trust, contains_sensitive_data: sensitive },
  };
}

/** `base` is the branch to merge to. */
const merge = (base: string) => ({ repo: "acme/shop", number: 42, base });

function decided(decision: string, reason_code: string): Expected {
  return { status: 200, fields: { decision, reason_code }, text: `"reason_code":"${reason_code}"` };
}

export const KINDS: Record<Kind, { body: AuthorizeRequest; expected: Expected; forged?: true }> = {
  allow_read: {
    body: callBody("github", "list_issues", { repo: "acme/shop" }),
    expected: decided("allow", "policy_allow"),
  },
  allow_write: {
    body: callBody("github", "merge_pull_request", merge("dev")),
    expected: decided("allow", "policy_allow"),
  },
  deny_policy: {
    body: callBody("github", "merge_pull_request", merge("main"), { trust: "untrusted_external" }),
    expected: decided("deny", "policy_forbid"),
  },
  redact: {
    body: callBody("crm", "get_customer", { customer_id: "c-1" }, { sensitive: true }),
    expected: decided("redact", "policy_redact"),
  },
  deny_unknown_tool: {
    body: callBody("github", "no_such_tool", {}),
    expected: decided("deny", "tool_unknown"),
  },
  unauthorized: {
    forged: true,
    body: callBody("github", "list_issues", { repo: "acme/shop" }),
    expected: { status: 401, fields: { code: "unauthorized" }, text: '"code":"unauthorized"' },
  },
};

/** The kinds, `allow_read` first. */
export const KIND_NAMES = Object.keys(KINDS) as Kind[];
