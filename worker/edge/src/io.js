// What the worker and the lane ask of the runtime for every call, each in one crossing: one
// between Wasm and JavaScript costs more than most of what is done on either side of it.

// wasm-bindgen's futures take a turn of this at each step, and workerd's own costs as much as the
// rest of the step. A promise that is settled already does the same; what the turn throws is told
// to the runtime as before, since a trap must reset the instance.
const settled = Promise.resolve();
globalThis.queueMicrotask = (turn) => {
  settled.then(() => {
    try {
      turn();
    } catch (error) {
      reportError(error);
    }
  });
};

/**
 * All that Gateward looks at of a request, one a line; neither a URL nor a header can hold a line
 * break. `http.rs` reads it in this order.
 * @param {Request} request
 */
export function describe({ method, url, headers }) {
  const of = (name) => headers.get(name) ?? "";
  return `${method}\n${url}\n${of("authorization")}\n${of("content-type")}\n${of("content-length")}\n${of("x-request-id")}\n${of("cf-connecting-ip")}\n${of("x-gateward-signature")}`;
}

/**
 * All headers: name, line break, value, line break, name, and so on.
 * @param {Request | Response} message
 */
export function headers(message) {
  let fields = "";
  for (const [name, value] of message.headers) fields += `${name}\n${value}\n`;
  return fields;
}

/**
 * @param {number} status
 * @param {string} fields headers: name, line break, value, line break, name, and so on
 * @param {string} body
 */
export function respond(status, fields, body) {
  return new Response(body, { status, headers: headersOf(fields) });
}

/** @param {string} fields */
function headersOf(fields) {
  const lines = fields.split("\n");
  const headers = {};
  for (let at = 0; at + 1 < lines.length; at += 2) headers[lines[at]] = lines[at + 1];
  return headers;
}

/**
 * The hop, with a command.
 * @param {string} url
 * @param {Uint8Array} body a view of Wasm's memory, which goes on changing
 */
export function post(env, binding, name, url, body) {
  return env[binding].getByName(name).fetch(url, { method: "POST", body: body.slice() });
}

/** The hop, for something to read. */
export function get(env, binding, name, url) {
  return env[binding].getByName(name).fetch(url);
}

/**
 * A request of the worker's own. Redirects are not followed, and the answer's body is not read.
 * @param {string} url
 * @param {string} fields headers, as above
 * @param {string} body
 * @param {number} limitMs
 * @returns {Promise<number>} the status
 */
export async function send(url, fields, body, limitMs) {
  const signal = AbortSignal.timeout(limitMs);
  const response = await fetch(url, { method: "POST", headers: headersOf(fields), body, redirect: "manual", signal });
  // So that its connection is free.
  await response.body?.cancel();
  return response.status;
}

/**
 * The bytes that D1 reports of its database. worker-rs reads them as a 32-bit number, and fails.
 * @param {string} statement any that reads
 * @returns {Promise<number | undefined>}
 */
export async function size(database, statement) {
  return (await database.prepare(statement).all()).meta.size_after;
}

/**
 * Runs a statement on an object's storage.
 * @param {unknown[]} values
 * @returns {unknown[][]} its rows
 */
export function exec(sql, statement, values) {
  return [...sql.exec(statement, ...values).raw()];
}
