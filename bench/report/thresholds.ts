// The targets, bench/thresholds.json, and how a run is judged by them.
import { readFileSync } from "node:fs";
import type { Paired } from "../edge/pairs.ts";
import { ascending, pairRatios, type Results, timeOf, trendOf } from "./results.ts";
import { duration, figure, medianInterval, ratioOf, type Spread, spread } from "./statistics.ts";

/** One figure of a run. */
export type Reference = { file: "core" | "wasm" | "instructions" | "verify"; name: string; of: string } | { file: "growth"; after: string };

/** How a threshold's figure is computed. */
export type Measure =
  /** One figure over another. */
  | { kind: "ratio"; numerator: Reference; denominator: Reference }
  /** A time. A miss fails nothing, because a time tells as much about the machine as about the code. */
  | { kind: "time"; reference: Reference }
  /** Gateward's rounds over the floor's, pair by pair; of these numbers of connections, the worst counts. */
  | { kind: "paired"; file: "edge" | "proxied"; call: string; figure: "throughput_per_s" | "cpu_ms_per_request"; connections: number[] }
  /** Starts of one bundle, by its number of policies, over those of another, start by start. */
  | { kind: "cold_start"; policies: number; against: number }
  /** Gateward's starts from when the modules are ready, over the floor's, start by start. */
  | { kind: "isolate_start" }
  /** The end of a growth curve over its beginning; only a curve up to `to` shows it. */
  | { kind: "trend"; curve: string; to: number }
  /** Bytes of the deployed worker, gzipped. */
  | { kind: "size" };

export interface Threshold {
  name: string;
  /** What the figure is, in words. */
  target: string;
  measure: Measure;
  min?: number;
  max?: number;
  /** The bound of a trend is its noise, but at least `min`. */
  within?: "noise";
  /** The figure is the same on every machine, so `make bench-check` holds it. */
  stable?: true;
  /**
   * The bound of `make bench-check`, in place of `min` or `max`. It is the present figure, so that any worse figure
   * fails.
   */
  regression?: number;
  /** Only `make bench-full` measures it. */
  full?: true;
}

/** One line of the table of targets. */
export interface Verdict {
  name: string;
  target: string;
  bound: string;
  measured: string;
  verdict: "met" | "missed" | "not measured";
  /** Whether the run has failed by it. */
  fails: boolean;
}

export const THRESHOLDS: Threshold[] = JSON.parse(readFileSync(new URL("../thresholds.json", import.meta.url), "utf8"));

/** The worst cases (bench/core/src/worst_case.rs and warrants.rs): for each MiB of input, and for compiling a schema. */
const WORST_CASE_NS_PER_MIB = 50e6;
const WORST_CASE_COMPILE_NS = 20e6;
const WORST_CASE = /^worst_case_(?:schema_compile|.*_(\d+)_kib$)/;

/** A threshold for each worst case that was timed. */
function worstCases(results: Results): Threshold[] {
  return (["core", "wasm"] as const).flatMap((file) =>
    (results[file]?.results ?? []).flatMap(({ name, of }): Threshold[] => {
      const found = WORST_CASE.exec(name);
      if (found === null) return [];
      const kib = found[1];
      return [
        {
          name: `${name} (${file})`,
          target: kib === undefined ? "the worst accepted schema" : "the worst accepted input, for each MiB",
          measure: { kind: "time", reference: { file, name, of } },
          max: kib === undefined ? WORST_CASE_COMPILE_NS : (Number(kib) / 1_024) * WORST_CASE_NS_PER_MIB,
        },
      ];
    }),
  );
}

/** The operations, as `<name>/<of>`, whose native times the targets name. */
export function judgedOperations(): string[] {
  const references = THRESHOLDS.flatMap(({ measure }) => (measure.kind === "ratio" ? [measure.numerator, measure.denominator] : measure.kind === "time" ? [measure.reference] : []));
  return references.flatMap((reference) => (reference.file === "core" ? [`${reference.name}/${reference.of}`] : []));
}

function lookUp(results: Results, reference: Reference): Spread | undefined {
  if (reference.file === "growth") return single(results.growth?.memory.find(({ after }) => after === reference.after)?.rss_mb);
  const same = ({ name, of }: { name: string; of: string }) => name === reference.name && of === reference.of;
  if (reference.file === "instructions") return single(results.instructions?.results.find(same)?.instructions);
  const found = results[reference.file]?.results.find(same);
  return found && timeOf(found);
}

function single(value: number | undefined): Spread | undefined {
  return value === undefined ? undefined : { median: value, low: value, high: value };
}

/** The quotients of figures that were measured in turn. */
function pairwise(numerators: number[] = [], denominators: number[] = []): number[] {
  return numerators.slice(0, denominators.length).map((numerator, at) => numerator / (denominators[at] ?? NaN));
}

