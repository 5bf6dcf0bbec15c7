// What `make demo` plays, decision by decision, with its rows and its chain.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Verification } from "../support/client.ts";
import { Gateward, type Tenant } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";
import { ENVIRONMENT } from "../support/registry.ts";
import { bodyOf, SCENARIO } from "../support/scenario.ts";

let gateward: Gateward;
let demo: Tenant;

beforeAll(async () => {
  gateward = await Gateward.start({ vars: { FLUSH_INTERVAL_MS: 50 } });
  demo = await gateward.tenant({}, "demo");
});
afterAll(() => gateward?.close());

test("the confused deputy is stopped, and the chain proves it", async () => {
  const { token } = await demo.agent("coder-1");
  const played = [];
  for (const step of SCENARIO) {
    const { decision, reason_code, matched_policies } = await gateward.decide(token, bodyOf(step, "coder-1", ENVIRONMENT, "play-1"));
    played.push({ title: step.title, decision, reason_code, matched_policies });
  }
  expect(played).toEqual(SCENARIO.map(({ title, expected }) => ({ title, ...expected })));

  const receipts = await gateward.receipts(demo.admin);
  expect(receipts).toHaveLength(SCENARIO.length);
  expect(problemsOf(receipts)).toEqual([]);
  const verification = await gateward.post<Verification>(demo.admin, "/v1/receipts/verify", { lane: 0, from: 1, to: SCENARIO.length });
  expect(verification.body).toMatchObject({ verified: true, checked: SCENARIO.length });
});

test("it plays again with another agent", async () => {
  const { token } = await demo.agent("coder-2");
  const played = [];
  for (const step of SCENARIO) {
    played.push((await gateward.decide(token, bodyOf(step, "coder-2", ENVIRONMENT, "play-2"))).decision);
  }
  expect(played).toEqual(SCENARIO.map(({ expected }) => expected.decision));
});
