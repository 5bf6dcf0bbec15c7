// Gateward's throughput, latency and processor time over HTTP, beside the floor's: edge.json.
//
//   npx node bench/edge/edge.ts [build] [--full]
//
// Both workers run all the time and are loaded in turn, in pairs of short rounds one after the other. A ratio is
// one pair's, so that a machine that is slower for a while slows both.
import { KIND_NAMES, type Kind } from "./kinds.ts";
import { assertOutcome, closedRound, openRound, type Round, warmUp } from "./load.ts";
import { assertSameIo } from "./same-io.ts";
import { programArguments, type Target, withWorkers, type Worker } from "./workers.ts";

interface Origin {
  target: Target;
  kind: Kind | "floor";
  round: number;
}

export interface Edge {
  rounds: number;
  seconds_per_round: number;
  closed_loop: (Origin & { connections: number } & Round)[];
  open_loop: (Origin & { rate_per_s: number } & Round)[];
}

interface Form {
  rounds: number;
  seconds: number;
  connections: number[];
  otherKinds: { rounds: number; connections: number[] };
  rates: number[];
}

const SHORT: Form = { rounds: 3, seconds: 2.5, connections: [1, 16, 50], otherKinds: { rounds: 1, connections: [16] }, rates: [] };
const FULL: Form = {
  rounds: 5,
  seconds: 4,
  connections: [1, 16, 50, 100, 200],
  otherKinds: { rounds: 2, connections: [1, 16, 50, 100, 200] },
  // From a light load up to near what one lane can do here.
  rates: [100, 200, 400, 800],
};

/** The floor answers as an allowed read is answered, so it is sent one. */
const FLOOR_KIND = "allow_read";

export async function edge({ full = false, build }: { full?: boolean; build?: string } = {}): Promise<Edge> {
  const form = full ? FULL : SHORT;
  const options = build === undefined ? {} : { build };
  await assertSameIo(options);
  return withWorkers([{ target: "gateward", options }, { target: "floor" }], async (workers) => {
    const gateward = workers[0] as Worker;
    for (const worker of workers) await warmUp(worker);
    for (const kind of KIND_NAMES) await assertOutcome(gateward, kind);

    const result: Edge = { rounds: form.rounds, seconds_per_round: form.seconds, closed_loop: [], open_loop: [] };
    const { seconds } = form;
    for (const connections of form.connections) {
      for (let round = 1; round <= form.rounds; round += 1) {
        for (const worker of turn(workers, round)) {
          const measured = await closedRound(worker, FLOOR_KIND, { connections, seconds });
          result.closed_loop.push({ ...origin(worker, FLOOR_KIND, round), connections, ...measured });
        }
      }
    }
    for (const kind of KIND_NAMES.filter((kind) => kind !== FLOOR_KIND)) {
      for (const connections of form.otherKinds.connections) {
        for (let round = 1; round <= form.otherKinds.rounds; round += 1) {
          const measured = await closedRound(gateward, kind, { connections, seconds });
          result.closed_loop.push({ ...origin(gateward, kind, round), connections, ...measured });
        }
      }
    }
    for (const ratePerS of form.rates) {
      for (let round = 1; round <= form.rounds; round += 1) {
        for (const worker of turn(workers, round)) {
          const measured = await openRound(worker, FLOOR_KIND, { ratePerS, seconds });
          result.open_loop.push({ ...origin(worker, FLOOR_KIND, round), rate_per_s: ratePerS, ...measured });
        }
      }
    }
    return result;
  });
}

/** The worker that goes first changes from round to round, so that the order favours neither. */
function turn(workers: Worker[], round: number): Worker[] {
  return round % 2 === 1 ? workers : workers.toReversed();
}

function origin({ target }: Worker, kind: Kind, round: number): Origin {
  return { target, kind: target === "floor" ? "floor" : kind, round };
}

if (import.meta.main) console.log(JSON.stringify(await edge(programArguments()), null, 2));
