// The built worker with a class for the lane whose storage the test harness can open. The harness needs a class that
// extends DurableObject, which a class from Wasm does not.
import { DurableObject } from "cloudflare:workers";
import Gateward, { GateLane as Lane } from "../../worker/edge/build/index.js";

export default Gateward;

export class GateLane extends DurableObject {
  #lane;

  constructor(state, env) {
    super(state, env);
    this.#lane = new Lane(state, env);
  }

  fetch(request) {
    return this.#lane.fetch(request);
  }

  alarm() {
    return this.#lane.alarm();
  }
}
