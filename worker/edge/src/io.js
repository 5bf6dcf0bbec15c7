// The functions of the runtime that the worker and the lane need for every call. Each function crosses between Wasm
// and JavaScript only once, since a crossing costs more than most of the work on either side.

// The OpenAPI document without whitespace, which scripts/build-wasm.sh writes. It stays out of Wasm's memory.
import openapi from "openapi.txt";

// wasm-bindgen's futures call queueMicrotask at each step, and workerd's own costs as much as the rest of
// the step. A settled promise does the same. Errors are still reported to the runtime, because a trap must
// reset the instance.
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

const encoder = new TextEncoder();

/**
 * The parts of a request that Gateward reads for every call, one per line. Neither a URL nor a header can contain a line
 * break. `http.rs` reads them in this order.
 * @param {Request} request
 * @param {string} addressHeader the header that holds the connecting address; empty when there is none
 */
export function describe(request, addressHeader) {
  const { method, url, headers } = request;
  const of = (name) => headers.get(name) ?? "";
  /** A header that may be present and empty: `=` and the value; empty when it is absent. */
  const optional = (name) => {
    const value = headers.get(name);
    return value === null ? "" : `=${value}`;
  };
  const length = headers.get("content-length") ?? (request.body === null ? "0" : "");
  const address = addressHeader === "" ? "" : of(addressHeader);
  return `${method}\n${url}\n${of("authorization")}\n${of("content-type")}\n${length}\n${of("x-request-id")}\n${address}\n${of("signature-input")}\n${of("traceparent")}\n${optional("prefer")}\n${optional("x-tenuo-warrant")}\n${optional("x-tenuo-pop")}\n${optional("x-tenuo-approvals")}`;
}

/**
 * Reads a body whose length was declared.
 * @param {Request} request
 * @param {number} limitMs
 * @returns {Promise<ArrayBuffer>}
 */
export function body(request, limitMs) {
  return within(request.arrayBuffer(), limitMs, noAnswer);
}

/**
 * Reads a body and drops the bytes above `maxBytes`. Stops when the body ends, when more than
 * `maxDroppedBytes` were dropped, or after `limitMs`. A client that still sends when its connection is
 * closed sees a broken connection instead of the response.
 * @param {Request} request
 * @returns {Promise<Uint8Array | undefined>} the body; undefined when it has more than `maxBytes` or did
 *   not end in time
 */
