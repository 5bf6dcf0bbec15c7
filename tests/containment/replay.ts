// Replays recorded tasks through the built worker, in front of MCP servers that answer with the recorded results.
import { type CallToolResult, fromJsonSchema, type jsonSchemaValidator, type McpServer } from "@modelcontextprotocol/server";
import { Fixture } from "../conformance/fixture-server.ts";
import type { Arguments } from "../conformance/fixture-tools.ts";
import type { Tool as RegisteredTool } from "../support/api/types.gen.ts";
import { Gateward, MAC_KEY, type Tenant } from "../support/gateward.ts";
import { answerIn, endpoint, post, PREFIX } from "../support/mcp.ts";
import { ADMINISTRATOR_SCOPES, TENANTS_SCOPE } from "../support/registry.ts";
import { mintAgentToken } from "../support/tokens.ts";
import { type Call, type Data, type Origin, type Scenario, type Server, textOf, type Tool, toolOf, writes } from "./data.ts";

/** How the tenant is registered, and what the harness states. */
export interface Configuration {
  name: string;
  trust: "trusted" | "untrusted";
  instruction: boolean;
  /**
   * Roles and reach of the tools: as the data say, as Gateward derives them, or none, so that every argument of a
   * write is a sink and every write reaches others.
   */
  roles?: "derived" | "none";
  /** These parts are left out. */
  without?: ("result_trust" | "destinations" | "plan")[];
}

export type Outcome = "passed" | "asked" | "denied";

/** The result of one call. */
export interface Decided {
  configuration: string;
  scenario: string;
  /** The call's place in its scenario, from 1. */
  call: number;
  tool: string;
  write: boolean;
  egress: boolean;
  attack: boolean;
  harmless: boolean;
  origins: Record<string, Origin>;
  outcome: Outcome;
  /** What Gateward says about a call that did not pass. */
  reason_code?: unknown;
  policies?: unknown;
  /** The answer's text, which says where a destination was first seen. */
  reason?: unknown;
}

/** The key in `_meta` by which a server finds the recorded result. */
const RECORDED = "containment/call";
/** The servers accept everything that Gateward lets pass. Otherwise their own refusal would look like a decision. */
const ANYTHING: jsonSchemaValidator = { getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }) };
/** Scenarios that run at the same time. Each has an agent and a run of its own. */
const AT_ONCE = 8;

export class Replay {
  readonly #data: Data;
  readonly #gateward: Gateward;
  /** By the server's name. */
  readonly #servers = new Map<string, Fixture>();
  /** Recorded results by the number that the call carries. */
  readonly #results = new Map<number, unknown>();

  private constructor(data: Data, gateward: Gateward) {
    this.#data = data;
    this.#gateward = gateward;
  }

