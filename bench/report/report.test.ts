import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { PAGE, report, runOfPage } from "./report.mjs";
import { pairedRatios, readRun, trendOf, type Round } from "./results.mjs";
import { count, duration, figure, ratioOf, spread, spreadOf } from "./statistics.mjs";
import { judge, judgeAll, THRESHOLDS, type Threshold } from "./thresholds.mjs";

const FIXTURE = fileURLToPath(new URL("fixture", import.meta.url));

/** A round with the throughput in question. */
function round(target: "gateward" | "floor", connections: number, number: number, throughput_per_s: number): Round {
  const kind = target === "floor" ? "floor" : "allow_read";
  const rest = { requests: 1, p50_ms: 1, p95_ms: 1, p99_ms: 1, errors: 0, unexpected: 0, cpu_ms_per_request: 1 };
  return { target, kind, connections, round: number, throughput_per_s, ...rest };
}

describe("figures", () => {
  it.each([
    [0, "0"],
    [0.81249, "0.812"],
    [0.0004567, "0.000457"],
    [45.67, "45.7"],
    [999.6, "1,000"],
    [12_345, "12,300"],
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

  it("numbers that were set keep every digit", () => expect(count(1_234_567)).toBe("1,234,567"));

  it.each([
    [[], undefined],
    [[3], { median: 3, low: 3, high: 3 }],
    [[10, 9, 2], { median: 9, low: 2, high: 10 }],
    [[4, 1, 3, 2], { median: 2.5, low: 1, high: 4 }],
  ])("the spread of %j", (values, expected) => expect(spreadOf(values)).toEqual(expected));

  it("a spread shows its bounds, if it has any", () => {
    expect(spread({ median: 2, low: 1, high: 3 })).toBe("2.00 (1.00–3.00)");
    expect(spread({ median: 2, low: 2, high: 2 })).toBe("2.00");
    expect(spread(undefined)).toBe("–");
  });

  it("a ratio of unpaired figures is as wide as both allow", () => {
    expect(ratioOf({ median: 6, low: 4, high: 8 }, { median: 2, low: 1, high: 4 })).toEqual({
      median: 3,
      low: 1,
      high: 8,
    });
  });
});

describe("paired rounds", () => {
  it.each<{ name: string; rounds: Round[]; expected: { load: number; ratios: number[] }[] }>([
    {
      name: "are divided round by round, not as medians",
      rounds: [
        ...[round("gateward", 50, 1, 50), round("floor", 50, 1, 100)],
        ...[round("floor", 50, 2, 1000), round("gateward", 50, 2, 900)],
      ],
      expected: [{ load: 50, ratios: [0.5, 0.9] }],
    },
    {
      name: "have the same number of connections, lowest first",
      rounds: [
        ...[round("gateward", 100, 1, 80), round("floor", 100, 1, 100)],
        ...[round("gateward", 16, 1, 30), round("floor", 16, 1, 40)],
      ],
      expected: [
        { load: 16, ratios: [0.75] },
        { load: 100, ratios: [0.8] },
      ],
    },
    {
      name: "are neighbours: a round of the floor that was measured at another time is no pair",
      rounds: [
        ...[round("gateward", 1, 1, 90), round("floor", 1, 1, 100)],
        ...[round("floor", 1, 2, 100), round("gateward", 1, 3, 7), round("gateward", 1, 2, 80)],
      ],
      expected: [{ load: 1, ratios: [0.9] }],
    },
    {
      name: "do not exist without the floor",
      rounds: [round("gateward", 1, 1, 90)],
      expected: [],
    },
  ])("$name", ({ rounds, expected }) =>
    expect(pairedRatios(rounds, "allow_read", "throughput_per_s")).toEqual(expected),
  );
});

describe("a trend", () => {
  const curve = (...points: [number, number[]][]) => ({
    name: "rows",
    x_label: "",
    y_label: "",
    points: points.map(([x, values]) => ({ x, values })),
  });

  it("is the last point over the first, by x, and the noise is the points' median width", () => {
    const found = trendOf(curve([1000, [45, 50, 55]], [0, [90, 100, 120]], [10, [100, 100, 101]]));
    expect(found?.trend).toEqual({ median: 0.5, low: 0.45, high: 0.55 });
    expect(found?.noise).toBeCloseTo(0.2);
  });

  it.each([
    ["one point", curve([0, [1, 2]])],
    ["one round", curve([0, [1]], [10, [1]])],
    ["nothing", curve()],
  ])("is not there for %s", (_, points) => expect(trendOf(points)).toBeUndefined());
});

describe("thresholds", () => {
  const results = readRun(FIXTURE);
  const instructions = (name: string, of = "gateward") => ({ file: "instructions" as const, name, of });
  const policyGrowth = {
    kind: "ratio" as const,
    numerator: instructions("policy_eval_10000_policies"),
    denominator: instructions("policy_eval_10_policies"),
  };

  it.each<
    [
      string,
      Pick<Threshold, "measure" | "min" | "max" | "within">,
      { measured: string; bound?: string; met: boolean | undefined },
    ]
  >([
    [
      "a highest ratio that is kept",
      { measure: policyGrowth, max: 1.5 },
      { measured: "1.20×", bound: "≤ 1.50×", met: true },
    ],
    ["a highest ratio exactly", { measure: policyGrowth, max: 1.2 }, { measured: "1.20×", met: true }],
    ["a highest ratio that is passed", { measure: policyGrowth, max: 1.19 }, { measured: "1.20×", met: false }],
    [
      "a lowest ratio that is missed",
      {
        measure: {
          kind: "ratio",
          numerator: instructions("canonicalize_flat", "sorted_value"),
          denominator: instructions("canonicalize_flat"),
        },
        min: 3,
      },
      { measured: "2.00×", bound: "≥ 3.00×", met: false },
    ],
    [
      "an operation that was not measured",
      { measure: { ...policyGrowth, numerator: instructions("no_such_operation") }, max: 1.5 },
      { measured: "not measured", bound: "≤ 1.50×", met: undefined },
    ],
    [
      "throughput, at its worst number of connections",
      { measure: { kind: "paired", decision: "allow_read", value: "throughput_per_s" }, min: 0.7 },
      { measured: "0.750× (0.700×–0.800×)", met: true },
    ],
    [
      "CPU, at its worst number of connections",
      { measure: { kind: "paired", decision: "allow_read", value: "cpu_ms_per_request" }, max: 1.2 },
      { measured: "1.25×", met: false },
    ],
    [
      "a kind of decision without rounds",
      { measure: { kind: "paired", decision: "redact", value: "throughput_per_s" }, min: 0.7 },
      { measured: "not measured", met: undefined },
    ],
    [
      "a trend within the noise",
      { measure: { kind: "trend", curve: "d1_rows", to: 1_000_000 }, within: "noise" },
      { measured: "0.982× (0.976×–1.02×)", bound: "≥ 0.951×, ≤ 1.05×", met: true },
    ],
    [
      "a trend beyond the noise",
      { measure: { kind: "trend", curve: "agents", to: 10_000 }, within: "noise" },
      { measured: "0.494× (0.488×–0.500×)", met: false },
    ],
    [
      "a trend of a curve that does not reach far enough",
      { measure: { kind: "trend", curve: "agents", to: 10_001 }, within: "noise" },
      { measured: "not measured", bound: "within the noise", met: undefined },
    ],
    [
      "cold starts, taken in turn",
      { measure: { kind: "starts", policies: 10_000, against: 10 }, max: 1.5 },
      { measured: "1.20× (1.20×–1.31×)", met: true },
    ],
    [
      "the size",
      { measure: { kind: "size" }, max: 1_200_000 },
      { measured: "1.23 MB", bound: "≤ 1.20 MB", met: false },
    ],
  ])("%s", (_, threshold, expected) => {
    expect(judge({ name: "n", target: "t", stable: true, ...threshold }, results)).toMatchObject(expected);
  });

  it("what is stable needs no more than instruction counts and the size", () => {
    for (const { name, measure, stable } of THRESHOLDS) {
      const files = measure.kind === "ratio" ? [measure.numerator.file, measure.denominator.file] : [measure.kind];
      expect(stable, name).toBe(files.every((file) => file === "instructions" || file === "size"));
    }
  });

  it("have a bound each, and a name of their own", () => {
    for (const { name, min, max, within } of THRESHOLDS)
      expect(
        [min, max, within].some((bound) => bound !== undefined),
        name,
      ).toBe(true);
    expect(new Set(THRESHOLDS.map(({ name }) => name)).size).toBe(THRESHOLDS.length);
  });

  it("nothing counts as met that was not measured", () => {
    expect(judgeAll({}).map(({ met }) => met)).toEqual(judgeAll({}).map(() => undefined));
  });

  it("the targets that are times are judged natively", () => {
    const times = judgeAll(results, []);
    expect(times.map(({ name, met }) => [name, met])).toEqual([
      ["deny_malformed_token", true],
      ["deny_forged_token", false],
    ]);
  });
});

describe("the page", () => {
  it("is the same bytes for the same run, plots too", async () => {
    const [first, second] = [await report(FIXTURE), await report(FIXTURE)];
    expect(second).toEqual(first);
    expect([...first.plots.keys()]).toContain("throughput");
    for (const svg of first.plots.values()) expect(svg).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
  });

  it("says what its figures come from, and shows each plot that was drawn", async () => {
    const { markdown, plots } = await report(FIXTURE);
    for (const text of [
      "bench/report/fixture",
      "make bench",
      "Example Processor",
      "0123456789abcdef",
      "workerd 1.20261117.1",
    ]) {
      expect(markdown).toContain(text);
    }
    for (const name of plots.keys()) expect(markdown).toContain(`(../bench/report/fixture/${name}.svg)`);
    expect(markdown).not.toMatch(/NaN|undefined|Infinity/);
  });

  it.skipIf(!existsSync(PAGE))("is what its run generates", async () => {
    expect(readFileSync(PAGE, "utf8")).toBe((await report(runOfPage())).markdown);
  });
});
