import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import type { Paired } from "../edge/pairs.ts";
import { PAGE, report, runOfPage } from "./generate.ts";
import { page } from "./page.ts";
import { pairRatios, readRun, trendOf } from "./results.ts";
import { duration, figure, medianInterval, ratioOf, spread, spreadOf } from "./statistics.ts";
import { assertKept, judge, judgeAll, type Threshold, THRESHOLDS } from "./thresholds.ts";

const FIXTURE = join(import.meta.dirname, "fixture");

describe("figures", () => {
  it.each([
    [0, "0"],
    [0.81249, "0.812"],
    [0.0004567, "0.000457"],
    [45.67, "45.7"],
    [999.6, "1,000"],
    [1_234_567, "1,230,000"],
    [-0.05, "-0.0500"],
    [NaN, "–"],
    [Infinity, "–"],
  ])("%d is written %s", (value, text) => expect(figure(value)).toBe(text));

  it.each([
    [151, "151 ns"],
    [2_345, "2.35 µs"],
    [25_100_000, "25.1 ms"],
    [3e9, "3.00 s"],
  ])("%d ns is written %s", (ns, text) => expect(duration(ns)).toBe(text));

  it.each([
    [{ median: 2, low: 1, high: 3 }, "2.00 (1.00–3.00)"],
    [{ median: 2, low: 2, high: 2 }, "2.00"],
    [undefined, "–"],
  ])("%j is written %s", (value, text) => expect(spread(value)).toBe(text));

  it.each([
    [[], undefined],
    [[10, 9, 2], { median: 9, low: 2, high: 10 }],
    [[4, 1, 3, 2], { median: 2.5, low: 1, high: 4 }],
  ])("the spread of %j", (values, expected) => expect(spreadOf(values)).toEqual(expected));

  // The ranks are those of the tables of the sign test, for 95 %.
  it.each([
    [0, undefined],
    [1, [1, 1]],
    [5, [1, 5]],
    [6, [1, 6]],
    [9, [2, 8]],
    [20, [6, 15]],
    [40, [14, 27]],
    [100, [40, 61]],
  ])("the median of %i values has an interval between ranks", (length, expected) => {
    const values = Array.from({ length }, (_, at) => at + 1).toSorted((a, b) => (a * 7) % 101 - ((b * 7) % 101));
    const found = medianInterval(values);
    expect(found && [found.low, found.high]).toEqual(expected);
    expect(found?.median).toBe(length === 0 ? undefined : (length + 1) / 2);
  });

  it("a ratio of unpaired figures has the widest bounds that both allow", () => {
    expect(ratioOf({ median: 6, low: 4, high: 8 }, { median: 2, low: 1, high: 4 })).toEqual({ median: 3, low: 1, high: 8 });
  });
});

function round(target: string, number: number, throughput_per_s: number): Paired<string> {
  return { target, round: number, throughput_per_s, requests: 1, p50_ms: 1, p95_ms: 1, p99_ms: 1, errors: 0, cpu_ms_per_request: 1 };
}

describe("the ratios of pairs", () => {
  it.each([
    ["are round by round, in either order", [round("gateward", 1, 50), round("floor", 1, 100), round("floor", 2, 1_000), round("gateward", 2, 900)], [0.5, 0.9]],
    ["leave out a round whose pair lies elsewhere", [round("gateward", 1, 90), round("floor", 1, 100), round("floor", 2, 100), round("gateward", 3, 7), round("gateward", 2, 80)], [0.9]],
    ["are none without the floor", [round("gateward", 1, 90)], []],
    ["are also those with limits over those without", [round("limited", 1, 90), round("unlimited", 1, 100), round("unlimited", 2, 100), round("limited", 2, 80)], [0.9, 0.8]],
    ["are none of rounds that are not compared", [round("limited", 1, 90), round("floor", 1, 100)], []],
  ])("%s", (_, rounds, expected) => expect(pairRatios(rounds, "throughput_per_s")).toEqual(expected));
});

describe("a trend", () => {
  const curve = (...points: [number, number[]][]) => ({ points: points.map(([x, values]) => ({ x, values })) });

  it("is the last point over the first, by x, and the noise is the points' median width", () => {
    const found = trendOf(curve([1000, [45, 50, 55]], [0, [90, 100, 120]], [10, [100, 100, 101]]));
    expect(found?.trend).toEqual({ median: 0.5, low: 0.45, high: 0.55 });
    expect(found?.noise).toBeCloseTo(0.2);
  });

  it.each([
    ["one point", curve([0, [1, 2]])],
    ["one round", curve([0, [1]], [10, [1]])],
    ["nothing", curve()],
  ])("is undefined for %s", (_, points) => expect(trendOf(points)).toBeUndefined());
});

