// `make demo`: plays the attack of tests/support/scenario.ts against a running worker, or against one that it
// starts. It verifies the receipts three times: with code of its own, by asking the worker, and in an export, which
// needs only the log's key.
//
// A run ends with its agent in quarantine, so each run registers an agent of its own. It does so as the demo's
// administrator, whose token `make start` keeps. `make start` made the administrator a release manager, so
// that the command line can approve the merge.
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Approval, DecisionPage, Verification } from "../tests/support/api/types.gen.ts";
import { Client, type Reply } from "../tests/support/client.ts";
import { run } from "../tests/support/program.ts";
import { problemsOf } from "../tests/support/receipts.ts";
import { ENVIRONMENT } from "../tests/support/registry.ts";
import { play as playScenario, SCENARIO } from "../tests/support/scenario.ts";
import { ADMINISTRATOR_TOKEN, CommandFailed, DEMO_TENANT, gateward, playDemo, printedBy, textOf, title } from "./local.ts";

/** How long a flush may take, several times its interval. */
const FLUSH_LIMIT_MS = 30_000;
const FLUSH_POLL_MS = 200;
/** How long it may take until the head log is told of a lane's checkpoint: twice its interval. */
const HEAD_LIMIT_MS = 60_000;
/** A denial in a receipt in an export. */
const DENIED = '\\"decision\\":\\"deny\\"';

await run(() => playDemo(play));

async function play(url: string): Promise<void> {
  const id = randomBytes(4).toString("hex");
  const agent = `coder-${id}`;
  await gateward(url, ["agent", "create", agent, "--environment", ENVIRONMENT]);
  await gateward(url, ["group", "add", "engineering", "--agent", agent]);
  const trust = ["--max-source-trust", "trusted_internal_signed"];
  const { token } = await gateward<{ token: string }>(url, ["credential", "create", "--agent", agent, ...trust]);

  const client = new Client(url);
  console.log(`\nAgent ${DEMO_TENANT}/${agent} on ${url}\n`);
  const rows: Record<string, string>[] = [];
  let surprises = 0;
  await playScenario({
    id,
    agent,
    environment: ENVIRONMENT,
    async decide(body, step) {
      const answer = await client.decide(token, body);
      const { decision, reason_code } = step.expected;
      if (answer.decision !== decision || answer.reason_code !== reason_code) surprises += 1;
      rows.push({
        call: step.title,
        tool: `${step.tool}/${step.action}`,
        "source trust": step.source_trust,
        decision: answer.decision,
        reason: answer.reason_code,
        receipt: answer.receipt === null ? "" : String(answer.receipt.seq),
        policies: answer.matched_policies.join(", "),
      });
      return answer;
    },
    async approve(approvalId) {
      const args = ["approvals", "approve", approvalId];
      const { status, approvers } = await gateward<Pick<Approval, "status" | "approvers">>(url, [...args, "--comment", "release it"]);
      const by = approvers.map(({ administrator, groups }) => `${administrator} of ${groups.join(", ")}`);
      rows.push({ call: `$ gateward ${args.join(" ")}`, decision: status, reason: `by ${by.join(" and ")}` });
    },
  });
  printTable(rows);
  if (surprises > 0) throw new Error(`${surprises} decisions are not the expected ones (tests/support/scenario.ts)`);
  const administratorToken = textOf(ADMINISTRATOR_TOKEN);
  await verify(client, administratorToken, agent);
  await untilFlushed(client, administratorToken, agent);
  await prove(url, administratorToken);
  const query =
    "SELECT r.seq, coalesce(d.decision, r.body->>'change') AS step, coalesce(d.reason_code, r.body->>'status') AS reason, " +
    "substr(r.receipt_hash, 1, 16) AS receipt FROM receipts r LEFT JOIN decisions d USING (tenant, lane, seq) " +
    `WHERE r.tenant = '${DEMO_TENANT}' AND r.body->>'agent' = '${agent}' ORDER BY r.seq`;
  console.log(`\nThe rows in D1:\n\nnpx wrangler d1 execute DB --local --command "${query}"`);
}

