// A tenant's webhook, which sends the steps of approvals to a receiver on loopback.
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditEvent, IssuedWebhook } from "../support/api/types.gen.ts";
import type { Page } from "../support/administration.ts";
import { itemsOf } from "../support/administration.ts";
import { eventually, Gateward, INSPECTABLE, readCall, type Tenant, type TestAgent, writeCall } from "../support/gateward.ts";
import { Receiver, signatureOf } from "../support/receiver.ts";

/** Failed attempts after which the worker gives a message up. */
const MAX_ATTEMPTS = 12;
/** The time in the header and the test's time are from one clock. A test may take this long. */
const RECENT_S = 60;

interface OutboxRow extends Record<string, string | number | null> {
  seq: number;
  attempts: number;
  due_at_ms: number | null;
}

let receiver: Receiver;
beforeAll(async () => {
  receiver = await Receiver.start();
});
afterAll(() => receiver?.close());

/** A tenant whose agent needs approvals, and its own path of the receiver. */
async function setting(gateward: Gateward): Promise<{ tenant: Tenant; agent: TestAgent; path: string }> {
  const tenant = await gateward.tenant();
  return { tenant, agent: await tenant.agent(), path: `/${randomBytes(5).toString("hex")}` };
}

const asking = (more: object = {}) => writeCall({ context: { source_trust: "semi_trusted_customer" }, ...more });

async function ask(gateward: Gateward, agent: TestAgent): Promise<string> {
  const answer = await gateward.decide(agent.token, asking());
  expect(answer.decision).toBe("require_approval");
  return String((answer.approval as { approval_id?: string } | null)?.approval_id);
}

const outbox = (gateward: Gateward, tenant: Tenant): Promise<OutboxRow[]> =>
  gateward.laneRows(`${tenant.name}/0`, "SELECT seq, attempts, due_at_ms FROM webhook_outbox ORDER BY seq");

const told = (gateward: Gateward, tenant: Tenant) =>
  eventually(`everything is told to ${tenant.name}`, async () => (await outbox(gateward, tenant)).length === 0);

const failed = (gateward: Gateward, tenant: Tenant) =>
  eventually(`an attempt fails of ${tenant.name}`, async () => (await outbox(gateward, tenant)).some(({ attempts }) => attempts === 1));

