// Limits that the lanes of a tenant share, through the built worker.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AuthorizeResponse, Limit, LimitRule, LimitStates, SubjectKind } from "../support/api/types.gen.ts";
import { Gateward, HINDERED, readCall, type Tenant, type TestAgent } from "../support/gateward.ts";
import { type Answering, json, Upstream } from "../support/upstream.ts";

const LANES = 4;

let gateward: Gateward;
let upstream: Upstream;
beforeAll(async () => {
  upstream = await Upstream.start();
  gateward = await Gateward.start({ entry: HINDERED, vars: { RATE_CAPACITY: 100_000 } });
});
afterAll(async () => {
  await gateward?.close();
  await upstream?.close();
});
beforeEach(() => {
  upstream.answer = json({ ok: true });
});

/** A tenant with four lanes, an HTTP API that refunds what its path says, and agents in each lane. */
async function bank(agents = LANES): Promise<{ tenant: Tenant; agents: [TestAgent, TestAgent, ...TestAgent[]] }> {
  const tenant = await gateward.tenant({ lanes: LANES });
  await tenant.register({
    servers: [
      {
        server: "bank",
        kind: "http",
        trust: "trusted",
        upstream: { url: upstream.url(), local: true, routes: [{ method: "GET", path: "/refunds/{amount}", tool: "refund" }] },
      },
    ],
    tools: [
      { server: "bank", tool: "refund", mutates: false, risk: "low" },
      { server: "bank", tool: "balance", mutates: false, risk: "low" },
    ],
  });
  const [one, other, ...more] = await Promise.all(
    Array.from({ length: agents }, (_, at) => tenant.agent(`agent-${at}`, { lane: at % LANES, ...(at === 0 ? { groups: ["first"] } : {}) })),
  );
  if (one === undefined || other === undefined) throw new Error("too few agents");
  return { tenant, agents: [one, other, ...more] };
}

let limits = 0;
function limit(tenant: Tenant, subject_kind: SubjectKind, subject: string, rule: LimitRule): Promise<Limit> {
  limits += 1;
  return tenant.api.create<Limit>("/v1/limits", { limit_id: `limit-${limits}`, subject_kind, subject, rule });
}

const quota = (max: string): LimitRule => ({ kind: "quota", max, window: "month" });
const monthly = (max: string): LimitRule => ({ kind: "amount", max, pointer: "/amount", window: "month" });

function ask({ token, name }: TestAgent, amount: unknown = 1, action = "refund", more: object = {}): Promise<AuthorizeResponse> {
  return gateward.decide(token, readCall({ agent: { id: name }, tool_call: { tool: "bank", action, parameters: { amount } }, ...more }));
}

function refund({ token }: TestAgent, amount: number): Promise<Response> {
  return fetch(new URL(`/http/bank/refunds/${amount}`, gateward.url), { headers: { authorization: `Bearer ${token}` } });
}

/** All lanes of a tenant, and the counter of a limit, lose what they have in memory. */
async function evict(tenant: Tenant, { limit_id, created_at, rule }: Limit): Promise<void> {
  const counter = `${limit_id}.${Date.parse(created_at)}.${rule.kind}.${rule.window ?? ""}`;
  await gateward.evict(`_limits/${tenant.name}/${counter}`);
  for (let lane = 0; lane < LANES; lane += 1) await gateward.evict(`${tenant.name}/${lane}`);
}

