// What the worker and the lane ask of the runtime for every call, each in one crossing: one
// between Wasm and JavaScript costs more than most of what is done on either side of it.

// A text without whitespace, which scripts/build-wasm.sh writes. It stays out of Wasm's memory.
import openapi from "openapi.txt";

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
 * @param {string} addressHeader the header that holds the address that connected; empty when none does
 */
export function describe(request, addressHeader) {
  const { method, url, headers } = request;
  const of = (name) => headers.get(name) ?? "";
  const length = headers.get("content-length") ?? (request.body === null ? "0" : "");
  const address = addressHeader === "" ? "" : of(addressHeader);
  return `${method}\n${url}\n${of("authorization")}\n${of("content-type")}\n${length}\n${of("x-request-id")}\n${address}\n${of("signature-input")}`;
}

/**
 * A body of known length, whole.
 * @param {Request} request
 * @param {number} limitMs
 * @returns {Promise<ArrayBuffer>}
 */
export function body(request, limitMs) {
  return within(request.arrayBuffer(), limitMs, noAnswer);
}

/**
 * Reads a body and drops what exceeds `maxBytes`, until it ends, exceeds `maxDroppedBytes` as well, or
 * takes longer than `limitMs`. A client that is still sending when its connection is closed sees a
 * broken connection instead of the answer.
 * @param {Request} request
 * @returns {Promise<Uint8Array | undefined>} the body; undefined when it has more than `maxBytes`, or
 *   did not end
 */
export async function read(request, maxBytes, maxDroppedBytes, limitMs) {
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    // A read that waits is settled by this.
    reader.cancel().catch(() => {});
  }, limitMs);
  const pieces = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length <= maxBytes) pieces.push(value);
      if (length > maxBytes + maxDroppedBytes) return undefined;
    }
  } finally {
    clearTimeout(limit);
  }
  return late || length > maxBytes ? undefined : joined(pieces, length);
}

/** @param {Uint8Array[]} pieces */
export function joined(pieces, length) {
  if (pieces.length === 1) return pieces[0];
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
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

/** The API's description. */
export function description() {
  return new Response(openapi, { headers: { "content-type": "application/json" } });
}

/** @param {string} fields */
function headersOf(fields) {
  const lines = fields.split("\n");
  const headers = {};
  for (let at = 0; at + 1 < lines.length; at += 2) headers[lines[at]] = lines[at + 1];
  return headers;
}

/**
 * What a promise gives; when that takes longer than `ms`, what `late` gives or throws. Everything that
 * is awaited outside of this isolate goes through here; `limits.rs` says how long each may take.
 * @template T, L
 * @param {Promise<T>} promise
 * @param {number} ms
 * @param {() => L} late
 * @returns {Promise<T | L>}
 */
export async function within(promise, ms, late) {
  let timer;
  const over = new Promise((resolve) => {
    timer = setTimeout(resolve, ms, TOO_LATE);
  });
  try {
    const first = await Promise.race([promise, over]);
    return first === TOO_LATE ? late() : first;
  } finally {
    clearTimeout(timer);
  }
}
const TOO_LATE = Symbol("too late");

function noAnswer() {
  throw new Error("no answer in time");
}

/**
 * The hop, with a command.
 * @param {string} url
 * @param {Uint8Array} body a view of Wasm's memory, which goes on changing
 * @param {number} limitMs
 */
export function post(env, binding, name, url, body, limitMs) {
  return within(env[binding].getByName(name).fetch(url, { method: "POST", body: body.slice() }), limitMs, noAnswer);
}

/** The hop, for something to read. */
export function get(env, binding, name, url, limitMs) {
  return within(env[binding].getByName(name).fetch(url), limitMs, noAnswer);
}

/** The text of an answer to a hop. */
export function text(response, limitMs) {
  return within(response.text(), limitMs, noAnswer);
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
  const abort = new AbortController();
  const sent = fetch(url, { method: "POST", headers: headersOf(fields), body, redirect: "manual", signal: abort.signal });
  const response = await within(sent, limitMs, () => {
    abort.abort();
    noAnswer();
  });
  // So that its connection is free.
  response.body?.cancel().catch(() => {});
  return response.status;
}

/**
 * Runs one statement on D1, or several in one transaction.
 * @param {[sql: string, ...values: unknown[]][]} statements
 * @param {number} limitMs
 * @returns {Promise<string>} JSON: an array with an array of rows for each statement
 */
export async function query(env, binding, statements, limitMs) {
  const database = env[binding];
  const prepared = statements.map(([sql, ...values]) => database.prepare(sql).bind(...values));
  const [only, ...others] = prepared;
  const ran = others.length === 0 ? only.all().then((answered) => [answered]) : database.batch(prepared);
  const answered = await within(ran, limitMs, noAnswer);
  return JSON.stringify(answered.map(({ results }) => results));
}

/**
 * The bytes that D1 reports of its database.
 * @param {string} sql any that reads
 * @returns {Promise<number | undefined>}
 */
export async function size(env, binding, sql, limitMs) {
  return (await within(env[binding].prepare(sql).all(), limitMs, noAnswer)).meta.size_after;
}

/**
 * Runs a statement on an object's storage.
 * @param {unknown[]} values
 * @returns {unknown[][]} its rows
 */
export function exec(sql, statement, values) {
  return [...sql.exec(statement, ...values).raw()];
}
