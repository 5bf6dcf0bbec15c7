// Signs a request for Gateward and sends it: RFC 9421 with hmac-sha256, and RFC 9530.
//
// GATEWARD_TOKEN=… GATEWARD_SIGNING_KEY=… node sign.ts POST URL 'Name: value' … < body
import { createHash, createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** All headers of one signed request. Sign each request anew, also if it is tried again. */
export function sign(method: string, url: string | URL, token: string, signingKey: string, headers: Record<string, string> = {}, body = ""): Record<string, string> {
  const signed: Record<string, string> = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  if (body !== "") signed["content-digest"] = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
  const { pathname, search } = new URL(url);
  const components = { "@method": method, "@path": pathname, "@query": search || "?", ...signed };
  // gw_<tenant>.<agent>.<lane>.<key id>… or gwa_<tenant>.<key id>…
  const keyId = token.split(".")[token.startsWith("gwa_") ? 1 : 3];
  const names = Object.keys(components).map((name) => `"${name}"`).join(" ");
  const created = Math.floor(Date.now() / 1000);
  const params = `(${names});created=${created};keyid="${keyId}";nonce="${randomUUID()}"`;
  const lines = Object.entries(components).map(([name, value]) => `"${name}": ${value}\n`);
  const base = `${lines.join("")}"@signature-params": ${params}`;
  // The key is the text of the signing key: its 64 characters, not the bytes that they encode.
  const mac = createHmac("sha256", signingKey).update(base).digest("base64");
  return { ...signed, "signature-input": `sig1=${params}`, signature: `sig1=:${mac}:`, authorization: `Bearer ${token}` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [method = "", url = "", ...lines] = process.argv.slice(2);
  const { GATEWARD_TOKEN = "", GATEWARD_SIGNING_KEY = "" } = process.env;
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/).slice(0, 2)));
  const body = readFileSync(0, "utf8");
  const answer = await fetch(url, { method, headers: sign(method, url, GATEWARD_TOKEN, GATEWARD_SIGNING_KEY, headers, body), body: body || null });
  console.log(answer.status, await answer.text());
}