describe("thresholds", () => {
  const results = readRun(FIXTURE);
  const operation = (file: "core" | "instructions", name: string, of = "gateward") => ({ file, name, of });
  const growth = (name = "policy_eval_10000_policies") => ({
    kind: "ratio" as const,
    numerator: operation("instructions", name),
    denominator: operation("instructions", "policy_eval_10_policies"),
  });
  const paired = (file: "edge" | "proxied", call: string, figure: "throughput_per_s" | "cpu_ms_per_request", ...connections: number[]) => ({ kind: "paired" as const, file, call, figure, connections });
  const trend = (curve: string, to: number) => ({ kind: "trend" as const, curve, to });

  it.each<[string, Pick<Threshold, "measure" | "min" | "max" | "within" | "full">, { measured: string; bound?: string; verdict: string; fails: boolean }]>([
    ["a highest ratio that is kept", { measure: growth(), max: 1.5 }, { measured: "1.20×", bound: "≤ 1.50×", verdict: "met", fails: false }],
    ["a highest ratio that is just kept", { measure: growth(), max: 1.2 }, { measured: "1.20×", verdict: "met", fails: false }],
    ["a highest ratio that is passed", { measure: growth(), max: 1.19 }, { measured: "1.20×", verdict: "missed", fails: true }],
    ["a lowest ratio that is missed", { measure: growth(), min: 3 }, { measured: "1.20×", bound: "≥ 3.00×", verdict: "missed", fails: true }],
    ["an operation that was not measured", { measure: growth("no_such_operation"), max: 1.5 }, { measured: "–", bound: "≤ 1.50×", verdict: "not measured", fails: true }],
    ["one that the short form does not measure", { measure: growth("no_such_operation"), max: 1.5, full: true }, { measured: "–", verdict: "not measured", fails: false }],
    ["a time that is kept", { measure: { kind: "time", reference: operation("core", "deny_malformed_token") }, max: 200 }, { measured: "151 ns (148 ns–157 ns)", bound: "≤ 200 ns", verdict: "met", fails: false }],
    ["a time that is passed, by which nothing fails", { measure: { kind: "time", reference: operation("core", "deny_forged_token") }, max: 2_000 }, { measured: "2.35 µs (2.30 µs–2.44 µs)", verdict: "missed", fails: false }],
    ["throughput, at its worst number of connections", { measure: paired("edge", "allow_read", "throughput_per_s", 1, 50), min: 0.7 }, { measured: "0.750× (0.700×–0.800×)", verdict: "met", fails: false }],
    ["processor time, at its worst number of connections", { measure: paired("edge", "allow_read", "cpu_ms_per_request", 1, 50), max: 1.2 }, { measured: "1.25×", verdict: "missed", fails: true }],
    ["a number of connections that was not measured", { measure: paired("edge", "allow_read", "throughput_per_s", 1, 16), min: 0.7 }, { measured: "–", verdict: "not measured", fails: true }],
    ["a proxied call", { measure: paired("proxied", "tools_call", "throughput_per_s", 1), min: 0.75 }, { measured: "0.600×", verdict: "missed", fails: true }],
    ["a load with a call that was not answered", { measure: paired("proxied", "tools_call", "throughput_per_s", 1, 16), min: 0.5 }, { measured: "–", verdict: "not measured", fails: true }],
    ["a trend within the noise", { measure: trend("d1_rows", 1_000_000), within: "noise" }, { measured: "0.982× (0.976×–1.02×)", bound: "≥ 0.951×, ≤ 1.05×", verdict: "met", fails: false }],
    ["a trend beyond the noise", { measure: trend("agents", 10_000), within: "noise" }, { measured: "0.494× (0.488×–0.500×)", verdict: "missed", fails: true }],
    ["a trend of a curve that ends before", { measure: trend("agents", 10_001), within: "noise", full: true }, { measured: "–", verdict: "not measured", fails: false }],
    ["cold starts, start by start", { measure: { kind: "cold_start", policies: 10_000, against: 10 }, max: 1.5 }, { measured: "1.20× (1.20×–1.31×)", verdict: "met", fails: false }],
    ["isolate starts, start by start", { measure: { kind: "isolate_start" }, max: 7.9 }, { measured: "8.00× (7.00×–9.50×)", verdict: "missed", fails: true }],
    ["the size", { measure: { kind: "size" }, max: 1_200_000 }, { measured: "1.23 MB", bound: "≤ 1.20 MB", verdict: "missed", fails: true }],
  ])("%s", (_, threshold, expected) => {
    expect(judge({ name: "n", target: "t", ...threshold }, results)).toMatchObject(expected);
  });

  it("the full form must measure what the short form need not", () => {
    const threshold: Threshold = { name: "n", target: "t", measure: growth("no_such_operation"), max: 1.5, full: true };
    expect(judge(threshold, results, { full: true }).fails).toBe(true);
  });

  it("a run that misses one fails, and says which", () => {
    const verdict = { name: "size", target: "t", bound: "b", measured: "m", verdict: "missed" as const, fails: true };
    expect(() => assertKept([{ ...verdict, name: "speed", fails: false }, verdict])).toThrow("targets are not met: size (missed)");
    expect(() => assertKept([{ ...verdict, fails: false }])).not.toThrow();
  });

  it("stable ones need no more than instruction counts and the size", () => {
    for (const { name, measure, stable = false } of THRESHOLDS) {
      const files: string[] = measure.kind === "ratio" ? [measure.numerator.file, measure.denominator.file] : [measure.kind];
      expect(stable, name).toBe(files.every((file) => file === "instructions" || file === "size"));
    }
  });

  it("have a bound each, and a name of their own", () => {
    for (const { name, min, max, within } of THRESHOLDS) expect([min, max, within].some((bound) => bound !== undefined), name).toBe(true);
    expect(new Set(THRESHOLDS.map(({ name }) => name)).size).toBe(THRESHOLDS.length);
  });

  it("nothing counts as met that was not measured", () => {
    expect(new Set(judgeAll({}).map(({ verdict }) => verdict))).toEqual(new Set(["not measured"]));
  });
});

