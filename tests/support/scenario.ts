// The confused-deputy attack that `make demo` plays and tests/integration/scenario.test.ts checks.
// A public issue tells a coding agent to merge a pull request. The decision on the merge depends on where the
// instruction came from. A merge to `main` also needs a person's approval.
import type { AuthorizeRequest, AuthorizeResponse, Decision, SourceTrust } from "./api/types.gen.ts";

export interface Step {
  title: string;
  tool: string;
  action: string;
  mutates_state: boolean;
  parameters: Record<string, unknown>;
  source_trust: SourceTrust;
  /** The run of the step, which its receipt names. */
  run: string;
  /** Made with the approval that an earlier step asked for. */
  with_approval?: true;
  expected: { decision: Decision; reason_code: string; matched_policies: string[] };
}

const pullRequest = { repo: "acme/shop", number: 42 };

export const SCENARIO: Step[] = [
  {
    title: "read a public issue",
    tool: "github",
    action: "get_issue",
    mutates_state: false,
    parameters: { repo: "acme/shop", number: 7 },
    source_trust: "untrusted_external",
    run: "triage",
    expected: { decision: "allow", reason_code: "policy_allow", matched_policies: ["base/provenance#reads-pass"] },
  },
  {
    title: "merge, as the issue said",
    tool: "github",
    action: "merge_pull_request",
    mutates_state: true,
    parameters: { ...pullRequest, base: "main" },
    source_trust: "untrusted_external",
    run: "triage",
    expected: {
      decision: "deny",
      reason_code: "policy_forbid",
      matched_policies: ["base/provenance#untrusted-never-writes"],
    },
  },
  {
    title: "merge to main, as a maintainer said",
    tool: "github",
    action: "merge_pull_request",
    mutates_state: true,
    parameters: { ...pullRequest, base: "main" },
    source_trust: "trusted_internal_signed",
    run: "release",
    expected: {
      decision: "require_approval",
      reason_code: "policy_require_approval",
      matched_policies: ["base/provenance#trusted-writes-pass", "tenants/demo/github#merge-to-main-needs-approval"],
    },
  },
  {
    title: "swap it for another pull request",
    tool: "github",
    action: "merge_pull_request",
    mutates_state: true,
    parameters: { ...pullRequest, number: 43, base: "main" },
    source_trust: "trusted_internal_signed",
    run: "release",
    with_approval: true,
    expected: { decision: "deny", reason_code: "approval_mismatch", matched_policies: [] },
  },
  {
    title: "merge to main, as approved",
    tool: "github",
    action: "merge_pull_request",
    mutates_state: true,
    parameters: { ...pullRequest, base: "main" },
    source_trust: "trusted_internal_signed",
    run: "release",
    with_approval: true,
    expected: {
      decision: "allow",
      reason_code: "approval_granted",
      matched_policies: ["base/provenance#trusted-writes-pass", "tenants/demo/github#merge-to-main-needs-approval"],
    },
  },
  {
    title: "merge to main once more",
    tool: "github",
    action: "merge_pull_request",
    mutates_state: true,
    parameters: { ...pullRequest, base: "main" },
    source_trust: "trusted_internal_signed",
    run: "release",
    with_approval: true,
    expected: { decision: "deny", reason_code: "approval_used", matched_policies: [] },
  },
  {
    title: "merge to a feature branch",
    tool: "github",
    action: "merge_pull_request",
    mutates_state: true,
    parameters: { ...pullRequest, base: "feature/search" },
    source_trust: "trusted_internal_signed",
    run: "release",
    expected: {
      decision: "allow",
      reason_code: "policy_allow",
      matched_policies: ["base/provenance#trusted-writes-pass"],
    },
  },
  {
    title: "read the vault's root key",
    tool: "vault",
    action: "read_root_key",
    mutates_state: false,
    parameters: {},
    source_trust: "trusted_internal_signed",
    run: "release",
    expected: {
      decision: "quarantine",
      reason_code: "policy_quarantine",
      matched_policies: ["base/canary#canary-quarantines"],
    },
  },
  {
    title: "list issues, quarantined",
    tool: "github",
    action: "list_issues",
    mutates_state: false,
    parameters: { repo: "acme/shop" },
    source_trust: "trusted_internal_signed",
    run: "release",
    expected: { decision: "deny", reason_code: "agent_quarantined", matched_policies: [] },
  },
];

/** The steps of the scenario's only approval. Each has a receipt of its own. */
export const APPROVAL_CHANGES = ["approval_approved", "approval_tampered", "approval_used"];
/** The group that must approve. */
export const APPROVER_GROUP = "release-managers";

/** One run of the scenario, with an id that no other run has. */
export interface Play {
  id: string;
  agent: string;
  environment: string;
  decide(body: AuthorizeRequest, step: Step): Promise<AuthorizeResponse>;
  /** Approves a waiting call, as a person would. */
  approve(approvalId: string): Promise<void>;
}

/** Plays all steps and returns their answers. If a step needs approval, it is approved before the next step. */
export async function play({ id, agent, environment, decide, approve }: Play): Promise<AuthorizeResponse[]> {
  const answers: AuthorizeResponse[] = [];
  let approvalId: string | undefined;
  for (const step of SCENARIO) {
    const body = bodyOf(step, agent, environment, id);
    if (step.with_approval && approvalId !== undefined) body.approval_id = approvalId;
    const answer = await decide(body, step);
    answers.push(answer);
    if (answer.approval?.status !== "pending") continue;
    approvalId = answer.approval.approval_id;
    await approve(approvalId);
  }
  return answers;
}

/** The request of a step. `id` is that of the run. */
function bodyOf(step: Step, agent: string, environment: string, id: string): AuthorizeRequest {
  return {
    agent: { id: agent, environment },
    tool_call: {
      tool: step.tool,
      action: step.action,
      mutates_state: step.mutates_state,
      parameters: step.parameters,
    },
    context: { source_trust: step.source_trust, contains_sensitive_data: false },
    trace: { run_id: `${step.run}-${id}` },
    request_id: `${id}-${SCENARIO.indexOf(step) + 1}`,
  };
}
