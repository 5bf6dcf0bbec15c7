// `GET /metrics`, and the files beside its page.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeResponse } from "../support/api/types.gen.ts";
import type { Api } from "../support/administration.ts";
import { canaryCall, eventually, Gateward, HINDERED, INSPECTABLE, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { promtool, Samples } from "../support/prometheus.ts";
import { Receiver } from "../support/receiver.ts";
import { json, Upstream } from "../support/upstream.ts";

const FLUSH_INTERVAL_MS = 50;
/** How far the clock jumps over an alarm. */
const LATE_MS = 5 * 60_000;

/** A credential that may read a tenant's metrics and nothing else. */
const reader = (tenant: Tenant): Promise<Api> => tenant.apiWith(["metrics:read"]);

/** Waits until a metric of the reader has at least this value, and returns the metrics. */
async function reaches(gateward: Gateward, { token }: { token: string }, name: string, least: number, labels: Record<string, string> = {}): Promise<Samples> {
  let samples = new Samples("");
  await eventually(`${name} ${JSON.stringify(labels)} is ${least}`, async () => {
    samples = await Samples.read(gateward, token);
    return samples.sum(name, labels) >= least;
  });
  return samples;
}

const DECISIONS = "gateward_decisions_total";
const FAILED = "gateward_failed_authentications_total";

describe("metrics", () => {
  let gateward: Gateward;
  let upstream: Upstream;
  let receiver: Receiver;
  beforeAll(async () => {
    upstream = await Upstream.start();
    receiver = await Receiver.start();
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS } });
  });
  afterAll(async () => {
    await gateward?.close();
    await upstream?.close();
    await receiver?.close();
  });

  test("count calls of all sorts, and promtool accepts them", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    await tenant.register({
      servers: [
        {
          server: "bank",
          kind: "http",
          trust: "trusted",
          upstream: { url: upstream.url(), local: true, routes: [{ method: "GET", path: "/refunds/{amount}", tool: "refund" }] },
        },
      ],
      tools: [{ server: "bank", tool: "refund", mutates: false, risk: "low" }],
    });
    const agent = await tenant.agent();
    const { token } = agent;
    await tenant.api.create("/v1/limits", {
      limit_id: "daily",
      subject_kind: "agent",
      subject: "coder",
      rule: { kind: "amount", max: "10", pointer: "/amount", window: "day", tools: ["bank/*"] },
    });
    await tenant.api.change("PUT", "/v1/webhook", { url: receiver.url("/metrics") });

    await gateward.decide(token, readCall());
    await gateward.decide(token, readCall());
    await gateward.decide(token, writeCall({ context: { source_trust: "unknown" } }));
    const held = await gateward.decide(token, writeCall({ context: { source_trust: "semi_trusted_customer" } }));
    const approval = (held.approval as { approval_id?: string } | null)?.approval_id;
    await tenant.api.change("POST", `/v1/approvals/${approval}/cancel`);
    upstream.answer = json({ ok: true });
    const refund = (amount: number) => fetch(new URL(`/http/bank/refunds/${amount}`, gateward.url), { headers: { authorization: `Bearer ${token}` } });
    expect((await refund(8)).status).toBe(200);
    expect((await refund(8)).status).toBe(403);
    upstream.answer = (_, response) => void response.writeHead(500).end();
    expect((await refund(1)).status).toBe(500);
    const other = await tenant.agent("other");
    await gateward.decide(other.token, canaryCall({ agent: { id: "other" } }));

    await reaches(gateward, api, "gateward_proxied_request_duration_seconds_count", 2);
    await reaches(gateward, api, DECISIONS, 1, { decision: "quarantine" });
    const samples = await reaches(gateward, api, "gateward_webhook_attempts_total", 2, { outcome: "delivered" });
    expect(promtool(["check", "metrics"], samples.text)).toBe("");
    for (const [name, labels, value] of [
      [DECISIONS, { decision: "allow", reason: "policy_allow", server: "github", tool: "list_issues" }, 2],
      [DECISIONS, { decision: "deny", server: "github" }, 1],
      [DECISIONS, { decision: "require_approval" }, 1],
      [DECISIONS, { decision: "quarantine", server: "vault", tool: "read_root_key" }, 1],
      [DECISIONS, { reason: "amount_exhausted", server: "bank", tool: "refund" }, 1],
      ["gateward_writes_total", { tainted: "false", provenance: "none" }, 2],
      ["gateward_limits_hit_total", { kind: "amount", limit: "daily" }, 1],
      ["gateward_reservations_total", { event: "opened" }, 2],
      ["gateward_reservations_total", { event: "settled" }, 1],
      ["gateward_reservations_total", { event: "unclear" }, 1],
      ["gateward_approval_events_total", { event: "approval_requested" }, 1],
      ["gateward_approval_duration_seconds_count", { event: "approval_cancelled" }, 1],
      ["gateward_approval_duration_seconds_bucket", { event: "approval_cancelled", le: "60" }, 1],
      ["gateward_proxied_request_duration_seconds_count", { server: "bank", outcome: "answered" }, 1],
      ["gateward_proxied_request_duration_seconds_count", { server: "bank", outcome: "server_error" }, 1],
      ["gateward_webhook_attempts_total", { outcome: "delivered" }, 2],
      ["gateward_lanes", {}, 1],
      ["gateward_journal_rows", {}, 0],
      ["gateward_reservations_open", {}, 0],
      ["gateward_approvals_open", {}, 0],
    ] as const) {
      expect({ name, labels, value: samples.sum(name, labels) }).toEqual({ name, labels, value });
    }
    const [credential, ...others] = samples.values("gateward_credential_decisions_total", "credential");
    expect(credential).toMatch(/^kh_[0-9a-f]{8}$/);
    expect(others).toHaveLength(1);
    expect(samples.text).not.toContain(agent.credential.keyId);
  });

  test("show names that are not registered as unknown, whatever an agent invents", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    const hostile = ['a"} 1', "line\nbreak", "\\", "ünïcode", 'x"}\ngateward_decisions_total{tool="forged"} 9'];
    for (const action of hostile) {
      const reply = await gateward.post(token, "/v1/authorize", readCall({ tool_call: { action } }));
      expect([200, 400, 422]).toContain(reply.status);
    }
    for (let at = 0; at < 20; at += 1) await gateward.decide(token, readCall({ tool_call: { action: `invented_${at}` } }));
    const samples = await reaches(gateward, api, DECISIONS, 20);
    expect(samples.values(DECISIONS, "tool")).toEqual(["unknown"]);
    expect(samples.text).not.toMatch(/invented|forged/);
    expect(promtool(["check", "metrics"], samples.text)).toBe("");
  });

  test("show a tenant only its own, and an operator all", async () => {
    const [one, other] = [await gateward.tenant(), await gateward.tenant()];
    const [own, operator] = [await reader(one), await other.apiWith(["metrics:read", "tenants:admin"])];
    for (const tenant of [one, other]) {
      const { token } = await tenant.agent();
      await gateward.decide(token, readCall());
      await tenant.flushed();
    }
    const samples = await reaches(gateward, own, DECISIONS, 1);
    expect(samples.values("gateward_\\w+", "tenant")).toEqual([one.name]);
    const all = await reaches(gateward, operator, DECISIONS, 2);
    for (const tenant of [one, other]) expect(all.sum(DECISIONS, { tenant: tenant.name })).toBe(1);
    expect(all.sum("gateward_metrics_truncated")).toBe(0);
    expect(promtool(["check", "metrics"], all.text)).toBe("");
  });

  test("need the scope, and no agent has it", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const read = (of: string) => gateward.get<{ code: string }>(of, "/metrics");
    for (const [of, status, code] of [
      [(await tenant.apiWith(["registry:read", "audit:read"])).token, 403, "forbidden"],
      [token, 403, "forbidden"],
      ["gwa_forged", 401, "unauthorized"],
    ] as const) {
      const reply = await read(of);
      expect([reply.status, reply.body.code]).toEqual([status, code]);
    }
  });

  test("are of a media type that Prometheus reads", async () => {
    const { token } = await reader(await gateward.tenant());
    const response = await fetch(new URL("/metrics", gateward.url), { headers: { authorization: `Bearer ${token}` } });
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("count refused credentials by reason, in a lane and before one", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const operator = await tenant.apiWith(["metrics:read", "tenants:admin"]);
    const before = (await Samples.read(gateward, operator.token)).sum(FAILED, { tenant: "_none" });
    const { token } = await tenant.agent("coder", {}, { expires_at_ms: Date.now() - 1_000 });
    const expired = await gateward.post<{ code: string }>(token, "/v1/authorize", readCall());
    expect(expired.body.code).toBe("credential_expired");
    await gateward.post(`${token}x`, "/v1/authorize", readCall());
    expect((await reaches(gateward, api, FAILED, 1)).values(FAILED, "reason")).toEqual(["credential_expired"]);
    const none = await reaches(gateward, operator, FAILED, before + 1, { tenant: "_none", reason: "unauthorized" });
    // The worker remembers the credential, and counts its requests for the tenant too. It writes the count after 1, 2, 4, 8 …
    // requests of an address.
    for (let at = 0; at < 14; at += 1) await gateward.post(token, "/v1/authorize", readCall());
    await reaches(gateward, api, FAILED, 5, { reason: "credential_expired" });
    const after = await Samples.read(gateward, operator.token);
    const ofNone = (samples: Samples) => samples.sum(FAILED, { tenant: "_none", reason: "credential_expired" });
    expect(ofNone(after)).toBe(ofNone(none));
  });

  test("count failed attempts to reach a webhook", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    await tenant.api.change("PUT", "/v1/webhook", { url: receiver.url("/failing") });
    receiver.answer = ({ path }, response) => response.writeHead(path === "/failing" ? 500 : 204).end();
    await gateward.decide(token, writeCall({ context: { source_trust: "semi_trusted_customer" } }));
    const samples = await reaches(gateward, api, "gateward_webhook_attempts_total", 1, { outcome: "failed" });
    expect(samples.sum("gateward_webhook_attempts_total", { outcome: "delivered" })).toBe(0);
  });

  test("wake no lane", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const lanes = await gateward.laneIds();
    await Samples.read(gateward, api.token);
    expect(await gateward.laneIds()).toEqual(lanes);
  });

  test("go on where they were when rows are flushed again and the lane is evicted", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    const name = `${tenant.name}/0`;
    await gateward.decide(token, readCall());
    await tenant.flushed();
    await gateward.decide(token, readCall());
    await gateward.decide(token, readCall());
    await tenant.flushed();
    // As if the lane had not learned that D1 has the last two.
    await gateward.laneRows(name, "UPDATE flushes SET through = 1");
    await tenant.evict();
    await gateward.decide(token, readCall());
    await tenant.flushed();
    const samples = await reaches(gateward, api, DECISIONS, 4);
    expect(samples.sum(DECISIONS)).toBe(4);
  });
});

