// What the transparency log costs: calls to a worker that signs and publishes its logs, beside the same calls to one
// that has no key for them.
//
//   node bench/edge/logs.ts [build] [--full]
//
// Both workers are Gateward, from the same build, and flush every second. It prints the median of the pairs' ratios.
import { closedRound, type Round, warmUp } from "./load.ts";
import { pairedRounds } from "./pairs.ts";
import { programArguments, type Worker, withWorkers } from "./workers.ts";

/** A checkpoint costs the same for few records and for many, so rounds are long enough for the flushes of a lasting load. */
const LOAD = { connections: 16, seconds: 4 };
const PAIRS = { short: { min: 10, max: 20 }, full: { min: 20, max: 40 } };
/** As deployed. */
const FLUSHING = { FLUSH_INTERVAL_MS: 1_000 };
const LOG = { LOG_KEY: "07".repeat(32), LOG_ORIGIN: "gateward.example" };

/** The entries that the checkpoints of a worker's logs cover: the second line of each note. */
async function entriesOf({ db }: Worker): Promise<number> {
  const { results } = await db.prepare("SELECT note FROM log_checkpoints").all<{ note: string }>();
  return results.reduce((sum, { note }) => sum + Number(note.split("\n")[1]), 0);
}

async function measure({ full, build }: { full: boolean; build: string }) {
  const [on, off] = [{ build, vars: { ...FLUSHING, ...LOG } }, { build, vars: FLUSHING }];
  return withWorkers([{ target: "gateward", options: on }, { target: "gateward", options: off }], async ([first, second]) => {
    if (first === undefined || second === undefined) throw new Error("two workers were started");
    for (const worker of [first, second]) await warmUp(worker);
    const rounds: Round[] = await pairedRounds([first, second], full ? PAIRS.full : PAIRS.short, (worker) => closedRound(worker, "allow_read", LOAD));
    const [logged, without] = await Promise.all([first, second].map(entriesOf));
    if (!logged || without !== 0) throw new Error(`${logged} receipts are in the logs of the one, ${without} of the other`);
    const ratios = (of: (round: Round) => number) => {
      const pairs = rounds.flatMap((round, at) => (at % 2 === 0 ? [of(round) / of(rounds[at + 1] ?? round)] : []));
      return Number(pairs.toSorted((a, b) => a - b)[Math.floor(pairs.length / 2)]?.toFixed(3));
    };
    return { pairs: rounds.length / 2, logged, throughput: ratios((it) => it.throughput_per_s), cpu: ratios((it) => it.cpu_ms_per_request) };
  });
}

console.log(JSON.stringify(await measure(programArguments())));
