// The report's arithmetic, and how figures are written.
import { binomialDistribution, max, median, min } from "simple-statistics";

/** A median, and what it lies between. */
export interface Spread {
  median: number;
  low: number;
  high: number;
}

/** Median, lowest and highest; `undefined` for no values. */
export function spreadOf(values: number[]): Spread | undefined {
  return values.length === 0 ? undefined : { median: median(values), low: min(values), high: max(values) };
}

/**
 * Median and its 95 % confidence interval; of fewer than six values, the lowest and the highest. `undefined` for no
 * values.
 *
 * The bounds are two of the values, the same number of places from both ends. How many values lie below the true
 * median has a binomial distribution, whatever the distribution of the values (David and Nagaraja, Order
 * Statistics, 7.1).
 */
export function medianInterval(values: number[]): Spread | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const probabilities = sorted.length === 0 ? [] : (binomialDistribution(sorted.length, 0.5) ?? []);
  // Values that are left out at each end.
  let left = 0;
  for (let outside = 2 * (probabilities[0] ?? 1); ; left += 1) {
    outside += 2 * (probabilities[left + 1] ?? 1);
    if (outside > 1 - CONFIDENCE) break;
  }
  const [low, high] = [sorted[left], sorted.at(-1 - left)];
  return low === undefined || high === undefined ? undefined : { median: median(sorted), low, high };
}
const CONFIDENCE = 0.95;

/** The ratio of two figures that were not measured in pairs. Its bounds are the widest that both spreads allow. */
export function ratioOf(numerator: Spread, denominator: Spread): Spread {
  return {
    median: numerator.median / denominator.median,
    low: numerator.low / denominator.high,
    high: numerator.high / denominator.low,
  };
}

/** Further digits would be noise. */
const DIGITS = 3;

/** A figure in three significant digits: `0.812`, `45.7`, `12,300`. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const rounded = Number(value.toPrecision(DIGITS));
  const decimals = rounded === 0 ? 0 : Math.max(0, DIGITS - 1 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** `0.812 (0.790–0.830)`, or the median alone if it has no spread. */
export function spread(spread: Spread | undefined, write: (value: number) => string = figure): string {
  if (spread === undefined) return "–";
  const { median, low, high } = spread;
  return low === high ? write(median) : `${write(median)} (${write(low)}–${write(high)})`;
}

/** A duration in the unit that suits it. */
export function duration(ns: number): string {
  if (ns < 1e3) return `${figure(ns)} ns`;
  if (ns < 1e6) return `${figure(ns / 1e3)} µs`;
  if (ns < 1e9) return `${figure(ns / 1e6)} ms`;
  return `${figure(ns / 1e9)} s`;
}

/** All digits of a number that was set and not measured. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}
