// A run's plots, as SVG. The specifications are Vega-Lite; a plot whose part was not measured, or
// has nothing to show, is left out.
import { parse, View } from "vega";
import { compile } from "vega-lite";
import { loadOf, pairs, timeOf, trendOf } from "./results.mjs";
import { figure } from "./statistics.mjs";
import { THRESHOLDS } from "./thresholds.mjs";

/** @typedef {import("./results.mjs").Results} Results */
/** @typedef {import("vega-lite").TopLevelSpec} TopLevelSpec */

/** The kind of decision that stands for all where a plot shows one: the most frequent one. */
const USUAL = "allow_read";
const SIZE = { width: 420, height: 240 };
/** Told apart by people who see colours differently, and on paper (Okabe and Ito's palette). */
const BLUE = "#0072b2";
const ORANGE = "#d55e00";
const GREEN = "#009e73";
const PURPLE = "#cc79a7";

/** `1M` for a million: each label by itself, where an axis' own format would give all one prefix. */
const SHORT = "format(datum.value, '~s')";

/** @type {Partial<TopLevelSpec>} */
const COMMON = {
  background: "white",
  padding: 12,
  config: {
    font: "sans-serif",
    view: { stroke: null },
    axis: { grid: true, gridOpacity: 0.4 },
    legend: { labelLimit: 0 },
  },
};

/** @type {Record<string, (results: Results) => Record<string, unknown> | undefined>} */
const SPECIFICATIONS = {
  throughput,
  latency,
  "latency-open-loop": latencyOpenLoop,
  ratio,
  policies,
  operations,
  growth,
  memory,
};

/** Names of all plots, in the page's order. */
export const PLOTS = Object.keys(SPECIFICATIONS);

/**
 * The plots that a run has something for.
 * @param {Results} results
 * @returns {Promise<Map<string, string>>} SVG by name
 */
export async function plots(results) {
  const drawn = new Map();
  for (const [name, specify] of Object.entries(SPECIFICATIONS)) {
    const specification = specify(results);
    if (specification !== undefined) drawn.set(name, await draw(specification));
  }
  return drawn;
}

/** @param {Record<string, unknown>} specification */
async function draw(specification) {
  const { spec } = compile(/** @type {TopLevelSpec} */ ({ ...COMMON, ...specification }));
  const view = new View(parse(spec), { renderer: "none" });
  try {
    return `${await view.toSVG()}\n`;
  } finally {
    view.finalize();
  }
}

/** @param {Results} results */
function throughput({ edge }) {
  const values = edge?.closed_loop
    .filter(({ target, kind }) => target === "floor" || kind === USUAL)
    .map((round) => ({ ...round, load: loadOf(round) }));
  if (values === undefined || values.length === 0) return undefined;
  return {
    ...SIZE,
    title: `Throughput, ${USUAL}: median of the rounds, lowest to highest shaded`,
    data: { values },
    encoding: { x: loadAxis("connections", values), color: colours("target", { gateward: BLUE, floor: ORANGE }) },
    layer: medianAndBand("throughput_per_s", "requests/s"),
  };
}

/** @param {Results} results */
function latency({ edge }) {
  return percentiles(edge?.closed_loop ?? [], "connections", "Latency, closed loop");
}

/** @param {Results} results */
function latencyOpenLoop({ edge }) {
  return percentiles(edge?.open_loop ?? [], "offered requests/s", "Latency, open loop");
}

/**
 * @param {import("./results.mjs").Round[]} rounds
 * @param {string} label what the load is
 * @param {string} title
 */
function percentiles(rounds, label, title) {
  const values = rounds
    .filter(({ target, kind }) => target === "floor" || kind === USUAL)
    .flatMap((round) => {
      const { target, p50_ms, p95_ms, p99_ms } = round;
      const load = loadOf(round);
      return Object.entries({ p50: p50_ms, p95: p95_ms, p99: p99_ms }).map(([percentile, ms]) => ({
        target,
        load,
        percentile,
        ms,
      }));
    });
  if (values.length === 0) return undefined;
  return {
    title: `${title}, ${USUAL}: median of the rounds, lowest to highest shaded`,
    data: { values },
    facet: { column: { field: "target", title: null, sort: ["gateward", "floor"] } },
    spec: {
      width: 320,
      height: SIZE.height,
      encoding: { x: loadAxis(label, values), color: colours("percentile", { p50: GREEN, p95: BLUE, p99: ORANGE }) },
      layer: medianAndBand("ms", "ms", { type: "log" }),
    },
  };
}

