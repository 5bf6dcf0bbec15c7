// Signed requests (docs/signing.md): a credential with a signing key must use it, a signature is valid for exactly one
// request, and only a signed request may claim a signed internal source.
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { Agent, AuthorizeResponse, Problem } from "../support/api/types.gen.ts";
import { sign } from "../../docs/snippets/sign.ts";
import type { Api, NewCredential } from "../support/administration.ts";
import type { Reply } from "../support/client.ts";
import { BOOTSTRAP_SECRET, Gateward, MAC_KEY, readCall, type Tenant } from "../support/gateward.ts";
import { call, request as message, results, stateless } from "../support/recorder.ts";
import { json, Upstream } from "../support/upstream.ts";

const NEWER_MAC_KEY = "a-newer-mac-key-for-tests-of-47-characters-0000";
/** `make test` builds it. */
const BINARY = "target/debug/gateward";

let gateward: Gateward;
let upstream: Upstream;
let tenant: Tenant;
let api: Api;
/** The credential of the agent `coder`. */
let signed: NewCredential;
let unsigned: NewCredential;
/** The credential of an administrator who may change the registry. */
let signer: NewCredential;

beforeAll(async () => {
  upstream = await Upstream.start();
  gateward = await Gateward.start({ vars: { RATE_CAPACITY: 10_000 } });
  tenant = await gateward.tenant();
  api = tenant.api;
  await api.agent("coder");
  signed = await api.credential("coder", { signed: true });
  unsigned = await api.credential("coder");
  signer = await api.administrator("signer", ["registry:read", "registry:write"], { signed: true });
  await tenant.register({
    servers: [
      { server: "api", kind: "http", trust: "trusted", upstream: { url: upstream.url("/v3/"), local: true, routes: [{ method: "GET", path: "/issues", tool: "list" }, { method: "POST", path: "/issues", tool: "create" }] } },
      { server: "recorder", kind: "mcp", trust: "trusted", upstream: { url: upstream.url("/mcp"), local: true } },
    ],
    tools: [
      { server: "api", tool: "list", mutates: false, risk: "low" },
      { server: "api", tool: "create", mutates: true, risk: "low" },
      { server: "recorder", tool: "record", mutates: false, risk: "low" },
    ],
  });
});
afterAll(async () => {
  await gateward?.close();
  await upstream?.close();
});
beforeEach(() => {
  upstream.received.length = 0;
  upstream.answer = json({ ok: true });
});
afterEach(() => {
  vi.useRealTimers();
});

type Credential = Pick<NewCredential, "token" | "signing_key">;

