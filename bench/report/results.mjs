// What a run consists of, and reading one. A run is a directory in bench/runs/; each part of the
// suite fills one of its files.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { spreadOf } from "./statistics.mjs";

/** @typedef {import("./statistics.mjs").Spread} Spread */

/**
 * @typedef {object} Meta
 * @property {string} date ISO 8601
 * @property {string} command
 * @property {"short" | "full"} form
 * @property {string} commit
 * @property {boolean} dirty
 * @property {{ processor: string, cores: number, memory_mb: number, kernel: string }} machine
 * @property {Record<string, string>} versions
 * @property {{ profile: string, bytes: number, gzip_bytes: number }} wasm
 */

/** @typedef {{ name: string, of: string, median_ns: number, low_ns: number, high_ns: number }} TimedOperation */
/** @typedef {{ name: string, of: string, instructions: number, allocations?: number }} CountedOperation */

/**
 * One round of load. A closed loop has `connections`, an open loop the offered `rate_per_s`.
 * @typedef {object} Round
 * @property {"gateward" | "floor"} target
 * @property {string} kind
 * @property {number} [connections]
 * @property {number} [rate_per_s]
 * @property {number} round
 * @property {number} requests
 * @property {number} throughput_per_s
 * @property {number} p50_ms
 * @property {number} p95_ms
 * @property {number} p99_ms
 * @property {number} errors
 * @property {number} unexpected
 * @property {number} cpu_ms_per_request
 */

/** @typedef {{ rounds: number, seconds_per_round: number, closed_loop: Round[], open_loop: Round[] }} Edge */
/** @typedef {{ target: "gateward" | "floor", policies: number | null, first_decision_ms: number[] }} ColdStart */
/** @typedef {{ name: string, x_label: string, y_label: string, points: { x: number, values: number[] }[] }} Curve */
/** @typedef {{ after: string, rss_mb: number }} Memory */

/**
 * What was measured. A part that was not is absent, and never counts as met.
 * @typedef {object} Results
 * @property {Pick<Meta, "wasm">} [meta]
 * @property {{ results: TimedOperation[] }} [core]
 * @property {{ results: CountedOperation[] }} [instructions]
 * @property {{ results: TimedOperation[] }} [wasm]
 * @property {Edge} [edge]
 * @property {{ results: ColdStart[] }} [cold-start]
 * @property {{ curves: Curve[], memory: Memory[] }} [growth]
 */

export const PARTS = /** @type {const} */ (["core", "instructions", "wasm", "edge", "cold-start", "growth"]);

/**
 * @param {string} directory
 * @returns {Results & { meta: Meta }}
 */
export function readRun(directory) {
  /** @param {string} part */
  const read = (part) => JSON.parse(readFileSync(join(directory, `${part}.json`), "utf8"));
  const measured = PARTS.filter((part) => existsSync(join(directory, `${part}.json`)));
  return { meta: read("meta"), ...Object.fromEntries(measured.map((part) => [part, read(part)])) };
}

/** @param {TimedOperation} operation @returns {Spread} */
export const timeOf = ({ median_ns, low_ns, high_ns }) => ({ median: median_ns, low: low_ns, high: high_ns });

/**
 * What the rounds of one kind of load were set to, lowest first: connections, or the rate.
 * @param {Round} round
 */
export const loadOf = (round) => round.connections ?? round.rate_per_s ?? 0;

/**
 * Each round on Gateward with the floor's round beside it: measured right before or after, under
 * the same load. Rounds further apart met another machine, for its speed drifts.
 * @param {Round[]} rounds in the order in which they were measured
 * @param {string} kind
 * @returns {{ load: number, gateward: Round, floor: Round }[]}
 */
export function pairs(rounds, kind) {
  return rounds.flatMap((gateward, at) => {
    if (gateward.target !== "gateward" || gateward.kind !== kind) return [];
    const load = loadOf(gateward);
    const floor = [rounds[at - 1], rounds[at + 1]].find(
      (beside) => beside?.target === "floor" && beside.round === gateward.round && loadOf(beside) === load,
    );
    return floor === undefined ? [] : [{ load, gateward, floor }];
  });
}

/**
 * The ratios of paired rounds, by load, lowest load first.
 * @param {Round[]} rounds
 * @param {string} kind
 * @param {"throughput_per_s" | "cpu_ms_per_request"} value
 * @returns {{ load: number, ratios: number[] }[]}
 */
export function pairedRatios(rounds, kind, value) {
  const paired = pairs(rounds, kind);
  return ascending(paired.map(({ load }) => load)).map((load) => ({
    load,
    ratios: paired.filter((pair) => pair.load === load).map(({ gateward, floor }) => gateward[value] / floor[value]),
  }));
}

/**
 * How a curve ends against how it begins, and how far rounds at one and the same point lie apart:
 * the median over the points of (highest − lowest) / median.
 * @param {Curve} curve
 * @returns {{ trend: Spread, noise: number } | undefined}
 */
export function trendOf({ points }) {
  const spreads = points
    .toSorted((a, b) => a.x - b.x)
    .flatMap(({ values }) => (values.length > 1 ? (spreadOf(values) ?? []) : []));
  const [first, last] = [spreads[0], spreads.at(-1)];
  const noise = spreadOf(spreads.map(({ median, low, high }) => (high - low) / median));
  // One round shows no noise, and one point no trend.
  if (first === undefined || last === undefined || noise === undefined || spreads.length < 2) return undefined;
  return {
    trend: { median: last.median / first.median, low: last.low / first.median, high: last.high / first.median },
    noise: noise.median,
  };
}

/**
 * The different values, lowest first.
 * @param {number[]} values
 */
export function ascending(values) {
  return [...new Set(values)].sort((a, b) => a - b);
}
