// Requests to upstreams and their responses. It is JavaScript where the runtime has no Rust API, or where bytes
// need not pass through Wasm's memory. Errors are strings: the names of the core's `Ending`.

import { headers, joined, within } from "../io.js";

/** Statuses of responses without a body. */
const NO_BODY = [204, 205, 304];
/** Bytes that one read asks for. A read without a buffer gets 4 KB at most, and costs as much. */
const READ_BYTES = 64 * 1024;
/** The same for events, which are small and leave most of the buffer unused. */
const EVENTS_READ_BYTES = 16 * 1024;
/** A body of this length arrives in one piece as a rule, so a limit on each silence is one on the whole body. */
const SMALL_BYTES = 16 * 1024;
const KEEP_ALIVE = new TextEncoder().encode(": keep-alive\n\n");

/**
 * One timer for all time limits of an exchange. Setting a timer for each piece costs more than passing the piece on.
 * So when a limit moves into the future, the timer stays as it is, and is set again when it fires too early.
 */
class Watch {
  #timer;
  #dueMs = Infinity;
  #firesMs = Infinity;
  #expire;

  constructor(expire) {
    this.#expire = expire;
  }

  /** Sets the time of expiry, in place of the one before. */
  until(dueMs) {
    this.#dueMs = dueMs;
    if (dueMs >= this.#firesMs) return;
    clearTimeout(this.#timer);
    this.#set();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#firesMs = Infinity;
  }

  #set() {
    this.#firesMs = this.#dueMs;
    this.#timer = setTimeout(() => {
      this.#firesMs = Infinity;
      if (Date.now() >= this.#dueMs) this.#expire();
      else this.#set();
    }, Math.max(0, this.#dueMs - Date.now()));
  }
}

/** One request to an upstream. */
export class Exchange {
  #abort = new AbortController();
  #watch = new Watch(() => this.#timedOut());
  #response;
  #body;
  #deadline;
  /** Stops watching whether the caller disconnects. */
  #unwatch;

  /**
   * Sends the request, unless the caller has disconnected. Does not follow redirects and does not use a cache.
   * @param {Request} caller its disconnect ends the exchange
   * @param {string} fields headers: name, line break, value, line break, and so on
   * @param {Uint8Array | undefined} body
   * @param {number} wholeMs time limit from here to the end of the response
   * @returns {Promise<number>} the status
   */
  async begin(caller, url, method, fields, body, firstByteMs, wholeMs) {
    this.#deadline = Date.now() + wholeMs;
    const headers = headersOf(fields);
    this.#watch.until(Date.now() + Math.min(firstByteMs, wholeMs));
    const gone = () => this.#abort.abort("caller_gone");
    caller.signal.addEventListener("abort", gone);
    // The signal of a caller that left while the lane decided does not fire again.
    if (caller.signal.aborted) gone();
    this.#unwatch = () => caller.signal.removeEventListener("abort", gone);
    try {
      this.#response = await fetch(url, { method, headers, body: body?.slice(), redirect: "manual", cache: "no-store", signal: this.#abort.signal });
      this.#watch.until(this.#deadline);
      return this.#response.status;
    } catch {
      this.#unwatch();
      this.#watch.stop();
      throw this.#ending();
    }
  }

  /** The value of a header; undefined if it is absent. */
  header(name) {
    return this.#response.headers.get(name) ?? undefined;
  }

  /** All headers, in the form of `begin`. */
  headers() {
    return headers(this.#response);
  }

  /** Ends the exchange without reading the response. */
  drop() {
    this.#unwatch();
    this.#watch.stop();
    this.#abort.abort("caller_gone");
  }

  /**
   * The whole body.
   * @returns {Promise<Uint8Array>}
   */
  async bytes(maxBytes, idleMs) {
    try {
      // The length of a compressed body says nothing about what the runtime decompresses.
      const declared = this.header("content-encoding") === undefined ? Number(this.header("content-length")) : NaN;
      if (declared > 0 && declared <= Math.min(maxBytes, SMALL_BYTES)) return await this.#small(idleMs);
      const reader = this.#reader(maxBytes, idleMs);
      const pieces = [];
      let length = 0;
      for (;;) {
        const piece = await reader.next();
        if (piece === undefined) break;
        // A copy, so that a small piece does not keep a whole buffer.
        pieces.push(piece.slice());
        length += piece.length;
      }
      return joined(pieces, length);
    } finally {
      this.#unwatch();
      this.#watch.stop();
    }
  }

  /** The whole body, which is small and not compressed. A reader takes twice the time. */
  async #small(idleMs) {
    const { signal } = this.#abort;
    if (signal.aborted) throw this.#ending();
    this.#watch.until(Math.min(Date.now() + idleMs, this.#deadline));
    const aborted = new Promise((_, reject) => signal.addEventListener("abort", reject));
    try {
      return new Uint8Array(await Promise.race([this.#response.arrayBuffer(), aborted]));
    } catch {
      throw this.#ending();
    }
  }

  /**
   * A response that streams this body. When the upstream breaks off or a bound is exceeded, the caller's
   * stream ends too.
   * @param tap inspects the stream: `relay.rs`
   * @param {number | undefined} keepAliveMs if given, the body is a stream of events: the caller gets what
   *   `tap` returns, and a comment after each such time without an event
   * @param {boolean} holds whether the last piece waits until the outcome is recorded
   * @param {number} collects how many bytes of the body the tap collects
   */
  stream(status, fields, maxBytes, idleMs, tap, keepAliveMs, holds, collects) {
    // From here on, a disconnect cancels the response's body.
    this.#unwatch();
    const inspects = keepAliveMs !== undefined;
    const reader = this.#reader(maxBytes, idleMs, keepAliveMs);
    const digest = new crypto.DigestStream("SHA-256");
    const digester = digest.getWriter();
    let hashing;
    let bytes = 0;
    let ended = false;
    // The call of the tap in progress: it handles one at a time.
    let busy = Promise.resolve();
    // The piece that waits for the next one, or for the outcome.
    let held;
    const end = async (ending, controller) => {
      if (ended) return;
      ended = true;
      if (ending === "complete") this.#watch.stop();
      else this.drop();
      await busy;
      await digester.close();
      const hash = [...new Uint8Array(await digest.digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      let last;
      try {
        last = await tap.end(ending, bytes, hash);
      } catch (why) {
        // The values in the held piece were not recorded.
        controller?.error(why);
        return;
      } finally {
        // The tap holds the request's context. Garbage collection would free it too late, and the runtime would
        // report that the request hangs.
        tap.free();
      }
      if (controller === undefined) return;
      // A caller that may not get the rest does not get the piece that waits either.
      if (held !== undefined && ending !== "refused") controller.enqueue(held);
      if (last.length > 0) controller.enqueue(last);
      controller.close();
    };
    const next = async (controller) => {
      const piece = await reader.next(inspects ? () => controller.enqueue(KEEP_ALIVE) : undefined);
      if (piece === undefined || ended) return piece;
      bytes += piece.length;
      // The digest may be one piece behind: a piece is hashed while it is sent.
      await hashing;
      hashing = digester.write(piece);
      if (bytes - piece.length < collects) tap.collect(piece);
      if (!inspects || ended) return piece;
      const inspected = tap.piece(piece);
      busy = inspected.catch(() => {});
      return inspected;
    };
    const headers = headersOf(fields);
    if (this.#response.body === null || NO_BODY.includes(status)) {
      end("complete");
      // Nobody reads a body that such a response has anyway. This ends its connection.
      this.#body?.cancel().catch(() => {});
      return new Response(null, { status, headers });
    }
    const body = new ReadableStream({
      async pull(controller) {
        try {
          // The runtime does not pull again after a pull that enqueues nothing.
          for (;;) {
            const out = await next(controller);
            if (ended) return;
            if (out === undefined) return await end("complete", controller);
            if (out.length === 0) continue;
            if (!holds) return controller.enqueue(out);
            const before = held;
            held = out;
            if (before !== undefined) controller.enqueue(before);
            if (inspects && tap.is_done()) {
              // The server may leave the stream open. Nothing in it could belong to the request.
              await end("complete", controller);
              return reader.cancel();
            }
            if (before !== undefined) return;
          }
        } catch (ending) {
          await end(typeof ending === "string" ? ending : "upstream_failed", controller);
        }
      },
      cancel: () => end("caller_gone"),
    });
    return new Response(body, { status, headers });
  }

  /** Reads the body within its bounds. `next` returns undefined at the end, and throws an ending. */
  #reader(maxBytes, idleMs, keepAliveMs) {
    const reader = this.#response.body?.getReader({ mode: "byob" });
    this.#body = reader;
    const readBytes = keepAliveMs === undefined ? READ_BYTES : EVENTS_READ_BYTES;
    const readPiece = () => reader.read(new Uint8Array(readBytes));
    let bytes = 0;
    let reading;
    const read = async (keepAlive) => {
      this.#watch.until(Math.min(Date.now() + idleMs, this.#deadline));
      if (keepAlive === undefined) return readPiece();
      reading ??= readPiece();
      for (;;) {
        const result = await within(reading, keepAliveMs, () => undefined);
        if (result === undefined) {
          keepAlive();
          continue;
        }
        reading = undefined;
        return result;
      }
    };
    return {
      cancel: () => this.#abort.abort("caller_gone"),
      next: async (keepAlive) => {
        if (reader === undefined) return undefined;
        let result;
        try {
          result = await read(keepAlive);
        } catch {
          throw this.#ending();
        }
        // An expired limit cancels the body. Then the read returns as if the body had ended.
        if (this.#abort.signal.aborted) throw this.#ending();
        // While the caller does not read, only the whole exchange's limit counts.
        this.#watch.until(this.#deadline);
        if (result.done) return undefined;
        bytes += result.value.length;
        if (bytes > maxBytes) {
          this.#abort.abort("too_large");
          throw "too_large";
        }
        return result.value;
      },
    };
  }

  /** Why the exchange broke off. */
  #ending() {
    return this.#abort.signal.aborted ? this.#abort.signal.reason : "upstream_failed";
  }

  #timedOut() {
    this.#abort.abort("timed_out");
    // This settles a read that waits.
    this.#body?.cancel().catch(() => {});
  }
}

/**
 * A response that starts a stream of events before its content exists.
 * @param {string} fields headers, as above
 * @param {number} everyMs how often a comment is sent until then
 * @param {number} limitMs when the stream ends without content
 * @param {Promise<string | Response>} answer events, or a response whose body is a stream of events
 */
export function late(fields, everyMs, limitMs, answer) {
  const deadline = Date.now() + limitMs;
  let reader;
  const body = new ReadableStream({
    async pull(controller) {
      if (reader === undefined) {
        const answered = await within(answer, everyMs, () => undefined);
        if (answered === undefined) return Date.now() < deadline ? controller.enqueue(KEEP_ALIVE) : controller.close();
        if (answered.body === null) return controller.close();
        if (typeof answered === "string") {
          controller.enqueue(new TextEncoder().encode(answered));
          return controller.close();
        }
        reader = answered.body.getReader();
      }
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    // The caller's signal ends an exchange without a response. This cancels a response that arrives anyway, or
    // that the caller did not read.
    cancel: () => (reader === undefined ? answer.then((answered) => answered.body?.cancel()) : reader.cancel()),
  });
  return new Response(body, { headers: headersOf(fields) });
}

/** A header that occurs several times in `fields` is sent several times. */
function headersOf(fields) {
  const lines = fields.split("\n");
  const headers = new Headers();
  for (let at = 0; at + 1 < lines.length; at += 2) headers.append(lines[at], lines[at + 1]);
  return headers;
}
