// Gateward between the official SDK's client and servers: the MCP project's example, which has
// sessions, and the fixture, which needs none.
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Approval } from "../support/api/types.gen.ts";
import { Fixture } from "../conformance/fixture-server.ts";
import { decided, SECURITY } from "../support/approvals.ts";
import { Everything } from "../support/everything.ts";
import { Gateward, type Tenant, type TestAgent } from "../support/gateward.ts";
import { ACTIONS, answerIn, connectThrough, endpoint, mcpRows, type Negotiation, post, PREFIX, textOf, toolsAt } from "../support/mcp.ts";

const EVERYTHING = "everything";
const FIXTURE = "fixture";
/** The fixture too. In it, no request to the client is approved, and nobody may read resources. */
const MUTE = "mute";

let everything: Everything;
let fixture: Fixture;
let gateward: Gateward;
let tenant: Tenant;
/** Names of the example server's tools, as it lists them. */
let names: string[];

beforeAll(async () => {
  everything = await Everything.start();
  fixture = await Fixture.start();
  gateward = await Gateward.start();
  const tools = await toolsAt(everything.url);
  names = tools.map(({ name }) => name);
  const fixed = await toolsAt(fixture.url);
  const rows = [
    mcpRows(EVERYTHING, tools, { url: everything.url }, {
      "get-resource-links": null,
      "gzip-file-as-resource": { status: "pending" },
      // No call of it may pass, with any arguments.
      "get-tiny-image": { canary: true },
      "get-sum": { mutates: true },
    }),
    mcpRows(FIXTURE, fixed, { url: fixture.url }),
    mcpRows(MUTE, fixed, { url: fixture.url }, Object.fromEntries(ACTIONS.filter((action) => action !== "prompts/get").map((action) => [action, null]))),
  ];
  tenant = await gateward.tenant({ servers: rows.flatMap(({ servers }) => servers), tools: rows.flatMap(({ tools }) => tools) });
});
afterAll(async () => {
  await gateward?.close();
  await fixture?.close();
  await everything?.close();
});

/** An agent that may use all but `get-env` of the example server. */
async function newAgent(name: string): Promise<TestAgent> {
  const granted = names.filter((tool) => tool !== "get-env").map((tool) => `${EVERYTHING}/${tool}`);
  return tenant.agent(name, { allowed_tools: [...granted, ...ACTIONS.map((action) => `${EVERYTHING}/${action}`), `${FIXTURE}/*`, `${MUTE}/*`] });
}

const meta = ({ _meta = {} }: CallToolResult, key: string): unknown => _meta[`${PREFIX}${key}`];

