// Measures what windows of policies cost. It compares two allowed reads with the same read of a tool that no window
// counts: one that three windows of its agent count, and one that a window of the tenant counts, which costs a hop.
//
//   node bench/edge/velocity.ts [--full]
//
// Windows are part of the build, so it builds Gateward with some for the bench (`bundles.ts`). Both workers are of this
// build. It prints the medians of the pairs: ratios of throughput and processor time, and the differences of one call, in
// milliseconds.
import { readFileSync } from "node:fs";
import { buildChanged } from "./bundles.ts";
import { callBody, KINDS } from "./kinds.ts";
import { mixedRound, type Round, rounded, warmUp } from "./load.ts";
import { medianOfPairs, pairedRounds, PAIRING_VARS, ROUND_SECONDS } from "./pairs.ts";
import { demoHeaders, programArguments, register, withWorkers } from "./workers.ts";

const VELOCITY = "policies/velocity.json";
const SERVER = "github";
/** Tools of the bench, with names of the same length. */
const TOOLS = { agent: "counted_by_agent", tenant: "counted_in_tenant", none: "counted_nowhere__" };

const OF_AGENT = { tools: [`${SERVER}/${TOOLS.agent}`], reach: "agent" };
const WINDOWS = {
  // The shipped windows of all tools.
  calls_1m: { ...OF_AGENT, counts: "decided", window_s: 60 },
  denials_10m: { ...OF_AGENT, counts: "denied", window_s: 600 },
  bench_passed: { ...OF_AGENT, counts: "passed", window_s: 3_600 },
  bench_repo: { tools: [`${SERVER}/${TOOLS.tenant}`], key: ["/repo"], window_s: 60, reach: "tenant" },
};

/** Keys that calls take in turn: more than a tenant has objects for its windows. */
const KEYS = 64;
/** The cost of the hop is clearest if nothing else waits. */
const CONNECTIONS = [1, 16];
const PAIRS = { short: { min: 20, max: 60 }, full: { min: 30, max: 120 } };

const { expected } = KINDS.allow_read;
const callsOf = (tool: string) =>
  Array.from({ length: KEYS }, (_, at) => ({ body: JSON.stringify(callBody(SERVER, tool, { repo: `acme/shop-${at}` })), headers: demoHeaders() }));

/** Builds with these windows, so that none counts the other tool. */
function buildWithWindows(): string {
  const build = buildChanged("windows", { [VELOCITY]: (text) => JSON.stringify({ ...JSON.parse(text), ...WINDOWS }) });
  const wasm = readFileSync(`${build}/index_bg.wasm`, "latin1");
  for (const tool of [TOOLS.agent, TOOLS.tenant]) if (!wasm.includes(tool)) throw new Error(`no window of the build names ${tool}`);
  return build;
}

async function compare(build: string, tool: string, connections: number, full: boolean) {
  const worker = { target: "gateward" as const, options: { build, vars: PAIRING_VARS } };
  return withWorkers([worker, worker], async ([counted, not]) => {
    if (counted === undefined || not === undefined) throw new Error("two workers were started");
    for (const { db } of [counted, not]) await register(db, { tools: Object.values(TOOLS).map((tool) => ({ server: SERVER, tool, mutates: false, risk: "low" })) });
    for (const worker of [counted, not]) await warmUp(worker);
    const [first, second] = [callsOf(tool), callsOf(TOOLS.none)];
    const load = { connections, seconds: ROUND_SECONDS };
    // The objects of windows start.
    await mixedRound(counted, first, expected, { ...load, seconds: 5 });
    const rounds: Round[] = await pairedRounds([counted, not], full ? PAIRS.full : PAIRS.short, (worker) =>
      mixedRound(worker, worker === counted ? first : second, expected, load),
    );
    const median = (of: (first: Round, second: Round) => number) => rounded(medianOfPairs(rounds, of) ?? NaN, 3);
    return {
      connections,
      pairs: rounds.length / 2,
      throughput: median((one, other) => one.throughput_per_s / other.throughput_per_s),
      cpu: median((one, other) => one.cpu_ms_per_request / other.cpu_ms_per_request),
      p50_more_ms: median((one, other) => one.p50_ms - other.p50_ms),
      cpu_more_ms: median((one, other) => one.cpu_ms_per_request - other.cpu_ms_per_request),
    };
  });
}

const { full } = programArguments();
const build = buildWithWindows();
for (const windows of ["agent", "tenant"] as const) {
  for (const connections of CONNECTIONS) console.log(JSON.stringify({ windows, ...(await compare(build, TOOLS[windows], connections, full)) }));
}
