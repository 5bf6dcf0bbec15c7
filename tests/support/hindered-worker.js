// The built worker where D1 and the way to the lanes are hindered: D1 is slow, fails, loses answers,
// hangs or is locked; its answers to a lane's load of records arrive late; the lanes that are named do not
// get new epochs; worker and lanes speak different versions of their protocol; some requests to lanes wait
// on their way until they are let go; alarms are lost; the clock is wrong; a request hangs or throws; and the
// Wasm module traps.
// Requests to /_test/ control it. Worker and lanes share this module, and so its state.
import { DurableObject } from "cloudflare:workers";
import { clockIsAhead } from "./clock.js";
import Gateward, { GateLane as Lane } from "../../worker/edge/build/index.js";

/** What tells the lanes' load of records from other statements. */
const LOAD_OF_RECORDS = /\bAS credential\b/;
/** Second byte of a hop's body, as worker/core/src/lane/protocol/tests.rs pins it. */
const OPERATIONS = { decisions: 1, outcomes: 2, leases: 14, looks: 17 };
const TAKE_EPOCH = 6;
const HOLD_POLL_MS = 10;
/** How long SQLite waits for a lock before it gives up. */
const LOCKED_MS = 500;

/** How D1 is, for statements that `matches`. */
let database = { state: "up", matches: /(?:)/ };
/** Loads of records that D1 was asked for. */
let loads = 0;

let loadDelayMs = 0;
let loadsWaiting = 0;
/** As `<tenant>/<lane>`. */
let deafLanes = new Set();
/** Whether hops, or the replies to them, are of another version of the protocol: their first byte says so. */
let skewsRequests = false;
let skewsReplies = false;
/** The operation whose requests wait. */
let holds;
/** Requests that waited so far, or do. */
let held = 0;
/** How often waiting requests were let go. */
let releases = 0;

/** Polls, since a promise of another request's must not be waited for. */
const untilReleased = async () => {
  const before = releases;
  held += 1;
  while (holds !== undefined && releases === before) await new Promise((resolve) => setTimeout(resolve, HOLD_POLL_MS));
};

const late = async (answer) => {
  const result = await answer;
  loadsWaiting += 1;
  await new Promise((resolve) => setTimeout(resolve, loadDelayMs));
  loadsWaiting -= 1;
  return result;
};

/** `target` with some members replaced: each by a function of the target's own. */
function wrap(target, members) {
  return new Proxy(target, {
    get(_, name) {
      const value = Reflect.get(target, name);
      if (name === "constructor") return value;
      const own = typeof value === "function" ? value.bind(target) : value;
      return Object.hasOwn(members, name) ? members[name](own) : own;
    },
  });
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** What becomes of asking D1 for `sql`. */
async function asked(sql, ask) {
  if (LOAD_OF_RECORDS.test(sql)) loads += 1;
  switch (database.matches.test(sql) ? database.state : "up") {
    case "slow":
      await pause(database.delay_ms);
      return ask();
    case "failing":
      throw new Error("D1_ERROR: internal error");
    case "losing":
      await ask();
      throw new Error("D1_ERROR: Network connection lost.");
    case "hanging":
      return new Promise(() => {});
    case "locked":
      await pause(LOCKED_MS);
      throw new Error("D1_ERROR: database is locked: SQLITE_BUSY");
    default:
      return ask();
  }
}

/** Of each statement, its SQL. */
const texts = new WeakMap();
/** Of statements that are hindered, those that D1 itself knows. */
const statements = new WeakMap();
function hinderedStatement(statement, sql) {
  const isLoad = LOAD_OF_RECORDS.test(sql);
  const wrapped = wrap(statement, {
    bind: (bind) => (...values) => hinderedStatement(bind(...values), sql),
    all: (all) => () => asked(sql, () => (isLoad ? late(all()) : all())),
  });
  statements.set(wrapped, statement);
  texts.set(wrapped, sql);
  return wrapped;
}
const hinderedDatabase = (database) =>
  wrap(database, {
    prepare: (prepare) => (sql) => hinderedStatement(prepare(sql), sql),
    batch: (batch) => (batched) =>
      asked(batched.map((statement) => texts.get(statement)).join(";\n"), () => batch(batched.map((statement) => statements.get(statement)))),
  });

const hinderedStub = (name, stub) =>
  wrap(stub, {
    fetch: (fetch) => async (request, init) => {
      const operation = init?.body[1];
      if (operation !== undefined && operation === holds) await untilReleased();
      if (deafLanes.has(name) && operation === TAKE_EPOCH) throw new Error("the lane is deaf");
      if (init !== undefined && skewsRequests) init.body[0] += 1;
      const response = await fetch(request, init);
      if (init === undefined || !skewsReplies || response.headers.has("content-type")) return response;
      const body = new Uint8Array(await response.arrayBuffer());
      body[0] += 1;
      return new Response(body, response);
    },
  });

const hindered = (env) => ({
  ...env,
  DB: hinderedDatabase(env.DB),
  LANES: wrap(env.LANES, { getByName: (getByName) => (name) => hinderedStub(name, getByName(name)) }),
});

// One that extends DurableObject, so that the harness can open its storage and evict it.
export class GateLane extends DurableObject {
  #lane;

  constructor(state, env) {
    super(state, env);
    this.#lane = new Lane(state, hindered(env));
  }

  async fetch(request) {
    if (new URL(request.url).pathname !== "/_test/lose-alarm") return this.#lane.fetch(request);
    await this.ctx.storage.deleteAlarm();
    return new Response();
  }

  alarm() {
    return this.#lane.alarm();
  }
}

export default {
  async fetch(request, plainEnv, context) {
    const env = hindered(plainEnv);
    switch (new URL(request.url).pathname) {
      case "/_test/load-delay":
        loadDelayMs = Number(await request.text());
        return Response.json({});
      case "/_test/database": {
        const { matches = "", ...rest } = await request.json();
        database = { ...rest, matches: new RegExp(matches) };
        return Response.json({});
      }
      case "/_test/clock":
        clockIsAhead(Number(await request.text()));
        return Response.json({});
      case "/_test/lose-alarm":
        await env.LANES.getByName(await request.text()).fetch(request.url);
        return Response.json({});
      case "/_test/deaf-lanes":
        deafLanes = new Set(await request.json());
        return Response.json({});
      case "/_test/skew":
        ({ requests: skewsRequests = false, replies: skewsReplies = false } = await request.json());
        return Response.json({});
      case "/_test/hold":
        holds = OPERATIONS[await request.text()];
        return Response.json({});
      case "/_test/release":
        if (await request.json()) holds = undefined;
        releases += 1;
        return Response.json({});
      case "/_test/hang":
        context.waitUntil(new Promise(() => {}));
        return Response.json({});
      case "/_test/throw":
        context.waitUntil(Promise.reject(new Error("nobody catches this")));
        return Response.json({});
      case "/_test/trap":
        // As the runtime reports a trap in a task of Wasm's.
        dispatchEvent(new ErrorEvent("error", { error: new WebAssembly.RuntimeError("unreachable") }));
        return Response.json({});
      case "/_test/state":
        return Response.json({ loads, loads_waiting: loadsWaiting, held });
      default:
        return Gateward.fetch(request, env, context);
    }
  },
};
