// Limits of agents and credentials, through the built worker.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AuthorizeResponse, IssuedCredential, Limit, LimitRule, LimitStates, Problem } from "../support/api/types.gen.ts";
import { Gateward, INSPECTABLE, readCall, type Tenant, type TestAgent } from "../support/gateward.ts";
import { type Answering, json, Upstream } from "../support/upstream.ts";

let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;
beforeAll(async () => {
  upstream = await Upstream.start();
  gateward = await Gateward.start({ entry: INSPECTABLE, vars: { RATE_CAPACITY: 100_000, LOCAL_TARGETS: "true" } });
  tenant = await bank();
});
afterAll(async () => {
  await gateward?.close();
  await upstream?.close();
});
beforeEach(() => {
  upstream.answer = json({ ok: true });
});

/** A tenant with an HTTP API that refunds the amount in its path, and transfers the amount in its body. */
async function bank(): Promise<Tenant> {
  const tenant = await gateward.tenant();
  await tenant.register({
    servers: [
      {
        server: "bank",
        kind: "http",
        trust: "trusted",
        upstream: {
          url: upstream.url(),
          local: true,
          routes: [
            { method: "GET", path: "/refunds/{amount}", tool: "refund" },
            { method: "POST", path: "/transfers", tool: "transfer" },
          ],
        },
      },
    ],
    tools: [
      { server: "bank", tool: "refund", mutates: false, risk: "low" },
      { server: "bank", tool: "transfer", mutates: false, risk: "low" },
    ],
  });
  return tenant;
}

let limits = 0;
function limit(subject: { agent: string } | { credential: string }, rule: LimitRule, of = tenant): Promise<Limit> {
  limits += 1;
  const [subject_kind, name] = Object.entries(subject)[0] ?? [];
  return of.api.create<Limit>("/v1/limits", { limit_id: `limit-${limits}`, subject_kind, subject: name, rule });
}

/** A limit of an agent's requests, which practically never refills. */
function limitRequests(subject: string, capacity: number): Promise<Limit> {
  limits += 1;
  const rule: LimitRule = { kind: "rate", capacity, refill_per_s: 0.001 };
  return tenant.api.create<Limit>("/v1/limits", { limit_id: `requests-${limits}`, subject_kind: "agent", subject, covers: "requests", rule });
}

const daily = (max: string, more: Partial<LimitRule> = {}): LimitRule => ({ kind: "amount", max, pointer: "/amount", window: "day", ...more });

const rate: LimitRule = { kind: "rate", capacity: 5, refill_per_s: 1 };

function ask({ token, name }: TestAgent, amount: unknown): Promise<AuthorizeResponse> {
  return gateward.decide(token, readCall({ agent: { id: name }, tool_call: { tool: "bank", action: "refund", parameters: { amount } } }));
}

function refund({ token }: TestAgent, amount: number): Promise<Response> {
  return fetch(new URL(`/http/bank/refunds/${amount}`, gateward.url), { headers: { authorization: `Bearer ${token}` } });
}

