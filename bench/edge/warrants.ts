// What a one-link warrant costs: an allowed read with a warrant and its proof, beside the same read without.
//
//   node bench/edge/warrants.ts [build] [--full]
//
// Both workers are Gateward, from the same build. The chain was verified before, as in a task of many calls, so a call
// pays for its proof. It prints the median of the pairs' ratios.
import { Chain, type Input, Key } from "../../tests/support/warrants.ts";
import { AGENT, KINDS, TENANT } from "./kinds.ts";
import { closedRound, mixedRound, type Round, warmUp } from "./load.ts";
import { pairedRounds, PAIRING_VARS, ROUND_SECONDS } from "./pairs.ts";
import { demoHeaders, programArguments, type Worker, withWorkers } from "./workers.ts";

const ROOT = new Key(1);
const HOLDER = new Key(2);
const LOAD = { connections: 16, seconds: ROUND_SECONDS };
const PAIRS = { short: { min: 20, max: 60 }, full: { min: 30, max: 120 } };

const { body, expected } = KINDS.allow_read;

/** The call with a warrant. Its proof is made now, and is valid for all calls of a round. */
function warranted() {
  const { action, parameters } = body.tool_call;
  const chain = Chain.root({ by: ROOT, holder: HOLDER, tools: { [action]: {} }, lifeS: 3_600 });
  const prove = () => chain.headers(HOLDER, action, parameters as Input);
  return () => ({ body: JSON.stringify(body), headers: { ...demoHeaders(), ...prove() } });
}

async function register({ db }: Worker): Promise<void> {
  await db.batch([
    db.prepare("UPDATE agents SET public_key = ?3 WHERE tenant = ?1 AND agent = ?2").bind(TENANT, AGENT, HOLDER.hex),
    db
      .prepare(
        `INSERT INTO warrant_roots (tenant, root_id, public_key, status, created_by, revision, created_at_ms, updated_at_ms)
        VALUES (?1, 'bench', ?2, 'active', 'bench', 1, 0, 0)`,
      )
      .bind(TENANT, ROOT.hex),
  ]);
}

async function measure({ full, build }: { full: boolean; build: string }) {
  const options = { build, vars: PAIRING_VARS };
  return withWorkers([{ target: "gateward", options }, { target: "gateward", options }], async ([first, second]) => {
    if (first === undefined || second === undefined) throw new Error("two workers were started");
    const call = warranted();
    await register(first);
    for (const worker of [first, second]) await warmUp(worker);
    const one = call();
    const { answer } = await first.call(body, one.headers);
    const unknown = await second.call(body, one.headers);
    if (answer.reason_code !== "policy_allow" || unknown.answer.reason_code !== "warrant_untrusted") {
      throw new Error(`the warrant was not looked at: ${JSON.stringify([answer, unknown.answer])}`);
    }
    await mixedRound(first, [call()], expected, { ...LOAD, seconds: 10 });
    const rounds: Round[] = await pairedRounds([first, second], full ? PAIRS.full : PAIRS.short, (worker) => (worker === first ? mixedRound(worker, [call()], expected, LOAD) : closedRound(worker, "allow_read", LOAD)));
    const ratios = (of: (round: Round) => number) => {
      const pairs = rounds.flatMap((round, at) => (at % 2 === 0 ? [of(round) / of(rounds[at + 1] ?? round)] : []));
      return Number(pairs.toSorted((a, b) => a - b)[Math.floor(pairs.length / 2)]?.toFixed(3));
    };
    return { pairs: rounds.length / 2, throughput: ratios((it) => it.throughput_per_s), cpu: ratios((it) => it.cpu_ms_per_request) };
  });
}

console.log(JSON.stringify(await measure(programArguments())));
