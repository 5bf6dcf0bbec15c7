// The windows that policies read, through the built worker: the demo tenant's third refund to one customer within
// an hour waits for finance (policies/velocity.json).
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeResponse } from "../support/api/types.gen.ts";
import { eventually, Gateward, HINDERED, readCall, type Tenant, type TestAgent } from "../support/gateward.ts";

const LANES = 4;
const HOUR_MS = 3_600_000;

let gateward: Gateward;
let demo: Tenant;
let agents: TestAgent[];
beforeAll(async () => {
  gateward = await Gateward.start({ entry: HINDERED, vars: { RATE_CAPACITY: 100_000 } });
  demo = await gateward.tenant({ lanes: LANES }, "demo");
  agents = await Promise.all(
    Array.from({ length: LANES }, (_, lane) => demo.agent(`agent-${lane}`, { lane, groups: ["support"] })),
  );
});
afterAll(() => gateward?.close());

let customers = 0;
const newCustomer = (): string => `customer-${(customers += 1)}`;

function agentOf(lane: number): TestAgent {
  const agent = agents[lane % LANES];
  if (agent === undefined) throw new Error("no such agent");
  return agent;
}

function refund(lane: number, customer_id: string, more: object = {}): Promise<AuthorizeResponse> {
  const agent = agentOf(lane);
  const parameters = { customer_id, amount: 20, currency: "EUR" };
  return gateward.decide(
    agent.token,
    readCall({
      agent: { id: agent.name },
      tool_call: { tool: "crm", action: "refund", mutates_state: true, parameters },
      context: { source_trust: "trusted_internal_signed" },
      ...more,
    }),
  );
}

const decisions = (answers: AuthorizeResponse[]): string[] => answers.map((answer) => answer.decision).sort();