describe.each<{ mode: Negotiation; name: string }>([
  { mode: "legacy", name: "initializes" },
  { mode: "auto", name: "discovers first" },
])("a client that $name, before the example server", ({ mode }) => {
  let agent: TestAgent;
  let client: Client;
  beforeAll(async () => {
    agent = await newAgent(`agent-${mode}`);
    ({ client } = await connectThrough(gateward, EVERYTHING, agent, mode));
  });
  afterAll(() => client?.close());

  test("talks in a session", () => {
    expect(client.getProtocolEra()).toBe("legacy");
    expect(client.getNegotiatedProtocolVersion()).toBe("2025-11-25");
  });

  test("is listed, in order, what its agent could call", async () => {
    const { tools } = await client.listTools();
    const hidden = ["get-env", "get-resource-links", "gzip-file-as-resource", "get-tiny-image"];
    expect(names).toEqual(expect.arrayContaining(hidden));
    expect(tools.map(({ name }) => name)).toEqual(names.filter((name) => !hidden.includes(name)));
  });

  test("calls a tool", async () => {
    const result = await client.callTool({ name: "echo", arguments: { message: "hello" } });
    expect(textOf(result)).toBe("Echo: hello");
    expect(result.isError ?? false).toBe(false);
  });

  test("is told of progress", async () => {
    const seen: unknown[] = [];
    const result = await client.callTool(
      { name: "trigger-long-running-operation", arguments: { duration: 0.3, steps: 3 } },
      { onprogress: (progress) => seen.push(progress) },
    );
    expect(seen).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3 })));
    expect(textOf(result)).toContain("completed");
  });

  test.each([
    ["get-env", "tool_not_granted"],
    // It is unknown until a list passes, which registers it.
    ["get-resource-links", expect.stringMatching(/^tool_(unknown|inactive)$/)],
    ["gzip-file-as-resource", "tool_inactive"],
  ])("is told that it may not call %s", async (name, reason_code) => {
    const result = await client.callTool({ name, arguments: {} });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain(`${EVERYTHING}/${name}`);
    expect(meta(result, "reason_code")).toEqual(reason_code);
    expect(meta(result, "decision")).toBe("deny");
    const id = String(meta(result, "decision_id"));
    expect(await tenant.api.read(`/v1/decisions/${id}`)).toMatchObject({ decision_id: id, agent: agent.name, server: EVERYTHING, tool: name, reason_code });
  });

  test("is told what is allowed when arguments do not match", async () => {
    const result = await client.callTool({ name: "get-sum", arguments: { a: "one", b: 2 } });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain("`/a` must be of type number (`type`)");
    expect(meta(result, "reason_code")).toBe("input_schema_mismatch");
  });

  test("asks for approval, and calls again with it", async () => {
    const call = { name: "get-sum", arguments: { a: 2, b: 3 } };
    const claim = { [`${PREFIX}source_trust`]: "semi_trusted_customer" };
    const asked = await client.callTool({ ...call, _meta: claim });
    expect(asked.isError).toBe(true);
    expect(meta(asked, "decision")).toBe("require_approval");
    expect(meta(asked, "policies")).toEqual(["base/provenance#customer-writes-need-approval"]);
    expect(Date.parse(String(meta(asked, "approval_expires_at")))).toBeGreaterThan(Date.now());
    const id = String(meta(asked, "approval_id"));
    expect(textOf(asked)).toContain(id);
    expect(await tenant.api.read<Approval>(`/v1/approvals/${id}`)).toMatchObject({ status: "pending", agent: agent.name, tool: "get-sum", input: call.arguments });

    const sam = await tenant.approver(`sam-${mode}`, SECURITY);
    await decided(sam, "approve", id);
    const withApproval = { ...claim, [`${PREFIX}approval_id`]: id };
    const changed = await client.callTool({ ...call, arguments: { a: 2, b: 4 }, _meta: withApproval });
    expect(meta(changed, "reason_code")).toBe("approval_mismatch");
    const passed = await client.callTool({ ...call, _meta: withApproval });
    expect(passed.isError ?? false).toBe(false);
    expect(textOf(passed)).toContain("5");
    const again = await client.callTool({ ...call, _meta: withApproval });
    expect(meta(again, "reason_code")).toBe("approval_used");
  });
});

describe("a session", () => {
  const listing = (id: string | undefined, { token }: TestAgent, server = EVERYTHING) =>
    fetch(endpoint(gateward, server), {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2025-11-25",
        "mcp-session-id": id ?? "",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/list" }),
    });

  test("is of one agent and one server", async () => {
    const [owner, other] = [await newAgent("owner"), await newAgent("other")];
    const { client, transport } = await connectThrough(gateward, EVERYTHING, owner, "legacy");
    const id = transport.sessionId;
    expect(id).toMatch(/^[\x21-\x7e]+$/);
    expect((await answerIn(await listing(id, owner))).result).toHaveProperty("tools");
    for (const refused of [await listing(id, other), await listing(id, owner, FIXTURE), await listing(`${id}x`, owner)]) {
      expect(refused.status).toBe(404);
      expect((await answerIn(refused)).error).toBeDefined();
    }
    await client.close();
  });

  test("ends when the client says so", async () => {
    const agent = await newAgent("leaving");
    const { client, transport } = await connectThrough(gateward, EVERYTHING, agent, "legacy");
    const id = transport.sessionId;
    await transport.terminateSession();
    await client.close();
    // For an unknown session, the specification requires 404, and the example server answers 400.
    expect((await listing(id, agent)).status).toBe(400);
  });
});

