// Drives a client through Gateward, in one era, through every cell of the table in docs/mcp.md.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Tool } from "@modelcontextprotocol/client";
import type { Api } from "../support/administration.ts";
import { decided, SECURITY } from "../support/approvals.ts";
import { eventually, Gateward, type Tenant, type TestAgent } from "../support/gateward.ts";
import { ACTIONS, endpoint, mcpRows, PREFIX, toolsAt } from "../support/mcp.ts";
import type { AgentRow, ServerRow } from "../support/registry.ts";
import { html, Upstream } from "../support/upstream.ts";
import { type ClientSpec, commandOf } from "./clients.ts";
import type { Command, Era, Shown } from "./node/driver.ts";
import { Server, type SlowCall } from "./server.ts";

const SERVER = "interop";
/** More than any step needs on a busy machine. */
const REPLY_LIMIT_MS = 30_000;
/** Within which a cancellation must have reached the server: far less than the slow call takes. */
const CANCEL_LIMIT_MS = 5_000;
/** The least integer that JavaScript has a number for, and Gateward does not take. */
const LARGE = 2 ** 53 + 2;
const APPROVAL_ID = /appr_\w+/;
/** Gateward's message, or what a client that connects for each call says of its first request. */
const SERVER_FAILED = /the server answered with an error status|HTTP 502/;
/** `initialize`, the notification after it, a list, and the call. */
const MAX_REQUESTS_OF_A_CALL = 4;

export const CELLS = ["list", "call", "denied", "approval", "error", "schema", "rate", "broken", "abort", "close", "large"] as const;
export type Cell = (typeof CELLS)[number];

/** The result of a cell. */
export interface Finding {
  holds: boolean;
  /** What the client showed, or did. */
  shown: string;
}

/** A client in one era. */
export interface Row {
  client: string;
  era: Era;
  findings: Record<Cell, Finding>;
}

/** A driver's answer to a command. */
interface Reply extends Partial<Shown> {
  tools?: string[];
  able_to_send_meta?: boolean;
  error?: string;
  code?: unknown;
  /** Not only this command but the whole connection has ended. */
  ended?: boolean;
}

/** A client in a process of its own. */
class Driver {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #replies: AsyncIterator<string>;
  #errors = "";

