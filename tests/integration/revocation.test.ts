// A revocation that was acknowledged stops every later call, even if lanes are cold, D1 is slow, and calls keep coming.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Agent, AuthorizeRequest, AuthorizeResponse, Ban, PendingLanes } from "../support/api/types.gen.ts";
import type { Api, NewCredential } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { eventually, Gateward, HINDERED, NEVER_MS, outcomeOf, passes, readCall, type Tenant } from "../support/gateward.ts";

const LANES = 4;
/** Gets no calls until a change was acknowledged. It is evicted, so it must then start and load. */
const COLD_LANE = 3;
/** The delay of D1's answers to loads of records. */
const LOAD_DELAY_MS = 150;
/** Calls of each agent at a time. */
const CALLS_AT_ONCE = 3;
/** Calls of each agent, before a change begins and after it was acknowledged. */
const CALLS_BEFORE = 10;
const CALLS_AFTER = 15;
/** An agent's loops end after this many calls in any case. */
const MAX_CALLS = 2_000;

/** No flush informs a lane about a change, and no load exceeds its rate. */
const VARS = { FLUSH_INTERVAL_MS: NEVER_MS, RATE_CAPACITY: 100_000, RATE_REFILL_PER_S: 10_000 };

/** One agent and its credential, in a lane. */
interface Caller {
  name: string;
  lane: number;
  credential: NewCredential;
}

interface Call {
  caller: Caller;
  startedAt: number;
  outcome: string;
}

const now = () => performance.now();

/** Agents made through the API until every lane has one, which then has a credential. */
async function callersOf(api: Api, prefix: string): Promise<Caller[]> {
  const agents = new Map<number, Agent>();
  for (let at = 0; agents.size < LANES; at += 1) {
    const agent = await api.agent(`${prefix}-${at}`);
    if (!agents.has(agent.lane)) agents.set(agent.lane, agent);
  }
  return Promise.all([...agents.values()].map(async ({ agent, lane }) => ({ name: agent, lane, credential: await api.credential(agent) })));
}

/** Load by some callers, each with several calls at a time, until it is ended. */
class Load {
  readonly calls: Call[] = [];
  readonly #gateward: Gateward;
  readonly #body: (caller: Caller) => AuthorizeRequest;
  readonly #loops: Promise<void>[] = [];
  #running = true;

  constructor(gateward: Gateward, body: (caller: Caller) => AuthorizeRequest) {
    this.#gateward = gateward;
    this.#body = body;
  }

  begin(callers: Caller[]): void {
    for (const caller of callers) {
      for (let at = 0; at < CALLS_AT_ONCE; at += 1) this.#loops.push(this.#loop(caller));
    }
  }

  /** Waits until each of the callers has finished this many calls that were started since then. */
  async reached(callers: Caller[], calls: number, since = -Infinity): Promise<void> {
    await eventually(`${calls} calls of each agent`, async () => callers.every((caller) =>
      this.calls.filter((call) => call.caller === caller && call.startedAt > since).length >= calls));
  }

  async end(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#loops);
  }

  async #loop(caller: Caller): Promise<void> {
    for (let at = 0; at < MAX_CALLS && this.#running; at += 1) {
      const startedAt = now();
      const reply = await this.#gateward.post<AuthorizeResponse & { code?: string }>(caller.credential.token, "/v1/authorize", this.#body(caller));
      this.calls.push({ caller, startedAt, outcome: outcomeOf(reply) });
    }
  }
}

/** A read of a tool that only the registry knows. */
const readOf = (server: string) => (caller: Caller) =>
  readCall({ agent: { id: caller.name }, tool_call: { tool: server, action: "read", parameters: {} } });

let customers = 0;
/** For another customer each time, because the third refund to one customer within an hour waits for approval. */
const refundOf = (caller: Caller) => {
  customers += 1;
  const parameters = { customer_id: `c${customers}`, amount: 5, currency: "EUR" };
  return readCall({ agent: { id: caller.name }, tool_call: { tool: "crm", action: "refund", mutates_state: true, parameters } });
};

interface Scenario {
  what: string;
  /** What the calls need besides their agents. */
  prepare?: (api: Api, id: string, callers: Caller[]) => Promise<unknown>;
  body: (id: string) => (caller: Caller) => AuthorizeRequest;
  /** The changes that forbid the calls: each of one caller, or one of all callers. */
  changes: (api: Api, id: string, callers: Caller[]) => { of: Caller[]; send: () => Promise<Reply<Partial<PendingLanes>>> }[];
}

