// Credentials of the form that the worker reads (docs: worker/core/src/credential/token.rs), made with
// Node's crypto so that nothing is shared with the code under test.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** A token and what the registry keeps of it. */
export interface Credential {
  token: string;
  keyId: string;
  secretSha256: string;
}

const SECRET_BYTES = 32;
const MAC_BYTES = 8;

export function mintAgentToken(macKey: string, tenant: string, agent: string, lane = 0): Credential {
  return mint(macKey, (keyId) => `gw_${tenant}.${agent}.${lane}.${keyId}`);
}

export function mintAdministratorToken(macKey: string, tenant: string): Credential {
  return mint(macKey, (keyId) => `gwa_${tenant}.${keyId}`);
}

/** The locator of an agent with this public key, which callers with a warrant and no credential send. */
export function mintLocator(macKey: string, tenant: string, agent: string, key: Buffer, lane = 0): string {
  const message = `gwl_${tenant}.${agent}.${lane}.${key.toString("base64url")}`;
  const seal = createHmac("sha256", macKey).update(`locator:${message}`).digest().subarray(0, 16);
  return `${message}.${seal.toString("hex")}`;
}

/** Whether `token` carries the MAC that `macKey` gives it. */
export function hasValidMac(token: string, macKey: string): boolean {
  const dot = token.lastIndexOf(".");
  const found = Buffer.from(token.slice(dot + 1));
  const expected = Buffer.from(mac(token.slice(0, dot), macKey));
  return found.length === expected.length && timingSafeEqual(found, expected);
}

/** `message` with its MAC by `macKey`. The message can have any form, for tests of the form. */
export function sign(message: string, macKey: string): string {
  return `${message}.${mac(message, macKey)}`;
}

/** The same token with another last part. */
export function withWrongMac(token: string): string {
  const dot = token.lastIndexOf(".");
  return token.slice(0, dot + 1) + (token[dot + 1] === "A" ? "B" : "A") + token.slice(dot + 2);
}

function mint(macKey: string, prefix: (keyId: string) => string): Credential {
  const keyId = `k${randomBytes(6).toString("hex")}`;
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  return {
    token: sign(`${prefix(keyId)}.${secret}`, macKey),
    keyId,
    secretSha256: createHash("sha256").update(secret).digest("hex"),
  };
}

function mac(message: string, macKey: string): string {
  return createHmac("sha256", macKey).update(message).digest().subarray(0, MAC_BYTES).toString("base64url");
}