  static async start(data: Data): Promise<Replay> {
    const replay = new Replay(data, await Gateward.start({ vars: { RATE_CAPACITY: 100_000 } }));
    try {
      for (const server of data.servers) {
        const populate = (mcp: McpServer) => replay.#populate(mcp, server);
        replay.#servers.set(server.server, await Fixture.start({ populate }));
      }
      return replay;
    } catch (error) {
      await replay.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const server of this.#servers.values()) await server.close();
    await this.#gateward.close();
  }

  /** Replays every scenario, in a new tenant. */
  async run(configuration: Configuration): Promise<Decided[]> {
    const { scenarios } = this.#data;
    const tenant = await this.#gateward.tenant();
    const tokens = scenarios.map((_, at) => mintAgentToken(MAC_KEY, tenant.name, agentOf(at)));
    await tenant.register({
      agents: scenarios.map((_, at) => ({ agent: agentOf(at) })),
      credentials: tokens.map((credential, at) => ({ credential, agent: agentOf(at), assigns_runs: true })),
    });
    await this.#register(tenant, configuration);

    const decided: Decided[][] = [];
    let next = 0;
    const worker = async () => {
      for (let at = next++; at < scenarios.length; at = next++) {
        const [scenario, credential] = [scenarios[at], tokens[at]];
        if (scenario === undefined || credential === undefined) throw new Error("each scenario has an agent");
        decided[at] = await this.#replay(scenario, credential.token, configuration);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return decided.flat();
  }

  async #register(tenant: Tenant, { trust, roles, without = [] }: Configuration): Promise<void> {
    const api = await tenant.apiWith([...ADMINISTRATOR_SCOPES, TENANTS_SCOPE]);
    const { destinations } = this.#data;
    if (!without.includes("destinations")) await api.change("PATCH", `/v1/tenants/${tenant.name}`, { destinations });
    for (const { server, tools } of this.#data.servers) {
      const path = `/v1/servers/${server}`;
      await api.create("/v1/servers", { server, kind: "mcp", trust, upstream: { url: this.#servers.get(server)?.url, local: true } });
      await api.change("POST", `${path}/approve`);
      const found = await api.all<RegisteredTool>(`${path}/tools`);
      for (const { definition, mutates, egress, risk, result_trust = {}, ...marked } of tools) {
        const registered = found.find(({ tool }) => tool === definition.name);
        if (registered === undefined) throw new Error(`\`${server}\` did not list \`${definition.name}\``);
        const fields = { mutates, egress, risk, ...rolesOf(marked, roles), ...(without.includes("result_trust") ? {} : { result_trust }) };
        const tool = `${path}/tools/${encodeURIComponent(definition.name)}`;
        await api.change("PATCH", tool, fields);
        await api.change("POST", `${tool}/approve`, { definition_sha256: registered.definition_sha256 });
      }
    }
  }

  async #replay(scenario: Scenario, harness: string, configuration: Configuration): Promise<Decided[]> {
    const { instruction, plan } = scenario;
    const run_id = "recorded";
    let token = harness;
    let headers: Record<string, string> = { "x-gateward-run-id": run_id };
    if (configuration.instruction) {
      const planned = plan !== undefined && !configuration.without?.includes("plan") ? { plan } : {};
      const { status, body } = await this.#gateward.post<{ credential: string }>(harness, "/v1/runs", { run_id, instruction, ...planned });
      if (status !== 201) throw new Error(`POST /v1/runs answered ${status}: ${JSON.stringify(body)}`);
      token = body.credential;
      headers = {};
    }
    const decided: Decided[] = [];
    for (const [at, call] of scenario.calls.entries()) {
      const tool = toolOf(this.#data, call);
      decided.push({
        configuration: configuration.name,
        scenario: scenario.name,
        call: at + 1,
        tool: call.tool,
        write: writes(tool),
        egress: tool.egress,
        attack: call.attack ?? false,
        harmless: call.harmless ?? false,
        origins: call.origins ?? {},
        ...(await this.#call(call, token, headers)),
      });
    }
    return decided;
  }

  /** Makes one call. Nobody approves it if it needs approval, and the next call is made in any case. */
  async #call(call: Call, token: string, headers: Record<string, string>): Promise<Pick<Decided, "outcome" | "reason_code" | "policies" | "reason">> {
    const [server = "", name] = call.tool.split("/");
    const number = this.#results.size;
    this.#results.set(number, call.result);
    const params = { name, arguments: call.arguments, _meta: { [RECORDED]: number } };
    const { result, error } = await answerIn(await post(endpoint(this.#gateward, server), token, "tools/call", params, { headers }));
    const meta = (key: string) => result?._meta?.[`${PREFIX}${key}`];
    const [content] = (result?.content ?? []) as { text?: string }[];
    const decision = meta("decision");
    if (decision === undefined) {
      if (content?.text !== textOf(call.result)) throw new Error(`\`${call.tool}\` did not answer as recorded: ${JSON.stringify(error ?? result)}`);
      return { outcome: "passed" };
    }
    const reason_code = meta("reason_code");
    // If a call is denied and no policy decided this, the data have a mistake, such as arguments that do not match the
    // schema.
    if (!String(reason_code).startsWith("policy_")) throw new Error(`\`${call.tool}\` was refused: ${JSON.stringify(result)}`);
    const outcome = decision === "require_approval" ? "asked" : "denied";
    return { outcome, reason_code, policies: meta("policies"), reason: content?.text };
  }

  #populate(mcp: McpServer, { tools }: Server): void {
    for (const { definition } of tools) {
      const { name, description, inputSchema } = definition;
      mcp.registerTool(name, { description, inputSchema: fromJsonSchema<Arguments>(inputSchema, ANYTHING) }, async (_, { mcpReq }) =>
        recorded(this.#results.get(Number(mcpReq._meta?.[RECORDED]))),
      );
    }
  }
}

function agentOf(at: number): string {
  return `agent-${at}`;
}

function rolesOf({ argument_roles = {}, reach = "nobody" }: Partial<Tool>, roles: Configuration["roles"]): object {
  if (roles === "derived") return {};
  return roles === "none" ? { argument_roles: {}, reach: "outside" } : { argument_roles, reach };
}

/** An object is structured content too, as in most servers. */
function recorded(result: unknown): CallToolResult {
  const structured = typeof result === "object" && result !== null && !Array.isArray(result);
  return { content: [{ type: "text", text: textOf(result) }], ...(structured && { structuredContent: result as Record<string, unknown> }) };
}