/** The rounds of a call and of the floor beside it, by number of connections. */
function roundsOf(results: Results, { file, call }: Measure & { kind: "paired" }): Map<number, Paired[]> {
  const rounds: ({ connections: number } & Paired)[] = file === "edge" ? (results.edge?.closed_loop ?? []).filter(({ kind }) => kind === call || kind === "floor") : (results.proxied?.rounds ?? []).filter((round) => round.call === call);
  return Map.groupBy(rounds, ({ connections }) => connections);
}

function valueOf(threshold: Threshold, results: Results): Spread | undefined {
  const { measure } = threshold;
  switch (measure.kind) {
    case "ratio": {
      const [numerator, denominator] = [lookUp(results, measure.numerator), lookUp(results, measure.denominator)];
      return numerator && denominator && ratioOf(numerator, denominator);
    }
    case "time":
      return lookUp(results, measure.reference);
    case "paired": {
      const byConnections = roundsOf(results, measure);
      const spreads = measure.connections.map((connections) => {
        const rounds = byConnections.get(connections) ?? [];
        // A call without an answer took no time, so a round with an error does not count.
        return rounds.some(({ errors }) => errors > 0) ? undefined : medianInterval(pairRatios(rounds, measure.figure));
      });
      const worst = ascending(spreads.map((found) => found?.median ?? NaN)).at(threshold.min === undefined ? -1 : 0);
      return spreads.includes(undefined) ? undefined : spreads.find((found) => found?.median === worst);
    }
    case "cold_start": {
      const starts = (policies: number) => results["cold-start"]?.results.find((start) => start.target === "gateward" && start.policies === policies)?.first_decision_ms;
      return medianInterval(pairwise(starts(measure.policies), starts(measure.against)));
    }
    case "isolate_start": {
      const starts = (target: string) => results["cold-start"]?.results.find((start) => start.target === target)?.isolate_start_ms;
      return medianInterval(pairwise(starts("gateward"), starts("floor")));
    }
    case "trend": {
      const curve = results.growth?.curves.find(({ name }) => name === measure.curve);
      return curve?.points.some(({ x }) => x >= measure.to) ? trendOf(curve)?.trend : undefined;
    }
    case "size":
      return single(results.meta?.wasm.gzip_bytes);
  }
}

/** The bounds of a threshold: a trend's depend on its noise. */
function boundsOf({ measure, min = -Infinity, max = Infinity, within }: Threshold, results: Results) {
  const curve = measure.kind === "trend" && within === "noise" ? results.growth?.curves.find(({ name }) => name === measure.curve) : undefined;
  const noise = curve && trendOf(curve)?.noise;
  return noise === undefined ? { min, max } : { min: Math.max(min, 1 - noise), max: Math.min(max, 1 + noise) };
}

export function judge(threshold: Threshold, results: Results, { full = false } = {}): Verdict {
  const { name, target, measure } = threshold;
  const write = { size: megabytes, time: duration, ratio: times }[measure.kind === "size" || measure.kind === "time" ? measure.kind : "ratio"];
  const value = valueOf(threshold, results);
  const { min, max } = boundsOf(threshold, results);
  const bound = [min > -Infinity ? `≥ ${write(min)}` : [], max < Infinity ? `≤ ${write(max)}` : []].flat().join(", ") || "within the noise";
  const line = { name, target, bound, measured: value === undefined ? "–" : spread(value, write) };
  if (value === undefined) return { ...line, verdict: "not measured", fails: measure.kind !== "time" && (full || !threshold.full) };
  // A figure that is not a number, such as a ratio to zero, fails every bound.
  const met = value.median >= min && value.median <= max;
  return { ...line, verdict: met ? "met" : "missed", fails: !met && measure.kind !== "time" };
}

/** Every target in the order of thresholds.json, then the worst cases. */
export function judgeAll(results: Results, options?: { full: boolean }): Verdict[] {
  return [...THRESHOLDS, ...worstCases(results)].map((threshold) => judge(threshold, results, options));
}

/** Prints the verdicts. It throws if the run has failed by one. */
export function assertKept(verdicts: Verdict[]): void {
  console.table(Object.fromEntries(verdicts.map(({ name, bound, measured, verdict }) => [name, { target: bound, measured, verdict }])));
  const failed = verdicts.filter(({ fails }) => fails);
  if (failed.length > 0) throw new Error(`targets are not met: ${failed.map(({ name, verdict }) => `${name} (${verdict})`).join(", ")}`);
}

export function times(ratio: number): string {
  return `${figure(ratio)}×`;
}

export function megabytes(bytes: number): string {
  return `${figure(bytes / 1e6)} MB`;
}
