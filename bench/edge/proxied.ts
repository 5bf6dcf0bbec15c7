// Calls through Gateward's proxies, beside a floor that forwards them too: proxied.json.
//
//   npx node bench/edge/proxied.ts [build] [--full]
//
// MCP's `tools/call` and HTTP requests, to one upstream on loopback in a process of its own. Its answers have
// 1 KB or 1 MB, whole or as a stream.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Proxied } from "../report/results.ts";
import { forwardedRound, warmUpForwarded } from "./load.ts";
import { pairedRounds, type Pairing } from "./pairs.ts";
import { demoHeaders, type Options, programArguments, register, type Worker, withWorkers } from "./workers.ts";

const KB = 1_024;
const MB = 1_024 * KB;
/** Bytes of a piece of a streamed answer. */
const PIECE_BYTES = 64 * KB;
/** Bytes of an answer that people could read. */
export const TEXT_BYTES = 64 * KB;
/** A little less than the flush interval, as in edge.ts. */
const SECONDS = 0.9;
/** In each answer, at its end, and in nothing else. */
export const MARK = "the-end-of-the-answer";

/** By name: what is sent, and what the upstream answers. */
const CALLS = {
  tools_call: { proxy: "mcp", bytes: KB, streamed: false },
  tools_call_1mb: { proxy: "mcp", bytes: MB, streamed: false },
  tools_call_streamed: { proxy: "mcp", bytes: KB, streamed: true },
  tools_call_streamed_1mb: { proxy: "mcp", bytes: MB, streamed: true },
  http: { proxy: "http", bytes: KB, streamed: false },
  http_1mb: { proxy: "http", bytes: MB, streamed: false },
  http_streamed: { proxy: "http", bytes: KB, streamed: true },
  http_streamed_1mb: { proxy: "http", bytes: MB, streamed: true },
} as const;
type CallName = keyof typeof CALLS;

/** These have a target, so they are measured until their ratio is exact. */
const WITH_TARGET: CallName[] = ["tools_call", "http_streamed_1mb"];
const CONNECTIONS = [1, 16];

interface Form {
  withTarget: Pairing;
  others: Pairing;
}
const SHORT: Form = { withTarget: { min: 12, max: 40 }, others: { min: 3, max: 3 } };
const FULL: Form = { withTarget: { min: 30, max: 100 }, others: { min: 12, max: 40 } };

export async function proxied({ full = false, build }: { full?: boolean; build?: string } = {}): Promise<Proxied> {
  const { withTarget, others } = full ? FULL : SHORT;
  return withUpstream((upstream) =>
    withProxies(upstream, build, async (workers) => {
      const result: Proxied = { seconds_per_round: SECONDS, rounds: [] };
      for (const call of Object.keys(CALLS) as CallName[]) {
        const [path, request, expected] = loadOf(call);
        for (const worker of workers) await warmUpForwarded(worker, path, request, expected);
        for (const connections of CONNECTIONS) {
          const pairs = WITH_TARGET.includes(call) ? withTarget : others;
          const rounds = await pairedRounds(workers, pairs, (worker) => forwardedRound(worker, path, request, expected, { connections, seconds: SECONDS }));
          result.rounds.push(...rounds.map((round) => ({ call, connections, ...round })));
        }
      }
      return result;
    }),
  );
}

/** Runs with Gateward and the floor, whose calls go to the upstream. */
export function withProxies<T>(upstream: string, build: string | undefined, run: (workers: [Worker, Worker]) => Promise<T>, further: Options = {}): Promise<T> {
  const vars = { LOCAL_TARGETS: "true", UPSTREAM: upstream, ...further.vars };
  const options: Options = { ...further, vars, floor: "proxied", ...(build !== undefined && { build }) };
  return withWorkers([{ target: "gateward", options }, { target: "floor", options }], async ([gateward, floor]) => {
    if (gateward === undefined || floor === undefined) throw new Error("two workers were started");
    await register(gateward.db, {
      servers: [
        { server: "mcp-server", kind: "mcp", trust: "trusted", upstream: { url: `${upstream}/mcp`, local: true } },
        { server: "http-api", kind: "http", trust: "trusted", upstream: { url: upstream, local: true, routes: [{ method: "POST", path: "/items/{size}/{form}", tool: "create_item" }] } },
      ],
      tools: [
        { server: "mcp-server", tool: "record", mutates: false, risk: "low" },
        { server: "http-api", tool: "create_item", mutates: false, risk: "low" },
      ],
    });
    return run([gateward, floor]);
  });
}

