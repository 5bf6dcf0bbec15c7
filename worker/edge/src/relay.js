// Requests to upstreams and their answers, where the runtime has no Rust API or where bytes need
// not pass through Wasm's memory. What goes wrong is told as a string: an `Ending`, as the core
// names it (gate/forwarded.rs).

import { headers, joined, within } from "./io.js";

/** Statuses of answers that have none. */
const NO_BODY = [204, 205, 304];
const KEEP_ALIVE = new TextEncoder().encode(": keep-alive\n\n");

/** One request to an upstream. */
export class Exchange {
  #abort = new AbortController();
  #response;
  #deadline;
  /** No longer looks at whether the caller goes. */
  #unwatch;

  /**
   * Sends it; redirects are not followed, and no cache answers.
   * @param {Request} caller whose going away ends it
   * @param {string} fields headers: name, line break, value, line break, and so on
   * @param {Uint8Array | undefined} body
   * @param {number} wholeMs from here to the answer's end
   * @returns {Promise<number>} the status
   */
  async begin(caller, url, method, fields, body, firstByteMs, wholeMs) {
    this.#deadline = Date.now() + wholeMs;
    const headers = headersOf(fields);
    const limit = setTimeout(() => this.#abort.abort("timed_out"), Math.min(firstByteMs, wholeMs));
    const gone = () => this.#abort.abort("caller_gone");
    caller.signal.addEventListener("abort", gone);
    this.#unwatch = () => caller.signal.removeEventListener("abort", gone);
    try {
      this.#response = await fetch(url, { method, headers, body: body?.slice(), redirect: "manual", cache: "no-store", signal: this.#abort.signal });
      return this.#response.status;
    } catch {
      this.#unwatch();
      throw this.#ending();
    } finally {
      clearTimeout(limit);
    }
  }

  /** The value of a header; undefined when it is absent. */
  header(name) {
    return this.#response.headers.get(name) ?? undefined;
  }

  /** All headers, as `begin` takes them. */
  headers() {
    return headers(this.#response);
  }

  /** Ends it: nothing of the answer is wanted. */
  drop() {
    this.#unwatch();
    this.#abort.abort("caller_gone");
  }

  /**
   * The whole body.
   * @returns {Promise<Uint8Array>}
   */
  async bytes(maxBytes, idleMs) {
    const reader = this.#reader(maxBytes, idleMs);
    const pieces = [];
    let length = 0;
    try {
      for (;;) {
        const piece = await reader.next();
        if (piece === undefined) break;
        pieces.push(piece);
        length += piece.length;
      }
    } finally {
      this.#unwatch();
    }
    return joined(pieces, length);
  }

  /**
   * An answer whose body is this one's, piece by piece as it comes. When the upstream breaks off,
   * or a bound is met, the caller's stream ends all the same.
   * @param tap what looks on: `relay.rs`
   * @param {number | undefined} keepAliveMs when it is given, the body is a stream of events: what goes
   *   out is what `tap` returns, and a comment after each such time of silence
   */
  stream(status, fields, maxBytes, idleMs, tap, keepAliveMs) {
    // From here on the answer's own body says whether the caller is there.
    this.#unwatch();
    const inspects = keepAliveMs !== undefined;
    const reader = this.#reader(maxBytes, idleMs, keepAliveMs);
    const digest = new crypto.DigestStream("SHA-256");
    const digester = digest.getWriter();
    let bytes = 0;
    let ended = false;
    // What the tap is busy with: it does one thing at a time.
    let busy = Promise.resolve();
    const end = async (ending, controller) => {
      if (ended) return;
      ended = true;
      if (ending !== "complete") this.drop();
      await busy;
      await digester.close();
      const hash = [...new Uint8Array(await digest.digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      const last = tap.end(ending, bytes, hash);
      // It holds the request's context, and collecting garbage would free it too late: the runtime would
      // report that the request hangs.
      tap.free();
      if (controller === undefined) return;
      if (last.length > 0) controller.enqueue(last);
      controller.close();
    };
    const next = async (controller) => {
      const piece = await reader.next(inspects ? () => controller.enqueue(KEEP_ALIVE) : undefined);
      if (piece === undefined || ended) return piece;
      bytes += piece.length;
      await digester.write(piece);
      if (!inspects || ended) return piece;
      const inspected = tap.piece(piece);
      busy = inspected.catch(() => {});
      return inspected;
    };
    const headers = headersOf(fields);
    if (this.#response.body === null || NO_BODY.includes(status)) {
      end("complete");
      return new Response(null, { status, headers });
    }
    const body = new ReadableStream({
      async pull(controller) {
        try {
          // A pull that enqueues nothing is not followed by another.
          for (;;) {
            const out = await next(controller);
            if (ended) return;
            if (out === undefined) return await end("complete", controller);
            if (out.length > 0) return controller.enqueue(out);
          }
        } catch (ending) {
          await end(typeof ending === "string" ? ending : "upstream_failed", controller);
        }
      },
      cancel: () => end("caller_gone"),
    });
    return new Response(body, { status, headers });
  }

  /** The body's pieces, within its bounds: `next` gives undefined at the end and throws an ending. */
  #reader(maxBytes, idleMs, keepAliveMs = Infinity) {
    const reader = this.#response.body?.getReader();
    let bytes = 0;
    let reading;
    const next = async (keepAlive) => {
      const silentSince = Date.now();
      reading ??= reader.read();
      for (;;) {
        const now = Date.now();
        const left = Math.min(silentSince + idleMs, this.#deadline) - now;
        if (left <= 0) throw this.#timedOut();
        const result = await within(reading, Math.min(left, keepAliveMs), () => undefined);
        if (result === undefined) {
          keepAlive?.();
          continue;
        }
        reading = undefined;
        if (result.done) return undefined;
        bytes += result.value.length;
        if (bytes > maxBytes) {
          this.#abort.abort("too_large");
          throw "too_large";
        }
        return result.value;
      }
    };
    return {
      next: async (keepAlive) => {
        if (reader === undefined) return undefined;
        try {
          return await next(keepAlive);
        } catch (error) {
          throw typeof error === "string" ? error : this.#ending();
        }
      },
    };
  }

  /** Why the exchange broke off. */
  #ending() {
    return this.#abort.signal.aborted ? this.#abort.signal.reason : "upstream_failed";
  }

  #timedOut() {
    this.#abort.abort("timed_out");
    return "timed_out";
  }
}

/**
 * The head of a stream of events at once, and as its body an answer that comes later.
 * @param {string} fields headers, as above
 * @param {number} everyMs how often a comment goes out until then
 * @param {number} limitMs when it ends without an answer
 * @param {Promise<string | Response>} answer events, or an answer whose body is a stream of them
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
    // The caller's signal ends an exchange that has no answer yet. An answer that comes all the same, or
    // that waits because the caller does not read, is left.
    cancel: () => (reader === undefined ? answer.then((answered) => answered.body?.cancel()) : reader.cancel()),
  });
  return new Response(body, { headers: headersOf(fields) });
}

/** A header that stands several times in `fields` is sent several times. */
function headersOf(fields) {
  const lines = fields.split("\n");
  const headers = new Headers();
  for (let at = 0; at + 1 < lines.length; at += 2) headers.append(lines[at], lines[at + 1]);
  return headers;
}