describe("a limit of a tenant", () => {
  test("of three calls lets three pass, of many at once in all lanes", async () => {
    const { tenant, agents } = await bank(8);
    const created = await limit(tenant, "tenant", "*", quota("3"));
    for (let round = 0; round < 2; round += 1) {
      const answers = await Promise.all(agents.flatMap((agent) => [ask(agent), ask(agent), ask(agent)]));
      const passed = answers.filter(({ decision }) => decision === "allow").length;
      expect(passed).toBe(round === 0 ? 3 : 0);
      const denied = answers.find(({ decision }) => decision === "deny");
      expect(denied).toMatchObject({ reason_code: "quota_exhausted", violated_limits: [{ limit_id: created.limit_id, max: "3", remaining: "0", requested: "1" }] });
      await evict(tenant, created);
    }
  });

  test("is used up to the last cent, whatever lanes hold in advance", async () => {
    const { tenant, agents } = await bank();
    const created = await limit(tenant, "tenant", "*", monthly("1000"));
    // Each lane holds more than it uses.
    for (const agent of agents) expect((await ask(agent, 1)).decision).toBe("allow");
    await evict(tenant, created);
    expect((await ask(agents[1], "995.99")).decision).toBe("allow");
    expect(await ask(agents[0], "0.02")).toMatchObject({ reason_code: "amount_exhausted", violated_limits: [{ remaining: "0.01" }] });
    await expect.poll(async () => (await ask(agents[0], "0.01")).decision, { timeout: 5_000 }).toBe("allow");
    expect((await ask(agents[1], "0.01")).decision).toBe("deny");
  });

  test("is spent exactly by calls of all lanes of which some fail, while lanes are evicted", async () => {
    const { tenant, agents } = await bank();
    const created = await limit(tenant, "tenant", "*", monthly("1000"));
    let [paid, asked] = [0, 0];
    const failing: Answering = json({ error: "no" }, 409);
    upstream.answer = async (exchange, response) => {
      asked += 1;
      const fails = asked % 3 === 0;
      if (!fails) paid += 1;
      await (fails ? failing : json({ ok: true }))(exchange, response);
    };
    for (let round = 0; round < 60 && paid < 10; round += 1) {
      await Promise.all(agents.flatMap((agent) => Array.from({ length: 5 }, async () => (await refund(agent, 100)).text())));
      // An outcome that an eviction loses would stay reserved for a minute.
      for (let lane = 0; lane < LANES; lane += 1) await expect.poll(() => gateward.laneRows(`${tenant.name}/${lane}`, "SELECT decision_id FROM reservations")).toEqual([]);
      await evict(tenant, created);
      expect(paid).toBeLessThanOrEqual(10);
    }
    expect(paid).toBe(10);
  });

  test("that is lowered, raised or deleted holds so for the next call in each lane", async () => {
    const { tenant, agents } = await bank();
    const { limit_id } = await limit(tenant, "tenant", "*", monthly("1000"));
    for (const agent of agents) expect((await ask(agent, 10)).decision).toBe("allow");
    const change = (max: string) => tenant.api.change("PATCH", `/v1/limits/${limit_id}`, { rule: { max } });
    await change("40");
    for (const agent of agents) expect((await ask(agent, 1)).reason_code).toBe("amount_exhausted");
    await change("44");
    const answers = await Promise.all(agents.flatMap((agent) => [ask(agent, 1), ask(agent, 1)]));
    expect(answers.filter(({ decision }) => decision === "allow")).toHaveLength(4);
    await tenant.api.change("DELETE", `/v1/limits/${limit_id}`);
    for (const agent of agents) expect((await ask(agent, 1_000_000)).decision).toBe("allow");
  });

  test("of places is shared: the next lane gets one when a call has ended", async () => {
    const { tenant, agents } = await bank();
    await limit(tenant, "tenant", "*", { kind: "concurrency", max: "1" });
    let answer: (() => void) | undefined;
    upstream.answer = async (exchange, response) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      await json({ ok: true })(exchange, response);
    };
    const first = refund(agents[0], 1);
    await expect.poll(() => answer).toBeDefined();
    expect((await refund(agents[1], 1)).status).toBe(429);
    answer?.();
    expect((await first).status).toBe(200);
    upstream.answer = json({ ok: true });
    await expect.poll(async () => (await refund(agents[1], 1)).status, { timeout: 5_000 }).toBe(200);
  });

  test("of calls per second answers 429 with the seconds to wait, in every lane", async () => {
    const { tenant, agents } = await bank();
    const { limit_id } = await limit(tenant, "tenant", "*", { kind: "rate", capacity: 2, refill_per_s: 0.01 });
    for (const agent of agents.slice(0, 2)) expect((await ask(agent)).decision).toBe("allow");
    const { token, name } = agents[0];
    const { status, headers, body } = await gateward.post(token, "/v1/authorize", readCall({ agent: { id: name }, tool_call: { tool: "bank", action: "refund", parameters: { amount: 1 } } }));
    expect({ status, body }).toMatchObject({ status: 429, body: { code: "rate_limited", violated_limits: [{ limit_id, kind: "rate", remaining: "0" }] } });
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(90);
  });

  test("denies while its counter does not answer, and calls that it does not cover pass", async () => {
    const { tenant, agents } = await bank();
    await limit(tenant, "tenant", "*", { ...quota("3"), tools: ["bank/refund"] });
    await gateward.hold("leases");
    try {
      expect((await ask(agents[0], 1, "balance")).decision).toBe("allow");
      const denied = await ask(agents[0]);
      expect(denied).toMatchObject({ decision: "deny", reason_code: "limit_unavailable", violated_limits: [{ why: "unavailable", retry_after_s: 2 }] });
    } finally {
      await gateward.release();
    }
    expect((await ask(agents[0])).decision).toBe("allow");
  });

  test("is told to agents with what is left, and counted subjects to administrators", async () => {
    const { tenant, agents } = await bank();
    const { limit_id } = await limit(tenant, "tenant", "*", quota("100"));
    const group = await limit(tenant, "group", "first", quota("5"));
    const tools = await limit(tenant, "tool", "bank/*", quota("7"));
    const { token, name } = agents[0];
    const { headers } = await gateward.post(token, "/v1/authorize", readCall({ agent: { id: name }, tool_call: { tool: "bank", action: "refund", parameters: { amount: 1 } } }));
    expect(headers.get("ratelimit-policy")).toContain(`"${limit_id}";q=100;w=2678400`);
    expect(headers.get("ratelimit")).toContain(`"${tools.limit_id}";r=6;t=`);
    const { body } = await gateward.get<LimitStates>(token, "/v1/limits/status");
    // What the lane holds in advance counts as used.
    expect(body.shared).toMatchObject([
      { limit_id: group.limit_id, subject_kind: "group", subject: "first", max: "5", remaining: "4" },
      { limit_id, subject_kind: "tenant", subject: "*", max: "100", remaining: "87" },
    ]);
    expect((await gateward.get<LimitStates>(agents[1].token, "/v1/limits/status")).body.shared).toHaveLength(1);
    expect((await gateward.get(token, `/v1/limits/status?limit=${limit_id}`)).status).toBe(403);
    expect((await tenant.api.get("/v1/limits/status?limit=nothing")).status).toBe(404);
    const counted = await tenant.api.read<LimitStates>(`/v1/limits/status?limit=${tools.limit_id}`);
    expect(counted).toMatchObject({ agent: null, of_agent: [], shared: [{ subject_kind: "tool", subject: "bank/refund", remaining: "6" }] });
  });
});

