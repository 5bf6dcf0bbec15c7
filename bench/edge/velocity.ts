// What windows of policies cost: an allowed read that three windows of its agent count, and one that a window of the
// tenant counts, which costs a hop, each beside the same read that no window counts.
//
//   node bench/edge/velocity.ts [--full]
//
// Windows are part of the build, so it builds Gateward with three files of windows (`bundles.ts`). It prints the medians
// of the pairs: ratios of throughput and processor time, and the differences of one call, in milliseconds.
import { readFileSync } from "node:fs";
import { buildChanged } from "./bundles.ts";
import { KINDS } from "./kinds.ts";
import { mixedRound, type Round, rounded, warmUp } from "./load.ts";
import { medianOfPairs, pairedRounds, PAIRING_VARS, ROUND_SECONDS } from "./pairs.ts";
import { demoHeaders, programArguments, withWorkers } from "./workers.ts";

const VELOCITY = "policies/velocity.json";
/** Only of a refund, which a shipped policy needs. */
const { refunds_to_customer } = JSON.parse(readFileSync(VELOCITY, "utf8")) as { refunds_to_customer: object };

const OF_AGENT = { tools: ["*"], reach: "agent" };
const WINDOWS: Record<string, object> = {
  none: {},
  agent: {
    bench_calls: { ...OF_AGENT, counts: "decided", window_s: 60 },
    bench_passed: { ...OF_AGENT, counts: "passed", window_s: 3_600 },
    bench_denials: { ...OF_AGENT, counts: "denied", window_s: 600 },
  },
  tenant: { bench_repo: { tools: ["github/list_issues"], key: ["/repo"], window_s: 60, reach: "tenant" } },
};

/** Keys that calls take in turn: more than a tenant has objects for its windows. */
const KEYS = 64;
/** The hop's cost shows best where nothing else waits. */
const CONNECTIONS = [1, 16];
const PAIRS = { short: { min: 20, max: 60 }, full: { min: 30, max: 120 } };

const { body, expected } = KINDS.allow_read;
const calls = Array.from({ length: KEYS }, (_, at) => {
  const parameters = { ...body.tool_call.parameters, repo: `acme/shop-${at}` };
  return { body: JSON.stringify({ ...body, tool_call: { ...body.tool_call, parameters } }), headers: demoHeaders() };
});

/** Builds with these windows and no others that count the call. */
function buildWith(name: string): string {
  const build = buildChanged(`${name}-windows`, { [VELOCITY]: () => JSON.stringify({ refunds_to_customer, ...WINDOWS[name] }) });
  const held = new Set(readFileSync(`${build}/index_bg.wasm`, "latin1").match(/bench_[a-z]+(?=\.[0-9a-f]{8})/g));
  const wanted = Object.keys(WINDOWS[name] ?? {});
  if (held.size !== wanted.length) throw new Error(`the build has the windows ${[...held]} and not ${wanted}`);
  return build;
}

async function compare(builds: [string, string], connections: number, full: boolean) {
  const [counted, not] = builds.map((build) => ({ target: "gateward" as const, options: { build, vars: PAIRING_VARS } }));
  if (counted === undefined || not === undefined) throw new Error("two builds are compared");
  return withWorkers([counted, not], async ([first, second]) => {
    if (first === undefined || second === undefined) throw new Error("two workers were started");
    for (const worker of [first, second]) await warmUp(worker);
    const load = { connections, seconds: ROUND_SECONDS };
    // The objects of windows start.
    await mixedRound(first, calls, expected, { ...load, seconds: 5 });
    const rounds: Round[] = await pairedRounds([first, second], full ? PAIRS.full : PAIRS.short, (worker) => mixedRound(worker, calls, expected, load));
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
const none = buildWith("none");
for (const name of ["agent", "tenant"]) {
  const build = buildWith(name);
  for (const connections of CONNECTIONS) console.log(JSON.stringify({ windows: name, ...(await compare([build, none], connections, full)) }));
}
