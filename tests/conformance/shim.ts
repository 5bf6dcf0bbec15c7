// A proxy between the conformance suite, which cannot send a credential, and Gateward. It adds the credential and
// changes nothing else.
import { once } from "node:events";
import { createServer, request as send, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export class Shim {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(target: URL, token: string): Promise<Shim> {
    const { hostname, port } = target;
    const server = createServer((request, response) => {
      const { method, url: path, headers } = request;
      const forwarded = send({ hostname, port, method, path, headers: { ...headers, authorization: `Bearer ${token}` }, agent: false });
      forwarded.on("response", (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        response.flushHeaders();
        answer.pipe(response);
        answer.on("error", (error) => response.destroy(error));
      });
      forwarded.on("error", (error) => response.destroy(error));
      // workerd notices at once that a client is gone only if the connection is reset.
      response.on("close", () => response.writableFinished || forwarded.socket?.resetAndDestroy());
      request.pipe(forwarded);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Shim(server);
  }

  url(path: string): string {
    return `http://localhost:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