/** One change for each caller. */
const forEach = (send: (api: Api, caller: Caller) => Promise<Reply<Partial<PendingLanes>>>): Scenario["changes"] => (api, _, callers) =>
  callers.map((caller) => ({ of: [caller], send: () => send(api, caller) }));
/** One change for all of them. */
const forAll = (send: (api: Api, id: string) => Promise<Reply<Partial<PendingLanes>>>): Scenario["changes"] => (api, id, callers) =>
  [{ of: callers, send: () => send(api, id) }];
const ownServer = { prepare: (api: Api, id: string) => api.server(id, "read"), body: readOf };

const scenarios: Scenario[] = [
  { what: "revoking an agent", ...ownServer, changes: forEach((api, { name }) => api.post(`/v1/agents/${name}/revoke`)) },
  { what: "freezing an agent", ...ownServer, changes: forEach((api, { name }) => api.post(`/v1/agents/${name}/freeze`)) },
  { what: "banning an agent", ...ownServer, changes: forEach((api, { name }) => api.post<Ban & Partial<PendingLanes>>("/v1/bans", { kind: "agent", subject: name })) },
  { what: "revoking a credential", ...ownServer, changes: forEach((api, { credential }) => api.post(`/v1/credentials/${credential.key_id}/revoke`)) },
  { what: "disabling a tool", ...ownServer, changes: forAll((api, id) => api.post(`/v1/servers/${id}/tools/read/disable`)) },
  { what: "deleting a server", ...ownServer, changes: forAll((api, id) => api.delete(`/v1/servers/${id}`)) },
  {
    what: "removing a member of a group",
    prepare: async (api, _, callers) => {
      for (const { name } of callers) await api.change("PUT", `/v1/groups/support/members/agents/${name}`);
    },
    body: () => refundOf,
    changes: forEach((api, { name }) => api.delete(`/v1/groups/support/members/agents/${name}`)),
  },
];

describe("while every lane hears of changes", () => {
  let gateward: Gateward;
  /** The bundle has an overlay for it, which forbids refunds outside support. */
  let demo: Tenant;
  let api: Api;

  beforeAll(async () => {
    gateward = await Gateward.start({
      entry: HINDERED,
      // No record exceeds its time to live either. So a running lane hears of a change only by a push.
      vars: { ...VARS, REGISTRY_TTL_MS: NEVER_MS },
    });
    demo = await gateward.tenant({ lanes: LANES }, "demo");
    api = demo.api;
    await api.group("support");
  });
  afterEach(() => gateward.delayLoads(0));
  afterAll(() => gateward?.close());

  test.each(scenarios.map((scenario, at) => ({ ...scenario, id: `scenario-${at}` })))(
    "after $what was acknowledged, no call passes that starts then", async ({ id, prepare, body, changes }) => {
      const callers = await callersOf(api, id);
      await prepare?.(api, id, callers);
      const call = body(id);
      for (const caller of callers) expect(await passes(gateward, caller.credential.token, call(caller))).toBe(true);

      const warm = callers.filter(({ lane }) => lane !== COLD_LANE);
      const cold = callers.filter(({ lane }) => lane === COLD_LANE);
      await demo.evict(COLD_LANE);
      await gateward.delayLoads(LOAD_DELAY_MS);
      const load = new Load(gateward, call);
      load.begin(warm);
      await load.reached(warm, CALLS_BEFORE);

      const acknowledgedAt = new Map<Caller, number>();
      await Promise.all(changes(api, id, callers).map(async ({ of, send }) => {
        const { status, body } = await send();
        expect({ status, pending: body?.pending_lanes }).toEqual({ status: expect.toBeOneOf([200, 201, 204]), pending: undefined });
        for (const caller of of) acknowledgedAt.set(caller, now());
      }));
      const allAcknowledgedAt = now();
      load.begin(cold);
      await load.reached(callers, CALLS_AFTER, allAcknowledgedAt);
      await load.end();

      const late = load.calls.filter(({ caller, startedAt }) => startedAt > (acknowledgedAt.get(caller) ?? Infinity));
      expect(late.filter(({ outcome }) => outcome === "allow")).toEqual([]);
      expect(new Set(late.map(({ caller }) => caller.lane))).toEqual(new Set(callers.map(({ lane }) => lane)));
      // The call must be refused. If other changes replaced its records again and again, it may
      // also fail.
      expect(late.filter(({ outcome }) => !/^(deny|401 .*|403 .*|503 registry_unavailable)$/.test(outcome))).toEqual([]);
      for (const caller of callers) expect(late.findLast((call) => call.caller === caller)?.outcome).toMatch(/^(deny|401|403)/);
      // The load was real: each agent of a warm lane got through until then.
      for (const caller of warm) {
        const allowed = load.calls.filter((call) => call.caller === caller && call.outcome === "allow");
        expect(allowed.length).toBeGreaterThanOrEqual(CALLS_BEFORE);
      }
    });

  test("records that were read before a change, and arrive after it was acknowledged, decide nothing", async () => {
    const [caller] = await callersOf(api, "racer") as [Caller, ...Caller[]];
    await api.server("race", "read");
    const body = readOf("race")(caller);
    expect(await passes(gateward, caller.credential.token, body)).toBe(true);
    await demo.evict(caller.lane);

    // The lane has an empty cache. D1's answer was true when it was read.
    await gateward.delayLoads(2_000);
    const startedAt = now();
    const delayed = passes(gateward, caller.credential.token, body);
    await eventually("the records are read, and on their way", async () => (await gateward.loadsWaiting()) > 0);
    await gateward.delayLoads(0);
    expect((await api.post(`/v1/agents/${caller.name}/revoke`)).status).toBe(200);
    // Otherwise the load was over before the change, and the test showed nothing.
    expect(now() - startedAt).toBeLessThan(2_000);
    expect(await gateward.loadsWaiting()).toBe(1);
    expect(await delayed).toBe(false);
  });

  test("nothing is forgotten that a cold lane was told", async () => {
    const callers = await callersOf(api, "sleeper");
    await api.server("asleep", "read");
    const call = readOf("asleep");
    for (const caller of callers) expect(await passes(gateward, caller.credential.token, call(caller))).toBe(true);
    for (const { lane } of callers) await demo.evict(lane);
    await gateward.delayLoads(LOAD_DELAY_MS);
    expect((await api.post("/v1/servers/asleep/quarantine")).status).toBe(200);
    expect(await Promise.all(callers.map((caller) => passes(gateward, caller.credential.token, call(caller))))).toEqual([false, false, false, false]);
  });
});

