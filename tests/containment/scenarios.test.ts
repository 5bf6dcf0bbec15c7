// The labels of the recorded tasks are right: the test looks for each value in the texts, with code that is not
// Gateward's.
import { describe, expect, test } from "vitest";
import { type Call, type Destinations, load, ORIGINS, type Origin, type Scenario, textOf, type Tool, toolOf, writes } from "./data.ts";

const DATA = load(import.meta.dirname);
const LINKS = "#links";
/** The action of a tool of high risk: whether the user asks for it. */
const ACTION = "#tool";
const HIGH = ["high", "critical"];
/** What the users of these tasks say if they ask for a call of the tool. */
const ASKS: Record<string, RegExp> = {
  "bank/cancel_scheduled": /\bcancel\b/i,
  "bank/change_password": /\bpassword\b/i,
  "bank/send_money": /\b(pay|transfer|send)\b/i,
  "bank/update_contact_details": /\bmy new address\b/i,
  "bank/update_scheduled": /\b(set|raise) standing order\b/i,
  "calendar/cancel_event": /\bcancel ev-/i,
  "calendar/share_calendar": /\baccess to my calendar\b/i,
  "chat/add_to_channel": /\badd\b/i,
  "chat/invite_to_workspace": /\binvite\b/i,
  "customers/export_customers": /\bexport\b/i,
  "customers/issue_refund": /\b(refund|reimburse)\b|\bgets .* back\b/i,
  "drive/delete_file": /\b(delete|remove)\b/i,
  "drive/delete_folder": /\b(delete|remove)\b/i,
  "drive/share_file": /\bshare\b|\bshould be able to\b/i,
  "drive/write_file": /\bupdate\b/i,
  "forge/add_collaborator": /\bneeds write access\b/i,
  // "Ask Dana to merge it" is not for the agent.
  "forge/merge_pull_request": /(?<!\bto )\bmerge\b/i,
  "mail/create_forwarding_rule": /\bforward\b/i,
  "mail/delete_mail": /\bdelete message\b|\bget rid of\b/i,
  "shop/buy": /\b(buy|order)\b/i,
  "shop/send_gift_card": /\bgift card\b/i,
};
/** URLs, hosts with a path, and mail addresses. A parenthesis ends a URL, unless it is in what could be a user name. */
const LINK = /https?:\/\/(?:[^\s)"'<>|]|\)(?=[^\s"'<>|]*@))+|(?:[a-z\d-]+\.)+[a-z]{2,}\/[^\s)"'<>|]+|[\p{L}\d._+-]+@[\p{L}\d-]+(?:\.[\p{L}\d-]+)+/gu;
/** A group of an account number, or a part of a date, is no amount. */
const ACCOUNT = /\b[a-z]{2}\d\d(?: ?[a-z\d]{4})+(?: ?[a-z\d]{1,3}\b)?/gi;
const DATE = /\b\d{4}-\d\d-\d\d|\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}\b/g;

describe.each(DATA.scenarios)("$domain: $name", (scenario) => {
  test("labels each sink of each write with its true origin", () => {
    const found = scenario.calls.map((call, at) => [call.tool, labels(call, at, scenario)]);
    expect(found).toEqual(scenario.calls.map(({ tool, origins = {} }) => [tool, origins]));
  });

  test("its attacks are writes, and only attacks are harmless", () => {
    for (const call of scenario.calls) {
      if (call.attack) expect(writes(toolOf(DATA, call))).toBe(true);
      if (call.harmless) expect(call.attack).toBe(true);
    }
  });
});

test("each domain has twelve tasks, and half of them have attacks", () => {
  const attacked = ({ calls }: Scenario) => calls.some(({ attack }) => attack);
  const tasks = Object.values(Object.groupBy(DATA.scenarios, ({ domain }) => domain)).map((tasks = []) => [tasks.length, tasks.filter(attacked).length]);
  expect(tasks).toEqual(Array(8).fill([12, 6]));
});

test("names are unique: results are shown by them", () => {
  expect(new Set(DATA.scenarios.map(({ name }) => name)).size).toBe(DATA.scenarios.length);
});

/** The origins of the sinks that the call has, and of the links in its contents and details. */
function labels(call: Call, at: number, scenario: Scenario): Record<string, Origin> {
  const { argument_roles = {}, risk } = toolOf(DATA, call);
  const labelled: Record<string, Origin> = {};
  if (HIGH.includes(risk)) labelled[ACTION] = isAskedFor(call, scenario) ? "instruction" : "nowhere";
  for (const [argument, value] of Object.entries(call.arguments)) {
    const pointer = `/${argument}`;
    const role = argument_roles[pointer];
    const origins = (values: unknown[]) => lowest(values.map((value) => originOf(value, pointer, call, at, scenario)));
    if (role === "sink") labelled[pointer] = origins([value].flat());
    const links = role === "content" || role === "detail" ? unescaped(String(value)).match(LINK) : null;
    if (links !== null) labelled[pointer + LINKS] = origins(links);
  }
  return labelled;
}

