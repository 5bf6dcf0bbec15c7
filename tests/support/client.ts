// Gateward over HTTP, as a caller sees it.
import type { AuthorizeRequest, AuthorizeResponse, ReceiptBody, ReceiptRecord } from "./api/types.gen.ts";

/** Headers of a request. */
export interface Extras {
  ifMatch?: string | null;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

export interface Reply<Body> {
  status: number;
  headers: Headers;
  body: Body;
}

/** A receipt of a lane that has agents. */
export type LaneReceipt = Omit<ReceiptRecord, "body"> & { body: Exclude<ReceiptBody, { kind: "lane_checkpoint" | "registry_event" }> };

export class Client {
  readonly url: URL;

  constructor(url: URL | string) {
    this.url = new URL(url);
  }

  /** Sends one request. Reads the body of the answer as JSON, except for status 204, and for metrics, which are text. */
  async request<Body>(path: string, init: RequestInit = {}): Promise<Reply<Body>> {
    // The connecting address, as the platform reports it.
    const headers = { "cf-connecting-ip": "127.0.0.1", ...(init.headers as Record<string, string> | undefined) };
    const response = await fetch(new URL(path, this.url), { ...init, headers });
    const text = await response.text();
    if (response.headers.get("content-type")?.startsWith("text/plain; version=")) {
      return { status: response.status, headers: response.headers, body: text as Body };
    }
    let body: Body;
    try {
      body = JSON.parse(response.status === 204 && text === "" ? "null" : text);
    } catch {
      throw new Error(`${init.method ?? "GET"} ${path} answered ${response.status} with no JSON: ${text.slice(0, 200)}`);
    }
    return { status: response.status, headers: response.headers, body };
  }

  /** Sends a request with a credential. `body` becomes JSON; a text is sent as it is; if it is absent, there is no body. */
  send<Body>(method: string, token: string, path: string, body?: unknown, extras: Extras = {}): Promise<Reply<Body>> {
    const { ifMatch, idempotencyKey, headers } = extras;
    return this.request(path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(ifMatch == null ? {} : { "if-match": ifMatch }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  }

  get<Body>(token: string, path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.send("GET", token, path, undefined, extras);
  }

  post<Body>(token: string, path: string, body?: unknown, extras?: Extras): Promise<Reply<Body>> {
    return this.send("POST", token, path, body, extras);
  }

  /** JSON Merge Patch: an absent field stays, null clears a field. */
  patch<Body>(token: string, path: string, body: unknown, extras?: Extras): Promise<Reply<Body>> {
    return this.send("PATCH", token, path, body, extras);
  }

  put<Body>(token: string, path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.send("PUT", token, path, undefined, extras);
  }

  delete<Body>(token: string, path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.send("DELETE", token, path, undefined, extras);
  }

  /** The decision on a call that must get one. */
  async decide(token: string, body: AuthorizeRequest, extras?: Extras): Promise<AuthorizeResponse> {
    const reply = await this.post<AuthorizeResponse>(token, "/v1/authorize", body, extras);
    if (reply.status !== 200) {
      throw new Error(`expected a decision, got ${reply.status}: ${JSON.stringify(reply.body)}`);
    }
    return reply.body;
  }

  /** All receipts of a lane, but not of the head log, from `from` on, page after page. */
  async receipts(token: string, lane = 0, from = 1): Promise<LaneReceipt[]> {
    const receipts: LaneReceipt[] = [];
    for (let next: number | null = from; next !== null; ) {
      const page: Reply<{ receipts: LaneReceipt[]; next_from: number | null }> = await this.get(token, `/v1/receipts?lane=${lane}&from=${next}`);
      if (page.status !== 200) {
        throw new Error(`expected receipts, got ${page.status}: ${JSON.stringify(page.body)}`);
      }
      receipts.push(...page.body.receipts);
      next = page.body.next_from;
    }
    return receipts;
  }
}
