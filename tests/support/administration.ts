// The administration API, as an administrator's program uses it: its objects, and their routes
// with one credential.
import type { Agent, IssuedCredential, Problem, Tool } from "./api/types.gen.ts";
import type { Client, Extras, Reply } from "./client.ts";

/** A new credential. Only an answer that is repeated for an `Idempotency-Key` has no token. */
export type NewCredential = IssuedCredential & { token: string };

/** One credential's view of the API. */
export class Api {
  readonly client: Client;
  readonly token: string;

  constructor(client: Client, token: string) {
    this.client = client;
    this.token = token;
  }

  get<Body = Problem>(path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.client.get(this.token, path, extras);
  }

  post<Body = Problem>(path: string, body?: unknown, extras?: Extras): Promise<Reply<Body>> {
    return this.client.post(this.token, path, body, extras);
  }

  patch<Body = Problem>(path: string, body: unknown, extras?: Extras): Promise<Reply<Body>> {
    return this.client.patch(this.token, path, body, extras);
  }

  put<Body = Problem>(path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.client.put(this.token, path, extras);
  }

  delete<Body = Problem>(path: string, extras?: Extras): Promise<Reply<Body>> {
    return this.client.delete(this.token, path, extras);
  }

  /** The record at `path`, which must exist. */
  async read<Body>(path: string): Promise<Body> {
    return done(`GET ${path}`, await this.get<Body>(path));
  }

  /** A change that every lane must confirm. */
  async change<Body>(method: "POST" | "PATCH" | "PUT" | "DELETE", path: string, body?: unknown, extras?: Extras): Promise<Body> {
    return done(`${method} ${path}`, await this.client.send<Body>(method, this.token, path, body, extras));
  }

  create<Body>(path: string, body: unknown): Promise<Body> {
    return this.change("POST", path, body);
  }

  agent(name: string, fields: object = {}): Promise<Agent> {
    return this.create("/v1/agents", { agent: name, environment: "production", ...fields });
  }

  /** What an administrator does to an agent, in this order. */
  async act(name: string, ...actions: string[]): Promise<Agent> {
    for (const action of actions) await this.change("POST", `/v1/agents/${name}/${action}`);
    return this.read(`/v1/agents/${name}`);
  }

  /** A credential of an agent, with the highest source trust that a credential can have. */
  credential(agent: string, fields: object = {}): Promise<NewCredential> {
    return this.create("/v1/credentials", { kind: "agent", agent, max_source_trust: "trusted_internal_signed", ...fields });
  }

  /** A credential of an administrator, who is created if the name is new. */
  async administrator(name: string, scopes: string[], fields: object = {}): Promise<NewCredential> {
    const { status } = await this.post("/v1/administrators", { administrator: name });
    if (status !== 201 && status !== 409) throw new Error(`the administrator ${name} was answered ${status}`);
    return this.create("/v1/credentials", { kind: "administrator", administrator: name, scopes, ...fields });
  }

  async group(name: string, ...agents: string[]): Promise<void> {
    await this.create("/v1/groups", { group: name });
    for (const agent of agents) await this.change("PUT", `/v1/groups/${name}/members/agents/${agent}`);
  }

  /** A server and its tools that read, all of them approved. */
  async server(name: string, ...tools: string[]): Promise<void> {
    const path = `/v1/servers/${name}`;
    await this.create("/v1/servers", { server: name, kind: "mcp" });
    await this.change("POST", `${path}/approve`);
    for (const tool of tools) {
      await this.create(`${path}/tools`, { tool, mutates: false, risk: "low" });
      await this.change("POST", `${path}/tools/${encodeURIComponent(tool)}/approve`);
    }
  }

  /** Approves the tool at this path as it is now. */
  async approveTool(path: string): Promise<Tool> {
    const { definition_sha256 } = await this.read<Tool>(path);
    return this.change("POST", `${path}/approve`, definition_sha256 === null ? undefined : { definition_sha256 });
  }

  /** All of a list, page after page. */
  async all<Item>(path: string, limit = 200): Promise<Item[]> {
    const items: Item[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const url: URL = new URL(path, this.client.url);
      url.searchParams.set("limit", String(limit));
      if (cursor !== "") url.searchParams.set("cursor", cursor);
      const page: Page = await this.read<Page>(`${url.pathname}${url.search}`);
      items.push(...itemsOf<Item>(page));
      cursor = page.next_cursor;
    }
    return items;
  }
}

/** A page of a list. The list has the plural name of its records. */
export interface Page {
  next_cursor: string | null;
  [plural: string]: unknown;
}

export function itemsOf<Item>(page: Page): Item[] {
  const lists = Object.entries(page).flatMap(([name, value]) => (Array.isArray(value) && name !== "flushed_through" ? [value as Item[]] : []));
  if (lists.length !== 1 || lists[0] === undefined) throw new Error(`expected one list, got ${JSON.stringify(page)}`);
  return lists[0];
}

function done<Body>(what: string, { status, body }: Reply<Body>): Body {
  if (![200, 201, 204].includes(status)) throw new Error(`${what} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
