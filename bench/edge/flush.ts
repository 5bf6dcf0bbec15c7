// Measures what the counters of metrics add to a flush: processor time for each record, compared with a flush whose
// statement for the counters does nothing.
//
//   node bench/edge/flush.ts [--full]
//
// Calls of ten tools take turns, so a flush has as many series as usual (docs/metrics.md).
//
// Gateward has no setting without counters, so it is built once more, with a statement that writes nothing and a lane that
// does not group the events of its rows (`bundles.ts`). It prints the median of the pairs' ratios.
import { buildChanged } from "./bundles.ts";
import { callBody, KINDS, TENANT } from "./kinds.ts";
import { mixedRound, type Round, rounded, warmUp } from "./load.ts";
import { medianOfPairs, pairedRounds, ROUND_SECONDS } from "./pairs.ts";
import { demoHeaders, programArguments, register, sleep, type Worker, withWorkers } from "./workers.ts";

/** Longer than a round of calls: its records are flushed after it, all at once. */
const FLUSH_INTERVAL_MS = 3_000;
const POLL_MS = 100;
/** Far longer than a flush of a round's records takes. */
const MAX_FLUSH_MS = 120_000;
const LOAD = { connections: 16, seconds: ROUND_SECONDS };
const PAIRS = { short: { min: 15, max: 30 }, full: { min: 30, max: 120 } };

const { body, expected } = KINDS.allow_read;
const SERVER = "github";
const TOOLS = Array.from({ length: 10 }, (_, at) => `bench_tool_${at}`);
const CALLS = TOOLS.map((tool) => ({ body: JSON.stringify(callBody(SERVER, tool, { repo: "acme/shop" })), headers: demoHeaders() }));

function buildWithoutCounters(): string {
  const replaced = (path: string, from: string, to: string) => (content: string) => {
    if (!content.includes(from)) throw new Error(`${path} does not have: ${from}`);
    return content.replace(from, to);
  };
  const [grouping, statements] = ["worker/core/src/lane/flush.rs", "worker/edge/src/d1/flush.rs"];
  return buildChanged("no-counters", {
    [grouping]: replaced(grouping, "metrics.add(next, stored.members(series));", "if false { metrics.add(next, stored.members(series)); }"),
    [statements]: replaced(statements, "statements.push(statement(COUNT_ROWS, &counted));", "let _ = (COUNT_ROWS, counted);"),
  });
}

async function flushedThrough({ db }: Worker, lane: number): Promise<number> {
  const flushes = db.prepare("SELECT seq FROM lane_flushes WHERE tenant = ?1 AND lane = ?2").bind(TENANT, lane);
  return (await flushes.all<{ seq: number }>()).results[0]?.seq ?? 0;
}

/** Makes the calls of a round, and then measures only the flush of their records. Each record counts as a request. */
async function flushRound(worker: Worker): Promise<Round> {
  const round = await mixedRound(worker, CALLS, expected, LOAD, { flushes: false });
  const { receipt } = (await worker.call(body)).answer;
  const before = worker.cpuMs();
  if ((await flushedThrough(worker, receipt.lane)) > receipt.seq - round.requests) throw new Error("a flush began before the calls ended");
  // Each read of D1 costs processor time too.
  await sleep(FLUSH_INTERVAL_MS);
  const until = Date.now() + MAX_FLUSH_MS;
  while ((await flushedThrough(worker, receipt.lane)) < receipt.seq) {
    if (Date.now() > until) throw new Error(`receipt ${receipt.seq} was not flushed within ${MAX_FLUSH_MS} ms: the flush fails`);
    await sleep(POLL_MS);
  }
  const cpuMs = worker.cpuMs() - before;
  return { ...round, throughput_per_s: (round.requests * 1_000) / cpuMs, cpu_ms_per_request: cpuMs / round.requests };
}

async function counted({ db }: Worker): Promise<number> {
  return (await db.prepare("SELECT count(*) AS series FROM metric_counters").all<{ series: number }>()).results[0]?.series ?? 0;
}

async function measure({ full, build }: { full: boolean; build: string }) {
  const vars = { FLUSH_INTERVAL_MS };
  const [on, off] = [{ build, vars }, { build: buildWithoutCounters(), vars }];
  return withWorkers([{ target: "gateward", options: on }, { target: "gateward", options: off }], async ([first, second]) => {
    if (first === undefined || second === undefined) throw new Error("two workers were started");
    for (const worker of [first, second]) {
      await register(worker.db, { tools: TOOLS.map((tool) => ({ server: SERVER, tool, mutates: false, risk: "low" })) });
      await warmUp(worker);
    }
    const rounds = await pairedRounds([first, second], full ? PAIRS.full : PAIRS.short, flushRound);
    const [series, none] = [await counted(first), await counted(second)];
    // One of each tool, and one of the credential.
    if (series <= TOOLS.length || none !== 0) throw new Error(`the one counted ${series} series, the other ${none}`);
    const cpu = medianOfPairs(rounds, (one, other) => one.cpu_ms_per_request / other.cpu_ms_per_request);
    return { pairs: rounds.length / 2, records: rounds[0]?.requests, series, cpu: rounded(cpu ?? NaN, 3) };
  });
}

console.log(JSON.stringify(await measure(programArguments())));
