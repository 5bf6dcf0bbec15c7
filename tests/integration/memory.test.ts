// The memory of large bodies in an isolate is bounded: beyond the bound they are refused unread, ordinary calls still
// work, and all memory is released. The body of a request with a revoked or expired credential is not read.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, Gateward, MEASURED, readCall, type Tenant, type TestAgent } from "../support/gateward.ts";

const CALLERS = 500;
/** The largest body that is accepted. */
const LARGE_BYTES = 256 * 1024;
/** Of the 128 MB of an isolate, which hold JavaScript's memory too. */
const MAX_LINEAR_BYTES = 96_000_000;
const SMALL_CALLS = 50;
/** More than fits into the counted memory if memory were not released. */
const BROKEN_OFF = 200;
const AT_ONCE = 20;
/** How long D1's answer to a load of records takes where a test wants a lane to wait. */
const LOAD_DELAY_MS = 1_500;
/** The longest time that the worker waits for a body. */
const BODY_LIMIT_MS = 10_000;

let gateward: Gateward;
let tenant: Tenant;
let agent: TestAgent;

beforeAll(async () => {
  gateward = await Gateward.start({ entry: MEASURED, vars: { RATE_CAPACITY: 100_000, RATE_REFILL_PER_S: 10_000 } });
  tenant = await gateward.tenant();
  agent = await tenant.agent();
});
afterAll(() => gateward.close());

const SMALL = JSON.stringify(readCall());

/** A call of exactly this many bytes. */
function largeCall(padding: (bytes: number) => unknown): string {
  const repo = "acme/shop";
  const text = JSON.stringify(readCall({ tool_call: { parameters: { repo, padding: padding(LARGE_BYTES - 1_000) } } }));
  return text.padEnd(LARGE_BYTES);
}
const LARGE = largeCall((bytes) => "x".repeat(bytes));
/** The most objects that a body may have: parsed, each takes many times the memory of its text. */
const MANY_OBJECTS = largeCall(() => Array.from({ length: 4_950 }, () => ({ a: 0 })));

interface Answered {
  status: number;
  code: string | undefined;
  retryAfter: string | null;
}

async function call(body: string, { token } = agent): Promise<Answered> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(new URL("/v1/authorize", gateward.url), { method: "POST", headers, body });
  const { code } = (await response.json()) as { code?: string };
  return { status: response.status, code, retryAfter: response.headers.get("retry-after") };
}

/** Sends the head of a call and the beginning of its body, and then nothing. */
async function begin(bytes: number, { token } = agent): Promise<Socket> {
  const socket = connect(Number(gateward.url.port), gateward.url.hostname);
  socket.on("error", () => {});
  await once(socket, "connect");
  const head = ["POST /v1/authorize HTTP/1.1", "host: gateward", `authorization: Bearer ${token}`, "content-type: application/json", `content-length: ${LARGE_BYTES}`];
  socket.write(`${head.join("\r\n")}\r\n\r\n${LARGE.slice(0, bytes)}`);
  return socket;
}

async function answer(socket: Socket): Promise<string> {
  const [data] = (await once(socket, "data")) as [Buffer];
  return data.toString();
}

/** A few at a time, so that they are not refused. */
async function inTurn(times: number, run: () => Promise<unknown>): Promise<void> {
  for (let done = 0; done < times; done += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, run));
}

const passesEventually = (body: string) => eventually("a call passes", async () => (await call(body)).status === 200);

describe.each([["one text", LARGE], ["many objects", MANY_OBJECTS]])("a flood of bodies of 256 KiB with %s", (_, body) => {
  test("is answered with 200 or 503, ordinary calls go on, and linear memory stays bounded", async () => {
    expect((await call(SMALL)).status).toBe(200);
    const flood = Array.from({ length: CALLERS }, () => call(body));
    const small = Promise.all(Array.from({ length: SMALL_CALLS }, () => call(SMALL)));
    const answers = await Promise.all(flood);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(CALLERS);
    for (const refusal of refused) expect(refusal).toEqual({ status: 503, code: "overloaded", retryAfter: "1" });
    for (const { status } of await small) expect(status).toBe(200);
    expect(await gateward.linearMemory()).toBeLessThan(MAX_LINEAR_BYTES);
    expect((await call(body)).status).toBe(200);
  }, 60_000);
});

test("lanes that wait for the registry hold no more", async () => {
  await gateward.delayLoads(LOAD_DELAY_MS);
  const agents = await Promise.all(Array.from({ length: 8 }, async (_, lane) => ({ lane, agent: await tenant.agent(`waits-${lane}`, { lane }) })));
  const bodyOf = ({ name }: TestAgent) => MANY_OBJECTS.replace('"coder"', `"${name}"`).slice(0, LARGE_BYTES);
  const flood = Array.from({ length: CALLERS }, (_, at) => {
    const { agent } = agents[at % agents.length]!;
    return call(bodyOf(agent), agent);
  });
  const answers = await Promise.all(flood);
  await gateward.delayLoads(0);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
  expect(await gateward.linearMemory()).toBeLessThan(MAX_LINEAR_BYTES);
  await passesEventually(MANY_OBJECTS);
}, 60_000);

