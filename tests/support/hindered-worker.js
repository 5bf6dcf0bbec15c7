// The built worker where the registry's way to the lanes is hindered: D1's answers to a lane's
// load of records arrive late, lanes that are named get no word of a new epoch, and decisions on
// approvals wait on their way until they are let go. All are told to it under /_test/; worker and
// lanes share this module, and so what it remembers.
import { DurableObject } from "cloudflare:workers";
import Gateward, { GateLane as Lane } from "../../worker/edge/build/index.js";

/** What tells the lanes' load of records from other statements. */
const LOAD_OF_RECORDS = /\bAS credential\b/;
/** The path of the hop that tells a lane of a new epoch. */
const EPOCH_PATH = "/epoch";
/** The path of the hop that takes a decision on an approval to its lane. */
const DECIDE_PATH = "/decide";
const HOLD_POLL_MS = 10;

let loadDelayMs = 0;
let loadsWaiting = 0;
/** As `<tenant>/<lane>`. */
let deafLanes = new Set();
let holdsDecisions = false;
/** Decisions that waited so far, or do. */
let decisionsHeld = 0;
/** How often waiting decisions were let go. */
let releases = 0;

/** Polls, since a promise of another request's must not be waited for. */
const untilReleased = async () => {
  if (!holdsDecisions) return;
  const before = releases;
  decisionsHeld += 1;
  while (holdsDecisions && releases === before) await new Promise((resolve) => setTimeout(resolve, HOLD_POLL_MS));
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

/** Of statements that are late, those that D1 itself knows. */
const statements = new WeakMap();
function lateStatement(statement) {
  const answersLate = (own) => (...args) => late(own(...args));
  const wrapped = wrap(statement, {
    bind: (bind) => (...values) => lateStatement(bind(...values)),
    all: answersLate,
    first: answersLate,
    raw: answersLate,
    run: answersLate,
  });
  statements.set(wrapped, statement);
  return wrapped;
}
const lateDatabase = (database) =>
  wrap(database, {
    prepare: (prepare) => (sql) => (LOAD_OF_RECORDS.test(sql) ? lateStatement(prepare(sql)) : prepare(sql)),
    batch: (batch) => (batched) => {
      const answer = batch(batched.map((statement) => statements.get(statement) ?? statement));
      return batched.some((statement) => statements.has(statement)) ? late(answer) : answer;
    },
  });

const hinderedStub = (name, stub) =>
  wrap(stub, {
    fetch: (fetch) => async (request, init) => {
      const { pathname } = new URL(typeof request === "string" ? request : request.url);
      if (pathname === DECIDE_PATH) await untilReleased();
      if (deafLanes.has(name) && pathname.startsWith(EPOCH_PATH)) throw new Error("the lane is deaf");
      return fetch(request, init);
    },
  });

const hindered = (env) => ({
  ...env,
  DB: lateDatabase(env.DB),
  LANES: wrap(env.LANES, { getByName: (getByName) => (name) => hinderedStub(name, getByName(name)) }),
});

// One that extends DurableObject, so that the harness can open its storage and evict it.
export class GateLane extends DurableObject {
  #lane;

  constructor(state, env) {
    super(state, env);
    this.#lane = new Lane(state, hindered(env));
  }

  fetch(request) {
    return this.#lane.fetch(request);
  }

  alarm() {
    return this.#lane.alarm();
  }
}

export default class extends Gateward {
  constructor(ctx, env) {
    super(ctx, hindered(env));
  }

  async fetch(request) {
    switch (new URL(request.url).pathname) {
      case "/_test/load-delay":
        loadDelayMs = Number(await request.text());
        return Response.json({});
      case "/_test/deaf-lanes":
        deafLanes = new Set(await request.json());
        return Response.json({});
      case "/_test/hold-decisions":
        holdsDecisions = true;
        return Response.json({});
      case "/_test/release-decisions":
        holdsDecisions = !(await request.json());
        releases += 1;
        return Response.json({});
      case "/_test/state":
        return Response.json({ loads_waiting: loadsWaiting, decisions_held: decisionsHeld });
      default:
        return super.fetch(request);
    }
  }
}
