// Gateward's throughput, latency and processor time over HTTP, beside the floor's: edge.json.
//
//   npx node bench/edge/edge.ts [build] [--full]
//
import { KIND_NAMES, type Kind } from "./kinds.ts";
import { assertOutcome, closedRound, openRound, warmUp } from "./load.ts";
import { type Paired, pairedRounds, type Pairing } from "./pairs.ts";
import { assertSameIo } from "./same-io.ts";
import { programArguments, withWorkers } from "./workers.ts";

export interface Edge {
  seconds_per_round: number;
  closed_loop: ({ kind: Kind | "floor"; connections: number } & Paired)[];
  open_loop: ({ kind: Kind | "floor"; rate_per_s: number } & Paired)[];
}

interface Form {
  seconds: number;
  pairs: Pairing;
  connections: number[];
  /** Of kinds that are not compared with the floor. */
  otherKinds: { rounds: number; connections: number[] };
  openLoop: { rounds: number; ratesPerS: number[] };
}

/** A little less than the flush interval: the flush begins when the round is over, and no time is spent waiting for it. */
const SECONDS = 0.9;
const SHORT: Form = {
  seconds: SECONDS,
  pairs: { min: 12, max: 40 },
  connections: [1, 16, 50],
  otherKinds: { rounds: 3, connections: [16] },
  openLoop: { rounds: 0, ratesPerS: [] },
};
const FULL: Form = {
  seconds: SECONDS,
  pairs: { min: 30, max: 100 },
  connections: [1, 16, 50, 200],
  otherKinds: { rounds: 5, connections: [1, 16, 50] },
  // From a light load up to near what one lane can do here.
  openLoop: { rounds: 5, ratesPerS: [100, 200, 400, 800] },
};
/** An open loop needs longer rounds: its tail has few calls. */
const OPEN_LOOP_SECONDS = 4;

/** The floor answers as an allowed read is answered, so it is sent one. */
const FLOOR_KIND = "allow_read";

export async function edge({ full = false, build }: { full?: boolean; build?: string } = {}): Promise<Edge> {
  const { seconds, pairs, connections: compared, otherKinds, openLoop } = full ? FULL : SHORT;
  const options = build === undefined ? {} : { build };
  await assertSameIo(options);
  return withWorkers([{ target: "gateward", options }, { target: "floor" }], async ([gateward, floor]) => {
    if (gateward === undefined || floor === undefined) throw new Error("two workers were started");
    for (const worker of [gateward, floor]) await warmUp(worker);
    for (const kind of KIND_NAMES) await assertOutcome(gateward, kind);

    const result: Edge = { seconds_per_round: seconds, closed_loop: [], open_loop: [] };
    for (const connections of compared) {
      const rounds = await pairedRounds([gateward, floor], pairs, (worker) => closedRound(worker, FLOOR_KIND, { connections, seconds }));
      result.closed_loop.push(...rounds.map((round) => ({ kind: kindOf(round), connections, ...round })));
    }
    for (const kind of KIND_NAMES.filter((kind) => kind !== FLOOR_KIND)) {
      for (const connections of otherKinds.connections) {
        for (let round = 1; round <= otherKinds.rounds; round += 1) {
          const measured = await closedRound(gateward, kind, { connections, seconds });
          result.closed_loop.push({ kind, connections, target: "gateward", round, ...measured });
        }
      }
    }
    for (const ratePerS of openLoop.ratesPerS) {
      const load = { ratePerS, seconds: OPEN_LOOP_SECONDS };
      const fixed = { min: openLoop.rounds, max: openLoop.rounds };
      const rounds = await pairedRounds([gateward, floor], fixed, (worker) => openRound(worker, FLOOR_KIND, load));
      result.open_loop.push(...rounds.map((round) => ({ kind: kindOf(round), rate_per_s: ratePerS, ...round })));
    }
    return result;
  });
}

function kindOf({ target }: Paired): Kind | "floor" {
  return target === "floor" ? "floor" : FLOOR_KIND;
}

if (import.meta.main) console.log(JSON.stringify(await edge(programArguments()), null, 2));
