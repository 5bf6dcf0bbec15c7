// Calls that wait for approval, and the people who decide on them.
import { expect } from "vitest";
import type { Approval, AuthorizeRequest, AuthorizeResponse } from "./api/types.gen.ts";
import type { Api } from "./administration.ts";
import type { Extras, Reply } from "./client.ts";
import { type Changes, type Gateward, readCall, type Tenant, type TestAgent, writeCall } from "./gateward.ts";
import { canonicalize, type JsonValue, sha256Hex } from "./receipts.ts";

/** The group that base policies ask. */
export const SECURITY = "security";
/** How long an approval is open if its tool does not say otherwise. */
export const DEFAULT_APPROVAL_MS = 30 * 60 * 1_000;
/** How often an approval can be presented with another call. The last time cancels it. */
export const MAX_TAMPERING = 5;

/** Ways to decide. */
export type Verdict = "approve" | "reject" | "cancel";

/** A tenant with an agent, and an administrator who may approve what base policies hold back. */
export interface Office {
  tenant: Tenant;
  agent: TestAgent;
  /** A member of `security`. */
  sam: Api;
}

export async function newOffice(gateward: Gateward): Promise<Office> {
  const tenant = await gateward.tenant();
  return { tenant, agent: await tenant.agent(), sam: await tenant.approver("sam", SECURITY) };
}

/** A merge that a customer's text caused: `security` must approve it. */
export function mergeCall({ name }: TestAgent, changes: Changes = {}): AuthorizeRequest {
  return writeCall({ ...changes, agent: { id: name }, context: { source_trust: "semi_trusted_customer", ...changes.context } });
}

/** A merge to `main`; in the tenant `demo`, `release-managers` must approve it too. */
export function mainMergeCall(agent: TestAgent, changes: Changes = {}): AuthorizeRequest {
  return mergeCall(agent, { ...changes, tool_call: { parameters: { repo: "acme/shop", number: 42, base: "main" }, ...changes.tool_call } });
}

/** A refund; in the tenant `demo`, two of `finance` must approve one of more than 500. */
export function refundCall({ name }: TestAgent, amount = 900): AuthorizeRequest {
  return readCall({
    agent: { id: name },
    tool_call: { tool: "crm", action: "refund", mutates_state: true, parameters: { customer_id: "c1", amount, currency: "EUR" } },
  });
}

/** The call's action hash, as docs/approvals.md has it. */
export function actionHash(tenant: string, { agent, tool_call }: AuthorizeRequest): string {
  return sha256Hex(canonicalize({
    tenant,
    agent: agent.id,
    server: tool_call.tool,
    tool: tool_call.action,
    resource: tool_call.resource ?? "",
    input: tool_call.parameters as JsonValue,
  }));
}

/** Makes a call that needs approval, as the agent. Returns the approval's id. */
export async function ask(gateward: Gateward, agent: TestAgent, body: AuthorizeRequest): Promise<string> {
  const answer = await gateward.decide(agent.token, body);
  expect(answer).toMatchObject({ decision: "require_approval", reason_code: "policy_require_approval", approval: { status: "pending" } });
  return answer.approval?.approval_id ?? "";
}

let uses = 0;
/** Makes the call with the approval, with a request id of its own. */
export function use(gateward: Gateward, agent: TestAgent, body: AuthorizeRequest, approval_id: string): Promise<AuthorizeResponse> {
  uses += 1;
  return gateward.decide(agent.token, { ...body, approval_id, request_id: `use-${uses}` });
}

export function decide(api: Api, verdict: Verdict, id: string, body?: object | string, extras?: Extras): Promise<Reply<Approval & { code?: string }>> {
  return api.post(`/v1/approvals/${id}/${verdict}`, body, extras);
}

/** A decision that must be accepted. */
export async function decided(api: Api, verdict: Verdict, id: string, body?: object): Promise<Approval> {
  const reply = await decide(api, verdict, id, body);
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 200, code: undefined });
  return reply.body;
}

export function approvalOf(api: Api, id: string): Promise<Approval> {
  return api.read(`/v1/approvals/${id}`);
}

export function expectCode(reply: Reply<{ code?: string }>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
  expect(reply.headers.get("content-type")).toMatch(/^application\/problem\+json/);
}
