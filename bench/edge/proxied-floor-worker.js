// The floor under proxied calls: a worker with the same I/O as Gateward's proxies and no authorization. A call
// costs it one hop with one insert, one request to the same upstream, and, when the upstream's answer has ended,
// one more hop with one insert for the outcome. Nothing is checked, hashed, inspected or limited in time.
//
// The lane is the floor's. same-io.ts compares its rows with Gateward's.
import authorize, { GateLane as Lane } from "./floor-worker.js";

const LANE_NAME = "demo/0";
/** Makes the hop's body as long as Gateward's encoded command. */
const COMMAND_PADDING = "0".repeat(89);

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    if (request.method === "GET" || pathname === "/v1/authorize") return authorize.fetch(request, env);
    const [, proxy, server] = pathname.split("/");
    const text = await request.text();
    const requestId = crypto.randomUUID();
    const tool = proxy === "mcp" ? JSON.parse(text).params.name : "create_item";
    const lane = env.LANES.getByName(LANE_NAME);
    const command = JSON.stringify([requestId, "coder", "", server, tool, JSON.parse(text), "trusted_internal_unsigned", COMMAND_PADDING]);
    const decided = await lane.fetch("https://lane/call", { method: "POST", body: command });
    const { decision_id, receipt } = await decided.json();

    const path = proxy === "mcp" ? "/mcp" : pathname.slice(`/http/${server}`.length);
    const answer = await fetch(env.UPSTREAM + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: request.headers.get("accept"),
        "x-gateward-tenant": "demo",
        "x-gateward-agent": "coder",
        "x-gateward-decision-id": decision_id,
        "accept-encoding": "identity",
      },
      body: text,
      redirect: "manual",
    });
    const { status } = answer;
    const headers = {
      "content-type": answer.headers.get("content-type"),
      "cache-control": "no-store",
      "x-request-id": requestId,
      "ratelimit-policy": decided.headers.get("ratelimit-policy"),
      ratelimit: decided.headers.get("ratelimit"),
    };
    const record = (bytes) => {
      const outcome = { agent: "coder", server, decisionId: decision_id, decisionHash: receipt.receipt_hash, status, bytes };
      return lane.fetch("https://lane/outcome", { method: "POST", body: JSON.stringify(outcome) });
    };
    // An MCP answer in one piece is read, because its JSON must be inspected. Any other answer is passed on as it
    // arrives.
    if (proxy === "mcp" && headers["content-type"] === "application/json") {
      const whole = await answer.text();
      context.waitUntil(record(whole.length));
      return new Response(whole, { status, headers });
    }
    let bytes = 0;
    const counted = new TransformStream({
      transform(piece, controller) {
        bytes += piece.length;
        controller.enqueue(piece);
      },
    });
    context.waitUntil(answer.body.pipeTo(counted.writable).then(() => record(bytes)));
    return new Response(counted.readable, { status, headers });
  },
};

export class GateLane extends Lane {
  async fetch(request) {
    if (!request.url.endsWith("/outcome")) return super.fetch(request);
    await this.record(await request.json());
    return new Response(null, { status: 204 });
  }
}