export async function read(request, maxBytes, maxDroppedBytes, limitMs) {
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    // This settles a read that waits.
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

/**
 * The same response with another body.
 * @param {Response} response
 * @param {string} body
 * @param {string | undefined} applied the preference that was honoured
 */
export function withBody(response, body, applied) {
  const headers = new Headers(response.headers);
  if (applied !== undefined) headers.set("preference-applied", applied);
  return new Response(body, { status: response.status, headers });
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
 * @param {string | Uint8Array} body bytes are in Wasm's memory, which does not stay as it is
 */
export function respond(status, fields, body) {
  return new Response(typeof body === "string" ? body : body.slice(), { status, headers: headersOf(fields) });
}

/**
 * The API's description.
 * @param {string} fields
 */
export function description(fields) {
  return new Response(openapi, { headers: headersOf(fields) });
}

/** @param {string} fields */
function headersOf(fields) {
  const lines = fields.split("\n");
  const headers = {};
  for (let at = 0; at + 1 < lines.length; at += 2) headers[lines[at]] = lines[at + 1];
  return headers;
}

/**
 * Returns the result of a promise. If it takes longer than `ms`, returns or throws what `late` does. Every await of
 * something outside of this isolate goes through here; `limits.rs` has the time limits.
 * @template T, L
 * @param {Promise<T>} promise
 * @param {number} ms
 * @param {() => L} late
 * @returns {Promise<T | L>}
 */
export function within(promise, ms, late) {
  // Not `Promise.race`: its extra promises are a tenth of the garbage of a call.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    }, ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** Calls `settle` with the result of a promise: see wait.rs. */
export function whenSettled(promise, number, settle) {
  promise.then(
    (value) => settle(number, true, value),
    (error) => settle(number, false, error),
  );
}

/** Calls `settle` after `ms`. Returns the timer. */
export function beginPause(ms, number, settle) {
  return setTimeout(() => settle(number, true), ms);
}

export function endPause(timer) {
  clearTimeout(timer);
}

function noAnswer() {
  throw new Error("no answer in time");
}

/**
 * Sends a hop to a Durable Object. The body says what is asked.
 * @param {Uint8Array} body a view of Wasm's memory, which changes after this returns
 * @param {number} limitMs
 * @returns {Promise<Response>}
 */
export function post(env, name, body, limitMs) {
  return within(hop(env, name, body), limitMs, noAnswer);
}

function hop(env, name, body) {
  return env.LANES.getByName(name).fetch(HOP_URL, { method: "POST", body: body.slice() });
}
/** `fetch` needs a URL; the object does not read it. An object that runs the version which routed by path refuses it. */
const HOP_URL = "https://lane/call";

/**
 * Sends a hop, and reads the answer: its status, the headers that a proxy reads, and its text, one per line. Wasm gets the
 * text as bytes, because that takes a quarter of the time.
 * @param {Uint8Array} body as in `post`
 * @param {number} limitMs for the head and the body together
 * @returns {Promise<Uint8Array>}
 */
export function answered(env, name, body, limitMs) {
  const read = async (response) => {
    const { status, headers } = response;
    const [policy, state, retryAfter] = ["ratelimit-policy", "ratelimit", "retry-after"].map((field) => headers.get(field) ?? "");
    return encoder.encode(`${status}\n${policy}\n${state}\n${retryAfter}\n${await response.text()}`);
  };
  return within(hop(env, name, body).then(read), limitMs, noAnswer);
}

/** The text of a hop's response. */
export function text(response, limitMs) {
  return within(response.text(), limitMs, noAnswer);
}

/** The bytes of a hop's response. */
export function bytes(response, limitMs) {
  return within(response.arrayBuffer(), limitMs, noAnswer);
}

/**
 * Sends a request of the worker's own. Does not follow redirects and does not read the response's body.
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
  // Frees the connection.
  response.body?.cancel().catch(() => {});
  return response.status;
}

/**
 * Sends a POST request and reads the answer, both within `limitMs`. A timer measures that, because the clock can be set
 * meanwhile.
 * @returns {Promise<string>} the status, a line break, and the answer's text; only the status when the answer has more
 *   than `maxBytes`
 */
export async function ask(url, fields, body, maxBytes, limitMs) {
  const abort = new AbortController();
  const asked = async () => {
    const response = await fetch(url, { method: "POST", headers: headersOf(fields), body, redirect: "manual", signal: abort.signal });
    return { status: response.status, bytes: await read(response, maxBytes, 0, limitMs) };
  };
  const { status, bytes } = await within(asked(), limitMs, () => {
    abort.abort();
    noAnswer();
  });
  if (bytes === undefined) abort.abort();
  return `${status}\n${new TextDecoder().decode(bytes)}`;
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
 * Runs a statement on an object's storage. Values and rows cross at once: a list of them would take three crossings for
 * each value.
 * @param {string} texts all values that are texts, one after the other
 * @param {Float64Array} kinds two numbers for each value: its kind, and the integer or the text's length in UTF-16 units
 * @returns {Uint8Array | undefined} its rows in the same form: as doubles, the number of columns, that of values, and two
 *   numbers for each value; then the texts in UTF-8. Undefined when the statement has no columns
 */
export function exec(sql, statement, texts, kinds) {
  const values = [];
  let from = 0;
  for (let at = 0; at < kinds.length; at += 2) {
    const [kind, number] = [kinds[at], kinds[at + 1]];
    if (kind === SQL_TEXT) values.push(texts.slice(from, (from += number)));
    else values.push(kind === SQL_NULL ? null : number);
  }
  const cursor = sql.exec(statement, ...values);
  // A statement without columns has run; an iterator over its rows would only cost.
  const columns = cursor.columnNames.length;
  if (columns === 0) return undefined;
  const numbers = [columns, 0];
  let text = "";
  for (const row of cursor.raw()) {
    for (const value of row) {
      if (typeof value === "string") {
        numbers.push(SQL_TEXT, value.length);
        text += value;
      } else if (typeof value === "number") numbers.push(SQL_INTEGER, value);
      else numbers.push(value === null ? SQL_NULL : SQL_OTHER, 0);
    }
  }
  numbers[1] = numbers.length / 2 - 1;
  const head = new Uint8Array(Float64Array.from(numbers).buffer);
  if (text === "") return head;
  const tail = encoder.encode(text);
  return joined([head, tail], head.length + tail.length);
}
/** As in io.rs. */
const SQL_NULL = 0;
const SQL_INTEGER = 1;
const SQL_TEXT = 2;
const SQL_OTHER = 3;

/** Offsets of time zones that were asked for, by zone and quarter of an hour: no zone changes in between. */
const offsets = new Map();
/** With more, all are dropped. A call needs two for each zone that its limits name. */
const MAX_OFFSETS = 1_024;
const QUARTER_MS = 15 * 60 * 1_000;

/**
 * How far the clocks of a time zone are ahead of UTC.
 * @param {string} zone a name of the IANA database
 * @param {number} atMs
 * @returns {number} seconds; NaN if the zone is unknown
 */
export function offsetSeconds(zone, atMs) {
  const quarter = Math.floor(atMs / QUARTER_MS);
  const key = `${zone} ${quarter}`;
  const known = offsets.get(key);
  if (known !== undefined) return known;
  const found = lookUp(zone, quarter * QUARTER_MS);
  if (offsets.size >= MAX_OFFSETS) offsets.clear();
  offsets.set(key, found);
  return found;
}

function lookUp(timeZone, atMs) {
  let parts;
  try {
    parts = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" }).formatToParts(atMs);
  } catch {
    return Number.NaN;
  }
  // `GMT`, `GMT+01:00`, or with seconds for times long ago.
  const name = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
  const [, sign, hours, minutes, seconds] = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(name) ?? [undefined, undefined, Number.NaN];
  if (sign === undefined) return Number(hours ?? 0);
  const size = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds ?? 0);
  return sign === "-" ? -size : size;
}