describe("the page", () => {
  it("is the same bytes for the same run, plots too", async () => {
    const [first, second] = [await report(FIXTURE), await report(FIXTURE)];
    expect(second).toEqual(first);
    expect([...first.plots.keys()]).toEqual(["ratio", "latency", "growth"]);
    for (const svg of first.plots.values()) expect(svg).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
  });

  it("names the run that its figures come from, and shows each plot that was drawn", async () => {
    const { markdown, plots } = await report(FIXTURE);
    for (const text of ["bench/report/fixture", "make bench", "Example Processor", "0123456789abcdef", "workerd 1.20261117.1"]) expect(markdown).toContain(text);
    for (const name of plots.keys()) expect(markdown).toContain(`(../bench/report/fixture/${name}.svg)`);
    expect(markdown).not.toMatch(/NaN|undefined|Infinity/);
  });

  it.each([
    ["1,235", false],
    ["1,236", true],
  ])("marks figures of another build than the one of the notes, with %s KB: %s", (described, marked) => {
    const notes = `| all that is deployed | 5,152 KB | ${described} KB |`;
    const markdown = page(readRun(FIXTURE), { run: "r", plots: [], notes });
    expect(markdown.includes("measured another build")).toBe(marked);
    expect(/\| met, by another build \|$/m.test(markdown)).toBe(marked);
    expect(/\| met \|$/m.test(markdown)).toBe(!marked);
  });

  it("needs the size in the notes", () => {
    expect(() => page(readRun(FIXTURE), { run: "r", plots: [], notes: "" })).toThrow("make wasm-report");
  });

  it("compares operations with the hash of the same run", async () => {
    const { markdown } = await report(FIXTURE);
    expect(markdown).toMatch(/^\| `limits_check_and_commit` \| Checks .* \| 0\.300× \(0\.285×–0\.315×\) \| 0\.250× \|$/m);
    expect(markdown, "not measured").toMatch(/^\| `scope_lookup` \| Checks .* \| – \| – \|$/m);
  });

  it("shows which share of a call each part has", async () => {
    const { markdown } = await report(FIXTURE);
    expect(markdown).toMatch(/^\| `pipeline_shield` \| inspects .* \| 25\.0 % \| – \|$/m);
    expect(markdown, "not measured").toMatch(/^\| `pipeline_policy` \| evaluates .* \| – \| – \|$/m);
  });

  it("compares calls with limits with calls without, case by case", async () => {
    const { markdown } = await report(FIXTURE);
    expect(markdown).toMatch(/^\| `eight_of_agent` \| Eight .* \| 0\.850 \(0\.800–0\.900\) \| 1\.20 \(1\.10–1\.30\) \| 2 \|$/m);
    expect(markdown).toMatch(/^\| `tenant_not_leased` \| A .* \| 0\.500 \| 2\.00 \| 1 \|$/m);
    expect(markdown, "not measured").toMatch(/^\| `one_of_agent` \| A .* \| – \| – \| 0 \|$/m);
  });
});

test("docs/performance.md is what its run generates", async () => {
  expect(readFileSync(PAGE, "utf8")).toBe((await report(runOfPage())).markdown);
});
