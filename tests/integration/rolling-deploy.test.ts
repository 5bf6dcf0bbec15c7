// For minutes after a deploy, a worker and a lane may run different versions. Nothing is decided then.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Api } from "../support/administration.ts";
import { SECURITY } from "../support/approvals.ts";
import type { AuthorizeResponse, Problem } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import { Gateward, HINDERED, readCall, type Tenant, type TestAgent, writeCall } from "../support/gateward.ts";

const UNAVAILABLE = "503 lane_unavailable";

let gateward: Gateward;
let tenant: Tenant;
let agent: TestAgent;
let approver: Api;
let approvalId: string;

const outcome = ({ status, body }: Reply<Partial<Problem>>) => (body.code === undefined ? String(status) : `${status} ${body.code}`);
const newest = async () => (await tenant.api.read<{ head: { seq: number } }>("/v1/receipts/ends?lane=0")).head.seq;

/** What is asked of the lane, and the response when the lane refuses the request, or when the worker refuses its reply. */
const REQUESTS: [what: string, send: () => Promise<Reply<Partial<Problem>>>, refusedRequest: string, refusedReply: string][] = [
  ["a call", () => gateward.post(agent.token, "/v1/authorize", readCall()), UNAVAILABLE, "200"],
  ["a change of the registry", () => tenant.api.patch("/v1/agents/coder", { environment: "production" }), "202", "202"],
  ["a command to the lane", () => tenant.api.post("/v1/agents/coder/untaint"), UNAVAILABLE, UNAVAILABLE],
  ["a read of an agent", () => tenant.api.get("/v1/agents/coder"), UNAVAILABLE, UNAVAILABLE],
  ["a read of an approval", () => tenant.api.get(`/v1/approvals/${approvalId}`), UNAVAILABLE, UNAVAILABLE],
  ["a read of receipts", () => tenant.api.get("/v1/receipts?lane=0"), UNAVAILABLE, UNAVAILABLE],
  ["a read of the ends of receipts", () => tenant.api.get("/v1/receipts/ends?lane=0"), UNAVAILABLE, UNAVAILABLE],
  ["a decision on an approval", () => approver.post(`/v1/approvals/${approvalId}/approve`), UNAVAILABLE, "200"],
];

beforeAll(async () => {
  gateward = await Gateward.start({ entry: HINDERED });
  tenant = await gateward.tenant();
  agent = await tenant.agent();
  approver = await tenant.approver("sam", SECURITY);
  const asked = await gateward.post<AuthorizeResponse>(agent.token, "/v1/authorize", writeCall({ context: { source_trust: "semi_trusted_customer" } }));
  approvalId = asked.body.approval?.approval_id ?? "";
});
afterEach(() => gateward.skew({}));
afterAll(() => gateward?.close());

describe("a lane of another version", () => {
  test.each(REQUESTS)("refuses %s", async (_, send, refused) => {
    const before = await newest();
    await gateward.skew({ requests: true });
    expect(outcome(await send())).toBe(refused);
    await gateward.skew({});
    expect(await newest()).toBe(before);
  });
});

describe("a worker of another version", () => {
  test.each(REQUESTS)("refuses the reply to %s, unless the caller reads it", async (_, send, __, expected) => {
    await gateward.skew({ replies: true });
    expect(outcome(await send())).toBe(expected);
  });
});
