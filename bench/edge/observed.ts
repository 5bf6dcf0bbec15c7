// What it costs to observe a proxied answer of 64 KB of text, beside the same answer in no run.
//
//   npx node bench/edge/observed.ts [build]
//
// Both workers are Gateward. The agent of the first has a credential of a harness and names a run.
import { medianInterval } from "../report/statistics.ts";
import { AGENT } from "./kinds.ts";
import { forwardedRound, type Round, warmUpForwarded } from "./load.ts";
import { pairedRounds } from "./pairs.ts";
import { MARK, PROSE_BYTES, withUpstream } from "./proxied.ts";
import { headersOf, mintCredential, programArguments, register, type Worker, withWorkers } from "./workers.ts";

const PATH = "/mcp/mail";
const SECONDS = 0.9;
const CONNECTIONS = 16;
const PAIRS = { min: 12, max: 30 };
const EXPECTED = { status: 200, text: MARK, fields: {} };
const MESSAGE = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "read", arguments: { bytes: PROSE_BYTES, form: "prose" } } };

async function observed(build: string): Promise<void> {
  const credential = mintCredential(AGENT);
  const headers = { ...headersOf(credential.token), accept: "application/json, text/event-stream" };
  const call = (fields: object) => ({ headers: { ...headers, ...fields }, body: JSON.stringify(MESSAGE) });
  await withUpstream((upstream) =>
    withWorkers(Array.from({ length: 2 }, () => ({ target: "gateward", options: { build, vars: { LOCAL_TARGETS: "true" } } }) as const), async (workers) => {
      const [observing, plain] = workers as [Worker, Worker];
      for (const worker of workers) {
        await register(worker.db, {
          credentials: [{ credential, agent: AGENT, assigns_runs: worker === observing }],
          servers: [{ server: "mail", kind: "mcp", trust: "untrusted", upstream: { url: `${upstream}/mcp`, local: true } }],
          tools: [{ server: "mail", tool: "read", mutates: false, risk: "low" }],
        });
      }
      const calls = new Map([[observing, call({ "x-gateward-run-id": "bench" })], [plain, call({})]]);
      const callOf = (worker: Worker) => calls.get(worker) ?? call({});
      for (const worker of workers) await warmUpForwarded(worker, PATH, callOf(worker), EXPECTED);
      const rounds = await pairedRounds([observing, plain], PAIRS, (worker) => forwardedRound(worker, PATH, callOf(worker), EXPECTED, { connections: CONNECTIONS, seconds: SECONDS }));
      const ratios = (figure: keyof Round) => Array.from({ length: rounds.length / 2 }, (_, at) => Number(rounds[2 * at]?.[figure]) / Number(rounds[2 * at + 1]?.[figure]));
      const msOf = (of: number) => medianInterval(rounds.filter((_, at) => at % 2 === of).map((round) => round.cpu_ms_per_request))?.median;
      const shown = { observed_cpu_ms: msOf(0), plain_cpu_ms: msOf(1), pairs: rounds.length / 2, cpu: medianInterval(ratios("cpu_ms_per_request")), throughput: medianInterval(ratios("throughput_per_s")) };
      console.log(JSON.stringify(shown, null, 2));
    }),
  );
}

await observed(programArguments().build);