describe("a limit", () => {
  test("is a record: created, read, changed and deleted, and each change holds for the next call", async () => {
    const agent = await tenant.agent("records");
    const { limit_id, revision } = await limit({ agent: agent.name }, daily("10"));
    const path = `/v1/limits/${limit_id}`;
    expect(await tenant.api.read(path)).toMatchObject({ limit_id, subject_kind: "agent", subject: agent.name, rule: daily("10"), revision });
    expect((await ask(agent, 10)).decision).toBe("allow");
    expect((await ask(agent, 1)).reason_code).toBe("amount_exhausted");
    await tenant.api.change("PATCH", path, { rule: { max: "11.5" } });
    expect((await ask(agent, "1.5")).decision).toBe("allow");
    await tenant.api.change("PATCH", path, { rule: { max: "5" } });
    const denied = await ask(agent, 1);
    expect(denied).toMatchObject({ decision: "deny", reason_code: "amount_exhausted", violated_limits: [{ limit_id, max: "5", remaining: "0", requested: "1", window: "day" }] });
    await tenant.api.change("DELETE", path);
    expect((await ask(agent, 100)).decision).toBe("allow");
    expect((await tenant.api.get(path)).status).toBe(404);
  });

  test.each<[string, object, string]>([
    ["an unknown kind", { rule: { kind: "fair" } }, "rule.kind"],
    ["a field of another kind", { rule: { ...daily("1"), capacity: 3 } }, "rule.capacity"],
    ["no window", { rule: { kind: "quota", max: "3" } }, "rule.window"],
    ["a number instead of a text", { rule: { kind: "quota", max: 3, window: "day" } }, "rule.max"],
    ["an unknown time zone", { rule: daily("1", { time_zone: "Mars/Olympus" }) }, "rule.time_zone"],
    ["an unknown agent", { subject: "nobody" }, "subject"],
    ["an unknown credential", { subject_kind: "credential", subject: "nobody" }, "subject"],
    ["an id that Gateward uses", { limit_id: "status" }, "limit_id"],
    ["requests of the whole tenant", { subject_kind: "tenant", subject: "*", covers: "requests", rule: rate }, "subject_kind"],
    ["requests and another kind", { covers: "requests" }, "rule.kind"],
    ["requests and access", { covers: "requests", rule: { ...rate, access: "read" } }, "rule.access"],
    ["requests and tools", { covers: "requests", rule: { ...rate, tools: ["bank/*"] } }, "rule.tools"],
    ["something else to cover", { covers: "tokens", rule: rate }, "covers"],
  ])("with %s is refused with the field", async (_, changes, field) => {
    const { name } = await tenant.agent();
    const body = { limit_id: "refused", subject_kind: "agent", subject: name, rule: daily("1"), ...changes };
    const { status, body: problem } = await tenant.api.post<Problem>("/v1/limits", body);
    expect({ status, field: problem.field }).toEqual({ status: 422, field });
  });

  test("of each agent counts each agent on its own, and one of a credential only that credential", async () => {
    const own = await bank();
    const [one, other] = [await own.agent("one"), await own.agent("other")];
    await limit({ agent: "*" }, { kind: "quota", max: "2", window: "week" }, own);
    await limit({ credential: one.credential.keyId }, { kind: "quota", max: "1", window: "week" }, own);
    const reasons = async (agent: TestAgent) => [(await ask(agent, 1)).reason_code, (await ask(agent, 1)).reason_code, (await ask(agent, 1)).reason_code];
    expect(await reasons(one)).toEqual(["policy_allow", "quota_exhausted", "quota_exhausted"]);
    expect(await reasons(other)).toEqual(["policy_allow", "policy_allow", "quota_exhausted"]);
  });

  test("of a credential holds for the one that replaces it, and they count together", async () => {
    const agent = await tenant.agent("rotated");
    await limit({ credential: agent.credential.keyId }, daily("10"));
    expect((await ask(agent, 6)).decision).toBe("allow");
    const { token: replaced, key_id } = await tenant.api.create<IssuedCredential>(`/v1/credentials/${agent.credential.keyId}/rotate`, { overlap_s: 60 });
    const token = replaced ?? "";
    const rotated = { ...agent, token };
    expect((await ask(rotated, 5)).reason_code).toBe("amount_exhausted");
    expect((await ask(rotated, 3)).decision).toBe("allow");
    expect((await ask(agent, 2)).reason_code).toBe("amount_exhausted");
    expect((await gateward.get<LimitStates>(token, "/v1/limits/status")).body.of_credential).toMatchObject([{ remaining: "1" }]);
    await limit({ credential: key_id }, { kind: "quota", max: "0", window: "day" });
    expect([(await ask(agent, 1)).reason_code, (await ask(rotated, 1)).reason_code]).toEqual(["quota_exhausted", "quota_exhausted"]);
  });

  test("keeps what was used when its lane is evicted", async () => {
    const agent = await tenant.agent("evicted");
    await limit({ agent: agent.name }, daily("10"));
    for (const [amount, decision] of [[6, "allow"], [5, "deny"], [4, "allow"], [1, "deny"]] as const) {
      expect((await ask(agent, amount)).decision).toBe(decision);
      await tenant.evict();
    }
  });

  test("does not count a number that no double holds as another number", async () => {
    const agent = await tenant.agent("exact");
    await limit({ agent: agent.name }, daily("2000"));
    const headers = { authorization: `Bearer ${agent.token}`, "content-type": "application/json" };
    const send = async (path: string, body: object, amount: string) =>
      (await fetch(new URL(path, gateward.url), { method: "POST", headers, body: JSON.stringify(body).replace("1000", amount) })).json();
    const call = readCall({ agent: { id: agent.name }, tool_call: { tool: "bank", action: "refund", parameters: { amount: 1000 } } });
    const unreadable = { violated_limits: [{ kind: "amount", why: "unreadable" }] };
    expect(await send("/v1/authorize", call, "1000.00000000000005")).toMatchObject({ reason_code: "limit_unreadable", ...unreadable });
    expect(await send("/http/bank/transfers", { amount: 1000 }, "1000.00000000000005")).toMatchObject({ code: "call_denied", ...unreadable });
    expect(await send("/v1/authorize", call, "1000.00000000000000")).toMatchObject({ decision: "allow" });
    expect(await send("/http/bank/transfers", { amount: 1000 }, "1000")).toEqual({ ok: true });
  });

  test("by hours goes by the clocks of its time zone", async () => {
    const zone = "Pacific/Kiritimati";
    const clock = (ms: number) => new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" }).format(ms);
    const hours = (from: number, to: number) => `${clock(Date.now() + from * 3_600_000)}-${clock(Date.now() + to * 3_600_000)}`;
    const agent = await tenant.agent("by-the-clock");
    const { limit_id } = await limit({ agent: agent.name }, { kind: "hours", hours: [hours(-2, 2)], time_zone: zone });
    expect((await ask(agent, 1)).decision).toBe("allow");
    await tenant.api.change("PATCH", `/v1/limits/${limit_id}`, { rule: { hours: [hours(2, -2)] } });
    expect(await ask(agent, 1)).toMatchObject({ reason_code: "outside_hours", violated_limits: [{ limit_id, retry_after_s: expect.any(Number) }] });
    await tenant.api.change("PATCH", `/v1/limits/${limit_id}`, { rule: { hours: [] } });
    expect(await ask(agent, 1)).toMatchObject({ reason_code: "outside_hours", violated_limits: [{ limit_id, retry_after_s: null }] });
  });

  test("that is never used up is told as a policy alone, and hours are not told", async () => {
    const agent = await tenant.agent("unused");
    const { limit_id } = await limit({ agent: agent.name }, { kind: "per_call", max: "5.5", pointer: "/amount" });
    await limit({ agent: agent.name }, { kind: "hours", hours: ["00:00-24:00"] });
    const { headers } = await gateward.post(agent.token, "/v1/authorize", readCall({ agent: { id: agent.name }, tool_call: { tool: "bank", action: "refund", parameters: { amount: 4 } } }));
    expect(headers.get("ratelimit-policy")).toBe(`"agent";q=100000;w=1000, "${limit_id}";q=5`);
    expect(headers.get("ratelimit")).toMatch(/^"agent";r=\d+;t=\d+$/);
  });

  test("is told in headers by its id, and with what is left to the agent and to administrators", async () => {
    const agent = await tenant.agent("told");
    const { limit_id } = await limit({ agent: agent.name }, daily("10"));
    const { limit_id: of_credential } = await limit({ credential: agent.credential.keyId }, { kind: "concurrency", max: "3" });
    const { headers } = await gateward.post(agent.token, "/v1/authorize", readCall({ agent: { id: agent.name }, tool_call: { tool: "bank", action: "refund", parameters: { amount: 4 } } }));
    expect(headers.get("ratelimit-policy")).toBe(`"agent";q=100000;w=1000, "${limit_id}";q=10;w=86400, "${of_credential}";q=3`);
    expect(headers.get("ratelimit")).toMatch(new RegExp(`, "${limit_id}";r=6;t=\\d+, "${of_credential}";r=3$`));
    const left = { agent: agent.name, of_agent: [{ limit_id, kind: "amount", remaining: "6", reserved: "0", max: "10" }], of_credential: [{ limit_id: of_credential, remaining: "3" }] };
    const own = await gateward.get<LimitStates>(agent.token, "/v1/limits/status");
    expect(own.body).toMatchObject(left);
    expect(await tenant.api.read(`/v1/limits/status?agent=${agent.name}&credential=${agent.credential.keyId}`)).toMatchObject(left);
    const other = await tenant.agent("curious");
    expect((await gateward.get(other.token, `/v1/limits/status?agent=${agent.name}`)).status).toBe(403);
    expect((await gateward.get(other.token, `/v1/limits/status?credential=${agent.credential.keyId}`)).status).toBe(404);
  });
});

