// Compares two workers in pairs of short rounds, one right after the other. A machine with neighbours is faster at
// one time than at another: both rounds of a pair meet the same machine, and many pairs show how exact their median is.
import { medianInterval } from "../report/statistics.ts";
import type { Round } from "./load.ts";
import type { Target, Worker } from "./workers.ts";

/** Which worker the round is of, and its number: the rounds of a pair have the same one. */
export type Paired = { target: Target; round: number } & Round;

export interface Pairing {
  /** Pairs that are measured in any case. */
  min: number;
  /** More are measured, up to this number, until the ratios of both figures are exact enough. */
  max: number;
}

/** Half of the 95 % confidence interval of a ratio that is exact enough. */
const EXACT = 0.03;
/** What is compared. */
const FIGURES = ["throughput_per_s", "cpu_ms_per_request"] as const;

/** Measures rounds on both workers, in pairs. The order changes from pair to pair, so that it favours neither worker. */
export async function pairedRounds([first, second]: [Worker, Worker], { min, max }: Pairing, measure: (worker: Worker) => Promise<Round>): Promise<Paired[]> {
  const pairs: [Round, Round][] = [];
  const measured: Paired[] = [];
  while (pairs.length < min || (pairs.length < max && !isExact(pairs))) {
    const round = pairs.length + 1;
    const rounds = new Map<Worker, Round>();
    for (const worker of round % 2 === 1 ? [first, second] : [second, first]) {
      rounds.set(worker, await measure(worker));
      measured.push({ target: worker.target, round, ...(rounds.get(worker) as Round) });
    }
    pairs.push([rounds.get(first) as Round, rounds.get(second) as Round]);
  }
  return measured;
}

function isExact(pairs: [Round, Round][]): boolean {
  return FIGURES.every((figure) => {
    const interval = medianInterval(pairs.map(([first, second]) => first[figure] / second[figure]));
    return interval !== undefined && interval.high - interval.low <= 2 * EXACT;
  });
}