describe("a limit of each group", () => {
  test("that counts a call for several groups is in the headers once, with the least that is left", async () => {
    const { tenant, agents } = await bank(2);
    const { token, name } = await tenant.agent("in-both", { lane: 0, groups: ["first", "second"] });
    const { limit_id } = await limit(tenant, "group", "*", quota("9"));
    expect((await ask(agents[0])).decision).toBe("allow");
    const call = readCall({ agent: { id: name }, tool_call: { tool: "bank", action: "refund", parameters: { amount: 1 } } });
    const { headers } = await gateward.post(token, "/v1/authorize", call);
    const told = (header: string) => headers.get(header)?.split(", ").filter((item) => item.startsWith(`"${limit_id}"`));
    expect(told("ratelimit-policy")).toEqual([`"${limit_id}";q=9;w=2678400`]);
    expect(told("ratelimit")).toEqual([expect.stringMatching(new RegExp(`^"${limit_id}";r=7;t=\\d+$`))]);
    // What the lane holds in advance counts as used.
    const of = (more: string) => tenant.api.get<LimitStates>(`/v1/limits/status?limit=${limit_id}${more}`);
    expect((await of("&subject=second")).body.shared).toMatchObject([{ limit_id, subject_kind: "group", subject: "second", remaining: "7" }]);
    expect((await of("&subject=third")).body.shared).toMatchObject([{ subject: "third", remaining: "9" }]);
    expect((await of("&subject=")).status).toBe(400);
    expect((await tenant.api.get(`/v1/limits/status?agent=${name}&subject=second`)).status).toBe(400);
    expect((await gateward.get(token, `/v1/limits/status?limit=${limit_id}&subject=second`)).status).toBe(403);
    const tools = await limit(tenant, "tool", "bank/*", quota("9"));
    expect((await tenant.api.get(`/v1/limits/status?limit=${tools.limit_id}&subject=crm/refund`)).status).toBe(404);
  });
});

