// A run's plots, as SVG drawn by Vega-Lite.
import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { ascending, pairRatios, type Results } from "./results.ts";
import { medianInterval, spreadOf } from "./statistics.ts";

type Specification = Record<string, unknown>;

/** Colours that people with colour blindness can tell apart (Okabe and Ito's palette). */
const BLUE = "#0072b2";
const ORANGE = "#d55e00";
const COMMON = {
  background: "white",
  padding: 12,
  config: { font: "sans-serif", view: { stroke: null }, axis: { grid: true, gridOpacity: 0.4 } },
};

/** Each gives nothing if the run has nothing to show. */
export const PLOTS = { ratio, latency, growth };

/** SVG by name. */
export async function plots(results: Results): Promise<Map<string, string>> {
  const drawn = new Map<string, string>();
  for (const [name, specify] of Object.entries(PLOTS)) {
    const specification = specify(results);
    if (specification !== undefined) drawn.set(name, await draw(specification));
  }
  return drawn;
}

async function draw(specification: Specification): Promise<string> {
  const { spec } = compile({ ...COMMON, ...specification } as unknown as TopLevelSpec);
  const view = new View(parse(spec), { renderer: "none" });
  try {
    return `${await view.toSVG()}\n`;
  } finally {
    view.finalize();
  }
}

/** Throughput and processor time over the floor's, with their intervals. */
function ratio({ edge }: Results): Specification | undefined {
  const rounds = (edge?.closed_loop ?? []).filter(({ kind }) => kind === "allow_read" || kind === "floor");
  const values = ascending(rounds.map(({ connections }) => connections)).flatMap((connections) =>
    Object.entries({ throughput: "throughput_per_s", "processor time": "cpu_ms_per_request" } as const).flatMap(([name, figure]) => {
      const interval = medianInterval(pairRatios(rounds.filter((round) => round.connections === connections), figure));
      return interval === undefined ? [] : [{ connections, name, ...interval }];
    }),
  );
  if (values.length === 0) return undefined;
  const y = { type: "quantitative", title: "Gateward / floor", scale: { zero: false } };
  return {
    width: 420,
    height: 240,
    data: { values },
    encoding: {
      x: { field: "connections", type: "ordinal", axis: { labelAngle: 0 } },
      color: { field: "name", type: "nominal", title: null, scale: { range: [ORANGE, BLUE] } },
    },
    layer: [
      { mark: { type: "point", filled: true, size: 60 }, encoding: { y: { ...y, field: "median" } } },
      { mark: { type: "rule", strokeWidth: 2 }, encoding: { y: { ...y, field: "low" }, y2: { field: "high" } } },
    ],
  };
}

/** Median and 99th percentile of the latency at a given rate. */
function latency({ edge }: Results): Specification | undefined {
  const values = [...Map.groupBy(edge?.open_loop ?? [], ({ target, rate_per_s }) => `${target} ${rate_per_s}`).values()].flatMap((rounds) =>
    (["p50_ms", "p99_ms"] as const).flatMap((percentile) => {
      const [first] = rounds;
      return first === undefined ? [] : [{ target: first.target, rate: first.rate_per_s, percentile: percentile.replace("_ms", ""), ms: spreadOf(rounds.map((round) => round[percentile]))?.median }];
    }),
  );
  if (values.length === 0) return undefined;
  return {
    width: 420,
    height: 240,
    data: { values },
    mark: { type: "line", point: true },
    encoding: {
      x: { field: "rate", type: "quantitative", title: "calls/s", scale: { type: "log", base: 2 }, axis: { values: ascending(values.map(({ rate }) => rate)) } },
      y: { field: "ms", type: "quantitative", scale: { type: "log" } },
      color: { field: "target", type: "nominal", title: null, scale: { domain: ["gateward", "floor"], range: [BLUE, ORANGE] } },
      strokeDash: { field: "percentile", type: "nominal", title: null },
    },
  };
}

/** Every round of every curve, and the median. */
function growth({ growth }: Results): Specification | undefined {
  const curves = growth?.curves.filter(({ points }) => points.length > 0) ?? [];
  if (curves.length === 0) return undefined;
  return {
    columns: 2,
    spacing: 32,
    concat: curves.map(({ x_label, y_label, points }) => {
      const y = { field: "value", type: "quantitative", title: y_label };
      return {
        width: 300,
        height: 180,
        data: { values: points.flatMap(({ x, values }) => values.map((value) => ({ x, value }))) },
        encoding: {
          // Symmetric: a curve that begins with nothing has a point at 0.
          x: { field: "x", type: "quantitative", title: x_label, scale: { type: "symlog" }, axis: { values: ascending(points.map(({ x }) => x)), labelOverlap: true } },
          color: { value: BLUE },
        },
        layer: [
          { mark: { type: "point", filled: true, opacity: 0.6 }, encoding: { y } },
          { mark: "line", encoding: { y: { ...y, aggregate: "median" } } },
        ],
      };
    }),
  };
}
