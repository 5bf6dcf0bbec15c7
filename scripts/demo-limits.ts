// `make demo-limits`: an agent may refund 1,000 EUR a day, and wants to refund twenty orders of 100 at once. The
// payment service fails some refunds, and the runtime is killed while others are in progress. The agent tries again
// until nothing passes. Exactly ten refunds are carried out. This program plays all parts: administrator, agent and
// payment service.
//
// It starts a Gateward of its own, because it kills it. Nothing that it counts depends on timing:
//
// - The service answers no refund of a wave until every other one is denied. So no amount is given back while
//   the wave is being decided, and exactly what was left passes.
// - The runtime is killed when the outcomes of all answered refunds are in the lane, and those without an answer
//   were carried out. So every amount that is still held was paid.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LimitState, LimitStates, Problem } from "../tests/support/api/types.gen.ts";
import { Client } from "../tests/support/client.ts";
import { eventually } from "../tests/support/gateward.ts";
import { builtModules, startWithProcess } from "../tests/support/miniflare.ts";
import { run } from "../tests/support/program.ts";
import { ENVIRONMENT } from "../tests/support/registry.ts";
import { type Answering, json, Upstream } from "../tests/support/upstream.ts";
import { buildCommandLine, buildWorker, DEMO_TENANT, gateward, showCommand, title } from "./local.ts";

const AGENT = "billing";
const MAX = 1_000;
const AMOUNT = 100;
const ORDERS = Array.from({ length: 20 }, (_, at) => `order-${at + 1}`);
/** Refunds that the service treats specially, for each wave. It carries out and answers all others. */
const WAVES: Wave[] = [{ fails: 4, unanswered: 3 }, { fails: 1, unanswered: 0 }];
const CALM: Wave = { fails: 0, unanswered: 0 };
/** UTC+6 or UTC-6, where this day began at least six hours ago and lasts at least six more. */
const TIME_ZONE = new Date().getUTCHours() < 12 ? "Asia/Dhaka" : "America/Costa_Rica";

interface Wave {
  fails: number;
  /** Carried out, but not answered before the runtime is killed. */
  unanswered: number;
}

type Runtime = Awaited<ReturnType<typeof startWithProcess>>;

/** What the agent knows about a refund, by status and reason code. */
const OUTCOMES: Record<string, Outcome> = { "200 policy_allow": "succeeded", "422 policy_allow": "failed", "403 amount_exhausted": "denied" };
type Outcome = "succeeded" | "failed" | "denied" | "unclear";

class Demo {
  readonly #state: string;
  readonly #secrets = { TOKEN_MAC_KEY: randomBytes(32).toString("hex"), BOOTSTRAP_SECRET: randomBytes(32).toString("hex") };
  /** The agent's. */
  #token = "";
  #runtime!: Runtime;
  /** Refunds that wait at the service. */
  #waiting: { order: string; answer: (how: Answering) => void }[] = [];
  /** The orders whose refunds the service carried out. */
  readonly #ledger: string[] = [];
  /** What the agent knows about each order. */
  readonly #known = new Map<string, Outcome>();
  /** Answers that the agent must not get. */
  readonly #surprises: string[] = [];
  /** The reason of the agent's last denial. */
  #denial = "";

  constructor(state: string) {
    this.#state = state;
  }

  async play(): Promise<void> {
    const service = await Upstream.start((exchange, response) => {
      const { order } = JSON.parse(exchange.text) as { order: string };
      this.#waiting.push({ order, answer: (how) => how(exchange, response) });
    });
    this.#runtime = await this.#start(true);
    try {
      await this.#register(service.url());
      await this.#refundAll();
      await this.#check();
    } finally {
      await this.#runtime.miniflare.dispose();
      await service.close();
    }
  }

