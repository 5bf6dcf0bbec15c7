// The target of the conformance suite: the fixture behind Gateward, or the fixture alone.
import { Gateward } from "../support/gateward.ts";
import { endpoint, mcpRows, toolsAt } from "../support/mcp.ts";
import { Fixture } from "./fixture-server.ts";
import { Shim } from "./shim.ts";

const SERVER = "fixture";

export interface Setting {
  url: string;
  close(): Promise<void>;
}

export async function startDirectly(): Promise<Setting> {
  const fixture = await Fixture.start();
  return { url: fixture.url, close: () => fixture.close() };
}

export async function startBehindGateward(): Promise<Setting> {
  const parts: { close(): Promise<void> }[] = [];
  const close = async () => {
    for (const part of parts.toReversed()) await part.close();
  };
  try {
    const fixture = await Fixture.start();
    parts.push(fixture);
    const gateward = await Gateward.start();
    parts.push(gateward);
    const tenant = await gateward.tenant(mcpRows(SERVER, await toolsAt(fixture.url), { url: fixture.url }));
    const { token } = await tenant.agent();
    const { origin, pathname } = endpoint(gateward, SERVER);
    const shim = await Shim.start(new URL(origin), token);
    parts.push(shim);
    return { url: shim.url(pathname), close };
  } catch (error) {
    await close();
    throw error;
  }
}
