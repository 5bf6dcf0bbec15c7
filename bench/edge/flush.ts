// Measures what the counters of metrics add to a flush: processor time for each record, compared with a flush whose
// statement for the counters does nothing.
//
//   node bench/edge/flush.ts [--full]
//
// Calls of ten tools take turns, so a flush has as many series as usual (docs/metrics.md).
//
// Gateward has no setting without counters, so it is built once more, with a statement that writes nothing and a lane that
// does not group the events of its rows (`bundles.ts`). It prints the median of the pairs' ratios and its 95 % interval.
import { buildChanged } from "./bundles.ts";
import { callBody, KINDS, TENANT } from "./kinds.ts";
import { medianInterval } from "../report/statistics.ts";
import { closedLoop, type Round, rounded, warmUp } from "./load.ts";
import { pairedRounds } from "./pairs.ts";
import { demoHeaders, programArguments, register, sleep, type Worker, withWorkers } from "./workers.ts";

/** Longer than a round of calls: its records are flushed after it, one batch after the other. */
const FLUSH_INTERVAL_MS = 4_000;
const POLL_MS = 100;
/** Far longer than a flush of a round's records takes. */
const MAX_FLUSH_MS = 120_000;
const MAX_ROUNDS = 5;
/** Each round has as many, so both rounds of a pair flush the same batches. */
const LOAD = { connections: 16, amount: 2_000 };
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

/**
 * Makes the calls of a round, and returns the newest receipt before anything is flushed. If the machine was so busy that a
 * flush began before the calls ended, it makes them again.
 */
async function journalled(worker: Worker): Promise<{ lane: number; seq: number }> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    // After a flush, the next one is an interval away.
    await worker.settle(body);
    const { errors, unexpected } = await closedLoop(worker, CALLS, expected, LOAD);
    if (errors + unexpected > 0) throw new Error(`${errors} calls failed, ${unexpected} answers had another outcome`);
    const { receipt } = (await worker.call(body)).answer;
    if ((await flushedThrough(worker, receipt.lane)) < receipt.seq - LOAD.amount) return receipt;
  }
  throw new Error(`a flush began before the calls ended, ${MAX_ROUNDS} times`);
}

/** Measures only the flush of a round's records. Each record counts as a request. */
async function flushRound(worker: Worker): Promise<Round> {
  const { lane, seq } = await journalled(worker);
  const before = worker.cpuMs();
  // Each read of D1 costs processor time too.
  await sleep(FLUSH_INTERVAL_MS);
  const until = Date.now() + MAX_FLUSH_MS;
  while ((await flushedThrough(worker, lane)) < seq) {
    if (Date.now() > until) throw new Error(`receipt ${seq} was not flushed within ${MAX_FLUSH_MS} ms: the flush fails`);
    await sleep(POLL_MS);
  }
  const cpuMs = worker.cpuMs() - before;
  return { requests: LOAD.amount, throughput_per_s: (LOAD.amount * 1_000) / cpuMs, p50_ms: 0, p95_ms: 0, p99_ms: 0, errors: 0, cpu_ms_per_request: cpuMs / LOAD.amount };
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
    const [counting, without] = [rounds.filter((_, at) => at % 2 === 0), rounds.filter((_, at) => at % 2 === 1)];
    const ratios = medianInterval(counting.map((round, at) => round.cpu_ms_per_request / (without[at]?.cpu_ms_per_request ?? Number.NaN)));
    const of = (value: number | undefined) => rounded(value ?? Number.NaN, 3);
    return { pairs: counting.length, records: LOAD.amount, series, cpu: of(ratios?.median), low: of(ratios?.low), high: of(ratios?.high) };
  });
}

console.log(JSON.stringify(await measure(programArguments())));
