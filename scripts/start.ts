// `make start`: builds what changed, migrates the embedded database, sets the demo tenant up with the command
// line, as any administrator would, and serves until it is interrupted.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { run } from "../tests/support/program.ts";
import { ENVIRONMENT } from "../tests/support/registry.ts";
import { setUpDemo } from "./demo-tenant.ts";
import {
  ADMINISTRATOR_TOKEN,
  agentTokenFile,
  buildCommandLine,
  buildWorker,
  COMMAND_LINE,
  LOCAL,
  textOf,
  untilReady,
  workerSecrets,
  wrangler,
  WRANGLER_ENV,
} from "./local.ts";

await run(async () => {
  await refuseTakenPort();
  buildWorker();
  buildCommandLine();
  await wrangler("d1", "migrations", "apply", "DB", "--local");
  const { BOOTSTRAP_SECRET } = workerSecrets();

  const worker = spawn(
    "wrangler",
    [
      ...["dev", "--ip", LOCAL.host, "--port", String(LOCAL.port), "--show-interactive-dev-session=false"],
      // A webhook's receiver is another program here.
      ...["--var", "LOCAL_TARGETS:true"],
    ],
    { stdio: ["ignore", "inherit", "inherit"], env: WRANGLER_ENV },
  );
  const exited = once(worker, "exit");
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      stopping = true;
      worker.kill("SIGTERM");
    });
  }
  try {
    await untilReady(LOCAL.url, () => worker.exitCode === null && worker.signalCode === null);
    await setUpDemo(BOOTSTRAP_SECRET);
  } catch (error) {
    worker.kill("SIGTERM");
    await exited;
    if (stopping) return;
    throw error;
  }
  console.log(greeting(textOf(agentTokenFile("coder"))));
  // `make demo` waits for this when it started us.
  process.send?.("ready");
  const [code] = await exited;
  if (!stopping) throw new Error(`wrangler stopped with exit status ${code}`);
});

async function refuseTakenPort(): Promise<void> {
  const probe = createServer();
  probe.listen(LOCAL.port, LOCAL.host);
  try {
    await once(probe, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new Error(
      `port ${LOCAL.port} is in use, by another \`make start\` or another program: ` +
        "stop it, or choose a port with `GATEWARD_PORT=8788 make start`",
    );
  }
  probe.close();
  await once(probe, "close");
}

function greeting(agentToken: string): string {
  const body = JSON.stringify({
    agent: { id: "coder", environment: ENVIRONMENT },
    tool_call: { tool: "github", action: "list_issues", mutates_state: false, parameters: { repo: "acme/shop" } },
    context: { source_trust: "trusted_internal_unsigned", contains_sensitive_data: false },
  });
  const url = LOCAL.port === 8787 ? "" : `GATEWARD_URL=${LOCAL.url} `;
  return `
Gateward is serving on ${LOCAL.url} (Ctrl-C stops it)

  token of the agent coder     ${agentToken}
  token of the administrator   in ${ADMINISTRATOR_TOKEN}

curl -s ${LOCAL.url}/v1/authorize -H 'Authorization: Bearer ${agentToken}' -H 'Content-Type: application/json' -d '${body}'

${url}GATEWARD_TOKEN_FILE=${ADMINISTRATOR_TOKEN} ${COMMAND_LINE} decisions list
`;
}
