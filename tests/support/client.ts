// Gateward over HTTP, as a caller sees it.
import type { Receipt } from "./receipts.ts";
import type { Answer, CallBody } from "./scenario.ts";

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  request_id: string;
}

export interface DecisionRow {
  decision_id: string;
  lane: number;
  seq: number;
  at: string;
  agent: string;
  server: string;
  tool: string;
  decision: string;
  reason_code: string;
  response: Answer;
}

export interface DecisionPage {
  decisions: DecisionRow[];
  next_cursor: string | null;
  flushed_through: { lane: number; seq: number; at: string }[];
}

export interface ReceiptPage {
  receipts: Receipt[];
  next_from: number | null;
}

export interface Verification {
  verified: boolean;
  checked: number;
  from: number;
  to: number;
  broken_at: number | null;
  problem: string | null;
}

export interface Reply<Body> {
  status: number;
  headers: Headers;
  body: Body;
}

export class Client {
  readonly url: URL;

  constructor(url: URL | string) {
    this.url = new URL(url);
  }

  /** One request; the body of the reply is read as JSON whatever its status. */
  async request<Body>(path: string, init: RequestInit = {}): Promise<Reply<Body>> {
    const response = await fetch(new URL(path, this.url), init);
    const text = await response.text();
    let body: Body;
    try {
      body = JSON.parse(text);
    } catch {
      throw new Error(`${init.method ?? "GET"} ${path} answered ${response.status} with no JSON: ${text.slice(0, 200)}`);
    }
    return { status: response.status, headers: response.headers, body };
  }

  get<Body>(token: string, path: string): Promise<Reply<Body>> {
    return this.request(path, { headers: { authorization: `Bearer ${token}` } });
  }

  post<Body>(token: string, path: string, body: unknown): Promise<Reply<Body>> {
    return this.request(path, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  }

  /** The decision on a call that must get one. */
  async decide(token: string, body: CallBody): Promise<Answer> {
    const reply = await this.post<Answer>(token, "/v1/authorize", body);
    if (reply.status !== 200) {
      throw new Error(`expected a decision, got ${reply.status}: ${JSON.stringify(reply.body)}`);
    }
    return reply.body;
  }

  /** All receipts of a lane from `from` on, page after page. */
  async receipts(token: string, lane = 0, from = 1): Promise<Receipt[]> {
    const receipts: Receipt[] = [];
    for (let next: number | null = from; next !== null; ) {
      const page: Reply<ReceiptPage> = await this.get(token, `/v1/receipts?lane=${lane}&from=${next}`);
      if (page.status !== 200) {
        throw new Error(`expected receipts, got ${page.status}: ${JSON.stringify(page.body)}`);
      }
      receipts.push(...page.body.receipts);
      next = page.body.next_from;
    }
    return receipts;
  }
}
