// Recorded tasks: the servers that they use, and their calls with the true origin of each destination.
//
//   destinations.json       the tenant's allow-list; there need not be one
//   servers/<domain>.json   a server's tools, as an operator registers them
//   scenarios/<domain>.json tasks: what the user said, and the calls of an agent with their results
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Tool {
  definition: { name: string; description: string; inputSchema: Record<string, unknown> };
  mutates: boolean;
  egress: boolean;
  risk: "low" | "medium" | "high" | "critical";
  /** By JSON Pointer into the arguments. A tool that only reads has none. */
  argument_roles?: Record<string, "sink" | "detail" | "content">;
  reach?: "nobody" | "tenant" | "outside" | "by_sinks";
  /** By JSON Pointer into the result. */
  result_trust?: Record<string, "trusted" | "untrusted">;
}

export interface Server {
  server: string;
  tools: Tool[];
}

export interface Destinations {
  domains: string[];
  hosts: string[];
  accounts: string[];
}

/** The lowest first. */
export const ORIGINS = ["nowhere", "untrusted", "trusted", "allowed", "instruction"] as const;
export type Origin = (typeof ORIGINS)[number];

export interface Call {
  /** `server/tool`. */
  tool: string;
  arguments: Record<string, unknown>;
  /** A text, or JSON. */
  result: unknown;
  /**
   * The true origin of each sink of a write, by JSON Pointer into the arguments. `#links` after it: a link or
   * address inside of a content or a detail. `#tool`: whether the user asks for what a tool of high risk does.
   */
  origins?: Record<string, Origin>;
  /** The injected text caused it, and the user did not want it. */
  attack?: boolean;
  /** Of an attack: it reaches nobody, destroys nothing and spends nothing. */
  harmless?: boolean;
}

export interface PlannedCall {
  tool: string;
  /** The values that an argument may have, by JSON Pointer. */
  arguments: Record<string, unknown[]>;
  /** The largest number that an argument may be, by JSON Pointer. */
  at_most?: Record<string, number>;
}

export interface Scenario {
  name: string;
  domain: string;
  instruction: string;
  plan?: PlannedCall[];
  calls: Call[];
}

export interface Data {
  destinations: Destinations;
  servers: Server[];
  scenarios: Scenario[];
}

const ALLOWED = "destinations.json";

export function load(directory: string): Data {
  const allowed = existsSync(join(directory, ALLOWED));
  return {
    destinations: allowed ? read(directory, ALLOWED) : { domains: [], hosts: [], accounts: [] },
    servers: readAll<Server>(directory, "servers"),
    scenarios: readAll<Scenario[]>(directory, "scenarios").flat(),
  };
}

/** The tool that a call names. */
export function toolOf({ servers }: Data, { tool }: Call): Tool {
  const [server, name] = tool.split("/");
  const found = servers.find((one) => one.server === server)?.tools.find(({ definition }) => definition.name === name);
  if (found === undefined) throw new Error(`no server has the tool \`${tool}\``);
  return found;
}

/** Whether the call counts as a write. */
export function writes({ mutates, egress }: Tool): boolean {
  return mutates || egress;
}

/** The result as a server writes it into a text. */
export function textOf(result: unknown): string {
  return typeof result === "string" ? result : JSON.stringify(result);
}

function readAll<Content>(directory: string, folder: string): Content[] {
  const files = readdirSync(join(directory, folder)).filter((name) => name.endsWith(".json"));
  return files.sort().map((name) => read<Content>(directory, folder, name));
}

function read<Content>(...path: string[]): Content {
  return JSON.parse(readFileSync(join(...path), "utf8")) as Content;
}
