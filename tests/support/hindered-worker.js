// The built worker with faults that a test can turn on with requests to /_test/:
// - D1 is slow, fails, loses answers, hangs or is locked; its answers to a lane's load of records arrive late;
// - named lanes do not get new epochs; worker and lanes use different versions of their protocol; some requests to
//   lanes wait until they are released;
// - alarms are lost; the clock is wrong; a request hangs or throws; the Wasm module traps.
//
// Worker and lanes share this module, and so its state.
import { DurableObject } from "cloudflare:workers";
import { clockIsAhead } from "./clock.js";
import Gateward, { GateLane as Lane } from "../../worker/edge/build/index.js";

/** Matches the statement with which lanes load records, and no other statement. */
const LOAD_OF_RECORDS = /\bAS credential\b/;
/** Second byte of a hop's body, as worker/core/src/lane/protocol/tests.rs pins it. */
const OPERATIONS = { calls: 0, decisions: 1, outcomes: 2, leases: 14, windows: 17, lists: 22 };
const TAKE_EPOCH = 6;
const HOLD_POLL_MS = 10;
/** How long SQLite waits for a lock before it gives up. */
const LOCKED_MS = 500;

/** The state of D1, for statements that match `matches`. */
let database = { state: "up", matches: /(?:)/ };
/** Loads of records that D1 was asked for. */
let loads = 0;

let loadDelayMs = 0;
let loadsWaiting = 0;
/** As `<tenant>/<lane>`. */
let deafLanes = new Set();
/** Whether hops, or their replies, get another version of the protocol, in their first byte. */
let skewsRequests = false;
let skewsReplies = false;
/** The operation whose requests wait. */
let holds;
/** The number of requests that waited so far or wait now. */
let held = 0;
/** How often waiting requests were released. */
let releases = 0;

/** Polls, because a request must not await a promise of another request. */
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

/** Returns `target` with some members replaced. Each function in `members` gets the original member, and returns the new one. */
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

/** The result of a request to D1 with `sql`. */
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

/** The SQL of each statement. */
const texts = new WeakMap();
/** For hindered statements, the original statement of D1. */
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
      if (response.body === null) return new Response(null, { status: 421 });
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

// A class that extends DurableObject, so that the harness can open its storage and evict it.
export class GateLane extends DurableObject {
  #lane;

  constructor(state, env) {
    super(state, env);
    this.#lane = new Lane(state, hindered(env));
  }

  async fetch(request) {
    switch (new URL(request.url).pathname) {
      case "/_test/lose-alarm":
        await this.ctx.storage.deleteAlarm();
        return new Response();
      case "/_test/ring-alarm":
        await this.ctx.storage.setAlarm(1);
        return new Response();
      default:
        return this.#lane.fetch(request);
    }
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
      case "/_test/ring-alarm":
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
        // The same error as the runtime reports if a task of the Wasm traps.
        dispatchEvent(new ErrorEvent("error", { error: new WebAssembly.RuntimeError("unreachable") }));
        return Response.json({});
      case "/_test/state":
        return Response.json({ loads, loads_waiting: loadsWaiting, held });
      default:
        return Gateward.fetch(request, env, context);
    }
  },
};
