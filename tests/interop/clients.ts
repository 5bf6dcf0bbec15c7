// The MCP clients that are tested with Gateward, and how each is started. Each Python client has its own environment,
// which scripts/clients.sh makes from python/<environment>.txt.
import { join } from "node:path";
import type { Era } from "./node/driver.ts";

export interface ClientSpec {
  /** Its package and version, as pinned. */
  name: string;
  /** The eras that it speaks. */
  eras: Era[];
  /** Where its packages are: an environment of Python, or Node packages apart from the project's. */
  packages?: string;
  /** The module that drives it. */
  driver: string;
  /** What it does not tell the server: that one call was cancelled, or that the client was closed during a call. */
  silent?: ("abort" | "close")[];
  /** CI drives it too. */
  short?: true;
}

const SESSION: Era[] = ["session"];
const BOTH: Era[] = ["session", "stateless"];

export const CLIENTS: ClientSpec[] = [
  { name: "Python `mcp` 1.9.4", eras: SESSION, packages: "mcp-1.9", driver: "mcp_1", short: true, silent: ["abort"] },
  { name: "Python `mcp` 1.30.0", eras: SESSION, packages: "mcp-1.30", driver: "mcp_1", silent: ["abort"] },
  { name: "Python `mcp` 2.3.0", eras: BOTH, packages: "mcp-2.3", driver: "mcp_2", short: true },
  { name: "`fastmcp` 2.14.7", eras: SESSION, packages: "fastmcp-2", driver: "fastmcp_client", silent: ["abort"] },
  { name: "`fastmcp` 4.1.2", eras: BOTH, packages: "fastmcp-4", driver: "fastmcp_client" },
  { name: "`langchain-mcp-adapters` 0.3.2", eras: SESSION, packages: "langchain", driver: "langchain_adapter", silent: ["abort"] },
  { name: "`pydantic-ai-slim` 2.68.0", eras: BOTH, packages: "pydantic-ai", driver: "pydantic_ai_toolset", silent: ["close"] },
  { name: "`openai-agents` 0.24.0", eras: BOTH, packages: "openai-agents", driver: "openai_agents" },
  { name: "`@modelcontextprotocol/sdk` 1.32.2", eras: SESSION, driver: "sdk-1.ts", short: true },
  { name: "`@modelcontextprotocol/client` 2.4.0", eras: BOTH, driver: "sdk-2.ts", short: true },
  { name: "`@ai-sdk/mcp` 2.0.99", eras: BOTH, packages: "packages", driver: "ai-sdk.ts" },
  { name: "`@modelcontextprotocol/inspector` 2.12.0, `--cli`", eras: BOTH, packages: "packages", driver: "inspector.ts" },
];

/** Where the packages of clients are installed, by name, as scripts/clients.sh says. */
function installed(name: string): string | undefined {
  const entries = (process.env.GATEWARD_INTEROP ?? "").split(",").map((entry) => entry.split("="));
  return entries.find(([key]) => key === name)?.[1];
}

export function isInstalled({ packages }: ClientSpec): boolean {
  return packages === undefined || installed(packages) !== undefined;
}

/** How a client's driver is started. */
export function commandOf({ packages = "", driver }: ClientSpec): { command: string; args: string[]; env: NodeJS.ProcessEnv } {
  const at = installed(packages) ?? "";
  if (driver.endsWith(".ts")) {
    return { command: process.execPath, args: [join(import.meta.dirname, "node", driver)], env: { ...process.env, GATEWARD_INTEROP_PACKAGES: at } };
  }
  return { command: join(at, "bin/python"), args: [join(import.meta.dirname, "python/driver.py"), driver], env: process.env };
}