test("what a client held that broke off in the middle of its body is given back", async () => {
  await inTurn(BROKEN_OFF, async () => {
    const socket = await begin(LARGE_BYTES / 2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
  });
  await passesEventually(LARGE);
  expect(await gateward.linearMemory()).toBeLessThan(MAX_LINEAR_BYTES);
}, 60_000);

test("what a client held that went while its lane waited is given back", async () => {
  await gateward.delayLoads(LOAD_DELAY_MS);
  for (let round = 0; round < 3; round += 1) {
    await tenant.evict();
    const sockets = await Promise.all(Array.from({ length: AT_ONCE }, () => begin(LARGE_BYTES)));
    await new Promise((resolve) => setTimeout(resolve, LOAD_DELAY_MS / 2));
    for (const socket of sockets) socket.destroy();
  }
  await gateward.delayLoads(0);
  const together = async () => (await Promise.all(Array.from({ length: AT_ONCE }, () => call(LARGE)))).every(({ status }) => status === 200);
  await eventually("as many calls pass at once as before", together);
}, 60_000);

test("a client that is slow is told so, and its memory given back", async () => {
  const slow: Socket[] = [];
  // Once the accepted bodies have arrived, they keep other large bodies out, but no small one. Calls of the previous
  // test may still hold memory and release it later. So more clients are started until the memory is full.
  await eventually("a large body is kept out", async () => {
    slow.push(...(await Promise.all(Array.from({ length: 60 }, () => begin(1_000)))));
    return (await call(LARGE)).status === 503;
  });
  expect((await call(SMALL)).status).toBe(200);
  const answers = await Promise.all(slow.map(answer));
  expect(new Set(answers.map((text) => text.slice(9, 12)))).toEqual(new Set(["400", "503"]));
  for (const socket of slow) socket.destroy();
  await passesEventually(LARGE);
}, 60_000);

describe("a credential that has ended", () => {
  /**
   * Checks that more large bodies than fit into memory are all refused in the same way, and none because of its
   * memory.
   */
  async function isRefusedUnread(ended: TestAgent, code: string): Promise<void> {
    const flood = await Promise.all(Array.from({ length: CALLERS }, () => call(LARGE, ended)));
    for (const refusal of flood) expect(refusal).toEqual({ status: 401, code, retryAfter: null });
    // Its body never arrives. If the body of an agent is read, the answer is that it is late.
    const socket = await begin(1_000, ended);
    expect(await answer(socket)).toContain("HTTP/1.1 401 ");
    socket.destroy();
  }

  test("by revocation is refused before the body is read", async () => {
    const { api } = tenant;
    const revoked = await tenant.agent("revoked");
    const body = JSON.stringify(readCall({ agent: { id: "revoked" } }));
    expect((await call(body, revoked)).status).toBe(200);
    expect((await api.post(`/v1/credentials/${revoked.credential.keyId}/revoke`)).status).toBe(200);
    // The answer comes from its lane, which this isolate asks only once.
    expect(await call(body, revoked)).toEqual({ status: 401, code: "unauthorized", retryAfter: null });
    await isRefusedUnread(revoked, "unauthorized");
    expect((await call(LARGE)).status).toBe(200);
  }, 60_000);

  test("by expiry is refused before the body is read", async () => {
    const expired = await tenant.agent("expired", {}, { expires_at_ms: Date.now() - 1 });
    const body = JSON.stringify(readCall({ agent: { id: "expired" } }));
    expect(await call(body, expired)).toEqual({ status: 401, code: "credential_expired", retryAfter: null });
    await isRefusedUnread(expired, "credential_expired");
  }, 60_000);

  test("is counted in the audit", async () => {
    await eventually("refusals that no lane was asked about are counted", async () => {
      const [row] = await gateward.rows<{ count: number }>("SELECT sum(count) AS count FROM audit_events WHERE tenant = '' AND kind = 'authentication_failed'");
      return (row?.count ?? 0) >= CALLERS / 2;
    });
  });

  test("is told from one that was never registered, which may be yet", async () => {
    const early = await tenant.agent("early");
    const { name, token } = early;
    await gateward.execute("DELETE FROM credentials WHERE tenant = ?1 AND key_id = ?2", tenant.name, early.credential.keyId);
    const body = JSON.stringify(readCall({ agent: { id: name } }));
    expect((await call(body, early)).status).toBe(401);
    await tenant.change({ credentials: [{ credential: early.credential, agent: name }] });
    expect((await call(body, { ...early, token })).status).toBe(200);
  });
});

test("a freeze is not remembered", async () => {
  const frozen = await tenant.agent("frozen");
  const body = JSON.stringify(readCall({ agent: { id: "frozen" } }));
  const decision = async () => {
    const { body: answered } = await gateward.post<{ decision: string; reason_code: string }>(frozen.token, "/v1/authorize", JSON.parse(body));
    return answered.decision;
  };
  expect(await decision()).toBe("allow");
  for (const [change, expected] of [["freeze", "deny"], ["unfreeze", "allow"], ["quarantine", "deny"], ["restore", "allow"]] as const) {
    expect((await tenant.api.post(`/v1/agents/frozen/${change}`)).status).toBe(200);
    expect(await decision(), change).toBe(expected);
  }
});

test("a body without a declared length counts as the largest, until it has arrived", async () => {
  const stream = () => new Blob([SMALL]).stream();
  const headers = { authorization: `Bearer ${agent.token}`, "content-type": "application/json" };
  const send = () => fetch(new URL("/v1/authorize", gateward.url), { method: "POST", headers, body: stream(), duplex: "half" } as RequestInit);
  await inTurn(BROKEN_OFF, async () => expect((await send()).status).toBe(200));
}, BODY_LIMIT_MS * 3);
