// An upstream on loopback. A test says how it answers, also wrongly. It keeps the requests that it got.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";

/** A request that it got, and how that ended. */
export interface Exchange {
  method: string;
  /** With the query, as it came. */
  path: string;
  headers: IncomingHttpHeaders;
  /** Names and values by turns, as they came. */
  rawHeaders: string[];
  text: string;
  /** Whether the client closed the connection before the end of the answer. */
  hungUp: boolean;
  /** When the answer was sent whole, or the connection is gone. */
  over: Promise<void>;
}

export type Answering = (exchange: Exchange, response: ServerResponse) => unknown;

/** A piece of a body: bytes as they are, or milliseconds to wait. */
export type Piece = string | number;

const DIED = new Error("the upstream died");

export class Upstream {
  readonly received: Exchange[] = [];
  /** How the next requests are answered. */
  answer: Answering = json({});
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(answer?: Answering): Promise<Upstream> {
    const upstream: Upstream = new Upstream(
      createServer((request, response) => {
        const chunks: Buffer[] = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk));
        request.on("end", () => {
          const { method = "", url: path = "", headers, rawHeaders } = request;
          const text = Buffer.concat(chunks).toString();
          const over = once(response, "close").then(() => {
            exchange.hungUp = !response.writableFinished && response.errored !== DIED;
          });
          const exchange: Exchange = { method, path, headers, rawHeaders, text, hungUp: false, over };
          upstream.received.push(exchange);
          void upstream.answer(exchange, response);
        });
      }),
    );
    if (answer !== undefined) upstream.answer = answer;
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  /** Its URL. */
  url(path = "/"): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** The requests to this path, with any query. */
  at(path: string): Exchange[] {
    return this.received.filter((exchange) => exchange.path.split("?")[0] === path);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** This value as JSON. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answering {
  return (_, response) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

export function html(text: string, status = 200): Answering {
  return (_, response) => response.writeHead(status, { "content-type": "text/html; charset=utf-8" }).end(text);
}

export function redirect(location: string, status = 307): Answering {
  return (_, response) => response.writeHead(status, { location }).end();
}

/** One event of a stream, with an id if one is given. */
export function event(message: unknown, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

/** A stream of these pieces, each sent by itself. */
export function events(...pieces: Piece[]): Answering {
  return async (_, response) => {
    await send(response, pieces);
    response.end();
  };
}

/** The same, but the connection is reset instead of ending normally. */
export function dies(...pieces: Piece[]): Answering {
  return async (_, response) => {
    await send(response, pieces);
    response.destroy(DIED);
  };
}

/** Repeats these pieces until the client closes the connection. */
export function endless(...pieces: Piece[]): Answering {
  return async (_, response) => {
    while (!response.destroyed) await send(response, pieces);
  };
}

/** Answers nothing, not even a head. */
export function hangs(): Answering {
  return () => undefined;
}

/** The result of a call with a text of so many bytes, which takes little compressed. */
export function compressed(bytes: number): Answering {
  return ({ text }, response) => {
    const { id } = JSON.parse(text) as { id: unknown };
    const body = gzipSync(JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "x".repeat(bytes) }] } }));
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip", "content-length": body.length }).end(body);
  };
}

/** A body of this many bytes, without its length in the head. */
export function huge(bytes: number, contentType = "application/json"): Answering {
  return (_, response) => {
    response.writeHead(200, { "content-type": contentType });
    const chunks = function* () {
      for (let left = bytes; left > 0; left -= CHUNK.length) yield CHUNK.subarray(0, left);
    };
    Readable.from(chunks()).pipe(response);
  };
}

const CHUNK = Buffer.alloc(64 * 1_024, "x");

async function send(response: ServerResponse, pieces: Piece[]): Promise<void> {
  if (!response.headersSent) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.flushHeaders();
  }
  for (const piece of pieces) {
    if (response.destroyed) return;
    if (typeof piece === "number") await pause(piece);
    else await new Promise((resolve) => response.write(piece, resolve));
  }
}
