// What reaches a server, and what comes back from it, where the mode for secrets is `redact`.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Gateward, Tenant, TestAgent } from "../support/gateward.ts";
import { answerIn } from "../support/mcp.ts";
import { asked, call, Recorder, results, stateless } from "../support/recorder.ts";
import { type Exchange, json, type Upstream } from "../support/upstream.ts";

/** Made up, in the form of a token. */
const TOKEN = `github_pat_${"11ABCDEFG0abcdefghijkl"}_${"aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9dE1fG3hI5jK7lM9nO"}`;
const MARKER = "[redacted:github-fine-grained-token]";

let recorder: Recorder;
let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;
let agent: TestAgent;

beforeAll(async () => {
  recorder = await Recorder.start();
  ({ gateward, upstream, tenant } = recorder);
  await recorder.server("discreet");
  const row = { trust: "trusted", inspects_results: true, shield: { secret: "redact" } } as const;
  const routes = [
    { method: "GET", path: "/notes", tool: "search" },
    { method: "POST", path: "/notes/{name}", tool: "save" },
  ];
  await tenant.register({
    servers: [
      { ...row, server: "discreet", kind: "mcp", upstream: { url: upstream.url("/mcp"), local: true } },
      { ...row, server: "discreet-api", kind: "http", upstream: { url: upstream.url(), local: true, routes } },
    ],
    tools: [
      { server: "discreet-api", tool: "search", mutates: false, risk: "low" },
      { server: "discreet-api", tool: "save", mutates: true, risk: "low" },
    ],
  });
  agent = await tenant.agent("reader");
  await recorder.forget();
});
afterAll(() => recorder?.close());
beforeEach(() => recorder.reset());

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(`/http/discreet-api${path}`, gateward.url), { ...init, headers: { authorization: `Bearer ${agent.token}`, "content-type": "application/json" } });
}

/** All that the upstream got of its only request. */
function got(): string {
  expect(upstream.received).toHaveLength(1);
  const [{ path, rawHeaders, text }] = upstream.received as [Exchange];
  return [path, ...rawHeaders, text].join("\n");
}

describe("a secret in a call of an HTTP tool", () => {
  test("is replaced in the body, and the rest arrives as it was sent", async () => {
    upstream.answer = json({ saved: true });
    const response = await ask("/notes/a", { method: "POST", body: JSON.stringify({ note: `use ${TOKEN} here`, tags: [TOKEN, "ci"], at: 7 }) });
    expect([response.status, response.headers.get("x-gateward-decision")]).toEqual([200, "redact"]);
    expect(got()).not.toContain("github_pat");
    expect(JSON.parse(upstream.received[0]?.text ?? "")).toEqual({ note: `use ${MARKER} here`, tags: [MARKER, "ci"], at: 7 });
  });

  test("is replaced in the query", async () => {
    upstream.answer = json({ notes: [] });
    expect((await ask(`/notes?q=${TOKEN}&page=2`)).status).toBe(200);
    expect(got()).not.toContain("github_pat");
    const sent = new URL(upstream.received[0]?.path ?? "", upstream.url()).searchParams;
    expect([...sent]).toEqual([["q", MARKER], ["page", "2"]]);
  });

  test("does not arrive if it is in the path", async () => {
    const response = await ask(`/notes/${TOKEN}`, { method: "POST", body: "{}" });
    expect(response.status).toBe(403);
    expect(upstream.received).toEqual([]);
  });

  test("is replaced in the answer too", async () => {
    upstream.answer = json({ note: `use ${TOKEN} here` });
    expect(await (await ask("/notes")).json()).toEqual({ note: `use ${MARKER} here` });
  });
});

describe("a secret in a call of an MCP tool", () => {
  const params = { name: "change", arguments: { note: `use ${TOKEN} here`, list: [{ token: TOKEN, at: 7 }] } };
  // Two rules match the whole text of the second. The one that looks at the name of the field comes first.
  const arrived = { note: `use ${MARKER} here`, list: [{ token: "[redacted:assigned-secret]", at: 7 }] };

  test.each<[string, () => Promise<Response>]>([
    ["of the revision with sessions", () => recorder.send(call("change", params), { server: "discreet", token: agent.token })],
    ["of the stateless revision", () => {
      upstream.answer = results({ resultType: "complete", content: [] });
      return recorder.sendStateless(stateless("tools/call", params), { server: "discreet", token: agent.token });
    }],
  ])("is replaced in the arguments: %s", async (_, sends) => {
    const { result } = await answerIn(await sends());
    expect(result).not.toHaveProperty("isError");
    expect(got()).not.toContain("github_pat");
    expect(asked(upstream.received[0] as Exchange).params.arguments).toEqual(arrived);
  });

  test("is replaced in the answer too", async () => {
    upstream.answer = results({ content: [{ type: "text", text: `use ${TOKEN} here` }] });
    const { result } = await answerIn(await recorder.send(call("record"), { server: "discreet", token: agent.token }));
    expect(result?.content).toEqual([{ type: "text", text: `use ${MARKER} here` }]);
  });
});
