// `make start`: builds what changed, migrates the embedded database, registers the demo tenant and
// serves until interrupted.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { DEMO_SERVERS, DEMO_TOOLS, ENVIRONMENT, upserts } from "../tests/support/registry.ts";
import { DEMO_TENANT, demoCredentials, executeLocally, LOCAL, run, untilReady, wrangler, WRANGLER_ENV } from "./local.mjs";

await run(async () => {
  await refuseTakenPort();
  execFileSync("scripts/build-wasm.sh", {
    stdio: "inherit",
    env: { ...process.env, GATEWARD_PROFILE: "wasm-test" },
  });
  await wrangler("d1", "migrations", "apply", "DB", "--local");
  const { coder, support, administrator } = demoCredentials();
  await executeLocally(
    upserts({
      tenant: DEMO_TENANT,
      agents: [
        { agent: "coder", groups: ["engineering"] },
        { agent: "support", groups: ["support"] },
      ],
      credentials: [
        { credential: coder, agent: "coder" },
        { credential: support, agent: "support" },
        { credential: administrator },
      ],
      servers: DEMO_SERVERS,
      tools: DEMO_TOOLS,
    }),
  );

  const worker = spawn(
    "wrangler",
    ["dev", "--ip", LOCAL.host, "--port", String(LOCAL.port), "--show-interactive-dev-session=false"],
    { stdio: ["ignore", "inherit", "inherit"], env: WRANGLER_ENV },
  );
  const exited = once(worker, "exit");
  let stopping = false;
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
    process.on(signal, () => {
      stopping = true;
      worker.kill("SIGTERM");
    });
  }
  try {
    await untilReady(LOCAL.url, () => worker.exitCode === null && worker.signalCode === null);
  } catch (error) {
    worker.kill("SIGTERM");
    await exited;
    if (stopping) return;
    throw error;
  }
  console.log(greeting(coder.token, administrator.token));
  const [code] = await exited;
  if (!stopping) throw new Error(`wrangler stopped with exit status ${code}`);
});

async function refuseTakenPort() {
  const probe = createServer();
  probe.listen(LOCAL.port, LOCAL.host);
  try {
    await once(probe, "listening");
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EADDRINUSE") throw error;
    throw new Error(
      `port ${LOCAL.port} is in use, by another \`make start\` or another program: ` +
        "stop it, or choose a port with `GATEWARD_PORT=8788 make start`",
    );
  }
  probe.close();
  await once(probe, "close");
}

/**
 * @param {string} agentToken
 * @param {string} administratorToken
 */
function greeting(agentToken, administratorToken) {
  const body = JSON.stringify({
    agent: { id: "coder", environment: ENVIRONMENT },
    tool_call: { tool: "github", action: "list_issues", mutates_state: false, parameters: { repo: "acme/shop" } },
    context: { source_trust: "trusted_internal_signed", contains_sensitive_data: false },
  });
  return `
Gateward is serving on ${LOCAL.url} (Ctrl-C stops it)

  agent token (demo/coder)    ${agentToken}
  administrator token (demo)  ${administratorToken}

curl -s ${LOCAL.url}/v1/authorize -H 'Authorization: Bearer ${agentToken}' -H 'Content-Type: application/json' -d '${body}'
`;
}
