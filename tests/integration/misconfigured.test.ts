// A worker without a usable secret: it refuses everybody, and says what is wrong.
import { afterAll, describe, expect, test } from "vitest";
import type { Problem } from "../support/api/types.gen.ts";
import { Gateward, MAC_KEY, readCall } from "../support/gateward.ts";
import { mintAgentToken } from "../support/tokens.ts";

const cases: [string, Record<string, string>][] = [
  ["no secret", { TOKEN_MAC_KEY: "" }],
  ["a short secret", { TOKEN_MAC_KEY: "short" }],
];

describe.each(cases)("with %s", (_, secrets) => {
  let gateward: Gateward | undefined;
  afterAll(() => gateward?.close());

  test("every call is 503, and the worker is not ready", async () => {
    gateward = await Gateward.start({ secrets });
    const key = secrets.TOKEN_MAC_KEY || MAC_KEY;
    const reply = await gateward.post<Problem>(mintAgentToken(key, "demo", "coder").token, "/v1/authorize", readCall());
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 503, code: "misconfigured" });
    expect(reply.headers.get("retry-after")).toMatch(/^\d+$/);
    expect((await gateward.request("/readyz")).status).toBe(503);
  });
});

describe("while the secret is rotated", () => {
  let gateward: Gateward | undefined;
  afterAll(() => gateward?.close());

  test("tokens of both secrets are believed", async () => {
    const newer = "a-newer-mac-key-for-tests-of-47-characters-0000";
    gateward = await Gateward.start({ secrets: { TOKEN_MAC_KEY: newer, TOKEN_MAC_KEY_PREVIOUS: MAC_KEY } });
    const tenant = await gateward.tenant();
    const old = await tenant.agent("older");
    const credential = mintAgentToken(newer, tenant.name, "newer");
    await tenant.register({ agents: [{ agent: "newer" }], credentials: [{ credential, agent: "newer" }] });
    const body = (id: string) => readCall({ agent: { id } });
    expect((await gateward.decide(old.token, body("older"))).decision).toBe("allow");
    expect((await gateward.decide(credential.token, body("newer"))).decision).toBe("allow");
  });
});
