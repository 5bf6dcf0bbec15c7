// Measures what limits cost: an allowed read with limits, compared with the same read without: limits.json.
//
//   npx node bench/edge/limits.ts [build] [--full]
//
// Both workers are Gateward, from the same build. Only the first one's registry has limits.
import type { LimitRule, LimitStates, SubjectKind } from "../../tests/support/api/types.gen.ts";
import { AGENT, KINDS, TENANT } from "./kinds.ts";
import { closedRound, warmUp } from "./load.ts";
import { type Paired, pairedRounds, PAIRING_VARS, ROUND_SECONDS } from "./pairs.ts";
import { demoHeaders, programArguments, type Worker, withWorkers } from "./workers.ts";

export interface Limits {
  seconds_per_round: number;
  rounds: ({ case: CaseName; connections: number } & Paired<"limited" | "unlimited">)[];
}

export type CaseName = "eight_of_agent" | "one_of_agent" | "tenant_leased" | "tenant_not_leased";

interface Case {
  subjectKind: SubjectKind;
  subject: string;
  rules: LimitRule[];
  /** For a limit that lanes share: whether the lane holds enough of it in advance, so that no call asks the counter. */
  leased?: boolean;
}

/** More than any run uses. */
const MAX = "1000000000";
const OF_AGENT = { subjectKind: "agent", subject: AGENT } as const;
const OF_TENANT = { subjectKind: "tenant", subject: "*" } as const;

const CASES: Record<CaseName, Case> = {
  eight_of_agent: {
    ...OF_AGENT,
    rules: [
      { kind: "hours", hours: ["00:00-24:00"] },
      { kind: "rate", capacity: 1_000_000, refill_per_s: 1_000_000 },
      { kind: "concurrency", max: "1000" },
      { kind: "quota", max: MAX, window: "day", time_zone: "Europe/Berlin" },
      { kind: "quota", max: MAX, window: "hour" },
      { kind: "quota", max: MAX, window: "month" },
      { kind: "budget", max: MAX, window: "day" },
      { kind: "budget", max: MAX, window: "week" },
    ],
  },
  one_of_agent: { ...OF_AGENT, rules: [{ kind: "quota", max: MAX, window: "day" }] },
  tenant_leased: { ...OF_TENANT, rules: [{ kind: "quota", max: MAX, window: "day" }], leased: true },
  // A counter grants in advance at most half of a second's refill (worker/core/src/limit/pool.rs), in whole tokens: so
  // nothing here. The capacity is more than any run uses.
  tenant_not_leased: { ...OF_TENANT, rules: [{ kind: "rate", capacity: 1_000_000, refill_per_s: 1 }], leased: false },
};

const CONNECTIONS = 16;
const PAIRS = { short: { min: 12, max: 60 }, full: { min: 30, max: 120 } };
/** The number of calls that show whether the counter is asked: far more than the bucket refills meanwhile. */
const PROBING_CALLS = 20;

export async function limits({ full = false, build }: { full?: boolean; build?: string } = {}): Promise<Limits> {
  const options = { ...(build !== undefined && { build }), vars: PAIRING_VARS };
  const result: Limits = { seconds_per_round: ROUND_SECONDS, rounds: [] };
  for (const name of Object.keys(CASES) as CaseName[]) {
    await withWorkers([{ target: "gateward", options }, { target: "gateward", options }], async ([limited, unlimited]) => {
      if (limited === undefined || unlimited === undefined) throw new Error("two workers were started");
      await limit(limited, CASES[name]);
      for (const worker of [limited, unlimited]) await warmUp(worker);
      await assertLimits(limited, CASES[name]);
      await assertLimits(unlimited, { rules: [] });

      const load = { connections: CONNECTIONS, seconds: ROUND_SECONDS };
      const rounds = await pairedRounds([limited, unlimited], full ? PAIRS.full : PAIRS.short, (worker) => closedRound(worker, "allow_read", load));
      // In each pair, the first round is the first worker's.
      result.rounds.push(...rounds.map((round, at) => ({ case: name, connections: CONNECTIONS, ...round, target: at % 2 === 0 ? ("limited" as const) : ("unlimited" as const) })));
    });
  }
  return result;
}

/** Writes the limits of a case, before the worker's first call. */
async function limit({ db }: Worker, { subjectKind, subject, rules }: Case): Promise<void> {
  const insert = `INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, 'bench', 1, 0, 0)`;
  await db.batch(rules.map((rule, at) => db.prepare(insert).bind(TENANT, idOf(at), subjectKind, subject, JSON.stringify(rule))));
}

const idOf = (at: number) => `limit-${at}`;

/** Checks that the worker has exactly the limits of the case, and that its calls ask the counter if the case says so. */
async function assertLimits(worker: Worker, { rules, leased }: Pick<Case, "rules" | "leased">): Promise<void> {
  const before = await statesOf(worker);
  const [found, expected] = [before.map(({ limit_id }) => limit_id).sort().join(), rules.map((_, at) => idOf(at)).join()];
  if (found !== expected) throw new Error(`the calls have the limits \`${found}\` and not \`${expected}\``);
  if (leased === undefined) return;
  for (let made = 0; made < PROBING_CALLS; made += 1) await worker.call(KINDS.allow_read.body);
  // What a lane holds in advance counts as used, so using it changes nothing.
  const granted = Number(before[0]?.remaining) - Number((await statesOf(worker))[0]?.remaining);
  if (leased !== (granted === 0)) throw new Error(`the counter granted ${granted} for ${PROBING_CALLS} calls`);
}

/** The state of the agent's limits and the tenant's. */
async function statesOf(worker: Worker): Promise<LimitStates["of_agent"]> {
  const response = await fetch(new URL("/v1/limits/status", worker.url), { headers: demoHeaders() });
  const { of_agent, shared } = (await response.json()) as LimitStates;
  return [...of_agent, ...shared];
}

if (import.meta.main) console.log(JSON.stringify(await limits(programArguments()), null, 2));