describe("where local targets are allowed", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 } });
  });
  afterAll(() => gateward?.close());

  test("every step of an approval is delivered, signed, and without the call's arguments", async () => {
    const { tenant, agent, path } = await setting(gateward);
    const { secret, ...webhook } = await tenant.api.change<IssuedWebhook>("PUT", "/v1/webhook", { url: receiver.url(path) });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await tenant.api.read("/v1/webhook")).toEqual(webhook);
    await tenant.api.group("security");
    await tenant.api.change("PUT", "/v1/groups/security/members/administrators/admin");

    const id = await ask(gateward, agent);
    await tenant.api.change("POST", `/v1/approvals/${id}/approve`, { comment: "fine" });
    expect((await gateward.decide(agent.token, asking({ approval_id: id }))).decision).toBe("allow");
    await told(gateward, tenant);

    const received = receiver.at(path);
    const byRevision = received.map(({ message }) => message).sort((a, b) => a.data.approval.revision - b.data.approval.revision);
    expect(byRevision.map(({ type, data }) => [type, data.tenant, data.approval.approval_id, data.approval.status])).toEqual([
      ["approval.requested", tenant.name, id, "pending"],
      ["approval.approved", tenant.name, id, "approved"],
      ["approval.used", tenant.name, id, "used"],
    ]);
    for (const one of received) {
      expect(one.method).toBe("POST");
      expect(one.headers["content-type"]).toBe("application/json");
      expect(one.headers["webhook-id"]).toMatch(new RegExp(`^msg_${tenant.name}_0_[0-9]+$`));
      expect(Math.abs(Number(one.headers["webhook-timestamp"]) - Date.now() / 1000)).toBeLessThan(RECENT_S);
      expect(one.headers["webhook-signature"]).toBe(signatureOf(secret, one));
      expect(one.text).not.toContain("feature/search");
    }
    expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(3);

    const events = itemsOf<AuditEvent>(await tenant.api.read<Page>("/v1/audit-events?kind=webhook_set"));
    expect(events.map(({ source, detail }) => [source, detail])).toEqual([["admin", { origin: new URL(receiver.url("")).origin }]]);
  });

  test("a message that was not taken comes again, the same but for time and signature", async () => {
    const { tenant, agent, path } = await setting(gateward);
    const { secret } = await tenant.api.change<IssuedWebhook>("PUT", "/v1/webhook", { url: receiver.url(path) });
    receiver.answer = (received, response) => response.writeHead(receiver.at(received.path).length === 1 ? 500 : 200).end();
    await ask(gateward, agent);
    await told(gateward, tenant);
    const [first, second, ...more] = receiver.at(path);
    expect(more).toEqual([]);
    expect([second?.text, second?.headers["webhook-id"]]).toEqual([first?.text, first?.headers["webhook-id"]]);
    expect(Number(second?.headers["webhook-timestamp"])).toBeGreaterThan(Number(first?.headers["webhook-timestamp"]));
    if (second !== undefined) expect(second.headers["webhook-signature"]).toBe(signatureOf(secret, second));
  });

  test("a redirect is not followed: it is a failure", async () => {
    const { tenant, agent, path } = await setting(gateward);
    await tenant.api.change("PUT", "/v1/webhook", { url: receiver.url(path) });
    receiver.answer = ({ path: asked }, response) =>
      asked === path ? response.writeHead(307, { location: receiver.url(`${path}-elsewhere`) }).end() : response.writeHead(204).end();
    await ask(gateward, agent);
    await failed(gateward, tenant);
    expect([receiver.at(path).length, receiver.at(`${path}-elsewhere`).length]).toEqual([1, 0]);
  });

  test("what is never taken becomes a receipt and an audit event, and waits no more", async () => {
    const { tenant, agent, path } = await setting(gateward);
    await tenant.api.change("PUT", "/v1/webhook", { url: receiver.url(path) });
    receiver.answer = (_, response) => response.writeHead(503).end();
    const id = await ask(gateward, agent);
    await failed(gateward, tenant);
    // As after a day of failures; the next call's flush finds it due.
    await gateward.laneRows(`${tenant.name}/0`, `UPDATE webhook_outbox SET attempts = ${MAX_ATTEMPTS - 1}, due_at_ms = 0`);
    await gateward.decide(agent.token, readCall());
    await told(gateward, tenant);
    expect(receiver.at(path)).toHaveLength(2);
    await tenant.flushed();
    const page = await tenant.api.read<Page>("/v1/audit-events?kind=webhook_dead_lettered");
    const [event, ...more] = itemsOf<AuditEvent>(page);
    expect(more).toEqual([]);
    const { message, headers } = receiver.at(path)[0] ?? {};
    expect(event).toMatchObject({
      event_id: expect.stringMatching(/\.[0-9]+\.webhook_dead_lettered$/),
      lane: 0,
      decision_id: message?.data.approval.decision_id,
      detail: { attempts: MAX_ATTEMPTS, last_status: 503, webhook_id: headers?.["webhook-id"], payload: message },
    });
    const receipts = await tenant.records<{ body: string }>("receipts");
    const letters = receipts.map(({ body }) => JSON.parse(body) as Record<string, unknown>).filter(({ kind }) => kind === "dead_letter");
    expect(letters).toMatchObject([{ approval_id: id, attempts: MAX_ATTEMPTS, last_status: 503, message_id: headers?.["webhook-id"] }]);
    expect(message?.data.approval.approval_id).toBe(id);
    const counted = await gateward.rows("SELECT count FROM metric_counters WHERE tenant = ?1 AND metric = 'dead_letters'", tenant.name);
    expect(counted).toEqual([{ count: 1 }]);
  });

  test("a receiver that hangs holds up no flush", async () => {
    const { tenant, agent, path } = await setting(gateward);
    await tenant.api.change("PUT", "/v1/webhook", { url: receiver.url(path) });
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    receiver.answer = (_, response) => void released.then(() => response.writeHead(200).end());
    await ask(gateward, agent);
    await eventually("the receiver has the message", async () => receiver.at(path).length === 1);
    for (let at = 0; at < 3; at += 1) {
      await gateward.decide(agent.token, readCall());
      await tenant.flushed();
    }
    expect(await outbox(gateward, tenant)).toMatchObject([{ attempts: 0 }]);
    release();
    await told(gateward, tenant);
    expect(receiver.at(path)).toHaveLength(1);
  });

  test("without a webhook nothing waits, and one that was deleted is told nothing", async () => {
    const { tenant, agent, path } = await setting(gateward);
    receiver.answer = (_, response) => response.writeHead(204).end();
    await ask(gateward, agent);
    await told(gateward, tenant);
    await tenant.api.change("PUT", "/v1/webhook", { url: receiver.url(path) });
    await ask(gateward, agent);
    await told(gateward, tenant);
    expect(receiver.at(path).map(({ message }) => message.type)).toEqual(["approval.requested"]);
    await tenant.api.change("DELETE", "/v1/webhook");
    await ask(gateward, agent);
    await told(gateward, tenant);
    expect(receiver.at(path)).toHaveLength(1);
  });
});

describe("where they are not", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50, LOCAL_TARGETS: "false" } });
  });
  afterAll(() => gateward?.close());

  test.each([
    ["http://hooks.example.com/", "must begin with `https://`"],
    ["https://127.0.0.1/", "a loopback address"],
    ["https://0x7f.1/", "a loopback address"],
    ["https://169.254.169.254/latest/meta-data/", "a link-local address"],
    ["https://[::ffff:10.0.0.1]/", "an IPv4 address in another form"],
    ["https://metadata.google.internal/", "a name of a local network"],
  ])("%s is refused: %s", async (url, why) => {
    const tenant = await gateward.tenant();
    const reply = await tenant.api.client.send("PUT", tenant.admin, "/v1/webhook", { url });
    expect(reply).toMatchObject({ status: 422, body: { code: "invalid_field", field: "url", detail: expect.stringContaining(why) } });
  });

  test("an address is checked again before each delivery", async () => {
    const { tenant, agent, path } = await setting(gateward);
    await tenant.api.change("PUT", "/v1/webhook", { url: "https://hooks.example.com/" });
    await gateward.execute("UPDATE webhooks SET url = ?2 WHERE tenant = ?1", tenant.name, receiver.url(path));
    await ask(gateward, agent);
    await failed(gateward, tenant);
    expect(receiver.at(path)).toEqual([]);
    const why = "its address must begin with `https://`";
    await eventually("the log says why", async () => gateward.lines().some(({ event, detail }) => event === "webhook_not_delivered" && detail?.includes(why)));
  });
});
