// A page of documentation as its code blocks, its links and its headings.
//
// Comments in a page steer the test, and readers do not see them:
//
//   <!-- not run: reason -->    the next block is not run
//   <!-- run first: commands --> commands that run before the next block; their output is not compared
//   <!-- file: path -->         the next block is the text of this file
import { globSync, readFileSync } from "node:fs";
import type { Code, Nodes, Parents } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { toString } from "mdast-util-to-string";

/** The pages whose commands are run. */
export const PAGES = ["README.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md").sort()];

/** The languages of blocks with output. */
const OUTPUTS = ["text", "json"];
/** A file of the project, named with its folder. */
const FILE = /^[\w-]+(\/[\w.-]+)+\.(rs|ts|js|sql)$/;
const MARK = /^<!--\s*(not run|run first|file):\s*(.*?)\s*-->$/s;

/** Commands of a page. */
export interface Block {
  /** `<page>:<line>`. */
  place: string;
  commands: string;
  /** Commands that run before it, which readers do not see. */
  first: string | undefined;
  /** Why it is not run; `undefined` if it is. */
  notRun: string | undefined;
  /** The output that the page shows; `undefined` if the page shows none. */
  output: Output | undefined;
}
export interface Output {
  language: string;
  text: string;
}

export interface Page {
  blocks: Block[];
  /** Blocks that are copies of files. */
  copies: { place: string; file: string; text: string }[];
  /** Blocks without a language, whose kind is not known. */
  unlabelled: string[];
  links: { place: string; url: string }[];
  /** Files that the text names. */
  files: { place: string; file: string }[];
  /** Ids of the headings, as GitHub makes them. */
  anchors: Set<string>;
}

export function readPage(path: string): Page {
  const page: Page = { blocks: [], copies: [], unlabelled: [], links: [], files: [], anchors: new Set() };
  visit(fromMarkdown(readFileSync(path, "utf8")), (node, before, after) => {
    const place = `${path}:${node.position?.start.line}`;
    if (node.type === "link" || node.type === "image" || node.type === "definition") page.links.push({ place, url: node.url });
    if (node.type === "inlineCode" && FILE.test(node.value)) page.files.push({ place, file: node.value });
    if (node.type === "heading") page.anchors.add(unique(slug(toString(node)), page.anchors));
    if (node.type !== "code") return;
    if (!node.lang) page.unlabelled.push(place);
    const marks = marksOf(before);
    if (marks.file !== undefined) page.copies.push({ place, file: marks.file, text: `${node.value}\n` });
    if (node.lang === "sh") {
      page.blocks.push({ place, commands: node.value, first: marks["run first"], notRun: marks["not run"], output: outputOf(after[0]) });
    }
  });
  return page;
}

/** Calls `found` with each node, with its siblings before it (the nearest first) and those after it. */
function visit(node: Nodes, found: (node: Nodes, before: Nodes[], after: Nodes[]) => void): void {
  const children = (node as Partial<Parents>).children ?? [];
  children.forEach((child, at) => {
    found(child, children.slice(0, at).reverse(), children.slice(at + 1));
    visit(child, found);
  });
}

/** The marks directly before a block. */
function marksOf(before: Nodes[]): Partial<Record<string, string>> {
  const marks: Partial<Record<string, string>> = {};
  for (const node of before) {
    const [, name, value] = (node.type === "html" && MARK.exec(node.value)) || [];
    if (name === undefined || value === undefined) break;
    marks[name] = value;
  }
  return marks;
}

function outputOf(next: Nodes | undefined): Output | undefined {
  const { lang, value } = (next?.type === "code" ? next : {}) as Partial<Code>;
  return lang && value !== undefined && OUTPUTS.includes(lang) ? { language: lang, text: value } : undefined;
}

function slug(heading: string): string {
  return heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
}

function unique(id: string, taken: Set<string>): string {
  for (let count = 0; ; count++) {
    const candidate = count === 0 ? id : `${id}-${count}`;
    if (!taken.has(candidate)) return candidate;
  }
}
