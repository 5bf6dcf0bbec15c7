// Compares what a command printed with what its page shows.
//
// What differs from run to run is masked on both sides. A line of the page that is only `…` stands for
// any number of lines; `…` within a line stands for any text of that line.
import type { Block, Output } from "./page.ts";
import type { Printed } from "./shell.ts";

const LEFT_OUT = "…";
/** Texts that differ from run to run, and their masks. The order matters. */
const VARYING: [RegExp, string][] = [
  [/\bgwa?_[\w.…-]+/g, "<token>"],
  [/\bwhsec_[\w+/=…]+/g, "<secret>"],
  [/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\b/g, "<uuid>"],
  [/\b(k|ban-)?[\da-f]{16,}\b/g, "$1<hex>"],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>"],
  [/\bregistry\.\d+\b/g, "registry.<epoch>"],
  [/^(revision +)\d+$/gm, "$1<epoch>"],
];
/** The head of a table whose last column has revisions, which are epochs too. */
const REVISIONS = /(^| )revision$/;

/** What is wrong with the output of a block; `undefined` if nothing is. A block without shown output must print nothing. */
export function mistake({ output }: Block, printed: Printed | undefined): string | undefined {
  if (printed === undefined) return "it did not end in time, together with the blocks before it";
  if (output !== undefined) return difference(output, printed.text);
  const fine = printed.status === 0 && printed.text.trim() === "";
  return fine ? undefined : `the page shows no output, and it ended with ${printed.status} and printed:\n${indented(printed.text)}`;
}

/** The difference between the output and the page; `undefined` if they agree. */
export function difference(shown: Output, printed: string): string | undefined {
  const expected = lines(shown.language === "json" ? laidOut(shown.text) : shown.text);
  const actual = lines(shown.language === "json" ? laidOut(printed) : printed);
  if (matches(expected, actual)) return undefined;
  return `the page shows:\n${indented(shown.text)}\nit printed:\n${indented(printed)}`;
}

const indented = (text: string) => text.trimEnd().replace(/^/gm, "    ");

/** JSON in one layout; what is not JSON stays as it is. */
function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The masked text. Several spaces become one, because the width of a column depends on its values. */
function lines(text: string): string[] {
  const stable = VARYING.reduce((text, [pattern, mask]) => text.replace(pattern, mask), text);
  let revisions = false;
  return stable.trim().split("\n").map((line) => {
    const spaced = line.replace(/\s+/g, " ").trim();
    const masked = spaced.replace(/ \d+$/, " <epoch>");
    const row = revisions && masked !== spaced;
    revisions = REVISIONS.test(spaced) || row;
    return row ? masked : spaced;
  });
}

function matches([expected, ...rest]: string[], actual: string[]): boolean {
  if (expected === undefined) return actual.length === 0;
  if (expected === LEFT_OUT) return actual.some((_, at) => matches(rest, actual.slice(at))) || matches(rest, []);
  const [line, ...others] = actual;
  return line !== undefined && lineMatches(expected, line) && matches(rest, others);
}

function lineMatches(expected: string, actual: string): boolean {
  const parts = expected.split(LEFT_OUT).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(actual);
}
