// The built worker behind bindings that count every message to a lane, every statement to D1, and every row that a
// lane's SQLite reports as written, including indexes. Each answer has the counts so far in headers.
import Gateward, { GateLane as Lane } from "../../worker/edge/build/index.js";

let hops = 0;
let statements = 0;
/** The cursors of all queries to a lane's storage. A cursor has the number of written rows only after it was read. */
const cursors = [];

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

// Every call of a stub is a hop.
const countedStub = (stub) =>
  new Proxy(stub, {
    get(_, name) {
      const value = Reflect.get(stub, name);
      if (typeof value !== "function" || name === "constructor") return value;
      return (...args) => {
        hops += 1;
        return Reflect.apply(value, stub, args);
      };
    },
  });
const countedGet = (get) => (...args) => countedStub(get(...args));
const countedPrepare = (prepare) => (sql) => {
  statements += 1;
  return prepare(sql);
};
const countedExec = (exec) => (...args) => {
  const cursor = exec(...args);
  cursors.push(cursor);
  return cursor;
};

const countedEnv = (env) => ({
  ...env,
  LANES: wrap(env.LANES, { get: countedGet, getByName: countedGet }),
  DB: wrap(env.DB, { prepare: countedPrepare }),
});
const countedState = (state) =>
  wrap(state, { storage: (storage) => wrap(storage, { sql: (sql) => wrap(sql, { exec: countedExec }) }) });

export class GateLane extends Lane {
  constructor(state, env) {
    super(countedState(state), countedEnv(env));
  }
}

export default {
  async fetch(request, env, context) {
    const answer = await Gateward.fetch(request, countedEnv(env), context);
    const response = new Response(answer.body, answer);
    response.headers.set("x-spent-hops", String(hops));
    response.headers.set("x-spent-statements", String(statements));
    response.headers.set("x-spent-rows", String(cursors.reduce((sum, cursor) => sum + cursor.rowsWritten, 0)));
    return response;
  },
};
