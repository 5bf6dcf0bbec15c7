// The built worker with a class for the lane whose storage the test harness can open, and with a clock that a test can
// set: POST /_test/clock with the milliseconds by which it is ahead. The harness needs a class that extends
// DurableObject, which a class from Wasm does not.
import { DurableObject } from "cloudflare:workers";
import { clockIsAhead } from "./clock.js";
import Gateward, { GateLane as Lane } from "../../worker/edge/build/index.js";

export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname !== "/_test/clock") return Gateward.fetch(request, env, context);
    clockIsAhead(Number(await request.text()));
    return Response.json({});
  },
};

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
