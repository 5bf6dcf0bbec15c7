// Gateward's throughput, latency and processor time over HTTP, beside the floor's: edge.json.
//
//   npx node bench/edge/edge.ts [build] [--full]
//
// The short form compares with the floor, in a closed loop. The full form adds the other kinds of calls, and an
// open loop.
import { KIND_NAMES, type Kind } from "./kinds.ts";
import { assertOutcome, closedRound, openRound, warmUp } from "./load.ts";
import { type Paired, pairedRounds, PAIRING_VARS, ROUND_SECONDS } from "./pairs.ts";
import { assertSameIo } from "./same-io.ts";
import { programArguments, withWorkers } from "./workers.ts";

export interface Edge {
  seconds_per_round: number;
  closed_loop: ({ kind: Kind | "floor"; connections: number } & Paired)[];
  open_loop: ({ kind: Kind | "floor"; rate_per_s: number } & Paired)[];
}

const CONNECTIONS = [1, 16, 50];
const PAIRS = { short: { min: 12, max: 60 }, full: { min: 30, max: 120 } };

/** The floor answers as an allowed read is answered, so it is sent one. */
const FLOOR_KIND = "allow_read";

/** For the other kinds of calls, which are compared only with each other. */
const OTHER_KINDS = { connections: 16, rounds: 10 };

/** From a light load up to near what one lane can do here. */
const RATES_PER_S = [100, 200, 400, 800];
/** Longer rounds than in a closed loop: the tail of a latency needs many calls. */
const OPEN_LOOP = { seconds: 4, pairs: { min: 5, max: 5 } };

export async function edge({ full = false, build }: { full?: boolean; build?: string } = {}): Promise<Edge> {
  const built = build === undefined ? {} : { build };
  await assertSameIo(built);
  const wanted = [
    { target: "gateward", options: { ...built, vars: PAIRING_VARS } },
    { target: "floor", options: { vars: PAIRING_VARS } },
  ] as const;
  return withWorkers([...wanted], async ([gateward, floor]) => {
    if (gateward === undefined || floor === undefined) throw new Error("two workers were started");
    for (const worker of [gateward, floor]) await warmUp(worker);
    for (const kind of KIND_NAMES) await assertOutcome(gateward, kind);

    const seconds = ROUND_SECONDS;
    const result: Edge = { seconds_per_round: seconds, closed_loop: [], open_loop: [] };
    for (const connections of CONNECTIONS) {
      const rounds = await pairedRounds([gateward, floor], full ? PAIRS.full : PAIRS.short, (worker) => closedRound(worker, FLOOR_KIND, { connections, seconds }));
      result.closed_loop.push(...rounds.map((round) => ({ kind: kindOf(round), connections, ...round })));
    }
    if (!full) return result;
    for (const kind of KIND_NAMES.filter((kind) => kind !== FLOOR_KIND)) {
      const { connections } = OTHER_KINDS;
      for (let round = 1; round <= OTHER_KINDS.rounds; round += 1) {
        result.closed_loop.push({ kind, connections, target: "gateward", round, ...(await closedRound(gateward, kind, { connections, seconds })) });
      }
    }
    for (const ratePerS of RATES_PER_S) {
      const rounds = await pairedRounds([gateward, floor], OPEN_LOOP.pairs, (worker) => openRound(worker, FLOOR_KIND, { ratePerS, seconds: OPEN_LOOP.seconds }));
      result.open_loop.push(...rounds.map((round) => ({ kind: kindOf(round), rate_per_s: ratePerS, ...round })));
    }
    return result;
  });
}

function kindOf({ target }: Paired): Kind | "floor" {
  return target === "floor" ? "floor" : FLOOR_KIND;
}

if (import.meta.main) console.log(JSON.stringify(await edge(programArguments()), null, 2));
