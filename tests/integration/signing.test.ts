// Signed requests: a credential that has a signing key must use it, and only what was signed so
// may say that it comes from a signed internal source.
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Api, IssuedCredential } from "../support/administration.ts";
import type { Problem, Reply } from "../support/client.ts";
import { BOOTSTRAP_SECRET, Gateward, MAC_KEY, readCall, type Tenant } from "../support/gateward.ts";
import type { Answer } from "../support/scenario.ts";

const NEWER_MAC_KEY = "a-newer-mac-key-for-tests-of-47-characters-0000";

let gateward: Gateward;
let tenant: Tenant;
let api: Api;
let signed: IssuedCredential;
let unsigned: IssuedCredential;

beforeAll(async () => {
  gateward = await Gateward.start();
  tenant = await gateward.tenant();
  api = tenant.api;
  await api.agent("coder");
  signed = await api.credential("coder", { signed: true });
  unsigned = await api.credential("coder");
});
afterAll(() => gateward?.close());

const hmac = (key: string, message: string) => createHmac("sha256", key).update(message).digest("hex");
/** The header's value, as a caller that knows `key` makes it. */
const signature = (key: string | null, body: string) => `sha256=${hmac(key ?? "", body)}`;
/** The signing key, as the contract derives it. */
const derived = (keyId: string, macKey = MAC_KEY) => hmac(macKey, `signing-key:${tenant.name}.${keyId}`);

const body = JSON.stringify(readCall());

function authorize(token: string, header: string | null, text = body, of = gateward): Promise<Reply<Answer & Problem>> {
  return of.post(token, "/v1/authorize", text, { headers: header === null ? {} : { "x-gateward-signature": header } });
}

function expectCode(reply: Reply<Problem>, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
}

test("the signing key is derived, and given with the credential", () => {
  expect(signed).toMatchObject({ signed: true, signing_key: derived(signed.key_id) });
  expect(unsigned).toMatchObject({ signed: false, signing_key: null });
});

test("with a signed credential, a request without a signature is refused", async () => {
  expectCode(await authorize(signed.token, null), 401, "signature_required");
});

test("of a request that is forwarded, the signature is over method, path and query too", async () => {
  const path = "/http/nowhere/a?b=1";
  const ask = (text: string) => {
    const headers = { authorization: `Bearer ${signed.token}`, "x-gateward-signature": signature(signed.signing_key, text) };
    return gateward.request<Problem>(path, { headers });
  };
  expectCode(await ask(`GET ${path}\n`), 403, "call_denied");
  for (const other of ["", `DELETE ${path}\n`, "GET /http/nowhere/a?b=2\n", "GET /http/elsewhere/a?b=1\n"]) {
    expectCode(await ask(other), 401, "signature_invalid");
  }
});

describe("a signature that does not verify is refused, whoever's it is", () => {
  const good = () => signature(signed.signing_key, body);
  const wrong: [string, () => string, string?][] = [
    ["of another body", () => signature(signed.signing_key, `${body} `)],
    ["of the same JSON in another spelling", good, body.replace(/":/g, '": ')],
    ["by another key", () => signature(derived("another"), body)],
    ["by the key's bytes instead of its text", () => `sha256=${createHmac("sha256", Buffer.from(signed.signing_key ?? "", "hex")).update(body).digest("hex")}`],
    ["in upper case", () => good().toUpperCase()],
    ["without its prefix", () => good().slice("sha256=".length)],
    ["cut short", () => good().slice(0, -2)],
    ["with more behind it", () => `${good()}00`],
    ["that is empty", () => "sha256="],
    ["of another algorithm", () => good().replace("sha256", "sha1")],
  ];
  test.each(wrong)("%s", async (_, header, text) => {
    for (const { token } of [signed, unsigned]) expectCode(await authorize(token, header(), text), 401, "signature_invalid");
  });
});

test("a request that is signed is decided, and may claim to be trusted_internal_signed", async () => {
  const reply = await authorize(signed.token, signature(signed.signing_key, body));
  expect(reply.body).toMatchObject({ decision: "allow", root_trust_level: "trusted_internal_signed" });
});

describe("trusted_internal_signed counts for less", () => {
  test("when the request was not signed", async () => {
    const reply = await authorize(unsigned.token, null);
    expect(reply.body).toMatchObject({ decision: "allow", root_trust_level: "trusted_internal_unsigned" });
  });

  test("when the credential needs no signature, though the request has a good one", async () => {
    const reply = await authorize(unsigned.token, signature(derived(unsigned.key_id), body));
    expect(reply.body).toMatchObject({ decision: "allow", root_trust_level: "trusted_internal_unsigned" });
  });

  test("when the credential is trusted less", async () => {
    const credential = await api.credential("coder", { signed: true, max_source_trust: "semi_trusted_customer" });
    const reply = await authorize(credential.token, signature(credential.signing_key, body));
    expect(reply.body).toMatchObject({ root_trust_level: "semi_trusted_customer" });
  });
});

test("a claim of less stays what it is", async () => {
  const text = JSON.stringify(readCall({ context: { source_trust: "untrusted_external" } }));
  const reply = await authorize(signed.token, signature(signed.signing_key, text), text);
  expect(reply.body).toMatchObject({ root_trust_level: "untrusted_external" });
});

test("an administrator's signed credential signs every request, also one without a body", async () => {
  const { token, signing_key } = await api.administrator("signer", ["registry:read", "registry:write"], { signed: true });
  const group = JSON.stringify({ group: "signed" });
  const extras = (text: string) => ({ headers: { "x-gateward-signature": signature(signing_key, text) } });
  expectCode(await gateward.get(token, "/v1/agents"), 401, "signature_required");
  expectCode(await gateward.post(token, "/v1/groups", group), 401, "signature_required");
  expectCode(await gateward.post(token, "/v1/groups", group, extras(`${group} `)), 401, "signature_invalid");
  expect((await gateward.get(token, "/v1/agents", extras(""))).status).toBe(200);
  expect((await gateward.post(token, "/v1/groups", group, extras(group))).status).toBe(201);
});

test("a rotated credential has a signing key of its own", async () => {
  const rotated = await api.create<IssuedCredential>(`/v1/credentials/${signed.key_id}/rotate`, {});
  expect(rotated).toMatchObject({ signed: true, signing_key: derived(rotated.key_id) });
  expectCode(await authorize(rotated.token, signature(signed.signing_key, body)), 401, "signature_invalid");
  expect((await authorize(rotated.token, signature(rotated.signing_key, body))).status).toBe(200);
});

test("while the worker's secret is rotated, keys derived from either verify", async () => {
  const rotating = await Gateward.start({ secrets: { TOKEN_MAC_KEY: NEWER_MAC_KEY, TOKEN_MAC_KEY_PREVIOUS: MAC_KEY, BOOTSTRAP_SECRET } });
  try {
    const other = await rotating.tenant({}, tenant.name);
    await other.api.agent("coder");
    const issued = await other.api.credential("coder", { signed: true });
    expect(issued.signing_key).toBe(derived(issued.key_id, NEWER_MAC_KEY));
    for (const key of [derived(issued.key_id), derived(issued.key_id, NEWER_MAC_KEY)]) {
      expect((await authorize(issued.token, signature(key, body), body, rotating)).status).toBe(200);
    }
  } finally {
    await rotating.close();
  }
});
