// The report's arithmetic, and how figures are written.

/**
 * A middle and what it lies between.
 * @typedef {{ median: number, low: number, high: number }} Spread
 */

/**
 * Median, lowest and highest; nothing of no values.
 * @param {readonly number[]} values
 * @returns {Spread | undefined}
 */
export function spreadOf(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[0], sorted.at(-1)];
  // The two in the middle are one and the same when the number is odd.
  const [below, above] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (low === undefined || high === undefined || below === undefined || above === undefined) return undefined;
  return { median: (below + above) / 2, low, high };
}

/**
 * The ratio of two figures that were not measured in pairs: the bounds are the widest that both
 * spreads allow.
 * @param {Spread} numerator
 * @param {Spread} denominator
 * @returns {Spread}
 */
export function ratioOf(numerator, denominator) {
  return {
    median: numerator.median / denominator.median,
    low: numerator.low / denominator.high,
    high: numerator.high / denominator.low,
  };
}

/** More digits than three would be noise. */
const DIGITS = 3;

/**
 * A figure in three significant digits: `0.812`, `45.7`, `12,300`.
 * @param {number} value
 */
export function figure(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(DIGITS));
  const decimals = Math.max(0, DIGITS - 1 - Math.floor(Math.log10(Math.abs(rounded))));
  // Grouped by hand: what a locale does changes with the version of its data.
  const [whole = "", fraction] = rounded.toFixed(decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/**
 * `0.812 (0.79–0.83)`, or the figure alone where it has no spread.
 * @param {Spread | undefined} spread
 * @param {(value: number) => string} [write]
 */
export function spread(spread, write = figure) {
  if (spread === undefined) return "–";
  const { median, low, high } = spread;
  return low === high ? write(median) : `${write(median)} (${write(low)}–${write(high)})`;
}

/**
 * A duration in the unit that it reads best in.
 * @param {number} ns
 */
export function duration(ns) {
  if (ns < 1e3) return `${figure(ns)} ns`;
  if (ns < 1e6) return `${figure(ns / 1e3)} µs`;
  if (ns < 1e9) return `${figure(ns / 1e6)} ms`;
  return `${figure(ns / 1e9)} s`;
}

/**
 * A count, every digit of it: numbers of things that were set, not measured.
 * @param {number} value
 */
export function count(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}