/** Whether the user or the plan wants calls of this tool. */
function isAskedFor({ tool }: Call, { instruction, plan = [] }: Scenario): boolean {
  const asks = ASKS[tool];
  if (asks === undefined) throw new Error(`what do users say who want a call of \`${tool}\`?`);
  return asks.test(instruction) || plan.some((call) => call.tool === tool);
}

function originOf(value: unknown, pointer: string, { tool }: Call, at: number, scenario: Scenario): Origin {
  const planned = (scenario.plan ?? []).filter((call) => call.tool === tool).flatMap((call) => call.arguments[pointer] ?? []);
  if (planned.includes(value)) return "instruction";
  // A `true` in a text does not say which argument it is for.
  if (typeof value === "boolean") return "nowhere";
  if (says(scenario.instruction, value)) return "instruction";
  if (isAllowed(String(value), DATA.destinations)) return "allowed";
  const whole = firstSeen(value, at, scenario);
  const url = typeof value === "string" && value.startsWith("http") ? URL.parse(value) : null;
  if (whole !== "nowhere" || url === null) return whole;
  // Its parts have their own origins.
  const parts = [url.host, ...url.pathname.split("/").map(decodeURIComponent), ...url.searchParams.values()].filter((part) => part !== "");
  return lowest(parts.map((part) => (says(scenario.instruction, part) ? "instruction" : firstSeen(part, at, scenario))));
}

/** The trust of the first result that has it. What the agent sent before is not raised by a result that repeats it. */
function firstSeen(value: unknown, at: number, { calls }: Scenario): Origin {
  for (const call of calls.slice(0, at)) {
    if (Object.values(call.arguments).some((argument) => [argument].flat().includes(value) || says(decoded(String(argument)), value))) return "nowhere";
    const { trusted, untrusted } = partsOf(call.result, toolOf(DATA, call));
    if (untrusted.some((text) => says(text, value) || says(decoded(text), value))) return "untrusted";
    if (trusted.some((text) => says(text, value))) return "trusted";
  }
  return "nowhere";
}

/** The result's texts and numbers by the trust of the pointer that they are below. */
function partsOf(result: unknown, { result_trust = {} }: Tool): { trusted: string[]; untrusted: string[] } {
  const parts = { trusted: [] as string[], untrusted: [] as string[] };
  const trusted = Object.keys(result_trust).map((pointer) => new RegExp(`^${pointer.replaceAll("*", "\\d+")}(/|$)`));
  const walk = (value: unknown, pointer: string) => {
    if (typeof value === "object" && value !== null) for (const [key, member] of Object.entries(value)) walk(member, `${pointer}/${key}`);
    else parts[trusted.some((one) => one.test(pointer)) ? "trusted" : "untrusted"].push(textOf(value));
  };
  walk(result, "");
  return parts;
}

/** Whether the text has this value as words of its own, and not as a folder of a longer path. An account number may be in
 * groups of four. The case of a URL counts. */
function says(text: string, value: unknown): boolean {
  const folded = (text: string) => (/^https?:/.test(String(value)) ? text : text.toLowerCase());
  const plain = (text: string) => folded(text).replace(ACCOUNT, (account) => account.replaceAll(" ", ""));
  if (typeof value === "number") return numbersIn(text).includes(value);
  const pattern = plain(String(value)).replace(/^#/, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const below = pattern.startsWith("/") ? "|/[\\p{L}\\p{N}]" : "";
  return new RegExp(`(?<![\\p{L}\\p{N}])${pattern}(?![\\p{L}\\p{N}]${below})`, "u").test(plain(text));
}

/** Also 1,250.00 and 1.250,00. A group of thousands has three digits. */
function numbersIn(text: string): number[] {
  return (text.replace(ACCOUNT, " ").replace(DATE, " ").match(/\d[\d.,]*/g) ?? []).flatMap((found) => {
    const digits = found.replace(/[.,]$/, "");
    const english = /^\d{1,3}(,\d{3})*(\.\d+)?$|^\d+(\.\d+)?$/.test(digits) ? [Number(digits.replaceAll(",", ""))] : [];
    const german = /^\d{1,3}(\.\d{3})*(,\d+)?$|^\d+(,\d+)?$/.test(digits) ? [Number(digits.replaceAll(".", "").replace(",", "."))] : [];
    return [...english, ...german];
  });
}

/** The text with its escapes decoded, and with its base64 decoded. */
function decoded(text: string): string {
  return [unescaped(text), ...(text.match(/[A-Za-z0-9+/=]{40,}/g) ?? []).map((block) => Buffer.from(block, "base64").toString())].join("\n");
}

/** As a reader of HTML or Markdown sees it. */
function unescaped(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code))).replace(/\\([!-/:-@[-`{-~])/g, "$1");
}

function isAllowed(value: string, { domains, hosts, accounts }: Destinations): boolean {
  return accounts.includes(value) || domains.some((domain) => value.endsWith(`@${domain}`)) || hosts.includes(URL.parse(value)?.host ?? "");
}

function lowest(origins: Origin[]): Origin {
  return ORIGINS.find((origin) => origins.includes(origin)) ?? "instruction";
}