/** @param {Results} results */
function ratio({ edge }) {
  const values = pairs(edge?.closed_loop ?? [], USUAL).map(({ load, gateward, floor }) => ({
    load,
    ratio: gateward.throughput_per_s / floor.throughput_per_s,
  }));
  if (values.length === 0) return undefined;
  const target = THRESHOLDS.find(({ name }) => name === `edge_throughput_${USUAL}`)?.min;
  const x = { field: "load", type: "ordinal", title: "connections", axis: { labelAngle: 0 } };
  const y = {
    type: "quantitative",
    title: "throughput, Gateward / floor",
    scale: { domainMin: 0, domainMax: Math.max(1, ...values.map(({ ratio }) => ratio)) },
  };
  return {
    ...SIZE,
    title: `Gateward against the floor, ${USUAL}: each paired round, and the median`,
    layer: [
      {
        data: { values },
        mark: { type: "point", filled: true, size: 45, color: BLUE, opacity: 0.6 },
        encoding: { x, y: { ...y, field: "ratio" } },
      },
      {
        data: { values },
        mark: { type: "tick", thickness: 3, size: 32, color: ORANGE },
        encoding: { x, y: { ...y, field: "ratio", aggregate: "median" } },
      },
      ...(target === undefined
        ? []
        : [
            {
              data: { values: [{ target }] },
              mark: { type: "rule", strokeDash: [4, 4] },
              encoding: { y: { ...y, field: "target" } },
            },
          ]),
    ],
  };
}

/** Where a logarithmic axis of nanoseconds has its labels. */
const POWERS = Array.from({ length: 10 }, (_, power) => 10 ** power);

const POLICY_COUNT = /^policy_eval_(\d+)_policies$/;

/** @param {Results} results */
function policies(results) {
  const values = [...operationsOf(results)].flatMap(({ name, series, median, low, high }) => {
    const policies = POLICY_COUNT.exec(name)?.[1];
    return policies === undefined
      ? []
      : [{ policies: Number(policies), series, us: median / 1e3, low_us: low / 1e3, high_us: high / 1e3 }];
  });
  if (values.length === 0) return undefined;
  return {
    ...SIZE,
    title: "Policy evaluation against the number of policies",
    data: { values },
    encoding: {
      x: {
        field: "policies",
        type: "quantitative",
        title: "policies",
        scale: { type: "log" },
        axis: { values: distinct(values, "policies"), format: "," },
      },
      color: seriesColours(values),
    },
    layer: [
      {
        mark: { type: "line", point: true },
        encoding: { y: { field: "us", type: "quantitative", title: "µs", scale: { type: "log" } } },
      },
      { mark: "rule", encoding: { y: { field: "low_us", type: "quantitative" }, y2: { field: "high_us" } } },
    ],
  };
}