/** Verifies the lane's whole chain, first here and then by asking for the same range. */
async function verify(client: Client, administratorToken: string, agent: string): Promise<void> {
  const receipts = await client.receipts(administratorToken);
  const problems = problemsOf(receipts);
  if (problems.length > 0) throw new Error(`the chain is broken here:\n  ${problems.join("\n  ")}`);
  const steps = receipts.flatMap(({ seq, body }) => (body.kind === "approval" && body.agent === agent ? `${seq} ${body.change}` : []));
  console.log(`\nThe approval's own receipts: ${steps.join(", ")}`);
  const last = receipts.at(-1);
  if (last === undefined) throw new Error("there are no receipts");
  console.log(`Receipts 1 to ${last.seq} of lane 0 verify here (SHA-256 over RFC 8785), head ${last.receipt_hash}`);

  // One request verifies a bounded number of receipts, and answers where the next one begins.
  for (let from: number | null = 1; from !== null; ) {
    const reply: Reply<Verification> = await client.post(administratorToken, "/v1/receipts/verify", { lane: 0, from, to: last.seq });
    if (reply.status !== 200 || !reply.body.verified) {
      throw new Error(`the worker does not verify the chain: ${JSON.stringify(reply.body)}`);
    }
    from = reply.body.next_from;
  }
  console.log(`POST /v1/receipts/verify agrees: ${last.seq} checked, none broken`);
}

/** Exports the receipts with their proofs. Verifies the export with only the log's key, and then a forged copy. */
async function prove(url: string, administratorToken: string): Promise<void> {
  title("The receipts are a signed log: an export verifies without the worker, and a changed field shows");
  const log = new URL(`/v1/log/${DEMO_TENANT}.head/`, url);
  const headers = { authorization: `Bearer ${administratorToken}` };
  const [key = ""] = (await (await fetch(new URL("keys", log), { headers })).text()).split("\n");
  const directory = mkdtempSync(join(tmpdir(), "gateward-demo-"));
  try {
    const [file, forged] = ["export.ndjson", "forged.ndjson"].map((name) => join(directory, name)) as [string, string];
    const deadline = Date.now() + HEAD_LIMIT_MS;
    for (;;) {
      // Until the head log has a checkpoint of the lane, there is nothing of it to export.
      const code = await printedBy(url, ["export", "--output", file]).then(
        () => undefined,
        (error: CommandFailed) => error.code ?? error.message,
      );
      if (code !== undefined && !code.includes("D1 has no checkpoint of it")) throw new Error(code);
      if (code === undefined && readFileSync(file, "utf8").includes(DENIED)) break;
      if (Date.now() > deadline) throw new Error("the head log has no checkpoint of the lane; the worker's log says why");
      rmSync(file, { force: true });
      await new Promise((resolve) => setTimeout(resolve, FLUSH_POLL_MS));
    }
    console.log(await printedBy(url, ["verify", file, "--key", key]));
    const text = readFileSync(file, "utf8");
    writeFileSync(forged, text.replace(DENIED, '\\"decision\\":\\"allow\\"'));
    const found = await printedBy(url, ["verify", forged, "--key", key]).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!(found instanceof CommandFailed)) throw new Error("the forged export verifies");
    console.log(`With one denial changed to an approval:\n${found.printed}${found.message}`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Waits until D1, where lists come from, holds every decision of the agent. */
async function untilFlushed(client: Client, administratorToken: string, agent: string): Promise<void> {
  const deadline = Date.now() + FLUSH_LIMIT_MS;
  for (;;) {
    const { body } = await client.get<DecisionPage>(administratorToken, `/v1/decisions?agent=${agent}`);
    if (body.decisions?.length === SCENARIO.length) return;
    if (Date.now() > deadline) throw new Error("the decisions do not arrive in D1; the worker's log says why");
    await new Promise((resolve) => setTimeout(resolve, FLUSH_POLL_MS));
  }
}

function printTable(rows: Record<string, string>[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => (row[column] ?? "").length)));
  const line = (cells: string[]) => cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd();
  console.log(line(columns));
  console.log(line(widths.map((width) => "-".repeat(width))));
  for (const row of rows) console.log(line(columns.map((column) => row[column] ?? "")));
}
