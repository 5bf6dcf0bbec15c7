// What the runtime calls: the worker's fetch handler and the Durable Object's class. `scripts/build-wasm.sh`
// bundles it with what wasm-bindgen generates. worker-build would generate an entry with a Proxy around every
// handler and every method that the runtime reads, which costs a tenth of a decision's processor time.
//
// What it keeps of that entry: after a trap, the state of Wasm's memory is unknown, so the next event starts a
// new instance of the module, and each object makes its Rust half anew in it.
import * as wasm from "./index.js";

/** Shared with the Rust side, which sets `criticalError` when it aborts. */
const state = wasm.__worker_init_state();

Error.stackTraceLimit = 100;
addEventListener("error", ({ error }) => markTrap(error));

/** Bytes of a stack trace in a line of the log, as in the core's `log.rs`. */
const MAX_DETAIL_BYTES = 1_024;

/** A line of the log (docs/logs.md). The events are in the core's list, but after a trap its code cannot run. */
function line(level, event, message, detail) {
  return JSON.stringify({ time: new Date().toISOString(), level, event, message, detail });
}

function markTrap(error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return;
  const detail = String(error.stack ?? error).slice(0, MAX_DETAIL_BYTES);
  console.error(line("error", "wasm_trapped", "The Wasm module failed, and is started again for the next request.", detail));
  state.criticalError = true;
}

function resetAfterTrap() {
  if (!state.criticalError) return;
  console.log(line("info", "wasm_restarted", "The Wasm module was started again after it failed."));
  wasm.__wbg_reset_state();
  state.criticalError = false;
  state.instanceId += 1;
}

export default {
  fetch(request, env, context) {
    resetAfterTrap();
    try {
      return wasm.fetch(request, env, context);
    } catch (error) {
      markTrap(error);
      throw error;
    }
  },
};

export class GateLane {
  #state;
  #env;
  #lane;
  #instanceId;

  constructor(state, env) {
    this.#state = state;
    this.#env = env;
  }

  async fetch(request) {
    const body = new Uint8Array(await request.arrayBuffer());
    return this.#call((lane) => lane.fetch(body));
  }

  alarm() {
    return this.#call((lane) => lane.alarm());
  }

  /** Runs on the Rust half, which belongs to one instance of the module. */
  #call(run) {
    resetAfterTrap();
    try {
      if (this.#instanceId !== state.instanceId) {
        this.#lane = new wasm.GateLane(this.#state, this.#env);
        this.#instanceId = state.instanceId;
      }
      return run(this.#lane);
    } catch (error) {
      markTrap(error);
      throw error;
    }
  }
}