describe("a limit of a subject", () => {
  test.each<[SubjectKind, string, (agents: [TestAgent, TestAgent, ...TestAgent[]]) => Promise<AuthorizeResponse>[], number]>([
    ["group", "first", ([one, other]) => [ask(one), ask(one), ask(other), ask(other)], 3],
    ["tool", "bank/*", ([one, other]) => [ask(one), ask(other), ask(one, 1, "balance"), ask(other, 1, "balance")], 2],
    ["server", "bank", ([one, other]) => [ask(one), ask(other), ask(one, 1, "balance")], 1],
    ["server", "other-*", ([one, other]) => [ask(one), ask(other)], 2],
  ])("of the kind %s counts %s", async (kind, subject, calls, passing) => {
    const { tenant, agents } = await bank();
    await limit(tenant, kind, subject, quota("1"));
    const answers = await Promise.all(calls(agents));
    expect(answers.filter(({ decision }) => decision === "allow")).toHaveLength(passing);
  });

  test("of users counts those that a harness states, each on their own", async () => {
    const { tenant } = await bank();
    const agents = await Promise.all([0, 1].map((lane) => tenant.agent(`harness-${lane}`, { lane }, { assigns_runs: true })));
    const [one, other] = agents;
    if (one === undefined || other === undefined) throw new Error("no agents");
    await limit(tenant, "user", "*", quota("1"));
    const of = (agent: TestAgent, user: string) => ask(agent, 1, "refund", { user: { id: user, role: "clerk" } });
    const decisions = [];
    for (const [agent, user] of [[one, "ada"], [other, "ada"], [other, "eve"], [one, "eve"]] as const) decisions.push((await of(agent, user)).decision);
    expect(decisions).toEqual(["allow", "deny", "allow", "deny"]);
  });

  test.each<[SubjectKind, string]>([
    ["tenant", "all"],
    ["group", "nobody"],
    ["tool", "a b"],
    ["server", "*a*b*"],
  ])("of the kind %s does not take %j", async (kind, subject) => {
    const { tenant } = await bank(2);
    const { status, body } = await tenant.api.post<{ field: string }>("/v1/limits", { limit_id: "refused", subject_kind: kind, subject, rule: quota("1") });
    expect({ status, field: body.field }).toEqual({ status: 422, field: "subject" });
  });

  test("is refused beyond the most that a tenant may have", async () => {
    const { tenant } = await bank(2);
    for (let at = 0; at < 16; at += 1) await limit(tenant, "user", `user-${at}`, quota("1"));
    for (let at = 0; at < 16; at += 1) await limit(tenant, "tool", `bank/tool-${at}`, quota("1"));
    const { status, body } = await tenant.api.post("/v1/limits", { limit_id: "more", subject_kind: "tenant", subject: "*", rule: quota("1") });
    expect({ status, body }).toMatchObject({ status: 409, body: { code: "limit_reached" } });
  });
});
