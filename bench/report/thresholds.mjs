// What a set of results is held against: the ratios of bench/thresholds.json, and the targets that
// are times.
import { readFileSync } from "node:fs";
import { duration, figure, ratioOf, spread, spreadOf } from "./statistics.mjs";
import { pairedRatios, timeOf, trendOf } from "./results.mjs";

/** @typedef {import("./results.mjs").Results} Results */
/** @typedef {import("./statistics.mjs").Spread} Spread */

/**
 * One figure of a run.
 * @typedef {{ file: "core" | "wasm" | "instructions", name: string, of: string }
 *   | { file: "growth", after: string }} Reference
 */

/**
 * How a threshold's figure is computed:
 *   ratio   one figure over another
 *   starts  cold starts with so many policies over those with so many, round by round
 *   paired  Gateward over the floor, round by round; the worst load of the closed loop counts
 *   trend   how a growth curve ends over how it begins; only a curve up to `to` shows it
 *   size    bytes of the deployed worker, gzipped
 * @typedef {{ kind: "ratio", numerator: Reference, denominator: Reference }
 *   | { kind: "starts", policies: number, against: number }
 *   | { kind: "paired", decision: string, value: "throughput_per_s" | "cpu_ms_per_request" }
 *   | { kind: "trend", curve: string, to: number }
 *   | { kind: "size" }} Measure
 */

/**
 * `within: "noise"` bounds a trend by how far the rounds at one and the same point lie apart, and by
 * `min` where the noise would excuse more.
 * @typedef {object} Threshold
 * @property {string} name
 * @property {string} target which target of the issue it stands for
 * @property {Measure} measure
 * @property {number} [min]
 * @property {number} [max]
 * @property {"noise"} [within]
 * @property {boolean} stable whether it is the same on every machine, so that CI can check it
 * @property {number} [regression] what CI holds it to in place of `min` or `max`: nearer to where it
 *   stands, so that a step back shows before the target is missed
 */

/**
 * One line of the table of targets.
 * @typedef {object} Verdict
 * @property {string} name
 * @property {string} target
 * @property {string} bound
 * @property {string} measured
 * @property {boolean | undefined} met undefined: not measured, which is never the same as met
 */

/** @type {Threshold[]} */
export const THRESHOLDS = JSON.parse(readFileSync(new URL("../thresholds.json", import.meta.url), "utf8"));

/**
 * The targets that are times. They are no thresholds: a time says as much about the
 * machine as about the code, so nothing fails by them.
 */
const TIMES = [
  { target: "malformed token", name: "deny_malformed_token", max_ns: 200 },
  { target: "forged token", name: "deny_forged_token", max_ns: 2_000 },
];

/**
 * The worst cases (bench/core/src/worst_case.rs), natively and in Wasm: what takes outside input must
 * take at most so long for each MiB of it, and compiling a schema at most so long.
 */
const WORST_CASE_NS_PER_MIB = 50e6;
const WORST_CASE_COMPILE_NS = 20e6;

/**
 * @param {Results} results
 * @returns {Verdict[]}
 */
function worstCases(results) {
  return /** @type {const} */ (["core", "wasm"]).flatMap((file) =>
    (results[file]?.results ?? []).flatMap((operation) => {
      const [, kib] = /^worst_case_.*_(\d+)_kib$/.exec(operation.name) ?? [];
      const compiles = operation.name.startsWith("worst_case_schema_compile");
      if (kib === undefined && !compiles) return [];
      const max_ns = kib === undefined ? WORST_CASE_COMPILE_NS : (Number(kib) / 1024) * WORST_CASE_NS_PER_MIB;
      const found = timeOf(operation);
      return {
        name: `${operation.name} (${file})`,
        target: kib === undefined ? "the worst accepted schema" : "the worst accepted input, for each MiB",
        bound: `≤ ${duration(max_ns)}`,
        measured: spread(found, duration),
        met: found.median <= max_ns,
      };
    }),
  );
}

/**
 * @param {Results} results
 * @param {Reference} reference
 * @returns {Spread | undefined}
 */
function lookUp(results, reference) {
  switch (reference.file) {
    case "core":
    case "wasm": {
      const found = results[reference.file]?.results.find(sameOperation(reference));
      return found && timeOf(found);
    }
    case "instructions":
      return single(results.instructions?.results.find(sameOperation(reference))?.instructions);
    case "growth":
      return single(results.growth?.memory.find(({ after }) => after === reference.after)?.rss_mb);
  }
}

/** @param {number | undefined} value */
const single = (value) => (value === undefined ? undefined : { median: value, low: value, high: value });

/** @param {{ name: string, of: string }} reference */
const sameOperation = (reference) => (/** @type {{ name: string, of: string }} */ operation) =>
  operation.name === reference.name && operation.of === reference.of;

/**
 * The quotients of what was measured in turn.
 * @param {number[]} numerators
 * @param {number[]} denominators
 */
