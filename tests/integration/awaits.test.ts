// Everything that the shell awaits outside its isolate has a time limit. This test lists the places.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = "worker/edge/src";

const sources = (extension: string): [string, string][] =>
  readdirSync(ROOT, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(extension))
    .sort()
    .map((file) => [relative(ROOT, join(ROOT, file)), readFileSync(join(ROOT, file), "utf8").replace(/\/\/.*$/gm, "")]);

/** Each match with its file, and how often it occurs. */
function found(extension: string, pattern: RegExp): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [file, text] of sources(extension)) {
    for (const [match] of text.matchAll(pattern)) {
      const place = `${file}: ${match.replace(/\s+/g, "")}`;
      counts[place] = (counts[place] ?? 0) + 1;
    }
  }
  return counts;
}

/** The functions of JavaScript that Rust awaits. Each has a parameter with its time limit. */
const PROMISES: [file: string, name: string, limit: string][] = [
  ["io.rs", "body", "limit_ms"],
  ["io.rs", "read", "limit_ms"],
  ["io.rs", "post", "limit_ms"],
  ["io.rs", "answered", "limit_ms"],
  ["io.rs", "text", "limit_ms"],
  ["io.rs", "bytes", "limit_ms"],
  ["io.rs", "send", "limit_ms"],
  ["io.rs", "ask", "limit_ms"],
  ["io.rs", "query", "limit_ms"],
  ["io.rs", "size", "limit_ms"],
  ["upstream/relay.rs", "begin", "first_byte_ms"],
  ["upstream/relay.rs", "bytes", "idle_ms"],
];

describe("what is awaited outside", () => {
  test("is asked for through these functions, each with a limit", () => {
    const declared = sources(".rs").flatMap(([file, text]) =>
      [...text.matchAll(/\bfn (\w+)\(([^;{]*?)\)\s*->\s*(?:Result<)?(?:js_sys::)?Promise\b/g)].map(([, name, parameters]) => [file, name, parameters] as const),
    );
    expect(declared.map(([file, name]) => `${file} ${name}`).sort()).toEqual(PROMISES.map(([file, name]) => `${file} ${name}`).sort());
    for (const [file, name, limit] of PROMISES) {
      const parameters = declared.find((one) => one[0] === file && one[1] === name)?.[2];
      expect(parameters, `${file} ${name}`).toContain(limit);
    }
  });

  test("becomes a future of Rust's only here", () => {
    expect(found(".rs", /\b(?<!fn )settled\(/g)).toEqual({
      "d1/flush.rs: settled(": 1,
      "d1/mod.rs: settled(": 1,
      "http.rs: settled(": 2,
      "lane/client.rs: settled(": 4,
      "lane/object/webhook.rs: settled(": 1,
      "lane/object/witness.rs: settled(": 1,
      "upstream/relay.rs: settled(": 2,
    });
    expect(found(".rs", /JsFuture::from\(/g)).toEqual({});
  });

  test("is awaited by JavaScript within a limit", () => {
    expect(found(".js", /\.(?:fetch|all|batch|arrayBuffer|text|json)\(|\bfetch\(/g)).toEqual({
      "io.js: .arrayBuffer(": 2,
      "io.js: .text(": 2,
      "io.js: .all(": 2,
      "io.js: .batch(": 1,
      "io.js: .fetch(": 1,
      "io.js: fetch(": 2,
      // The object reads a hop's body, which the worker sent whole.
      "entry.js: .arrayBuffer(": 1,
      // What the runtime calls, and the Rust half of it.
      "entry.js: fetch(": 2,
      "entry.js: .fetch(": 2,
      // Its own timer ends them.
      "upstream/relay.js: .arrayBuffer(": 1,
      "upstream/relay.js: fetch(": 1,
    });
    const [, io] = sources(".js").find(([file]) => file === "io.js") ?? ["", ""];
    for (const awaited of ["request.arrayBuffer()", "response.text()", "response.arrayBuffer()", "hop(env, name, body)", "hop(env, name, body).then(read)", "sent", "ran", "env[binding].prepare(sql).all()"]) {
      expect(io.replace(/\s+/g, " "), awaited).toMatch(new RegExp(`within\\([^;]*${awaited.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}, limitMs`));
    }
  });

  test("is nothing of worker-rs but the alarm, timers, and what goes on after the answer", () => {
    const calls = found(".rs", /\b(?:Fetch|Fetcher|D1Database|Stub|ObjectNamespace|Cache|Kv\w*)\b|\.(?:set_alarm|delete_alarm|get_alarm|fetch_with_str|fetch_with_request)\(/g);
    expect(calls).toEqual({ "lane/object/alarm.rs: .set_alarm(": 4, "lane/object/alarm.rs: .get_alarm(": 1, "lane/object/alarm.rs: .delete_alarm(": 1 });
  });
});