/** A request as it is on the wire. */
interface Sent {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** A signed request; it can be sent more than once, and with changes. */
function signedRequest({ token, signing_key }: Credential, method: string, path: string, body?: string, headers: Record<string, string> = {}): Sent {
  const all: Record<string, string> = { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers };
  return { method, path, headers: sign(method, new URL(path, gateward.url), token, signing_key ?? "", all, body), body };
}

function send<Body = AuthorizeResponse & Problem>({ path, method, headers, body }: Sent, of = gateward): Promise<Reply<Body>> {
  return of.request<Body>(path, { method, headers, ...(body !== undefined && { body }) });
}

/** The status, and the code of the problem if there is one. */
async function outcome(request: Sent): Promise<string> {
  const { status, body } = await send<{ code?: string } | null>(request);
  return [status, body?.code].filter((part) => part !== undefined).join(" ");
}

const body = JSON.stringify(readCall());
const authorize = (credential: Credential, text = body) => signedRequest(credential, "POST", "/v1/authorize", text);

const REPLAYED = "409 nonce_replayed";
const INVALID = "401 signature_invalid";

describe("a captured token and signature", () => {
  test("freeze no agent a second time, and rotate no credential", async () => {
    await api.agent("victim");
    const status = async () => (await api.read<Agent>("/v1/agents/victim")).status;
    const captured = signedRequest(signer, "POST", "/v1/agents/victim/freeze");
    expect(await outcome(captured)).toBe("200");
    expect(await status()).toBe("frozen");
    await api.act("victim", "unfreeze");
    expect(await outcome(captured)).toBe(REPLAYED);
    expect(await status()).toBe("active");
    for (const path of [`/v1/credentials/${signer.key_id}/rotate`, "/v1/agents/coder/freeze", "/v1/agents/victim/freeze?x=1"]) {
      expect(await outcome({ ...captured, path })).toBe(INVALID);
    }
    const issued = await gateward.rows("SELECT key_id FROM credentials WHERE tenant = ?1 AND administrator = 'signer'", tenant.name);
    expect(issued).toEqual([{ key_id: signer.key_id }]);
  });

  test("of a read, change nothing", async () => {
    const captured = signedRequest(signer, "GET", "/v1/agents/coder");
    // A read needs no nonce, because a repeated read returns nothing new.
    for (let reads = 0; reads < 2; reads += 1) expect(await outcome(captured)).toBe("200");
    for (const method of ["DELETE", "PATCH"]) expect(await outcome({ ...captured, method })).toBe(INVALID);
    expect(await outcome({ ...captured, method: "POST", path: "/v1/agents/coder/freeze" })).toBe(INVALID);
  });

  test("are good once, also if both are sent at the same time", async () => {
    const change = signedRequest(signer, "POST", "/v1/groups", JSON.stringify({ group: "raced" }));
    const call = authorize(signed);
    for (const request of [change, call]) {
      const outcomes = await Promise.all([1, 2, 3, 4].map(() => outcome(request)));
      expect(outcomes.filter((one) => one === REPLAYED)).toHaveLength(3);
      expect(outcomes.filter((one) => one.startsWith("20"))).toHaveLength(1);
    }
  });

  test("are good for a change that its answer did not reach: the request is signed anew", async () => {
    const headers = { "idempotency-key": "once" };
    const text = JSON.stringify({ group: "repeated" });
    const [first, second] = [1, 2].map(() => signedRequest(signer, "POST", "/v1/groups", text, headers)) as [Sent, Sent];
    expect(await outcome(first)).toBe("201");
    expect(await outcome(first)).toBe(REPLAYED);
    const again = await send(second);
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
  });

  test("are good for five minutes", async () => {
    const now = Date.now();
    for (const [at, expected] of [[now - 290_000, "200"], [now - 310_000, "409 timestamp_stale"], [now + 310_000, "409 timestamp_stale"]] as const) {
      vi.useFakeTimers({ toFake: ["Date"], now: at });
      const requests = [authorize(signed), signedRequest(signer, "GET", "/v1/agents")];
      vi.useRealTimers();
      for (const request of requests) expect(await outcome(request)).toBe(expected);
    }
  });

  test("of a request that is answered without a row are good once, too", async () => {
    const dry = authorize(signed, JSON.stringify(readCall({ dry_run: true })));
    const kept = JSON.stringify(readCall({ request_id: "kept" }));
    const [first, again] = [authorize(signed, kept), authorize(signed, kept)];
    for (const request of [dry, first, again]) {
      expect(await outcome(request)).toBe("200");
      expect(await outcome(request)).toBe(REPLAYED);
    }
    await tenant.evict();
    expect(await outcome(dry)).toBe(REPLAYED);
  });
});

describe("a proxied signed request", () => {
  test("under /http cannot be replayed, nor sent to another path, query, method or server", async () => {
    const captured = signedRequest(signed, "GET", "/http/api/issues?state=open");
    expect(await outcome(captured)).toBe("200");
    expect(await outcome(captured)).toBe(REPLAYED);
    for (const path of ["/http/api/issues", "/http/api/issues?state=all", "/http/other/issues?state=open"]) {
      expect(await outcome({ ...captured, path })).toBe(INVALID);
    }
    expect(await outcome({ ...captured, method: "DELETE" })).toBe(INVALID);
    expect(upstream.received.map(({ path }) => path)).toEqual(["/v3/issues?state=open"]);
    // The signature is for Gateward.
    for (const name of ["signature", "signature-input", "content-digest"]) expect(upstream.received[0]?.headers).not.toHaveProperty(name);
  });

  const mcp = ([sent, fields]: ReturnType<typeof stateless>) =>
    signedRequest(signed, "POST", "/mcp/recorder", JSON.stringify(sent), { accept: "application/json, text/event-stream", ...(fields as Record<string, string>) });

  test.each([
    ["a call", stateless("tools/call", { name: "record", arguments: {} }), { content: [] }],
    // Two commands to the lane: whether the request passes, and which items of the list are shown.
    ["a listing", stateless("tools/list"), { tools: [{ name: "record", inputSchema: { type: "object" } }] }],
  ])("under /mcp cannot be replayed: %s", async (_, asked, result) => {
    upstream.answer = results(result);
    const captured = mcp(asked);
    const first = await send<{ result?: object }>(captured);
    expect(first.body.result).toBeDefined();
    const again = await send<{ error?: { message: string } }>(captured);
    expect(again.body).toMatchObject({ error: expect.anything() });
    expect(JSON.stringify(again.body)).toContain("nonce");
    for (const header of ["mcp-method", "mcp-protocol-version"]) {
      const changed = { ...captured, headers: { ...captured.headers, [header]: "x" } };
      expect((await send<{ result?: object }>(changed)).body.result).toBeUndefined();
    }
    expect(upstream.received).toHaveLength(1);
  });

  test("under /mcp cannot be replayed as a batch, of which no message passes", async () => {
    upstream.answer = json([1, 2].map((id) => ({ jsonrpc: "2.0", id, result: { content: [] } })));
    const batch = JSON.stringify([{ ...call("record"), id: 1 }, { ...call("record"), id: 2 }]);
    const captured = signedRequest(signed, "POST", "/mcp/recorder", batch, { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-03-26" });
    expect((await send<{ result?: object }[]>(captured)).body.map(({ result }) => result !== undefined)).toEqual([true, true]);
    expect((await send<{ error?: object }[]>(captured)).body.map(({ error }) => error !== undefined)).toEqual([true, true]);
    expect(upstream.received).toHaveLength(1);
  });

  test("cannot be moved into another session", async () => {
    const sent = JSON.stringify(message("ping"));
    const captured = signedRequest(signed, "POST", "/mcp/recorder", sent, { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" });
    const moved = { ...captured, headers: { ...captured.headers, "mcp-session-id": "another" } };
    expect((await send(moved)).status).toBe(401);
    expect(upstream.received).toHaveLength(0);
  });
});

describe("an X-Gateward-Source-Trust header breaks the signature", () => {
  const HEADER = "x-gateward-source-trust";
  const create = (headers: Record<string, string>) => signedRequest(signed, "POST", "/http/api/issues", "{}", headers);

  test("if it is removed or changed: a write that was denied as untrusted is not allowed", async () => {
    expect(await outcome(create({ [HEADER]: "untrusted_external" }))).toBe("403 call_denied");
    const captured = create({ [HEADER]: "untrusted_external" });
    const { [HEADER]: _, ...rest } = captured.headers;
    expect(await outcome({ ...captured, headers: rest })).toBe(INVALID);
    expect(await outcome({ ...captured, headers: { ...captured.headers, [HEADER]: "trusted_internal_signed" } })).toBe(INVALID);
    expect(upstream.received).toHaveLength(0);
  });

  test("if it is added", async () => {
    const captured = create({});
    for (const header of [HEADER, "x-gateward-run-id", "x-gateward-user-id", "x-gateward-approval-id"]) {
      expect(await outcome({ ...captured, headers: { ...captured.headers, [header]: "unknown" } })).toBe(INVALID);
    }
    expect(await outcome(captured)).toBe("200");
    expect(upstream.received).toHaveLength(1);
  });
});

test("the signing key is derived, and given with the credential", () => {
  expect(signed).toMatchObject({ signed: true, signing_key: derived(signed.key_id) });
  expect(unsigned).toMatchObject({ signed: false, signing_key: null });
});

/** The signing key, as the contract derives it. */
const derived = (keyId: string, macKey = MAC_KEY) => createHmac("sha256", macKey).update(`signing-key:${tenant.name}.${keyId}`).digest("hex");

test("with a signed credential, a request without a signature is refused", async () => {
  const without = ({ method, path, body }: Sent, token: string) => ({ method, path, body, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } });
  for (const [request, { token }] of [
    [authorize(signed), signed],
    [signedRequest(signed, "GET", "/http/api/issues"), signed],
    [signedRequest(signed, "GET", "/v1/decisions"), signed],
    [signedRequest(signer, "GET", "/v1/agents"), signer],
    [signedRequest(signer, "POST", "/v1/agents/coder/freeze"), signer],
  ] as const) {
    expect(await outcome(without(request, token))).toBe("401 signature_required");
  }
});

describe("a signature that does not verify is refused, whether the credential needs one or not", () => {
  const change = (request: Sent, name: string, from: string | RegExp, to: string): Sent => ({ ...request, headers: { ...request.headers, [name]: (request.headers[name] ?? "").replace(from, to) } });
  const wrong: [string, (credential: Credential) => Sent][] = [
    ["of another body", (of) => ({ ...authorize(of), body: `${body} ` })],
    ["of the same JSON in another spelling", (of) => ({ ...authorize(of), body: body.replace(/":/g, '": ') })],
    ["by another key", ({ token }) => authorize({ token, signing_key: derived("another") })],
    ["by the key's bytes instead of its text", ({ token, signing_key }) => authorize({ token, signing_key: Buffer.from(signing_key ?? "", "hex").toString("latin1") })],
    ["without its nonce", (of) => change(authorize(of), "signature-input", /;nonce="[^"]*"/, "")],
    ["of another time", (of) => change(authorize(of), "signature-input", /created=\d/, "created=9")],
    ["of another key id", (of) => change(authorize(of), "signature-input", /keyid="/, 'keyid="x')],
    ["without a component", (of) => change(authorize(of), "signature-input", '"@query" ', "")],
    ["that is none", (of) => change(authorize(of), "signature", /:.*:/, "::")],
    ["that is missing", (of) => change(authorize(of), "signature", /.*/, "")],
    ["of another algorithm", (of) => change(authorize(of), "signature-input", /$/, ';alg="ed25519"')],
    ["twice", (of) => change(authorize(of), "signature-input", /^sig1=(.*)$/, "sig1=$1, sig2=$1")],
    ["of no component", (of) => change(authorize(of), "signature-input", /.*/, "sig1")],
  ];
  test.each(wrong)("%s", async (_, make) => {
    for (const { token, key_id } of [signed, unsigned]) expect(await outcome(make({ token, signing_key: derived(key_id) }))).toBe(INVALID);
  });
});

test("a request that is signed is decided, and may claim to be trusted_internal_signed", async () => {
  expect((await send(authorize(signed))).body).toMatchObject({ decision: "allow", root_trust_level: "trusted_internal_signed" });
});

describe("trusted_internal_signed counts for less", () => {
  test("when the request was not signed", async () => {
    const reply = await gateward.post<AuthorizeResponse>(unsigned.token, "/v1/authorize", body);
    expect(reply.body).toMatchObject({ decision: "allow", root_trust_level: "trusted_internal_unsigned" });
  });

  test("when the credential needs no signature, though the request has a good one", async () => {
    const reply = await send(authorize({ token: unsigned.token, signing_key: derived(unsigned.key_id) }));
    expect(reply.body).toMatchObject({ decision: "allow", root_trust_level: "trusted_internal_unsigned" });
  });

  test("when the credential is trusted less", async () => {
    const credential = await api.credential("coder", { signed: true, max_source_trust: "semi_trusted_customer" });
    expect((await send(authorize(credential))).body).toMatchObject({ root_trust_level: "semi_trusted_customer" });
  });
});

test("a claim of less stays what it is", async () => {
  const text = JSON.stringify(readCall({ context: { source_trust: "untrusted_external" } }));
  expect((await send(authorize(signed, text))).body).toMatchObject({ root_trust_level: "untrusted_external" });
});

test("a rotated credential has a signing key of its own", async () => {
  const old = await api.credential("coder", { signed: true });
  const rotated = await api.create<NewCredential>(`/v1/credentials/${old.key_id}/rotate`, {});
  expect(rotated).toMatchObject({ signed: true, signing_key: derived(rotated.key_id) });
  expect(await outcome(authorize({ token: rotated.token, signing_key: old.signing_key }))).toBe(INVALID);
  expect(await outcome(authorize(rotated))).toBe("200");
});

test("while the worker's secret is rotated, keys derived from either verify", async () => {
  const rotating = await Gateward.start({ secrets: { TOKEN_MAC_KEY: NEWER_MAC_KEY, TOKEN_MAC_KEY_PREVIOUS: MAC_KEY, BOOTSTRAP_SECRET } });
  try {
    const other = await rotating.tenant({}, tenant.name);
    await other.api.agent("coder");
    const issued = await other.api.credential("coder", { signed: true });
    expect(issued.signing_key).toBe(derived(issued.key_id, NEWER_MAC_KEY));
    for (const signing_key of [derived(issued.key_id), derived(issued.key_id, NEWER_MAC_KEY)]) {
      expect((await send(authorize({ token: issued.token, signing_key }), rotating)).status).toBe(200);
    }
  } finally {
    await rotating.close();
  }
});

describe("docs/signing.md", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "gateward-signing-"));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  /** Its standard output. Its environment has only the given variables. */
  function run(command: string, args: string[], { token, signing_key }: Credential, input = ""): Promise<string> {
    const env = { PATH: process.env.PATH ?? "", GATEWARD_URL: gateward.url.href, GATEWARD_TOKEN: token, GATEWARD_SIGNING_KEY: signing_key ?? "" };
    return new Promise((resolve, reject) => {
      const child = execFile(command, args, { env }, (error, stdout, stderr) => (error === null ? resolve(stdout) : reject(new Error(`${command}: ${stderr}`))));
      // A program that reads no input may end before the input is written.
      child.stdin?.on("error", () => {});
      child.stdin?.end(input);
    });
  }
  const url = (path: string) => new URL(path, gateward.url).href;
  const quoted = (text: string) => `'${text}'`;

  /** Each sends a request with these headers and this body, and prints the answer. */
  const clients: [string, (of: Credential, method: string, path: string, headers: string[], text: string) => Promise<string>][] = [
    ["python", (of, method, path, headers, text) => run("python3", ["docs/snippets/sign.py", method, url(path), ...headers], of, text)],
    ["typescript", (of, method, path, headers, text) => run(process.execPath, ["docs/snippets/sign.ts", method, url(path), ...headers], of, text)],
    [
      "curl with gateward sign",
      (of, method, path, headers, text) => {
        const file = join(directory, "body");
        writeFileSync(file, text);
        const options = text === "" ? ["", ""] : [`--body ${file}`, `--data-binary @${file}`];
        const lines = headers.map((line) => `-H ${quoted(line)}`).join(" ");
        const target = quoted(url(path));
        return run("sh", ["-c", `${BINARY} sign ${method} ${target} ${options[0]} ${lines} | curl -sS --noproxy '*' -X ${method} -H @- ${options[1]} ${target}`], of);
      },
    ],
  ];

  test.each(clients)("%s signs a call, a proxied request, a change and a read", async (name, client) => {
    const content = "Content-Type: application/json";
    expect(await client(signed, "POST", "/v1/authorize", [content], body)).toContain('"decision":"allow"');
    expect(await client(signed, "POST", "/http/api/issues?a=1", [content, "X-Gateward-Source-Trust: untrusted_external"], "{}")).toContain("call_denied");
    expect(await client(signed, "GET", "/http/api/issues?state=open&label=a%20b", [], "")).toContain('{"ok":true}');
    const group = name.replace(/ /g, "-");
    expect(await client(signer, "POST", "/v1/groups", [content, `Idempotency-Key: ${group}`], JSON.stringify({ group }))).toContain(`"group":"${group}"`);
    expect(await client(signer, "GET", "/v1/groups?limit=1", [], "")).toContain('"groups":');
  });

  test("the command line signs its own requests, if it is given a signing key", async () => {
    const { token } = signer;
    await expect(run(BINARY, ["agent", "list"], { token, signing_key: null })).rejects.toThrow("signature_required");
    expect(await run(BINARY, ["agent", "list"], signer)).toContain("coder");
    await api.agent("handled");
    await run(BINARY, ["agent", "update", "handled", "--risk-tier", "high", "--if-match", String((await api.read<Agent>("/v1/agents/handled")).revision)], signer);
    await run(BINARY, ["agent", "freeze", "handled"], signer);
    expect(await api.read<Agent>("/v1/agents/handled")).toMatchObject({ status: "frozen", risk_tier: "high" });
    await expect(run(BINARY, ["sign", "GET", "/v1/agents"], { token, signing_key: null })).rejects.toThrow("no signing key");
  });

  test("quotes the snippets as they are", () => {
    const page = readFileSync("docs/signing.md", "utf8");
    for (const name of ["sign.py", "sign.ts"]) expect(page).toContain(readFileSync(`docs/snippets/${name}`, "utf8"));
  });
});