describe("a window of the tenant", () => {
  test("counts the calls of all lanes, by its key", async () => {
    const customer = newCustomer();
    for (const lane of [0, 1]) expect((await refund(lane, customer)).decision).toBe("allow");
    const third = await refund(2, customer);
    expect(third.reason_code).toBe("policy_require_approval");
    expect(third).toMatchObject({ decision: "require_approval", matched_policies: expect.arrayContaining(["tenants/demo/crm#repeated-refunds-need-finance"]) });
    expect((await refund(2, newCustomer())).decision).toBe("allow");
    // Another spelling is the same customer.
    expect((await refund(3, ` ${customer.toUpperCase()}`)).decision).toBe("require_approval");
  });

  test("never lets two lanes both have the last free place", async () => {
    for (let round = 0; round < 5; round += 1) {
      const customer = newCustomer();
      const answers = await Promise.all(Array.from({ length: 20 }, (_, call) => refund(call, customer)));
      const codes = answers.map((answer) => answer.reason_code);
      const passed = codes.filter((code) => code === "policy_allow").length;
      // Calls that look at the same time see each other, so fewer may pass than one after the other.
      expect(passed).toBeLessThanOrEqual(2);
      expect(codes.filter((code) => code === "policy_require_approval").length).toBe(20 - passed);
    }
  });

  test("forgets a call that did not pass", async () => {
    const customer = newCustomer();
    expect((await refund(0, customer)).decision).toBe("allow");
    for (let call = 0; call < 5; call += 1) {
      const denied = await refund(1, customer, { context: { source_trust: "malicious_suspected" } });
      expect(denied.decision).not.toBe("allow");
    }
    await expect.poll(() => refund(2, customer, { dry_run: true }).then((answer) => answer.decision)).toBe("allow");
    expect((await refund(2, customer)).decision).toBe("allow");
    expect((await refund(3, customer)).decision).toBe("require_approval");
  });

  test("is not touched by a dry run, and once by a repeated request id", async () => {
    const customer = newCustomer();
    const dry = await Promise.all(Array.from({ length: 5 }, (_, lane) => refund(lane, customer, { dry_run: true })));
    expect(decisions(dry)).toEqual(Array(5).fill("allow"));
    const same = { request_id: `same-${customer}` };
    for (let call = 0; call < 3; call += 1) expect((await refund(0, customer, same)).decision).toBe("allow");
    expect((await refund(1, customer)).decision).toBe("allow");
    expect((await refund(2, customer)).decision).toBe("require_approval");
  });

  test("survives an eviction of its objects and lanes", async () => {
    const customer = newCustomer();
    for (const lane of [0, 1]) expect((await refund(lane, customer)).decision).toBe("allow");
    for (let lane = 0; lane < LANES; lane += 1) await gateward.evict(`demo/${lane}`);
    for (let object = 0; object < 32; object += 1) await gateward.evict(`_windows/demo/${object}`).catch(() => undefined);
    expect((await refund(2, customer)).decision).toBe("require_approval");
  });

  test("denies if it does not answer, and other tools are not concerned", async () => {
    await gateward.hold("windows");
    try {
      const customer = newCustomer();
      const before = gateward.lines().length;
      const denied = await Promise.all(Array.from({ length: 30 }, (_, call) => refund(call, customer)));
      for (const answer of denied) expect(answer).toMatchObject({ decision: "deny", reason_code: "velocity_unavailable" });
      const lines = gateward.lines().slice(before).filter(({ event }) => event === "window_not_answered");
      // One a second.
      expect(lines.length).toBeGreaterThan(0);
      expect(lines.length).toBeLessThan(denied.length);
      const { name, token } = agentOf(0);
      expect((await gateward.decide(token, readCall({ agent: { id: name } }))).decision).toBe("allow");
    } finally {
      await gateward.release();
    }
  });

  test("is deleted by its object's alarm once it is over", async () => {
    const tenant = await gateward.tenant();
    const { name, token } = await tenant.agent("refunder", { groups: ["support"] });
    const rows = (object: number) => gateward.laneRows<{ name: string }>(`_windows/${tenant.name}/${object}`, "SELECT name FROM windows");
    // When the object's alarm last looked at the clock.
    const clock = async (object: number) => {
      const [stored] = await gateward.laneRows<{ value: string }>(`_windows/${tenant.name}/${object}`, "SELECT value FROM meta WHERE name = 'clock'");
      return Number(stored?.value.split(":")[0]);
    };
    const parameters = { customer_id: "c-1", amount: 20, currency: "EUR" };
    const call = readCall({
      agent: { id: name },
      tool_call: { tool: "crm", action: "refund", mutates_state: true, parameters },
      context: { source_trust: "trusted_internal_signed" },
    });
    // Windows are deleted by a time that the clock passed an hour before. The runtime knows nothing of the worker's clock, so
    // the alarm is rung.
    try {
      await gateward.clockIsAhead(-8 * HOUR_MS);
      expect((await gateward.decide(token, call)).decision).toBe("allow");
      // An object that nobody asked has no tables.
      const tables = (object: number) => gateward.laneRows(`_windows/${tenant.name}/${object}`, "SELECT 1 AS one FROM sqlite_master WHERE name = 'windows'");
      const asked = await Promise.all(Array.from({ length: 32 }, (_, object) => tables(object)));
      const object = asked.findIndex((found) => found.length > 0);
      expect(await rows(object)).toHaveLength(1);
      const soonMs = Date.now() - 5 * HOUR_MS;
      await gateward.clockIsAhead(-5 * HOUR_MS);
      const lane = `_windows/${tenant.name}/${object}`;
      await eventually("the alarm runs", async () => {
        await gateward.ringAlarm(lane);
        return (await clock(object)) >= soonMs;
      });
      expect(await rows(object)).toHaveLength(1);
      await gateward.clockIsAhead(-3 * HOUR_MS);
      await eventually("the window is deleted", async () => {
        await gateward.ringAlarm(lane);
        return (await rows(object)).length === 0;
      });
    } finally {
      await gateward.clockIsAhead(0);
    }
  });
});