/** Path, request and expected answer of a call. */
export function loadOf(call: CallName) {
  const { proxy, bytes, streamed } = CALLS[call];
  const form = streamed ? "streamed" : "whole";
  const headers = { ...demoHeaders(), accept: "application/json, text/event-stream" };
  const expected = { status: 200, text: MARK, fields: {} };
  if (proxy === "http") return [`/http/http-api/items/${bytes}/${form}`, { headers, body: JSON.stringify({ a: 1 }) }, expected] as const;
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "record", arguments: { bytes, form } } };
  return ["/mcp/mcp-server", { headers, body: JSON.stringify(message) }, expected] as const;
}

/** Runs with the upstream in a process of its own: this one generates the load. */
export async function withUpstream<T>(run: (url: string) => Promise<T>): Promise<T> {
  const child = fork(import.meta.filename, ["--upstream"]);
  try {
    const [port] = await once(child, "message");
    return await run(`http://127.0.0.1:${port}`);
  } finally {
    child.kill();
  }
}

const PARAGRAPH =
  "The quarterly review went well, and most of the open questions were answered during the meeting. Alice Miller " +
  "will send the remaining figures to the finance team before the end of the week. Please tell me whether the second " +
  "chapter is clear enough for readers who do not know the project.\n";

/** Pieces of ordinary text: a report, or a list of mails with addresses, links, dates and numbers that change. */
const TEXTS = {
  report: (at: number) => `${at}. ${PARAGRAPH}`,
  mails: (at: number) =>
    `- id: '${at}'\n  sender: user.${at}@example.com\n  date: 2026-05-${10 + (at % 20)} 10:30\n  body: |\n    ${PARAGRAPH}` +
    `    See https://wiki.example.com/drafts/${at}.\n`,
};
export const TEXT_NAMES = Object.keys(TEXTS) as (keyof typeof TEXTS)[];

function textResult(name: keyof typeof TEXTS): string {
  let text = "";
  for (let at = 1; text.length < TEXT_BYTES; at += 1) text += TEXTS[name](at);
  return JSON.stringify({ jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: text.slice(0, TEXT_BYTES) + MARK }] } });
}

/** The upstream. What it answers stands in the path, or in the arguments of `tools/call`. */
function serveUpstream(): void {
  const filler = (bytes: number) => "x".repeat(bytes);
  const result = (bytes: number) => JSON.stringify({ jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: filler(bytes) + MARK }] } });
  const pieces = (text: string) => Array.from({ length: Math.ceil(text.length / PIECE_BYTES) }, (_, at) => text.slice(at * PIECE_BYTES, (at + 1) * PIECE_BYTES));
  // Made once: making them would cost more than all the rest.
  const answers = new Map<string, { type: string; whole?: string; pieces?: string[] }>();
  for (const bytes of [KB, MB]) {
    const item = JSON.stringify({ filler: filler(bytes), end: MARK });
    // As servers stream: many events. The last one is the answer.
    const notification = `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: filler(Math.min(bytes, PIECE_BYTES) / 2) } })}\n\n`;
    const events = Array.from({ length: Math.round(bytes / notification.length) }, () => notification);
    answers.set(`mcp ${bytes} whole`, { type: "application/json", whole: result(bytes) });
    answers.set(`mcp ${bytes} streamed`, { type: "text/event-stream", pieces: [...events, `event: message\ndata: ${result(16)}\n\n`] });
    answers.set(`http ${bytes} whole`, { type: "application/json", whole: item });
    answers.set(`http ${bytes} streamed`, { type: "application/json", pieces: pieces(item) });
  }
  for (const name of TEXT_NAMES) answers.set(`mcp ${TEXT_BYTES} ${name}`, { type: "application/json", whole: textResult(name) });
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += chunk));
    request.on("end", () => {
      const [, , bytes, form] = (request.url ?? "").split("/");
      const { arguments: asked } = request.url === "/mcp" ? JSON.parse(text).params : { arguments: undefined };
      const answer = answers.get(asked === undefined ? `http ${bytes} ${form}` : `mcp ${asked.bytes} ${asked.form}`);
      if (answer === undefined) return response.writeHead(404).end();
      response.writeHead(200, { "content-type": answer.type, ...(answer.whole !== undefined && { "content-length": answer.whole.length }) });
      for (const piece of answer.pieces ?? []) response.write(piece);
      response.end(answer.whole);
    });
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
}

if (process.argv.includes("--upstream")) serveUpstream();
else if (import.meta.main) console.log(JSON.stringify(await proxied(programArguments()), null, 2));