/** @param {Results} results */
function operations(results) {
  const values = [...operationsOf(results)].filter(({ name }) => !POLICY_COUNT.test(name));
  if (values.length === 0) return undefined;
  return {
    width: SIZE.width,
    height: { step: 16 },
    title: "Core operations",
    data: { values },
    encoding: {
      y: { field: "name", type: "nominal", title: null, sort: "ascending" },
      color: seriesColours(values),
    },
    layer: [
      {
        mark: { type: "point", filled: true, size: 50 },
        encoding: {
          x: {
            field: "median",
            type: "quantitative",
            title: "ns, log scale",
            scale: { type: "log" },
            axis: { values: POWERS, labelExpr: SHORT },
          },
        },
      },
      { mark: "rule", encoding: { x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
    ],
  };
}

/** @param {Results} results */
function growth({ growth }) {
  const curves = growth?.curves.filter(({ points }) => points.length > 0) ?? [];
  if (curves.length === 0) return undefined;
  return {
    title: "Growth: every round, and the median",
    columns: 2,
    spacing: 32,
    concat: curves.map((curve) => {
      const { name, x_label, y_label, points } = curve;
      const values = points.flatMap(({ x, values }) => values.map((value) => ({ x, value })));
      const trend = trendOf(curve);
      const x = {
        field: "x",
        type: "quantitative",
        title: x_label,
        // Symmetric: a curve that begins with nothing has a point at 0.
        scale: { type: "symlog" },
        axis: { values: distinct(values, "x"), labelExpr: SHORT, labelOverlap: true },
      };
      const y = { field: "value", type: "quantitative", title: y_label };
      return {
        title:
          trend === undefined
            ? name
            : `${name}: last/first ${figure(trend.trend.median)}, noise ±${figure(trend.noise)}`,
        width: 300,
        height: 180,
        data: { values },
        encoding: { x, color: { value: BLUE } },
        layer: [
          band(y),
          { mark: "line", encoding: { y: { ...y, aggregate: "median" } } },
          { mark: { type: "point", filled: true, opacity: 0.6 }, encoding: { y } },
        ],
      };
    }),
  };
}

/** @param {Results} results */
function memory({ growth }) {
  const values = growth?.memory ?? [];
  if (values.length === 0) return undefined;
  return {
    width: SIZE.width,
    height: { step: 24 },
    title: "Memory of the process",
    data: { values },
    mark: { type: "bar", color: BLUE },
    encoding: {
      y: { field: "after", type: "ordinal", title: "after", sort: null },
      x: { field: "rss_mb", type: "quantitative", title: "resident, MB" },
    },
  };
}

/**
 * Every operation that was timed, natively and in Wasm, with whose it is.
 * @param {Results} results
 */
function* operationsOf({ core, wasm }) {
  const places = [
    { place: "native", results: core?.results ?? [] },
    { place: "Wasm", results: wasm?.results ?? [] },
  ];
  for (const { place, results } of places) {
    for (const operation of results) {
      yield { name: operation.name, series: `${operation.of}, ${place}`, ...timeOf(operation) };
    }
  }
}

/**
 * From the lowest to the highest.
 * @param {{ field: string }} y
 */
function band(y) {
  return {
    mark: { type: "area", opacity: 0.25 },
    encoding: { y: { ...y, aggregate: "min" }, y2: { field: y.field, aggregate: "max" } },
  };
}

/**
 * The median as a line and what it lies between as a band.
 * @param {string} field
 * @param {string} title
 * @param {Record<string, unknown>} [scale]
 */
function medianAndBand(field, title, scale = {}) {
  const y = { field, type: "quantitative", title, scale };
  return [band(y), { mark: { type: "line", point: true }, encoding: { y: { ...y, aggregate: "median" } } }];
}

/**
 * @param {string} title
 * @param {{ load: number }[]} values
 */
function loadAxis(title, values) {
  return {
    field: "load",
    type: "quantitative",
    title,
    scale: { type: "log", base: 2 },
    axis: { values: distinct(values, "load"), format: "," },
  };
}

/**
 * @param {string} field
 * @param {Record<string, string>} colour
 */
function colours(field, colour) {
  return { field, type: "nominal", title: null, scale: { domain: Object.keys(colour), range: Object.values(colour) } };
}

/** @param {{ series: string }[]} values */
function seriesColours(values) {
  const domain = [...new Set(values.map(({ series }) => series))].sort();
  const known = {
    "gateward, native": BLUE,
    "gateward, Wasm": GREEN,
    "plain_cedar, native": ORANGE,
    "plain_cedar, Wasm": PURPLE,
  };
  const others = ["#e69f00", "#56b4e9", "#000000", "#999999", "#f0e442"];
  /** @type {Record<string, string>} */
  const chosen = {};
  for (const series of domain)
    chosen[series] = /** @type {Record<string, string>} */ (known)[series] ?? others.shift() ?? "#666666";
  return colours("series", chosen);
}

/**
 * @template {string} Field
 * @param {Record<Field, number>[]} values
 * @param {Field} field
 */
function distinct(values, field) {
  return [...new Set(values.map((value) => value[field]))].sort((a, b) => a - b);
}