  constructor(spec: ClientSpec) {
    const { command, args, env } = commandOf(spec);
    this.#child = spawn(command, args, { env });
    this.#child.stderr.on("data", (chunk: Buffer) => (this.#errors = `${this.#errors}${chunk}`.slice(-4_000)));
    this.#replies = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async do(command: Command): Promise<Reply> {
    this.#child.stdin.write(`${JSON.stringify(command)}\n`);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer to ${JSON.stringify(command)}; ${this.#errors}`)), REPLY_LIMIT_MS);
    });
    const { value, done } = await Promise.race([this.#replies.next(), late]).finally(() => clearTimeout(timer));
    if (done === true) throw new Error(`the driver ended: ${this.#errors}`);
    return JSON.parse(value) as Reply;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}

/** The Gateward that all clients use. */
export class Interop {
  readonly #gateward: Gateward;
  readonly #servers: Record<Era, Server>;
  readonly #tools: Tool[];

  private constructor(gateward: Gateward, servers: Record<Era, Server>, tools: Tool[]) {
    this.#gateward = gateward;
    this.#servers = servers;
    this.#tools = tools;
  }

  static async start(): Promise<Interop> {
    const servers = { session: await Server.start("session"), stateless: await Server.start("stateless") };
    return new Interop(await Gateward.start(), servers, await toolsAt(servers.stateless.url));
  }

  async close(): Promise<void> {
    await this.#gateward.close();
    for (const server of Object.values(this.#servers)) await server.close();
  }

  /** Each client has a tenant of its own, in which its tools and its agent change on the way. */
  async run(spec: ClientSpec, era: Era): Promise<Row> {
    const server = this.#servers[era];
    const rows = mcpRows(SERVER, this.#tools, { url: server.url }, { write: { mutates: true } });
    const tenant = await this.#gateward.tenant(rows);
    const allowed_tools = [...this.#tools.map(({ name }) => name).filter((name) => name !== "secret"), ...ACTIONS].map((name) => `${SERVER}/${name}`);
    // A customer's text caused the call. By the base policies, people must approve its writes.
    const agent = await tenant.agent("client", { allowed_tools }, { max_source_trust: "semi_trusted_customer" });
    const driver = new Driver(spec);
    try {
      const run = new Run(spec, era, driver, server, this.#gateward, tenant, agent, { agent: agent.name, allowed_tools }, rows.servers);
      return { client: spec.name, era, findings: await run.findings(await tenant.approver("sam", SECURITY)) };
    } finally {
      await driver.end();
    }
  }
}

class Run {
  readonly #spec: ClientSpec;
  readonly #era: Era;
  readonly #driver: Driver;
  readonly #server: Server;
  readonly #tenant: Tenant;
  readonly #row: AgentRow;
  readonly #servers: ServerRow[];
  readonly #connect: Extract<Command, { do: "connect" }>;
  #ableToSendMeta = false;

  constructor(
    spec: ClientSpec,
    era: Era,
    driver: Driver,
    server: Server,
    gateward: Gateward,
    tenant: Tenant,
    { token }: TestAgent,
    row: AgentRow,
    servers: ServerRow[],
  ) {
    this.#spec = spec;
    this.#era = era;
    this.#driver = driver;
    this.#server = server;
    this.#tenant = tenant;
    this.#row = row;
    this.#servers = servers;
    this.#connect = { do: "connect", url: endpoint(gateward, SERVER).href, headers: { authorization: `Bearer ${token}` } };
  }

  async findings(sam: Api): Promise<Record<Cell, Finding>> {
    await this.#connected();
    const names = this.#row.allowed_tools?.map((name) => name.slice(`${SERVER}/`.length)).filter((name) => !ACTIONS.includes(name));
    const cells: Record<Cell, () => Promise<Finding>> = {
      list: async () => {
        const { tools, error } = await this.#driver.do({ do: "tools" });
        return { holds: JSON.stringify(tools) === JSON.stringify(names), shown: error ?? String(tools) };
      },
      call: () => this.#called("echo", { message: "hello" }, ({ text }) => text === "Echo: hello"),
      denied: () => this.#denied(),
      approval: () => this.#approved(sam),
      error: () => this.#called("fail", {}, isError("the disk is full")),
      schema: () => this.#called("add", { a: "one", b: 2 }, isError("/a", "integer")),
      rate: () => this.#overRate(),
      broken: () => this.#serverFails(),
      abort: () => this.#cancelled("abort"),
      close: () => this.#cancelled("close"),
      large: () => this.#called("add", { a: LARGE, b: 2 }, ({ text, error }) => (text ?? error ?? "").includes("2^53")),
    };
    const findings: Partial<Record<Cell, Finding>> = {};
    for (const cell of CELLS) {
      const finding = await cells[cell]();
      findings[cell] = await this.#goesOn(finding);
    }
    return findings as Record<Cell, Finding>;
  }

  async #connected(headers: Record<string, string> = {}): Promise<void> {
    const { error, able_to_send_meta } = await this.#driver.do({ ...this.#connect, headers: { ...this.#connect.headers, ...headers } });
    if (error !== undefined) throw new Error(`${this.#spec.name} did not connect: ${error}`);
    this.#ableToSendMeta = able_to_send_meta === true;
  }

  async #reconnected(headers: Record<string, string> = {}): Promise<void> {
    await this.#driver.do({ do: "close" });
    await this.#connected(headers);
  }

  async #called(name: string, args: Record<string, unknown>, holds: (reply: Reply) => boolean, meta?: Record<string, string>): Promise<Finding> {
    const reply = await this.#driver.do({ do: "call", name, arguments: args, ...(meta && { meta }) });
    return { holds: holds(reply), shown: shownBy(reply) };
  }

  /** The result, if an ordinary call on the same connection then succeeds. */
  async #goesOn({ holds, shown }: Finding): Promise<Finding> {
    const reply = await this.#driver.do({ do: "call", name: "echo", arguments: { message: "on" } });
    if (reply.text === "Echo: on") return { holds, shown };
    if (reply.ended !== true) await this.#driver.do({ do: "close" });
    await this.#connected();
    return { holds: false, shown: `${shown}; THEN ${shownBy(reply)}` };
  }

  /** A write that untrusted text caused, which base policies forbid. */
  async #denied(): Promise<Finding> {
    await this.#reconnected({ "x-gateward-source-trust": "untrusted_external" });
    const finding = await this.#called("write", { path: "/etc/passwd" }, isError(`The call of ${SERVER}/write was denied`));
    const found = await this.#goesOn(finding);
    await this.#reconnected();
    return found;
  }

  async #approved(sam: Api): Promise<Finding> {
    const path = { path: `/${randomUUID()}` };
    const asked = await this.#driver.do({ do: "call", name: "write", arguments: path });
    const [id] = APPROVAL_ID.exec(asked.text ?? "") ?? [];
    if (id === undefined || asked.is_error !== true) return { holds: false, shown: shownBy(asked) };
    await decided(sam, "approve", id);
    const wrote = ({ text }: Reply) => text === `wrote ${path.path}`;
    if (this.#ableToSendMeta) return this.#called("write", path, wrote, { [`${PREFIX}approval_id`]: id });
    await this.#reconnected({ "x-gateward-approval-id": id });
    const { holds, shown } = await this.#called("write", path, wrote);
    await this.#reconnected();
    return { holds, shown: `${shown}, with the header` };
  }

  /** Some clients send other requests before a call, so that the call is not what is over the rate. */
  async #overRate(): Promise<Finding> {
    let finding: Finding = { holds: false, shown: "" };
    for (let capacity = 1; capacity <= MAX_REQUESTS_OF_A_CALL && !finding.holds; capacity += 1) {
      await this.#tenant.change({ agents: [{ ...this.#row, request_rate: { capacity, refill_per_s: 0.001 } }] });
      let reply: Reply = {};
      for (let calls = 0; calls <= capacity && reply.error === undefined && reply.is_error !== true; calls += 1) {
        reply = await this.#driver.do({ do: "call", name: "echo", arguments: { message: "again" } });
      }
      finding = { holds: (reply.error ?? reply.text ?? "").includes("Too many requests"), shown: shownBy(reply) };
      if (reply.ended === true) break;
    }
    await this.#tenant.change({ agents: [{ ...this.#row, request_rate: { capacity: 1_000, refill_per_s: 1_000 } }] });
    return finding;
  }

  /** The program that answers in place of the server is not an MCP server. */
  async #serverFails(): Promise<Finding> {
    const upstream = await Upstream.start(html("<h1>Internal Server Error</h1>", 500));
    await this.#tenant.change({ servers: this.#servers.map((row) => ({ ...row, upstream: { ...row.upstream, url: upstream.url() } })) });
    const finding = await this.#called("echo", { message: "anybody?" }, ({ text, error }) => SERVER_FAILED.test(text ?? error ?? ""));
    await this.#tenant.change({ servers: this.#servers });
    await upstream.close();
    return finding;
  }

  async #cancelled(how: "abort" | "close"): Promise<Finding> {
    const key = randomUUID();
    await this.#driver.do({ do: "begin", name: "slow", arguments: { key } });
    const call = await this.#started(key);
    if (call === undefined) return { holds: false, shown: "the call did not reach the server" };
    await this.#driver.do({ do: how });
    await eventually("the server was told", async () => call.cancelled !== null, CANCEL_LIMIT_MS).catch(() => undefined);
    if (how === "close") await this.#connected();
    const expected = this.#spec.silent?.includes(how) !== true;
    const eras = call.era === this.#era ? "" : ` in a ${call.era} connection`;
    return { holds: expected === (call.cancelled !== null) && eras === "", shown: `${call.cancelled ?? "nothing"}${eras}` };
  }

  async #started(key: string): Promise<SlowCall | undefined> {
    await eventually("the slow call reached the server", async () => this.#server.slowCalls.has(key)).catch(() => undefined);
    return this.#server.slowCalls.get(key);
  }
}

function isError(...parts: string[]): (reply: Reply) => boolean {
  return ({ is_error, text = "" }) => is_error === true && parts.every((part) => text.includes(part));
}

function shownBy({ text, is_error, error, code, ended }: Reply): string {
  if (error === undefined) return `${is_error === true ? "isError: " : ""}${text}`;
  return `${ended === true ? "ENDED: " : "error: "}${code === null || code === undefined ? "" : `${String(code)} `}${error}`;
}
