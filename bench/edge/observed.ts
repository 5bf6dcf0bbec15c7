// What it costs to observe a proxied answer of 64 KB of text, compared with the same answer outside
// of a run.
//
//   npx node bench/edge/observed.ts [build]
//
// Both workers are Gateward. The agent of the first has a credential of a harness and names a run.
import { medianInterval } from "../report/statistics.ts";
import { AGENT } from "./kinds.ts";
import { forwardedRound, warmUpForwarded } from "./load.ts";
import { pairedRounds } from "./pairs.ts";
import { MARK, TEXT_BYTES, TEXT_NAMES, withUpstream } from "./proxied.ts";
import { headersOf, mintCredential, programArguments, register, type Worker, withWorkers } from "./workers.ts";

const PATH = "/mcp/mail";
const SECONDS = 0.9;
const CONNECTIONS = 16;
const PAIRS = { min: 12, max: 40 };
const EXPECTED = { status: 200, text: MARK, fields: {} };

async function observed(build: string): Promise<void> {
  const credential = mintCredential(AGENT);
  const headers = { ...headersOf(credential.token), accept: "application/json, text/event-stream" };
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
      for (const form of TEXT_NAMES) {
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "read", arguments: { bytes: TEXT_BYTES, form } } });
        const callOf = (worker: Worker) => ({ body, headers: worker === observing ? { ...headers, "x-gateward-run-id": form } : headers });
        for (const worker of workers) await warmUpForwarded(worker, PATH, callOf(worker), EXPECTED);
        const rounds = await pairedRounds([observing, plain], PAIRS, (worker) => forwardedRound(worker, PATH, callOf(worker), EXPECTED, { connections: CONNECTIONS, seconds: SECONDS }));
        const [first, second] = [rounds.filter((_, at) => at % 2 === 0), rounds.filter((_, at) => at % 2 === 1)];
        const ratio = (figure: "cpu_ms_per_request" | "throughput_per_s") => medianInterval(first.map((round, at) => round[figure] / (second[at]?.[figure] ?? Number.NaN)));
        const shown = { form, pairs: first.length, cpu: ratio("cpu_ms_per_request"), throughput: ratio("throughput_per_s") };
        console.log(JSON.stringify(shown));
      }
    }),
  );
}

await observed(programArguments().build);