test("counters survive a restart of the runtime", async () => {
  const state = mkdtempSync(join(tmpdir(), "gateward-metrics-"));
  try {
    const options = { state, vars: { FLUSH_INTERVAL_MS } };
    let gateward = await Gateward.start({ ...options, entry: INSPECTABLE });
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    const call = async () => void (await gateward.decide(token, readCall()));
    await call();
    await tenant.flushed();
    await call();
    await gateward.close();
    gateward = await Gateward.start({ ...options, entry: INSPECTABLE, migrate: false });
    try {
      await call();
      const samples = await reaches(gateward, { token: api.token }, DECISIONS, 3);
      expect(samples.sum(DECISIONS)).toBe(3);
    } finally {
      await gateward.close();
    }
  } finally {
    rmSync(state, { recursive: true });
  }
});

describe("while D1 fails", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: HINDERED, vars: { FLUSH_INTERVAL_MS } });
  });
  afterAll(() => gateward?.close());

  // As with every fault: it failed, or it succeeded and the answer was lost.
  test.each(["failing", "losing"] as const)("a flush that is %s counts once", async (state) => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    const answers: AuthorizeResponse[] = [];
    const call = async () => void answers.push(await gateward.decide(token, readCall()));
    await call();
    await gateward.databaseIs(state, /journal_rows/);
    for (let at = 0; at < 3; at += 1) await call();
    await new Promise((resolve) => setTimeout(resolve, 10 * FLUSH_INTERVAL_MS));
    await call();
    await gateward.databaseIs("up");
    await reaches(gateward, api, DECISIONS, answers.length);
    const samples = await reaches(gateward, api, "gateward_flush_errors_total", 1);
    expect(samples.sum(DECISIONS)).toBe(answers.length);
  });

  test("flushes that fail are shown while D1 can be read, and count once", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    await gateward.decide(token, readCall());
    await tenant.flushed();
    // Nothing that a scrape or a report sends.
    await gateward.databaseIs("failing", /INSERT INTO journal_rows/);
    try {
      await gateward.decide(token, readCall());
      await reaches(gateward, api, "gateward_flush_errors_total", 4);
      await reaches(gateward, api, "gateward_journal_age_seconds", 1);
      const samples = await reaches(gateward, api, "gateward_lane_silence_seconds", 1);
      expect(samples.sum("gateward_journal_rows")).toBe(1);
      expect(samples.sum(DECISIONS)).toBe(1);
      expect(await tenant.records("receipts")).toHaveLength(1);
    } finally {
      await gateward.databaseIs("up");
    }
    await tenant.flushed();
    const samples = await reaches(gateward, api, DECISIONS, 2);
    for (const [name, value] of [
      [DECISIONS, 2],
      ["gateward_journal_rows", 0],
      ["gateward_lane_silence_seconds", 0],
    ] as const) {
      expect({ name, value: samples.sum(name) }).toEqual({ name, value });
    }
  });

  test("an alarm is as late as it is, also if its object ended before it ran", async () => {
    const tenant = await gateward.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    // Failed flushes set the next alarm further and further ahead.
    await gateward.databaseIs("failing", /journal_rows/);
    await gateward.decide(token, readCall());
    const lane = `${tenant.name}/0`;
    const due = async () => Number((await gateward.laneRows<{ value: string }>(lane, "SELECT value FROM meta WHERE name = 'alarm_due'"))[0]?.value);
    await eventually("the next alarm is two seconds away", async () => (await due()) > Date.now() + 2_000);
    await gateward.evict(lane);
    await gateward.clockIsAhead(LATE_MS);
    await gateward.databaseIs("up");
    try {
      const samples = await reaches(gateward, api, "gateward_alarm_overdue_seconds", 1);
      expect(samples.sum("gateward_alarm_overdue_seconds")).toBeGreaterThan(LATE_MS / 2_000);
    } finally {
      await gateward.clockIsAhead(0);
    }
  });

  test("a scrape is answered 503", async () => {
    const { token } = await reader(await gateward.tenant());
    await gateward.databaseIs("failing");
    try {
      const reply = await gateward.get<{ code: string }>(token, "/metrics");
      expect([reply.status, reply.body.code]).toEqual([503, "registry_unavailable"]);
    } finally {
      await gateward.databaseIs("up");
    }
  });
});

test("a database without room for records has room for reports", async () => {
  const full = await Gateward.start({ vars: { FLUSH_INTERVAL_MS, D1_MAX_BYTES: 256_000_001 } });
  try {
    const tenant = await full.tenant();
    const api = await reader(tenant);
    const { token } = await tenant.agent();
    for (let at = 0; at < 3; at += 1) await full.decide(token, readCall());
    const samples = await reaches(full, api, "gateward_flush_errors_total", 1);
    await reaches(full, api, "gateward_journal_rows_max", 3);
    expect(samples.sum(DECISIONS)).toBe(0);
    expect(await tenant.records("receipts")).toEqual([]);
  } finally {
    await full.close();
  }
});

describe("the alert rules", () => {
  test("are rules that Prometheus takes", () => {
    expect(promtool(["check", "rules", "docs/metrics/alerts.yaml"])).toContain("18 rules found");
  });

  test("fire on what they are for, and on nothing else", () => {
    expect(promtool(["test", "rules", "docs/metrics/alerts.test.yaml"])).toContain("SUCCESS");
  });
});
