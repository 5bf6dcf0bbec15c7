// Runs every command in the documentation, each page against a Gateward of its own, and compares what it prints
// with what the page shows.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { runOnDemo } from "./demo.ts";
import { mistake } from "./output.ts";
import { PAGES, readPage } from "./page.ts";
import type { Printed } from "./shell.ts";

/** The time limit for all commands of one page. */
const PAGE_LIMIT_MS = 240_000;
/** The folders that names of files are relative to. */
const ROOTS = ["", "worker", "worker/core/src", "worker/edge/src"];

const pages = new Map(PAGES.map((path) => [path, readPage(path)]));

const withCommands = [...pages].filter(([, { blocks }]) => blocks.length > 0);
describe.each(withCommands)("the commands of %s", (_, { blocks }) => {
  const run = blocks.filter(({ notRun }) => notRun === undefined);
  const printed = new Map<string, Printed | undefined>();
  beforeAll(async () => {
    if (run.length === 0) return;
    const results = await runOnDemo(run, PAGE_LIMIT_MS);
    run.forEach(({ place }, at) => printed.set(place, results[at]));
  }, PAGE_LIMIT_MS + 60_000);

  test.each(run)("$place", (block) => {
    const why = mistake(block, printed.get(block.place));
    if (why !== undefined) throw new Error(why);
  });
  test.skip.each(blocks.filter(({ notRun }) => notRun !== undefined))("$place is not run: $notRun", () => {});
});

describe("pages", () => {
  test("say why a command is not run", () => {
    const silent = [...pages.values()].flatMap(({ blocks }) => blocks.filter(({ notRun }) => notRun === ""));
    expect(silent).toEqual([]);
  });

  test("name the language of every block, so that no command is overlooked", () => {
    expect([...pages.values()].flatMap(({ unlabelled }) => unlabelled)).toEqual([]);
  });

  test("show files as they are", () => {
    for (const { place, file, text } of [...pages.values()].flatMap(({ copies }) => copies)) {
      expect({ place, text }).toEqual({ place, text: readFileSync(file, "utf8") });
    }
  });

  test("name files that exist", () => {
    const missing = [...pages.values()].flatMap(({ files }) => files.filter(({ file }) => !ROOTS.some((root) => existsSync(join(root, file)))));
    expect(missing).toEqual([]);
  });

  test("list every decision", () => {
    const listed = pages.get("docs/decisions/README.md")?.links.map(({ url }) => `docs/decisions/${url}`);
    expect(listed).toEqual(PAGES.filter((path) => /decisions\/\d/.test(path)));
  });

  test("link to what exists", () => {
    const broken = [...pages].flatMap(([path, { links }]) => links.filter(({ url }) => !exists(path, url)));
    expect(broken).toEqual([]);
  });
});

/** Whether a link leads to a file and, in a page, to a heading; addresses elsewhere are not looked up. */
function exists(page: string, url: string): boolean {
  if (/^[a-z]+:/.test(url)) return true;
  const [file = "", anchor] = url.split("#");
  const target = file === "" ? page : normalize(join(dirname(page), file));
  if (!existsSync(target)) return false;
  return anchor === undefined || !target.endsWith(".md") || (pages.get(target) ?? readPage(target)).anchors.has(anchor);
}