  #start(migrate: boolean): Promise<Runtime> {
    return startWithProcess({ modules: builtModules(), bindings: { LOCAL_TARGETS: "true", ...this.#secrets }, state: this.#state, migrate });
  }

  async #register(service: string): Promise<void> {
    title(`The administrator lets an agent refund ${MAX} EUR a day`);
    const url = String(this.#runtime.url);
    const secret = { GATEWARD_BOOTSTRAP_SECRET: this.#secrets.BOOTSTRAP_SECRET };
    const { token } = await gateward<{ token: string }>(url, ["bootstrap", "--tenant", DEMO_TENANT], secret);
    const administrator = (...args: string[]) => showCommand(url, args, { GATEWARD_TOKEN: token });
    await administrator("server", "create", "payments", "--kind", "http", "--trust", "trusted", "--upstream-url", service, "--local", "--route", "POST /refunds=refund");
    await administrator("server", "approve", "payments");
    await administrator("tool", "create", "payments/refund", "--mutates", "true", "--risk", "medium");
    await administrator("tool", "approve", "payments/refund");
    await administrator("agent", "create", AGENT, "--environment", ENVIRONMENT);
    const rule = ["--kind", "amount", "--max", String(MAX), "--pointer", "/amount", "--window", "day", "--time-zone", TIME_ZONE];
    await administrator("limit", "create", "refunds", "--agent", AGENT, ...rule);
    const issued = await administrator("--json", "credential", "create", "--agent", AGENT, "--max-source-trust", "trusted_internal_signed");
    this.#token = (JSON.parse(issued) as { token: string }).token;
  }

  /** Refunds the orders at once, again and again, until a wave passes nothing. */
  async #refundAll(): Promise<void> {
    for (let at = 0, passed = -1; passed !== 0; at += 1) {
      const orders = ORDERS.filter((order) => !["succeeded", "unclear"].includes(this.#known.get(order) ?? ""));
      title(at === 0 ? `The agent refunds ${orders.length} orders of ${AMOUNT} EUR at once` : `It retries the ${orders.length} that failed or were denied`);
      passed = await this.#wave(orders, WAVES[at] ?? CALM);
    }
  }

  /** Returns how many refunds passed. */
  async #wave(orders: string[], wave: Wave): Promise<number> {
    const { remaining } = await this.#status();
    let answered = 0;
    const refunds = Promise.all(
      orders.map(async (order) => {
        const outcome = await this.#refund(order);
        if (outcome !== undefined) this.#known.set(order, outcome);
        answered += 1;
      }),
    );
    await eventually("each refund is denied or waits at the service", async () => answered + this.#waiting.length === orders.length);
    const passed = this.#waiting.length;
    console.log(`agent: ${orders.length - passed} denied, ${passed} on their way\n  | ${this.#denial}`);
    expectEqual("answers before the service's", this.#surprises, []);
    expectEqual("what passed", passed * AMOUNT, Number(remaining));

    this.#answer(wave);
    const held = AMOUNT * (wave.unanswered + this.#count("unclear"));
    await eventually("the lane has the outcome of each answer", async () => (await this.#status()).reserved === String(held));
    await this.#printStatus();
    if (wave.unanswered > 0) await this.#kill();
    await refunds;
    expectEqual("other answers", this.#surprises, []);
    return passed;
  }

  /** Makes a refund as the agent. */
  async #refund(order: string): Promise<Outcome | undefined> {
    try {
      const body = { order, amount: AMOUNT };
      const { status, headers, body: problem } = await new Client(this.#runtime.url).post<Problem>(this.#token, "/http/payments/refunds", body);
      const outcome = OUTCOMES[`${status} ${headers.get("x-gateward-reason-code")}`];
      if (outcome === undefined) this.#surprises.push(`${status} ${JSON.stringify(problem)}`);
      if (outcome === "denied") this.#denial = problem.detail;
      return outcome;
    } catch (error) {
      // `fetch` fails so if the connection breaks off.
      if (error instanceof TypeError) return "unclear";
      this.#surprises.push(String(error));
      return undefined;
    }
  }

  /** Decides as the service on the refunds that wait. */
  #answer({ fails, unanswered }: Wave): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const [at, { order, answer }] of waiting.entries()) {
      if (at < fails) {
        answer(json({ error: "the card is closed" }, 422));
        continue;
      }
      this.#ledger.push(order);
      if (at >= fails + unanswered) answer(json({ refunded: order }));
    }
    const silent = unanswered > 0 ? `, of which ${unanswered} get no answer yet` : "";
    if (waiting.length > 0) console.log(`service: ${fails} failed, ${waiting.length - fails} carried out${silent}`);
  }

  async #kill(): Promise<void> {
    const before = await this.#status();
    const { workerd, miniflare } = this.#runtime;
    title("The runtime is killed, and starts again on the same storage");
    const exited = once(workerd, "exit");
    workerd.kill("SIGKILL");
    await exited;
    await miniflare.dispose();
    console.log(`kill -9 ${workerd.pid}`);
    this.#runtime = await this.#start(false);
    await this.#printStatus();
    const after = await this.#status();
    expectEqual("what is left after the restart", [after.remaining, after.reserved], [before.remaining, before.reserved]);
  }

  async #status(): Promise<LimitState> {
    const { body } = await new Client(this.#runtime.url).get<LimitStates>(this.#token, "/v1/limits/status");
    const state = body.of_agent?.[0];
    if (state === undefined) throw new Error(`GET /v1/limits/status answered ${JSON.stringify(body)}`);
    return state;
  }

  async #printStatus(): Promise<void> {
    const { remaining, reserved } = await this.#status();
    console.log(`GET /v1/limits/status: ${remaining} remaining, ${reserved} held`);
  }

  #count(outcome: Outcome): number {
    return [...this.#known.values()].filter((known) => known === outcome).length;
  }

  async #check(): Promise<void> {
    title("The ledger of the payment service shows what was carried out");
    const [succeeded, unclear] = [this.#count("succeeded"), this.#count("unclear")];
    console.log(`ledger: ${this.#ledger.length} refunds, ${this.#ledger.length * AMOUNT} EUR`);
    console.log(`agent: ${succeeded} succeeded; ${unclear} are unclear to it, and their amounts stay used`);
    expectEqual("the ledger's length", this.#ledger.length, MAX / AMOUNT);
    const used = ORDERS.filter((order) => this.#known.get(order) !== "denied");
    expectEqual("the ledger's orders", this.#ledger.toSorted(), used.toSorted());
    expectEqual("the orders that succeeded or are unclear", succeeded + unclear, used.length);
    expectEqual("what remains", (await this.#status()).remaining, "0");
    console.log(`Exactly ${this.#ledger.length} refunds of ${AMOUNT} EUR were carried out, each for a different order.`);
  }
}

function expectEqual(what: string, found: unknown, expected: unknown): void {
  const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
  if (one !== other) throw new Error(`${what}: ${one} instead of ${other}`);
}

await run(async () => {
  buildWorker();
  buildCommandLine();
  const directory = mkdtempSync(join(tmpdir(), "gateward-demo-limits-"));
  try {
    await new Demo(directory).play();
  } finally {
    rmSync(directory, { recursive: true });
  }
});
