// The demo tenant of `make start`: set up with the command line, as any administrator would do it.
import { createHash } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { DEMO_SERVERS, DEMO_TOOLS, ENVIRONMENT } from "../tests/support/registry.ts";
import { ADMINISTRATOR_TOKEN, agentTokenFile, CommandFailed, DEMO_TENANT, gateward, LOCAL, STATE, textOf } from "./local.ts";

const GROUPS = ["engineering", "support", "security", "release-managers", "finance"];
/** The demo's agents, and the group of each. */
const AGENTS = { coder: "engineering", support: "support" };
export const ADMINISTRATOR = { name: "admin", group: "release-managers" };
/** Records that the demo tenant was set up, with a digest of its administrator and definition. */
const READY = `${STATE}/demo-ready.json`;

/**
 * Sets the demo tenant up. Each step first checks whether it was done, so that the next start finishes an
 * interrupted one. If all were done, one request finds that out.
 */
export async function setUpDemo(bootstrapSecret: string): Promise<void> {
  mkdirSync(STATE, { recursive: true });
  await ensureAdministrator(bootstrapSecret);
  const definition = [GROUPS, AGENTS, ADMINISTRATOR, DEMO_SERVERS, DEMO_TOOLS, textOf(ADMINISTRATOR_TOKEN)];
  const done = JSON.stringify({ setup: createHash("sha256").update(JSON.stringify(definition)).digest("hex") });
  const agents = Object.entries(AGENTS);
  if (textOf(READY) === done && agents.every(([agent]) => textOf(agentTokenFile(agent)) !== "")) return;

  console.log("Setting up the demo tenant");
  const groups = await names("group");
  for (const group of GROUPS.filter((group) => !groups.has(group))) await command("group", "create", group);
  await command("group", "add", ADMINISTRATOR.group, "--administrator", ADMINISTRATOR.name);
  await registerTools();
  const registered = await names("agent");
  for (const [agent, group] of agents) {
    if (!registered.has(agent)) await command("agent", "create", agent, "--environment", ENVIRONMENT);
    await command("group", "add", group, "--agent", agent);
    await ensureCredential(agent);
  }
  writeFileSync(READY, `${done}\n`);
}

/** Makes sure that the file holds the token of an administrator of this database. */
async function ensureAdministrator(bootstrapSecret: string): Promise<void> {
  const known = textOf(ADMINISTRATOR_TOKEN) !== "";
  if (known) {
    try {
      await command("group", "list", "--limit", "1");
      return;
    } catch (error) {
      if (!(error instanceof CommandFailed) || error.code !== "unauthorized") throw error;
    }
    // The token belongs to another database or another MAC key.
    renameSync(ADMINISTRATOR_TOKEN, `${ADMINISTRATOR_TOKEN}.old`);
  }
  // A database without an administrator has not issued any agent's token. An interrupted bootstrap leaves an
  // empty file, which the command line would not overwrite.
  for (const file of [ADMINISTRATOR_TOKEN, ...Object.keys(AGENTS).map(agentTokenFile)]) rmSync(file, { force: true });
  const args = ["bootstrap", "--tenant", DEMO_TENANT, "--administrator", ADMINISTRATOR.name];
  try {
    await gateward(LOCAL.url, [...args, "--token-out", ADMINISTRATOR_TOKEN], {
      GATEWARD_BOOTSTRAP_SECRET: bootstrapSecret,
    });
  } catch (error) {
    if (!(error instanceof CommandFailed) || error.code !== "already_bootstrapped") throw error;
    throw new Error(
      `the local database has an administrator whose token is not in ${ADMINISTRATOR_TOKEN}: ` +
        "`make clean`, which removes that database, then start again",
    );
  }
}

async function registerTools(): Promise<void> {
  const { servers } = await command<{ servers: { server: string; approved: boolean }[] }>("server", "list");
  for (const { server, kind, trust = "trusted" } of DEMO_SERVERS) {
    const found = servers.find((row) => row.server === server);
    if (found === undefined) await command("server", "create", server, "--kind", kind, "--trust", trust);
    if (!found?.approved) await command("server", "approve", server);
    const { tools } = await command<{ tools: { tool: string; approved: boolean }[] }>("tool", "list", server);
    for (const { tool, mutates, risk, canary = false } of DEMO_TOOLS.filter((row) => row.server === server)) {
      const id = `${server}/${tool}`;
      const known = tools.find((row) => row.tool === tool);
      if (known === undefined) {
        await command("tool", "create", id, "--mutates", String(mutates), "--risk", risk, `--canary=${canary}`);
      }
      if (!known?.approved) await command("tool", "approve", id);
    }
  }
}

async function ensureCredential(agent: string): Promise<void> {
  const file = agentTokenFile(agent);
  if (textOf(file) !== "") return;
  rmSync(file, { force: true });
  const trust = ["--max-source-trust", "trusted_internal_signed"];
  await command("credential", "create", "--agent", agent, ...trust, "--token-out", file);
}

/** The registered names. */
async function names(noun: "agent" | "group"): Promise<Set<string>> {
  const list = await command<Record<string, Record<string, string>[]>>(noun, "list");
  return new Set(list[`${noun}s`]?.map((row) => row[noun] ?? ""));
}

function command<Body>(...args: string[]): Promise<Body> {
  return gateward(LOCAL.url, args);
}
