// A webhook's receiver on loopback. The test says how it answers.
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What it got. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  message: Message;
}

/** A message, as far as the tests look at it. */
export interface Message {
  type: string;
  timestamp: string;
  data: { tenant: string; approval: { approval_id: string; status: string; revision: number } & Record<string, unknown> };
}

type Answering = (received: Received, response: ServerResponse) => void;

export class Receiver {
  readonly received: Received[] = [];
  /** How the next requests are answered: by default with success. */
  answer: Answering = (_, response) => response.writeHead(204).end();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Receiver> {
    const receiver: Receiver = new Receiver(
      createServer((request, response) => {
        const chunks: Buffer[] = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk));
        request.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const { method = "", url: path = "", headers } = request;
          const received = { method, path, headers, text, message: JSON.parse(text) as Message };
          receiver.received.push(received);
          receiver.answer(received, response);
        });
      }),
    );
    receiver.#server.listen(0, "127.0.0.1");
    await once(receiver.#server, "listening");
    return receiver;
  }

  /** Its URL. */
  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** The requests to this path. */
  at(path: string): Received[] {
    return this.received.filter((received) => received.path === path);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** The signature that a message should have, by the specification of Standard Webhooks. */
export function signatureOf(secret: string, { headers, text }: Received): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`;
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