describe("a limit of requests", () => {
  const call = ({ name }: TestAgent) => readCall({ agent: { id: name }, tool_call: { tool: "bank", action: "refund", parameters: { amount: 1 } } });
  const send = (agent: TestAgent) => gateward.post<Problem>(agent.token, "/v1/authorize", call(agent));

  test("is told by its id, with what is left, also after an eviction", async () => {
    const agent = await tenant.agent("requests-told");
    const { limit_id } = await limitRequests(agent.name, 5);
    const state = async () => (await tenant.api.read<LimitStates>(`/v1/limits/status?agent=${agent.name}`)).of_agent;
    expect(await state()).toMatchObject([{ limit_id, kind: "rate", max: "5", remaining: "5" }]);
    const { headers } = await send(agent);
    expect(headers.get("ratelimit-policy")).toBe(`"${limit_id}";q=5;w=5000`);
    expect(headers.get("ratelimit")).toMatch(new RegExp(`^"${limit_id}";r=4;t=\\d+$`));
    const { limit_id: of_calls } = await limit({ agent: agent.name }, daily("10"));
    const left = [{ limit_id, kind: "rate", max: "5", remaining: "4" }, { limit_id: of_calls, kind: "amount", remaining: "10" }];
    expect(await state()).toMatchObject(left);
    await tenant.evict();
    expect(await state()).toMatchObject(left);
  });

  test("bounds calls, forwarded calls and reads together, and each refusal names it", async () => {
    const agent = await tenant.agent("requests-bounded");
    const { limit_id } = await limitRequests(agent.name, 1);
    expect((await send(agent)).status).toBe(200);
    const refused = { code: "rate_limited", violated_limits: [{ limit_id, kind: "rate", why: "exceeded", retry_after_s: expect.any(Number) }] };
    expect(await send(agent)).toMatchObject({ status: 429, body: refused });
    expect(await gateward.get(agent.token, "/v1/decisions")).toMatchObject({ status: 429, body: refused });
    const forwarded = await refund(agent, 1);
    expect(forwarded.status).toBe(429);
    expect(Number(forwarded.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await forwarded.json()).toMatchObject(refused);
  });

  test("is told in the answers to reads and reports, also if they are refused", async () => {
    const agent = await tenant.agent("requests-read");
    const { limit_id } = await limitRequests(agent.name, 2);
    const told = ({ status, headers }: { status: number; headers: Headers }) => [status, headers.get("ratelimit-policy"), headers.get("ratelimit")?.split(";t=")[0]];
    const expected = (status: number, left: number) => [status, `"${limit_id}";q=2;w=2000`, `"${limit_id}";r=${left}`];
    const { decision_id } = await ask(agent, 1);
    const read = () => gateward.get(agent.token, "/v1/limits/status");
    expect(told(await read())).toEqual(expected(200, 0));
    expect(told(await read())).toEqual(expected(429, 0));
    expect(told(await gateward.post(agent.token, `/v1/decisions/${decision_id}/outcome`, { outcome: "failed" }))).toEqual(expected(429, 0));
    const { headers } = await tenant.api.get(`/v1/limits/status?agent=${agent.name}`);
    expect(headers.get("ratelimit")).toBeNull();
  });

  test("is changed for the next request, which refills nothing, and the worker's rate holds after it is deleted", async () => {
    const agent = await tenant.agent("requests-changed");
    const { limit_id } = await limitRequests(agent.name, 2);
    for (const status of [200, 200, 429]) expect((await send(agent)).status).toBe(status);
    await tenant.api.change("PATCH", `/v1/limits/${limit_id}`, { rule: { capacity: 5 } });
    const { status, headers } = await send(agent);
    expect({ status, policy: headers.get("ratelimit-policy") }).toEqual({ status: 429, policy: `"${limit_id}";q=5;w=5000` });
    await tenant.api.change("DELETE", `/v1/limits/${limit_id}`);
    await expect.poll(async () => (await send(agent)).status).toBe(200);
    expect((await send(agent)).headers.get("ratelimit-policy")).toBe('"agent";q=100000;w=1000');
  });

  test("is the only one of its agent", async () => {
    const agent = await tenant.agent("requests-once");
    await limitRequests(agent.name, 2);
    await expect(limitRequests(agent.name, 3)).rejects.toThrow("limit_reached");
  });
});

describe("a forwarded call", () => {
  const failing = (status: number): Answering => json({ error: "no" }, status);

  test("gives back what it did not use, and keeps what nobody knows", async () => {
    for (const [name, answer, left] of [
      ["succeeded", json({ ok: true }), "4"],
      ["refused", failing(409), "10"],
      ["broken", failing(500), "4"],
    ] as const) {
      const agent = await tenant.agent(`holds-${name}`);
      await limit({ agent: agent.name }, daily("10"));
      upstream.answer = answer;
      await (await refund(agent, 6)).text();
      await expect.poll(async () => (await tenant.api.read<LimitStates>(`/v1/limits/status?agent=${agent.name}`)).of_agent[0]).toMatchObject({ remaining: left, reserved: "0" });
    }
  });

  test("that a limit denies gets 403 with the limit", async () => {
    const agent = await tenant.agent("denied");
    const { limit_id } = await limit({ agent: agent.name }, daily("10"));
    const denied = await refund(agent, 11);
    expect(denied.status).toBe(403);
    expect(await denied.json()).toMatchObject({ code: "call_denied", violated_limits: [{ limit_id, kind: "amount", remaining: "10", requested: "11" }] });
  });

  test("beyond those at once gets 429, and passes when one has ended", async () => {
    const agent = await tenant.agent("at-once");
    const { limit_id } = await limit({ agent: agent.name }, { kind: "concurrency", max: "1" });
    let answer: (() => void) | undefined;
    upstream.answer = async (exchange, response) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      await json({ ok: true })(exchange, response);
    };
    const first = refund(agent, 1);
    await expect.poll(() => answer).toBeDefined();
    const second = await refund(agent, 1);
    expect(second.status).toBe(429);
    expect(second.headers.get("retry-after")).toBe("1");
    expect(await second.json()).toMatchObject({ code: "rate_limited", violated_limits: [{ limit_id, kind: "concurrency" }] });
    answer?.();
    expect((await first).status).toBe(200);
    upstream.answer = json({ ok: true });
    await expect.poll(async () => (await refund(agent, 1)).status).toBe(200);
  });

  test("is one of exactly ten, of twenty at once that may spend a tenth each and of which some fail", async () => {
    const agent = await tenant.agent("spends");
    await limit({ agent: agent.name }, daily("1000"));
    let paid = 0;
    let asked = 0;
    upstream.answer = async (exchange, response) => {
      asked += 1;
      const fails = asked % 3 === 0;
      if (!fails) paid += 1;
      await (fails ? failing(409) : json({ ok: true }))(exchange, response);
    };
    // Calls that are denied while others hold the rest are repeated, as an agent would do.
    for (let round = 0; round < 12 && paid < 10; round += 1) {
      await Promise.all(Array.from({ length: 20 }, async () => (await refund(agent, 100)).text()));
      await tenant.evict();
    }
    expect(paid).toBe(10);
  });
});

