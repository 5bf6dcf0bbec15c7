// The kinds of calls that the edge is loaded with: what is asked, and what must be answered.
// worker/core decides the same calls in bench/core/src/decide.rs, and one that needs approval: of those
// an agent can have only so many open, so it cannot be loaded with them.
import { ENVIRONMENT } from "../../tests/support/registry.ts";

/**
 * @typedef {import("../../tests/support/scenario.ts").CallBody} CallBody
 * @typedef {import("../../tests/support/registry.ts").SourceTrust} SourceTrust
 * @typedef {"allow_read" | "allow_write" | "deny_policy" | "redact" | "deny_unknown_tool" | "unauthorized"} Kind
 * @typedef {object} Expected
 * @property {number} status
 * @property {Record<string, string>} fields of the answer's JSON
 * @property {string} text stands in each answer of this outcome and in no other
 */

export const TENANT = "demo";
export const AGENT = "coder";

/**
 * The trust that is claimed is the most that an unsigned request has.
 * @param {string} tool
 * @param {string} action
 * @param {Record<string, unknown>} parameters
 * @param {{ trust?: SourceTrust, sensitive?: boolean, agent?: string }} [context]
 * @returns {CallBody}
 */
export function callBody(tool, action, parameters, { trust = "trusted_internal_unsigned", sensitive = false, agent = AGENT } = {}) {
  return {
    agent: { id: agent, environment: ENVIRONMENT },
    // The registry knows what mutates; a caller's word can only make a read stricter.
    tool_call: { tool, action, mutates_state: false, parameters },
    context: { source_trust: trust, contains_sensitive_data: sensitive },
  };
}

/** @param {string} base the branch to merge to */
const merge = (base) => ({ repo: "acme/shop", number: 42, base });

/**
 * @param {string} decision
 * @param {string} reason_code
 * @returns {Expected}
 */
function decided(decision, reason_code) {
  return { status: 200, fields: { decision, reason_code }, text: `"reason_code":"${reason_code}"` };
}

/** @type {Record<Kind, { body: CallBody, expected: Expected, forged?: true }>} */
export const KINDS = {
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
export const KIND_NAMES = /** @type {Kind[]} */ (Object.keys(KINDS));
