// An agent that is denied too often has a higher risk tier for a while, and policies see it.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Agent, AuditEvent } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant, type TestAgent, writeCall } from "../support/gateward.ts";
import { problemsOf } from "../support/receipts.ts";

/** More denials than this in the window raise an agent's tier by a step. */
const DENIALS = 3;
/** Longer than a test takes between two denials, and short enough to wait for it twice. */
const QUIET_S = 2;
/** More denials than two steps need, whatever the count after the first step is. */
const MAX_DENIALS = 3 * (DENIALS + 1);

let gateward: Gateward;
beforeAll(async () => {
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
});
afterAll(() => gateward?.close());

async function tenantWithRisk(quietS = QUIET_S): Promise<Tenant> {
  const tenant = await gateward.tenant();
  await tenant.api.change("PATCH", "/v1/settings", { risk_denials: DENIALS, risk_window_s: 60, risk_quiet_s: quietS });
  return tenant;
}

async function deny({ name, token }: TestAgent, times = 1): Promise<void> {
  for (let at = 0; at < times; at += 1) {
    const answer = await gateward.decide(token, writeCall({ agent: { id: name }, context: { source_trust: "unknown" } }));
    expect(answer.decision).toBe("deny");
  }
}

/** The result of a dry run of a write that trusted provenance allows. */
async function write({ name, token }: TestAgent): Promise<string> {
  return (await gateward.decide(token, writeCall({ agent: { id: name }, dry_run: true }))).decision;
}

/** The agent's tier as the registry tells it once the lane has flushed. */
async function tier(tenant: Tenant, { name }: TestAgent): Promise<Agent["risk_tier"]> {
  await tenant.flushed();
  return (await tenant.api.read<Agent>(`/v1/agents/${name}`)).risk_tier;
}

const events = (api: Api, kind: string) => api.all<AuditEvent>(`/v1/audit-events?kind=${kind}`);

test("more denials than the tenant allows raise it by steps, and it decays; both are audited", async () => {
  const tenant = await tenantWithRisk();
  const agent = await tenant.agent();
  await deny(agent, DENIALS);
  expect(await tier(tenant, agent)).toBe("low");
  await deny(agent);
  expect(await tier(tenant, agent)).toBe("medium");
  expect(await write(agent)).toBe("allow");

  let denials = 0;
  while ((await write(agent)) === "allow") {
    expect(denials).toBeLessThan(MAX_DENIALS);
    await deny(agent);
    denials += 1;
  }
  expect(await write(agent)).toBe("require_approval");
  expect(await tier(tenant, agent)).toBe("high");
  const raised = await events(tenant.api, "risk_tier_raised");
  expect(raised).toHaveLength(2);
  expect(raised).toEqual(raised.map(() => expect.objectContaining({ lane: 0, count: 1 })));
  expect(await tenant.api.read<Agent>(`/v1/agents/${agent.name}`)).toMatchObject({ registered_risk_tier: "low", status: "active" });

  // This is not a period without requests, only without a denial. The lane notices the time when it
  // is read.
  const seen = new Set<string>();
  await eventually("the tier is low again", async () => {
    await gateward.decide(agent.token, readCall());
    const now = await tier(tenant, agent);
    seen.add(now);
    return now === "low";
  });
  expect([...seen].filter((tier) => tier !== "high")).toEqual(["medium", "low"]);
  expect(await write(agent)).toBe("allow");
  // A step down is written with the agent's next call.
  await gateward.decide(agent.token, readCall());
  await eventually("both steps down are in D1", async () => (await events(tenant.api, "risk_tier_lowered")).length === 2);
  expect(problemsOf(await gateward.receipts(tenant.admin))).toEqual([]);
});

test("it survives an eviction, and stays what it is for other agents", async () => {
  const tenant = await tenantWithRisk(60);
  const [agent, other] = [await tenant.agent("raised"), await tenant.agent("other")];
  await deny(agent, MAX_DENIALS);
  expect(await write(agent)).toBe("require_approval");
  for (const flushed of [false, true]) {
    if (flushed) await tenant.flushed();
    await tenant.evict();
    expect(await write(agent)).toBe("require_approval");
  }
  expect(await write(other)).toBe("allow");
  expect(await tier(tenant, other)).toBe("low");
});

test("the registered tier is where it starts, and high is where it ends", async () => {
  const tenant = await tenantWithRisk(60);
  const [medium, high] = [await tenant.agent("medium", { risk_tier: "medium" }), await tenant.agent("high", { risk_tier: "high" })];
  expect(await write(medium)).toBe("allow");
  await deny(medium, DENIALS + 1);
  expect(await write(medium)).toBe("require_approval");
  await deny(high, MAX_DENIALS);
  expect(await tier(tenant, high)).toBe("high");
  expect(await tenant.api.read<Agent>("/v1/agents/medium")).toMatchObject({ risk_tier: "high", registered_risk_tier: "medium" });
});

test("a tenant that sets no limits goes by the worker's, which a dozen denials do not pass", async () => {
  const tenant = await gateward.tenant();
  const agent = await tenant.agent();
  await deny(agent, MAX_DENIALS);
  expect(await write(agent)).toBe("allow");
  expect(await tier(tenant, agent)).toBe("low");
  expect(await events(tenant.api, "risk_tier_raised")).toEqual([]);
});
