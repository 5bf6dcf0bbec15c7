import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Page, readPage } from "./page.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "gateward-page-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

function pageOf(text: string): Page {
  const path = join(directory, "page.md");
  writeFileSync(path, text);
  return readPage(path);
}
const SH = "```sh\nls\n```\n";
const OUTPUT = "```text\na\n```\n";

test.each([
  ["commands alone", SH, { commands: "ls", first: undefined, notRun: undefined, output: undefined }],
  ["output that follows directly", SH + OUTPUT, { output: { language: "text", text: "a" } }],
  ["a block after other text is no output", `${SH}\nSee:\n\n${OUTPUT}`, { output: undefined }],
  ["code of another language is no output", `${SH}\`\`\`ts\na\n\`\`\`\n`, { output: undefined }],
  ["a reason for not running", `<!-- not run: needs an account -->\n${SH}`, { notRun: "needs an account" }],
  ["a mark without a reason", `<!-- not run: -->\n${SH}`, { notRun: "" }],
  ["a mark before other text does not count", `<!-- not run: x -->\n\nText.\n\n${SH}`, { notRun: undefined }],
  ["commands that run before it", `<!-- run first:\na --b\nc\n-->\n${SH}`, { first: "a --b\nc" }],
  ["two marks", `<!-- run first: a -->\n<!-- file: b -->\n${SH}`, { first: "a" }],
  ["a block in a list", `1. One\n\n   <!-- not run: x -->\n   ${SH.replaceAll("\n", "\n   ")}`, { commands: "ls", notRun: "x" }],
])("%s: the block is read so", (_, text, expected) => {
  expect(pageOf(text).blocks).toMatchObject([expected]);
});

test("headings have the ids that GitHub gives them", () => {
  const text = "# `gateward` agent\n## Who? You & I\n## Who? You & I\n";
  expect([...pageOf(text).anchors]).toEqual(["gateward-agent", "who-you--i", "who-you--i-1"]);
});

test("blocks without a language, copies of files, links and names of files are found", () => {
  const { unlabelled, copies, links, files } = pageOf("```\na\n```\n\n<!-- file: x.ts -->\n```ts\nb\n```\n\n[c](d.md#e), `f/g.rs`, `h.rs`, `i/j`\n");
  expect(unlabelled).toHaveLength(1);
  expect(copies).toMatchObject([{ file: "x.ts", text: "b\n" }]);
  expect(links).toMatchObject([{ url: "d.md#e" }]);
  expect(files).toMatchObject([{ file: "f/g.rs" }]);
});
