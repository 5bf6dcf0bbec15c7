// A CPU profile of the worker while it is loaded: where its isolate spends its time.
//
//   npx node bench/edge/profile.ts [build] [--kind allow_read] [--connections 16] [--seconds 5]
//                               [--target gateward|floor] [--out target/profile.cpuprofile]
//
// The file opens in Chrome's developer tools. Functions in Wasm have names only if the build has its name
// section: copy the directory, and replace its `index_bg.wasm` with its `named.wasm`. What runs outside the
// worker's isolate (workerd's HTTP and SQLite, and D1, which is another isolate) counts as `(program)` or not
// at all.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { BUILD } from "../../tests/support/miniflare.ts";
import { KIND_NAMES } from "./kinds.ts";
import { closedRound, warmUp } from "./load.ts";
import { withWorker } from "./workers.ts";

interface Node {
  id: number;
  callFrame: { functionName: string; url: string; lineNumber: number };
  children?: number[];
}

/** What is used of the Chrome DevTools Protocol's `Profiler.Profile`. */
interface Profile {
  nodes: Node[];
  /** Ids of nodes. */
  samples: number[];
  /** Microseconds before each sample. */
  timeDeltas: number[];
}

/** Fine enough to see functions of a few microseconds, coarse enough to disturb little. */
const SAMPLING_INTERVAL_US = 200;
const SHOWN_FUNCTIONS = 40;
const MAX_NAME_CHARS = 160;

const { values, positionals } = parseArgs({
  options: {
    kind: { type: "string", default: "allow_read" },
    connections: { type: "string", default: "16" },
    seconds: { type: "string", default: "5" },
    target: { type: "string", default: "gateward" },
    out: { type: "string", default: "target/profile.cpuprofile" },
  },
  allowPositionals: true,
});
const kind = KIND_NAMES.find((name) => name === values.kind);
const { target } = values;
if (kind === undefined) throw new Error(`--kind must be one of ${KIND_NAMES.join(", ")}`);
if (target !== "gateward" && target !== "floor") throw new Error("--target must be `gateward` or `floor`");
const load = { connections: Number(values.connections), seconds: Number(values.seconds) };

await withWorker(target, { build: positionals[0] ?? BUILD, inspectorPort: 0 }, async (worker) => {
  await warmUp(worker);
  const inspector = await connect(await worker.inspectorUrl());
  await inspector.send("Profiler.enable");
  await inspector.send("Profiler.setSamplingInterval", { interval: SAMPLING_INTERVAL_US });
  await inspector.send("Profiler.start");
  const round = await closedRound(worker, kind, load);
  const { profile } = (await inspector.send("Profiler.stop")) as { profile: Profile };
  inspector.close();
  writeFileSync(values.out, JSON.stringify(profile));
  console.log(`${target}, ${kind}, ${load.connections} connections, under the profiler: ${JSON.stringify(round)}`);
  console.log(`written to ${values.out}`);
  print(profile);
});

/** Self time by function, as shares of the time that was not `(idle)`. */
function print({ nodes, samples, timeDeltas }: Profile): void {
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)));
  const names = new Map(nodes.map((node) => [node.id, nameOf(node, parents)]));
  const selfUs = new Map<string, number>();
  let total = 0;
  // A delta is the time from the sample before: that sample's function ran meanwhile.
  samples.forEach((id, at) => {
    const us = timeDeltas[at + 1] ?? 0;
    const name = names.get(id) ?? "?";
    if (name === "(idle)") return;
    selfUs.set(name, (selfUs.get(name) ?? 0) + us);
    total += us;
  });
  console.log(`${(total / 1_000).toFixed(0)} ms not idle\n\n  self ms  share  function`);
  const largest = [...selfUs].sort(([, a], [, b]) => b - a).slice(0, SHOWN_FUNCTIONS);
  for (const [name, us] of largest) {
    console.log(`${(us / 1_000).toFixed(1).padStart(9)} ${((us * 100) / total).toFixed(1).padStart(5)}%  ${name.slice(0, MAX_NAME_CHARS)}`);
  }
}

/** The function and its place. A function of the runtime has neither a name nor a place, so its caller is added. */
function nameOf(node: Node, parents: Map<number, Node>): string {
  const { functionName, url, lineNumber } = node.callFrame;
  const name = functionName === "" ? "(anonymous)" : functionName;
  if (url !== "" && !url.startsWith("wasm:")) return `${name} ${url.split("/").at(-1)}:${lineNumber + 1}`;
  const parent = parents.get(node.id);
  return functionName === "" && parent !== undefined ? `${name} < ${nameOf(parent, parents)}` : name;
}

/** A session with the worker's isolate: the one that the inspector lists as the user's. */
async function connect(base: URL) {
  const list = (await (await fetch(`http://${base.host}/json`)).json()) as { id: string }[];
  const found = list.find(({ id }) => id.startsWith("core:user:"));
  if (found === undefined) throw new Error(`the inspector lists no worker: ${JSON.stringify(list)}`);
  const socket = new WebSocket(`ws://${base.host}/${found.id}`);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("the inspector cannot be reached")));
  });
  let next = 0;
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  socket.addEventListener("message", ({ data }) => {
    const { id, result, error } = JSON.parse(String(data));
    const waiter = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) waiter?.resolve(result);
    else waiter?.reject(new Error(error.message));
  });
  return {
    send(method: string, params: Record<string, unknown> = {}): Promise<unknown> {
      next += 1;
      socket.send(JSON.stringify({ id: next, method, params }));
      const id = next;
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    close: () => socket.close(),
  };
}
