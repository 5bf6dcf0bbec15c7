// The scenario of `make demo`, decision by decision, with its rows and its chain.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuthorizeResponse, Verification } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import { Gateward, type Tenant } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";
import { ADMINISTRATOR, ENVIRONMENT } from "../support/registry.ts";
import { APPROVAL_CHANGES, APPROVER_GROUP, play, SCENARIO } from "../support/scenario.ts";

let gateward: Gateward;
let demo: Tenant;

beforeAll(async () => {
  gateward = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: 50 } });
  demo = await gateward.tenant({}, "demo");
  await succeeds(gateward.post(demo.admin, "/v1/groups", { group: APPROVER_GROUP }));
  await succeeds(gateward.put(demo.admin, `/v1/groups/${APPROVER_GROUP}/members/administrators/${ADMINISTRATOR}`));
});
afterAll(() => gateward?.close());

async function succeeds(reply: Promise<Reply<unknown>>): Promise<void> {
  const { status, body } = await reply;
  expect({ ok: status >= 200 && status < 300, body }).toMatchObject({ ok: true });
}

/** Plays it with an agent of its own. */
async function played(agent: string): Promise<AuthorizeResponse[]> {
  const { token } = await demo.agent(agent);
  return play({
    id: `of-${agent}`,
    agent,
    environment: ENVIRONMENT,
    decide: (body) => gateward.decide(token, body),
    approve: (id) => succeeds(gateward.post(demo.admin, `/v1/approvals/${id}/approve`)),
  });
}

test("the confused deputy is stopped, and the chain proves it", async () => {
  const answers = await played("coder-1");
  const outcomes = answers.map(({ decision, reason_code, matched_policies }, at) => ({ title: SCENARIO[at]?.title, decision, reason_code, matched_policies }));
  expect(outcomes).toEqual(SCENARIO.map(({ title, expected }) => ({ title, ...expected })));

  const receipts = await gateward.receipts(demo.admin);
  const length = SCENARIO.length + APPROVAL_CHANGES.length;
  expect(receipts.flatMap(({ body }) => (body.kind === "approval" ? body.change : []))).toEqual(APPROVAL_CHANGES);
  expect(receipts).toHaveLength(length);
  expect(problemsOf(receipts)).toEqual([]);
  const verification = await gateward.post<Verification>(demo.admin, "/v1/receipts/verify", { lane: 0, from: 1, to: length });
  expect(verification.body).toMatchObject({ verified: true, checked: length });
});

test("it plays again with another agent", async () => {
  const decisions = (await played("coder-2")).map(({ decision }) => decision);
  expect(decisions).toEqual(SCENARIO.map(({ expected }) => expected.decision));
});