// The state after a worker stops between D1's commit and its pushes: D1 has the whole change, and a
// lane does not know it.
describe("while some lanes do not hear of changes", () => {
  const TTL_MS = 1_000;
  const DEAF = [1, 2];
  let gateward: Gateward;
  let tenant: Tenant;
  let api: Api;

  beforeAll(async () => {
    gateward = await Gateward.start({ entry: HINDERED, vars: { ...VARS, REGISTRY_TTL_MS: TTL_MS } });
    tenant = await gateward.tenant({ lanes: LANES });
    api = tenant.api;
  });
  afterEach(() => gateward.deafen([]));
  afterAll(() => gateward?.close());

  const deafen = () => gateward.deafen(DEAF.map((lane) => `${tenant.name}/${lane}`));
  const outcomes = async (callers: Caller[], body: (caller: Caller) => AuthorizeRequest) =>
    Promise.all(callers.map((caller) => passes(gateward, caller.credential.token, body(caller))));

  const changes: [string, (api: Api, id: string) => Promise<Reply<Partial<PendingLanes>>>][] = [
    ["disabling a tool", (api, id) => api.post(`/v1/servers/${id}/tools/read/disable`)],
    ["deleting a server", (api, id) => api.delete(`/v1/servers/${id}`)],
  ];
  test.each(changes)("%s is 202 and names them, the others refuse at once, and they refuse within their time to live", async (what, change) => {
    const id = what.replaceAll(" ", "-");
    const callers = await callersOf(api, id);
    await api.server(id, "read");
    const call = readOf(id);
    expect(await outcomes(callers, call)).toEqual([true, true, true, true]);
    await deafen();
    const reply = await change(api, id);
    const acknowledgedAt = now();
    expect(reply.status).toBe(202);
    expect(reply.body.pending_lanes?.toSorted()).toEqual(DEAF);
    const hearing = callers.filter(({ lane }) => !DEAF.includes(lane));
    expect(await outcomes(hearing, call)).toEqual([false, false]);

    const load = new Load(gateward, call);
    load.begin(callers);
    const latestAt = acknowledgedAt + TTL_MS;
    await load.reached(callers, CALLS_AFTER, latestAt);
    await load.end();
    expect(load.calls.filter(({ startedAt, outcome }) => startedAt > latestAt && outcome === "allow")).toEqual([]);
    expect(load.calls.filter(({ caller, outcome }) => !DEAF.includes(caller.lane) && outcome === "allow")).toEqual([]);
  });

  test("a change of an agent is 202 too, also when it is repeated, and 200 once they hear", async () => {
    const callers = await callersOf(api, "repeated");
    const [first] = callers as [Caller, ...Caller[]];
    await deafen();
    const reply = await api.post<Agent & Partial<PendingLanes>>(`/v1/agents/${first.name}/freeze`);
    expect({ status: reply.status, pending: reply.body.pending_lanes?.toSorted() }).toEqual({ status: 202, pending: DEAF });
    expect(reply.body).toMatchObject({ agent: first.name, status: "frozen" });
    expect(await api.read(`/v1/agents/${first.name}`)).toMatchObject({ status: "frozen" });
    // There is nothing left to write, but a 200 would mean that every lane knows the change.
    expect((await api.post(`/v1/agents/${first.name}/freeze`)).status).toBe(202);
    await gateward.deafen([]);
    expect((await api.post(`/v1/agents/${first.name}/freeze`)).status).toBe(200);
    await api.server("later", "read");
    expect(await outcomes([first], readOf("later"))).toEqual([false]);
  });

  test("a change that is repeated once they hear holds for agents that kept calling, however long", async () => {
    // A lane whose flushes confirm the epoch reads nothing again by itself.
    const busy = await Gateward.start({ entry: HINDERED, vars: { ...VARS, FLUSH_INTERVAL_MS: 100, REGISTRY_TTL_MS: TTL_MS } });
    try {
      const tenant = await busy.tenant();
      await tenant.api.agent("busy");
      const { token } = await tenant.api.credential("busy");
      await tenant.api.server("files", "read");
      const call = readCall({ agent: { id: "busy" }, tool_call: { tool: "files", action: "read", parameters: {} } });
      for (const action of ["freeze", "revoke"]) {
        expect(await passes(busy, token, call)).toBe(true);
        await busy.deafen([`${tenant.name}/0`]);
        expect((await tenant.api.post(`/v1/agents/busy/${action}`)).status).toBe(202);
        await busy.deafen([]);
        expect((await tenant.api.post(`/v1/agents/busy/${action}`)).status).toBe(200);
        for (const until = now() + 2 * TTL_MS; now() < until; ) expect(await passes(busy, token, call)).toBe(false);
        if (action === "freeze") await tenant.api.change("POST", "/v1/agents/busy/unfreeze");
      }
    } finally {
      await busy.close();
    }
  });

  test("a deletion that is repeated once they hear is 200, and holds", async () => {
    const callers = await callersOf(api, "deleted");
    await api.server("gone", "read");
    expect(await outcomes(callers, readOf("gone"))).toEqual([true, true, true, true]);
    await deafen();
    expect((await api.delete("/v1/servers/gone")).status).toBe(202);
    await gateward.deafen([]);
    expect((await api.delete("/v1/servers/gone")).status).toBe(200);
    expect(await outcomes(callers, readOf("gone"))).toEqual([false, false, false, false]);
  });

  test("a lane that missed a change and hears of the next has both", async () => {
    const callers = await callersOf(api, "behind");
    for (const server of ["missed", "heard"]) await api.server(server, "read");
    const deaf = callers.filter(({ lane }) => DEAF.includes(lane));
    expect(await outcomes(deaf, readOf("missed"))).toEqual([true, true]);
    await deafen();
    expect((await api.post("/v1/servers/missed/disable")).status).toBe(202);
    await gateward.deafen([]);
    expect((await api.post("/v1/servers/heard/disable")).status).toBe(200);
    for (const server of ["missed", "heard"]) expect(await outcomes(deaf, readOf(server))).toEqual([false, false]);
  });

  test("nothing is half written: the record, its epoch and its audit event are there together", async () => {
    const { name } = (await callersOf(api, "whole"))[0] as Caller;
    const epoch = async () => (await gateward.rows<{ epoch: number }>("SELECT epoch FROM tenants WHERE tenant = ?1", tenant.name))[0]?.epoch ?? 0;
    const before = await epoch();
    await deafen();
    expect((await api.post(`/v1/agents/${name}/revoke`)).status).toBe(202);
    const after = await epoch();
    expect(after).toBe(before + 1);
    const [row] = await gateward.rows("SELECT revoked, revision FROM agents WHERE tenant = ?1 AND agent = ?2", tenant.name, name);
    expect(row).toEqual({ revoked: 1, revision: after });
    expect(await gateward.rows("SELECT event_id FROM audit_events WHERE tenant = ?1 AND event_id = ?2", tenant.name, `registry.${after}`)).toHaveLength(1);
  });
});
