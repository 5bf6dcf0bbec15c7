// Compares two workers in pairs of short rounds, one right after the other. Both rounds of a pair run under the same
// conditions, and many pairs show how exact their median is.
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { medianInterval } from "../report/statistics.ts";
import type { Round } from "./load.ts";
import type { Target, Worker } from "./workers.ts";

/** Which worker the round is of, and its number: the rounds of a pair have the same one. */
export type Paired<Of extends string = Target> = { target: Of; round: number } & Round;

export interface Pairing {
  /** Pairs that are measured in any case. */
  min: number;
  /** More are measured, up to this number, until the ratios of both figures are exact enough. */
  max: number;
}

/** Of one round of a pair. */
export const ROUND_SECONDS = 0.5;
/** Shorter than what is deployed, so that each round has its share of flushes. */
export const PAIRING_VARS = { FLUSH_INTERVAL_MS: 250 };

/** A ratio is exact enough if half of its 95 % confidence interval is at most this. */
const EXACT = 0.03;
/** What is compared. */
const FIGURES = ["throughput_per_s", "cpu_ms_per_request"] as const;
/** The part of the processors that other processes may take during a pair; the kernel's own work is some percent. */
const MAX_OTHERS = 0.15;

/**
 * Measures rounds on both workers, in pairs. The order changes from pair to pair, so that it favours neither worker.
 * Pairs during which other processes took too much of the processors are left out, if enough others remain.
 */
export async function pairedRounds(workers: [Worker, Worker], { min, max }: Pairing, measure: (worker: Worker) => Promise<Round>): Promise<Paired[]> {
  const all: [Round, Round][] = [];
  const calm: [Round, Round][] = [];
  while (all.length < max && (calm.length < min || !isExact(calm))) {
    const othersSince = meterOthers();
    const pair = all.length % 2 === 0 ? await inOrder(workers, measure) : (await inOrder(workers.toReversed(), measure)).toReversed();
    all.push(pair as [Round, Round]);
    if (othersSince() <= MAX_OTHERS) calm.push(pair as [Round, Round]);
  }
  const used = calm.length < min ? all : calm;
  if (calm.length < all.length) console.error(`gateward: other processes disturbed ${all.length - calm.length} of ${all.length} pairs${used === all ? ", which are used all the same" : ""}`);
  return used.flatMap((pair, at) => pair.map((round, of) => ({ target: (workers[of] as Worker).target, round: at + 1, ...round })));
}

async function inOrder(workers: Worker[], measure: (worker: Worker) => Promise<Round>): Promise<Round[]> {
  const rounds: Round[] = [];
  for (const worker of workers) rounds.push(await measure(worker));
  return rounds;
}

function isExact(pairs: [Round, Round][]): boolean {
  return FIGURES.every((figure) => {
    const interval = medianInterval(pairs.map(([first, second]) => first[figure] / second[figure]));
    return interval !== undefined && interval.high - interval.low <= 2 * EXACT;
  });
}

/** Starts to count. The returned function says which share of the processors other processes have used since then. */
function meterOthers(): () => number {
  const [startMs, othersAtStart] = [performance.now(), othersMs()];
  return () => (othersMs() - othersAtStart) / ((performance.now() - startMs) * availableParallelism());
}

/**
 * Milliseconds that the processors were busy for other process groups and other machines. This process, the workers
 * and their servers are one group.
 */
function othersMs(): number {
  // All in hundredths of a second. First user, nice, system, idle, iowait, irq, softirq, steal, of all processors.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readFileSync("/proc/stat", "utf8").split("\n", 1).join().split(/ +/).slice(1).map(Number);
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(accountOf);
  const group = processes.find(({ pid }) => pid === process.pid)?.group;
  const own = processes.reduce((sum, account) => sum + (account.group === group ? account.hundredths : 0), 0);
  return (user + nice + system + irq + softirq + steal - own) * 10;
}

function accountOf(name: string): { pid: number; group: number; hundredths: number } {
  let stat = "";
  try {
    stat = readFileSync(`/proc/${name}/stat`, "utf8");
  } catch {
    // It ended since the directory was read.
  }
  // The second field is a name in parentheses, which may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  return { pid: Number(name), group: fields[2] ?? NaN, hundredths: (fields[11] ?? 0) + (fields[12] ?? 0) };
}

/** Compares the two rounds of each pair, which follow each other, and returns the median of the results. */
export function medianOfPairs(rounds: Round[], compare: (first: Round, second: Round) => number): number | undefined {
  const compared = rounds.flatMap((round, at) => (at % 2 === 0 ? [compare(round, rounds[at + 1] ?? round)] : []));
  return medianInterval(compared)?.median;
}
