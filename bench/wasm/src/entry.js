// What the runtime calls.
import * as wasm from "./index.js";

export default { fetch: wasm.fetch };
