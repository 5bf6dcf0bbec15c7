// What a run consists of, and reading one. A run is a directory in bench/runs/; each part of the suite writes one
// of its files.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Verify } from "../cli/verify.ts";
import type { Timing } from "../core/core.ts";
import type { Count } from "../core/instructions.ts";
import type { ColdStart } from "../edge/cold-start.ts";
import type { Edge } from "../edge/edge.ts";
import type { Curve, Growth } from "../edge/growth.ts";
import type { Limits } from "../edge/limits.ts";
import type { Paired } from "../edge/pairs.ts";
import { type Spread, spreadOf } from "./statistics.ts";

export interface Meta {
  /** ISO 8601. */
  date: string;
  command: string;
  form: "short" | "full";
  commit: string;
  dirty: boolean;
  machine: { processor: string; cores: number; memory_mb: number; kernel: string };
  versions: Record<string, string>;
  wasm: { profile: string; bytes: number; gzip_bytes: number };
}

/** Calls through Gateward's proxies, beside a floor that forwards them too. */
export interface Proxied {
  seconds_per_round: number;
  rounds: ({ call: string; connections: number } & Paired)[];
}

/** What was measured. A part that was not is absent. */
export interface Results {
  meta?: Pick<Meta, "wasm">;
  core?: { results: Timing[] };
  instructions?: { results: Count[] };
  wasm?: { results: Timing[] };
  verify?: Verify;
  edge?: Edge;
  proxied?: Proxied;
  limits?: Limits;
  "cold-start"?: ColdStart;
  growth?: Growth;
}

export const FILES = ["core", "instructions", "wasm", "verify", "edge", "proxied", "limits", "cold-start", "growth"] as const;

export function readRun(directory: string): Results & { meta: Meta } {
  const read = (part: string) => JSON.parse(readFileSync(join(directory, `${part}.json`), "utf8"));
  const measured = FILES.filter((part) => existsSync(join(directory, `${part}.json`)));
  return { meta: read("meta"), ...Object.fromEntries(measured.map((part) => [part, read(part)])) };
}

export function timeOf({ median_ns, low_ns, high_ns }: Timing): Spread {
  return { median: median_ns, low: low_ns, high: high_ns };
}

/** By target, the one that it is compared with. */
const COMPARED_WITH: Record<string, string> = { gateward: "floor", limited: "unlimited" };

/**
 * Gateward's rounds over the floor's, or those with limits over those without, pair by pair. The rounds are those of
 * one load, in the order in which they were measured.
 */
export function pairRatios(rounds: Paired<string>[], figure: "throughput_per_s" | "cpu_ms_per_request"): number[] {
  return rounds.flatMap((round, at) => {
    const other = COMPARED_WITH[round.target];
    const beside = other === undefined ? undefined : [rounds[at - 1], rounds[at + 1]].find((beside) => beside?.target === other && beside.round === round.round);
    return beside === undefined ? [] : [round[figure] / beside[figure]];
  });
}

/**
 * The last point of a curve over its first, and the noise: how far the rounds of one point are apart, (highest −
 * lowest) / median, at the median point. `undefined` for a single point, and for points of a single round.
 */
export function trendOf({ points }: Pick<Curve, "points">): { trend: Spread; noise: number } | undefined {
  const spreads = points.toSorted((a, b) => a.x - b.x).flatMap(({ values }) => (values.length > 1 ? (spreadOf(values) ?? []) : []));
  const [first, last] = [spreads[0], spreads.at(-1)];
  const noise = spreadOf(spreads.map(({ median, low, high }) => (high - low) / median))?.median;
  if (first === undefined || last === undefined || noise === undefined || spreads.length < 2) return undefined;
  return { trend: { median: last.median / first.median, low: last.low / first.median, high: last.high / first.median }, noise };
}

/** The different values, lowest first. */
export function ascending(values: number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}