describe("a report", () => {
  const report = (agent: TestAgent, id: string, body: object) => gateward.post<Problem>(agent.token, `/v1/decisions/${id}/outcome`, body);
  const left = async (agent: TestAgent) => (await tenant.api.read<LimitStates>(`/v1/limits/status?agent=${agent.name}`)).of_agent[0]?.remaining;

  test("of an outcome gives back what was not used, once", async () => {
    const agent = await tenant.agent("reports");
    await limit({ agent: agent.name }, daily("10"));
    const { decision_id } = await ask(agent, 8);
    expect(await left(agent)).toBe("2");
    expect(await report(agent, decision_id, { outcome: "succeeded", amount: "8.5" })).toMatchObject({ status: 422, body: { field: "amount" } });
    expect(await report(agent, decision_id, { outcome: "failed", amount: "1" })).toMatchObject({ status: 422, body: { field: "amount" } });
    const other = await tenant.agent("reports-for-others");
    expect(await report(other, decision_id, { outcome: "failed" })).toMatchObject({ status: 404, body: { code: "not_found" } });
    await tenant.evict();
    expect((await report(agent, decision_id, { outcome: "succeeded", amount: "3.5" })).status).toBe(200);
    expect(await left(agent)).toBe("6.5");
    expect(await report(agent, decision_id, { outcome: "failed" })).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect(await left(agent)).toBe("6.5");
  });
});
