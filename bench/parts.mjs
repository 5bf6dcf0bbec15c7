// The parts of the suite: how each is built, apart from any measuring, and how it is measured. A
// part gives back what its file of a run holds.
import { buildBundles, bundles } from "./edge/bundles.mjs";

/**
 * @typedef {object} Part
 * @property {string} module
 * @property {(module: any, options: { full: boolean }) => Promise<void> | void} [build]
 * @property {(module: any, options: { full: boolean }) => Promise<unknown>} measure
 */

/** @type {Record<typeof import("./report/results.mjs").PARTS[number], Part>} */
const PARTS = {
  core: {
    module: "./core/core.mjs",
    build: ({ buildCore }) => buildCore(),
    measure: ({ core }, options) => core(options),
  },
  // The same in both forms: counts have no noise that longer runs would lessen.
  instructions: {
    module: "./core/instructions.mjs",
    build: ({ buildInstructions }) => buildInstructions(),
    measure: ({ instructions }) => instructions(),
  },
  wasm: {
    module: "./wasm/wasm.mjs",
    build: ({ buildWasm }) => buildWasm(),
    measure: ({ wasm }, options) => wasm(options),
  },
  edge: { module: "./edge/edge.mjs", measure: ({ edge }, options) => edge(options) },
  // Only the full form builds the bundles that these compare.
  "cold-start": {
    module: "./edge/cold-start.mjs",
    build: (_, { full }) => {
      if (full) buildBundles();
    },
    measure: ({ coldStart }, { full }) => coldStart(full ? { full, builds: bundles() } : {}),
  },
  growth: {
    module: "./edge/growth.mjs",
    measure: ({ growth }, { full }) => growth(full ? { full, builds: bundles() } : {}),
  },
};

/**
 * Loads a part, so that a missing one shows before anything is built or measured.
 * @param {keyof typeof PARTS} name
 */
export async function loadPart(name) {
  const { module: path, build, measure } = PARTS[name];
  const module = await import(path);
  return {
    name,
    /** @param {{ full: boolean }} options */
    build: async (options) => build?.(module, options),
    /** @param {{ full: boolean }} options */
    measure: (options) => measure(module, options),
  };
}
