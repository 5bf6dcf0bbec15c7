// What the shield costs: calls of two sizes with all categories in the mode `detect`, beside the same calls with all of
// them off.
//
//   node bench/edge/shield.ts [build] [--full]
//
// Both workers are Gateward, from the same build. It prints the median of the pairs' ratios for each size.
import { KINDS, TENANT } from "./kinds.ts";
import { mixedRound, type Round, warmUp } from "./load.ts";
import { medianOfPairs, pairedRounds, PAIRING_VARS, ROUND_SECONDS } from "./pairs.ts";
import { demoHeaders, programArguments, register, type Worker, withWorkers } from "./workers.ts";

const LOAD = { connections: 16, seconds: ROUND_SECONDS };
const PAIRS = { short: { min: 15, max: 30 }, full: { min: 30, max: 120 } };
const SIZES = [2 * 1024, 64 * 1024];
const CATEGORIES = ["sql_injection", "cross_site_scripting", "command_injection", "path_traversal", "template_injection", "server_side_request_forgery", "prompt_injection", "secret", "personal_data"];

/** Prose, code and a record, as agents send them. */
const TEXT = `The build of the payment service fails since Tuesday. Steps to reproduce: check out \`main\`, run the tests
in src/payments/ledger.rs and look at line 214. The assertion compares two amounts that are rounded differently.
fn total(rows: &[Row]) -> Decimal { rows.iter().map(|row| row.amount * row.rate).sum() }
{"id": 48213, "state": "open", "labels": ["bug", "payments"], "assignee": "miriam", "due": "2026-12-04T09:30:00Z"}
`;

const { body, expected } = KINDS.allow_read;

/** The kind's call with parameters of about this size. */
function sized(bytes: number) {
  const parameters = { ...body.tool_call.parameters, query: TEXT.repeat(Math.ceil(bytes / TEXT.length)).slice(0, bytes) };
  return { body: JSON.stringify({ ...body, tool_call: { ...body.tool_call, action: TOOL.tool, parameters } }), headers: demoHeaders() };
}

/** A tool that reads. The bundle does not declare its arguments, so it takes the text. */
const TOOL = { server: "github", tool: "search_issues", mutates: false, risk: "low" } as const;

async function turnOff({ db }: Worker): Promise<void> {
  const modes = JSON.stringify(Object.fromEntries(CATEGORIES.map((category) => [category, "off"])));
  await db.prepare("UPDATE tenants SET shield = ?2 WHERE tenant = ?1").bind(TENANT, modes).run();
}

async function measure({ full, build }: { full: boolean; build: string }) {
  const options = { build, vars: PAIRING_VARS };
  return withWorkers([{ target: "gateward", options }, { target: "gateward", options }], async ([on, off]) => {
    if (on === undefined || off === undefined) throw new Error("two workers were started");
    await turnOff(off);
    for (const worker of [on, off]) {
      await register(worker.db, { tools: [TOOL] });
      await warmUp(worker);
    }
    const found: unknown[] = [];
    for (const bytes of SIZES) {
      const call = sized(bytes);
      const rounds: Round[] = await pairedRounds([on, off], full ? PAIRS.full : PAIRS.short, (worker) => mixedRound(worker, [call], expected, LOAD));
      const ratio = (of: (round: Round) => number) => medianOfPairs(rounds, (first, second) => of(first) / of(second));
      found.push({ bytes, pairs: rounds.length / 2, throughput: ratio((it) => it.throughput_per_s), cpu: ratio((it) => it.cpu_ms_per_request) });
    }
    return found;
  });
}

console.log(JSON.stringify(await measure(programArguments())));
