// Forwards the requests of a program in another process to Gateward with this process's `fetch`. So
// these answers are compared with the API's description too (described-answers.ts).
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface Relay {
  url: URL;
  close(): void;
}

/** Headers that belong to one connection, or to the body before `fetch` decoded it. */
const OF_THE_CONNECTION = ["connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding"];

export async function relayTo(target: URL): Promise<Relay> {
  const server = createServer(async (incoming, outgoing) => {
    try {
      const headers = new Headers(incoming.headers as Record<string, string>);
      for (const name of OF_THE_CONNECTION) headers.delete(name);
      const body = await buffer(incoming);
      const response = await fetch(new URL(incoming.url ?? "", target), { method: incoming.method ?? "GET", headers, ...(body.length > 0 && { body }) });
      const kept = [...response.headers].filter(([name]) => !OF_THE_CONNECTION.includes(name));
      outgoing.writeHead(response.status, Object.fromEntries(kept)).end(await response.bytes());
    } catch {
      // As a connection that Gateward broke off.
      outgoing.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${port}/`),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
