// A run's plots and page, as values and as files.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { page } from "./page.mjs";
import { PLOTS, plots } from "./plots.mjs";
import { readRun } from "./results.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const PAGE = join(ROOT, "docs/performance.md");
const NOTES = join(ROOT, "bench/report/notes.md");

/**
 * The page and the plots of a run.
 * @param {string} directory
 */
export async function report(directory) {
  const results = readRun(directory);
  const drawn = await plots(results);
  const run = relative(ROOT, resolve(directory)).split(sep).join("/");
  return { markdown: page(results, { run, plots: drawn.keys(), notes: readFileSync(NOTES, "utf8") }), plots: drawn };
}

/**
 * Draws a run's plots into its directory and writes the page from it.
 * @param {string} directory
 */
export async function writeReport(directory) {
  const { markdown, plots: drawn } = await report(directory);
  // A plot that this run has nothing for may be left there by an earlier one.
  for (const name of PLOTS) rmSync(join(directory, `${name}.svg`), { force: true });
  for (const [name, svg] of drawn) writeFileSync(join(directory, `${name}.svg`), svg);
  writeFileSync(PAGE, markdown);
}

/** The directory of the run that the page was generated from. */
export function runOfPage() {
  const run = /\[`(bench\/runs\/[^`]+)`\]/.exec(readFileSync(PAGE, "utf8"))?.[1];
  if (run === undefined) throw new Error("docs/performance.md names no run");
  return join(ROOT, run);
}
