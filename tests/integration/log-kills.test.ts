// A long random history in which the runtime is killed again and again. Its export verifies, and has every decision that
// was acknowledged.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuthorizeResponse } from "../support/api/types.gen.ts";
import { Api } from "../support/administration.ts";
import { Client } from "../support/client.ts";
import { Exports, linesOf, LOG_SECRETS } from "../support/exports.ts";
import { BOOTSTRAP_SECRET, canaryCall, eventually, readCall, writeCall } from "../support/gateward.ts";
import { builtModules, startWithProcess } from "../support/miniflare.ts";
import { Note, parseTreeHead } from "../support/tlog.ts";

const TENANT = "acme";
const LANES = 2;
const AGENTS = 6;
const KILLS = 12;
/** Between two kills. */
const CALLS = 120;
/** Sent at once. */
const PARALLEL = 12;
const SEED = 21;

type Runtime = Awaited<ReturnType<typeof startWithProcess>>;

const state = mkdtempSync(join(tmpdir(), "gateward-log-kills-"));
const exports = new Exports();
let runtime: Runtime;

let draws = 0;
/** A pseudorandom number below this one. The sequence is the same in each run. */
const drawn = (below: number) => createHash("sha256").update(`${SEED} ${(draws += 1)}`).digest().readUInt32BE() % below;
const oneOf = <T>(...values: [T, ...T[]]) => values[drawn(values.length)] ?? values[0];

const start = (migrate = false) =>
  startWithProcess({ modules: builtModules(), bindings: { LOCAL_TARGETS: "true", FLUSH_INTERVAL_MS: 50, BOOTSTRAP_SECRET, ...LOG_SECRETS }, state, migrate });

async function killed({ workerd, miniflare }: Runtime): Promise<void> {
  const exited = once(workerd, "exit");
  workerd.kill("SIGKILL");
  await exited;
  await miniflare.dispose();
}

beforeAll(async () => {
  runtime = await start(true);
});
afterAll(async () => {
  await runtime?.miniflare.dispose();
  exports.remove();
  rmSync(state, { recursive: true });
});

test("an export of it verifies, and has every decision that was acknowledged", async () => {
  const { body: bootstrap } = await new Client(runtime.url).post<{ token: string }>(BOOTSTRAP_SECRET, "/v1/bootstrap", { tenant: TENANT });
  const admin = bootstrap.token;
  const api = () => new Api(new Client(runtime.url), admin);
  await runtime.db.prepare("UPDATE tenants SET lanes = ?1").bind(LANES).run();
  await api().server("github", "list_issues");
  await api().create("/v1/servers/github/tools", { tool: "merge_pull_request", mutates: true, risk: "high" });
  await api().approveTool("/v1/servers/github/tools/merge_pull_request");
  const agents: { id: string; token: string }[] = [];
  for (let at = 0; at < AGENTS; at += 1) {
    await api().agent(`agent-${at}`);
    agents.push({ id: `agent-${at}`, token: (await api().credential(`agent-${at}`)).token });
  }

  const acknowledged = new Set<string>();
  const call = async () => {
    const { id, token } = agents[drawn(AGENTS)] ?? { id: "", token: "" };
    const body = oneOf(readCall, readCall, writeCall, canaryCall)({ agent: { id } });
    const { status, body: answer } = await new Client(runtime.url).post<AuthorizeResponse>(token, "/v1/authorize", body);
    // Some denials are repeats, and have no receipt of their own.
    if (status === 200 && answer.receipt !== null) acknowledged.add(`${answer.receipt.receipt_id} ${answer.decision_id}`);
  };
  let groups = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const at = drawn(CALLS / PARALLEL);
    for (let batch = 0; batch <= at; batch += 1) {
      if (drawn(4) === 0) await api().create("/v1/groups", { group: `group-${(groups += 1)}` });
      const calls = Array.from({ length: PARALLEL }, () => call().catch(() => undefined));
      // The kill comes while calls of the last batch are open.
      await (batch < at ? Promise.all(calls) : Promise.race(calls));
      if (batch < at) continue;
      await killed(runtime);
      await Promise.all(calls);
    }
    runtime = await start();
    // A canary quarantines its agent.
    for (const { id } of agents) await api().change("POST", `/v1/agents/${id}/restore`);
  }

  // Every lane has rows to flush, and so a checkpoint to publish.
  const published = async (lane: number) => {
    const { results } = await runtime.db.prepare("SELECT note FROM log_checkpoints WHERE lane = ?1").bind(lane).all<{ note: string }>();
    const [row] = results;
    return row === undefined ? 0 : parseTreeHead(new Note(row.note).text).size;
  };
  const last = new Map<number, number>();
  for (const { id, token } of agents) {
    const { receipt } = await new Client(runtime.url).decide(token, readCall({ agent: { id } }));
    const [, lane = 0, seq = 0] = (receipt?.receipt_id ?? "").split("_").map(Number);
    last.set(lane, seq);
  }
  expect(last.size).toBe(LANES);
  for (const [lane, seq] of last) await eventually(`lane ${lane} published ${seq}`, async () => (await published(lane)) >= seq);

  const file = await exports.of(runtime.url, admin);
  const report = await exports.verify(file, TENANT);
  expect(report).toMatchObject({ verified: true, faults: [] });
  const entries = linesOf(file).flatMap((line) => (line.type === "entry" ? [JSON.parse(line.body) as Record<string, unknown>] : []));
  const exported = new Set(entries.map(({ lane, seq, decision_id }) => `rcpt_${lane}_${seq} ${decision_id}`));
  expect([...acknowledged].filter((it) => !exported.has(it))).toEqual([]);
  expect(acknowledged.size).toBeGreaterThan(KILLS * PARALLEL);
});