describe("a client of 2026-07-28, before the fixture", () => {
  const MODE = { pin: "2026-07-28" };
  let agent: TestAgent;
  let client: Client;
  beforeAll(async () => {
    agent = await newAgent("modern");
    ({ client } = await connectThrough(gateward, FIXTURE, agent, MODE, { capabilities: { elicitation: { form: {} } } }));
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const field = "requestedSchema" in params ? Object.keys(params.requestedSchema.properties)[0] : undefined;
      return { action: "accept", content: { [field ?? ""]: field === "ok" ? true : `a ${field}` } };
    });
  });
  afterAll(() => client?.close());

  test("has no session", () => {
    expect(client.getProtocolEra()).toBe("modern");
  });

  test("is listed the tools, for itself alone", async () => {
    const listed = await client.listTools();
    expect(listed.tools.map(({ name }) => name)).toEqual((await toolsAt(fixture.url)).map(({ name }) => name));
    // The fixture says that any cache may store it.
    expect(listed.cacheScope).toBe("private");
    expect(listed.ttlMs).toEqual(expect.any(Number));
  });

  test("calls a tool, and is told of progress", async () => {
    const seen: number[] = [];
    const result = await client.callTool({ name: "test_tool_with_progress", arguments: {} }, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([0, 50, 100]);
    expect(textOf(result)).toBe("done");
  });

  test("reads resources and gets prompts", async () => {
    expect(await client.readResource({ uri: "test://static-text" })).toMatchObject({ contents: [{ text: "The content of static-text." }] });
    expect(await client.getPrompt({ name: "test_simple_prompt" })).toMatchObject({ messages: [{ role: "user" }] });
  });

  test("answers what a tool asks, round after round", async () => {
    const result = await client.callTool({ name: "test_input_required_result_multi_round", arguments: {} });
    expect(textOf(result)).toBe("a name likes a color");
  });

  describe("a state", () => {
    const call = { name: "test_input_required_result_request_state", arguments: {} };
    const inputResponses = { confirm: { action: "accept", content: { ok: true } } };
    let requestState: unknown;
    beforeAll(async () => {
      const { result } = await answerIn(await post(endpoint(gateward, FIXTURE), agent.token, "tools/call", call));
      expect(result).toMatchObject({ resultType: "input_required", inputRequests: { confirm: { method: "elicitation/create" } } });
      requestState = result?.requestState;
    });

    const retry = async ({ token }: TestAgent, state: unknown, server = FIXTURE) =>
      answerIn(await post(endpoint(gateward, server), token, "tools/call", { ...call, inputResponses, requestState: state }));

    test("comes back to the server as it was", async () => {
      expect((await retry(agent, requestState)).result).toMatchObject({ content: [{ type: "text", text: "state-ok" }] });
    });

    test("of another agent is refused", async () => {
      expect((await retry(await newAgent("thief"), requestState)).error).toMatchObject({ code: -32602 });
    });

    test("that was changed is refused", async () => {
      expect((await retry(agent, `${requestState}x`)).error).toMatchObject({ code: -32602 });
    });

    test("of another server is refused", async () => {
      expect((await retry(agent, requestState, MUTE)).error).toMatchObject({ code: -32602 });
    });
  });
});

describe("what a server asks of a client", () => {
  const SAMPLED = { model: "none", role: "assistant", content: { type: "text", text: "Paris" } } as const;
  /** A call of a client with a model, and how often the model was asked. */
  async function sampling(server: string, mode: Negotiation, name: string): Promise<{ asked: number; answer: string }> {
    const { client } = await connectThrough(gateward, server, await newAgent("sampler"), mode, { capabilities: { sampling: {} } });
    let asked = 0;
    client.setRequestHandler("sampling/createMessage", async () => {
      asked += 1;
      return SAMPLED;
    });
    const answer = await client.callTool({ name, arguments: { prompt: "Which city?" } }).then(textOf, String);
    await client.close();
    return { asked, answer };
  }

  test.each<[string, Negotiation, string]>([
    ["in a session", "legacy", "test_sampling"],
    ["in a result", { pin: "2026-07-28" }, "test_input_required_result_sampling"],
  ])("%s reaches it only where the server may ask", async (_, mode, name) => {
    expect(await sampling(FIXTURE, mode, name)).toEqual({ asked: 1, answer: expect.stringContaining("Paris") });
    expect(await sampling(MUTE, mode, name)).toEqual({ asked: 0, answer: expect.not.stringContaining("Paris") });
  });
});

describe("resources that nobody may read", () => {
  test.each<Negotiation>(["legacy", { pin: "2026-07-28" }])("are neither listed nor read: %j", async (mode) => {
    const agent = await newAgent("reader");
    const listed = async (server: string) => {
      const { client } = await connectThrough(gateward, server, agent, mode);
      const { resources } = await client.listResources();
      const { prompts } = await client.listPrompts();
      const read = await client.readResource({ uri: "test://static-text" }).then(({ contents }) => contents.length, () => "refused");
      await client.close();
      return { resources: resources.map(({ uri }) => uri), prompts: prompts.length > 0, read };
    };
    const resources = ["test://static-text", "test://watched-resource", "test://static-binary"];
    expect(await listed(FIXTURE)).toEqual({ resources, prompts: true, read: 1 });
    expect(await listed(MUTE)).toEqual({ resources: [], prompts: true, read: "refused" });
  });
});
