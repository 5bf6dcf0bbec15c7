// `npx node bench/report/generate.ts [run directory]`: draws a run's plots into its directory and writes
// docs/performance.md from it; without a directory, from the run that the page names now.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { page } from "./page.ts";
import { plots } from "./plots.ts";
import { readRun } from "./results.ts";

const ROOT = resolve(import.meta.dirname, "../..");
export const PAGE = join(ROOT, "docs/performance.md");
export const NOTES = join(ROOT, "bench/report/notes.md");

/** The page and the plots of a run. */
export async function report(directory: string): Promise<{ markdown: string; plots: Map<string, string> }> {
  const results = readRun(directory);
  const drawn = await plots(results);
  const run = relative(ROOT, resolve(directory)).split(sep).join("/");
  return { markdown: page(results, { run, plots: drawn.keys(), notes: readFileSync(NOTES, "utf8") }), plots: drawn };
}

/** Draws a run's plots into its directory and writes the page from it. */
export async function writeReport(directory: string): Promise<void> {
  const { markdown, plots: drawn } = await report(directory);
  // An earlier run of the same day may have left plots that this run has no data for.
  for (const file of readdirSync(directory).filter((name) => name.endsWith(".svg"))) rmSync(join(directory, file));
  for (const [name, svg] of drawn) writeFileSync(join(directory, `${name}.svg`), svg);
  writeFileSync(PAGE, markdown);
}

/** The directory of the run that the page was generated from. */
export function runOfPage(): string {
  const run = /\[`(bench\/runs\/[^`]+)`\]/.exec(readFileSync(PAGE, "utf8"))?.[1];
  if (run === undefined) throw new Error("docs/performance.md names no run");
  return join(ROOT, run);
}

if (import.meta.main) await writeReport(process.argv[2] ?? runOfPage());