function pairwise(numerators, denominators) {
  return numerators.flatMap((numerator, at) => {
    const denominator = denominators[at];
    return denominator === undefined ? [] : [numerator / denominator];
  });
}

/**
 * The threshold's figure, and the bounds that it must lie in.
 * @param {Threshold} threshold
 * @param {Results} results
 * @returns {{ value: Spread, min: number, max: number } | undefined}
 */
function compute({ measure, min = -Infinity, max = Infinity, within }, results) {
  switch (measure.kind) {
    case "ratio": {
      const [numerator, denominator] = [lookUp(results, measure.numerator), lookUp(results, measure.denominator)];
      return numerator && denominator && { value: ratioOf(numerator, denominator), min, max };
    }
    case "starts": {
      const starts = results["cold-start"]?.results.filter(({ target }) => target === "gateward") ?? [];
      const [many, few] = [measure.policies, measure.against].map(
        (number) => starts.find(({ policies }) => policies === number)?.first_decision_ms ?? [],
      );
      const value = spreadOf(pairwise(many ?? [], few ?? []));
      return value && { value, min, max };
    }
    case "paired": {
      // A call that got no answer took no time; a round with one is no measurement.
      const rounds = (results.edge?.closed_loop ?? []).filter(({ kind }) => kind === measure.decision || kind === "floor");
      if (rounds.some(({ errors, unexpected }) => errors + unexpected > 0)) return undefined;
      const loads = pairedRatios(results.edge?.closed_loop ?? [], measure.decision, measure.value);
      const spreads = loads.flatMap(({ ratios }) => spreadOf(ratios) ?? []).sort((a, b) => a.median - b.median);
      const value = min === -Infinity ? spreads.at(-1) : spreads[0];
      return value && { value, min, max };
    }
    case "trend": {
      const curve = results.growth?.curves.find(({ name }) => name === measure.curve);
      const reaches = curve?.points.some(({ x }) => x >= measure.to);
      const found = curve && reaches ? trendOf(curve) : undefined;
      if (found === undefined) return undefined;
      const { trend: value, noise } = found;
      return within === "noise" ? { value, min: Math.max(min, 1 - noise), max: Math.min(max, 1 + noise) } : { value, min, max };
    }
    case "size": {
      const value = single(results.meta?.wasm.gzip_bytes);
      return value && { value, min, max };
    }
  }
}

/**
 * @param {Threshold} threshold
 * @param {Results} results
 * @returns {Verdict}
 */
export function judge(threshold, results) {
  const { name, target, measure } = threshold;
  const isSize = measure.kind === "size";
  const write = isSize ? megabytes : ratio;
  const computed = compute(threshold, results);
  /** @param {number} min @param {number} max */
  const bound = (min, max) =>
    [min > -Infinity ? `≥ ${write(min)}` : [], max < Infinity ? `≤ ${write(max)}` : []].flat().join(", ");
  if (computed === undefined) {
    const { min = -Infinity, max = Infinity, within } = threshold;
    return {
      name,
      target,
      bound: within === undefined ? bound(min, max) : "within the noise",
      measured: "not measured",
      met: undefined,
    };
  }
  const { value, min, max } = computed;
  return {
    name,
    target,
    bound: bound(min, max),
    measured: spread(value, write),
    // A figure that is no number, such as a ratio to nothing, meets no bound.
    met: value.median >= min && value.median <= max,
  };
}

/**
 * Every target of the issue, in its order of thresholds.json, then the times and the worst cases.
 * @param {Results} results
 * @param {Threshold[]} [thresholds]
 * @returns {Verdict[]}
 */
export function judgeAll(results, thresholds = THRESHOLDS) {
  const times = TIMES.map(({ target, name, max_ns }) => {
    const found = lookUp(results, { file: "core", name, of: "gateward" });
    return {
      name,
      target,
      bound: `≤ ${duration(max_ns)}`,
      measured: found === undefined ? "not measured" : spread(found, duration),
      met: found && found.median <= max_ns,
    };
  });
  return [...thresholds.map((threshold) => judge(threshold, results)), ...times, ...worstCases(results)];
}

/**
 * Prints what was held against what, a line each.
 * @param {Verdict[]} verdicts
 */
export function printVerdicts(verdicts) {
  const rows = verdicts.map((verdict) => [verdict.name, verdict.bound, verdict.measured, verdictText(verdict)]);
  const lines = [["figure", "target", "measured", ""], ...rows];
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  for (const line of lines)
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}

/** @param {Verdict} verdict */
export function verdictText({ met }) {
  return met === undefined ? "not measured" : met ? "met" : "missed";
}

/** @param {number} value */
const ratio = (value) => `${figure(value)}×`;

const BYTES_PER_MB = 1_000_000;
/** @param {number} bytes */
export const megabytes = (bytes) => `${figure(bytes / BYTES_PER_MB)} MB`;
