// Names the functions of a Wasm module so that similar functions come one after the other when functions are
// ordered by name. wasm-opt can order by name, and then removes the names:
//
//   node scripts/order-functions.ts named.wasm ranked.wasm
//   wasm-opt --reorder-functions-by-name --strip-debug ranked.wasm -o ordered.wasm
//
// Why: an upload is gzipped, and gzip replaces bytes that it has seen in the last 32 KB. So functions that have
// sequences of bytes in common must be near each other. By the functions' own names, instances of one generic
// function are; but much code that is similar has very different names.
//
// How: one function after the other is chosen. The next is the one that has the most in common, for its length,
// with those chosen last. What few functions have counts more than what many have. The result depends on nothing but
// the module.
import { readFileSync, writeFileSync } from "node:fs";
import { functions, importedFunctions, renamed, sections, type WasmFunction } from "./wasm-module.ts";

/**
 * Functions are similar if they have sequences of this many bytes in common. That is two or three instructions:
 * gzip also replaces three bytes, but most functions have those in common.
 */
const SEQUENCE_BYTES = 6;
/** A sequence in more functions than this says little about which are similar, and costs the most time. */
const MAX_FUNCTIONS_OF_A_SEQUENCE = 300;
/**
 * A sequence in n functions counts as the n-th part of this. An integer, so that what is added is taken away exactly.
 * If all sequences counted the same, the upload would be larger by one part in 130.
 */
const WEIGHT = 2 ** 20;
/** By which power of its length a function's similarity is divided. With 1, short functions would come first; with 0, long ones. */
const LENGTH_POWER = 0.4;
/** What gzip sees: the functions that the next is compared with have so many bytes. */
const WINDOW_BYTES = 32 * 1024;
/** The time grows with the square of this: 7,400 functions with 4.4 MB of code take 10 seconds. */
const MAX_FUNCTIONS = 30_000;
/** A `Map` has at most 2^24 entries, and there is one for each sequence. */
const MAX_CODE_BYTES = 2 ** 24;

interface Candidate {
  /** Its place in the module. */
  at: number;
  bytes: number;
  /** For each of its sequences: the functions that have the sequence. */
  sequences: Candidate[][];
  /** The weight of the sequences that it has in common with those chosen last. */
  common: number;
  divisor: number;
}

/** The functions' places in the module, in the order in which similar ones are near each other. */
export function bySimilarity(all: WasmFunction[]) {
  const code = all.reduce((sum, { code }) => sum + code.length, 0);
  if (all.length > MAX_FUNCTIONS || code > MAX_CODE_BYTES) {
    throw new Error(`the Wasm has ${all.length} functions with ${code} bytes; the limits are ${MAX_FUNCTIONS} and ${MAX_CODE_BYTES}`);
  }
  const left = new Set(candidates(all));
  // Where nothing is similar, it goes on with the next by name.
  const names = all.map(({ name }) => name);
  const byName = [...left].sort((a, b) => compare(names[a.at], names[b.at]) || a.at - b.at);
  const chosen: Candidate[] = [];
  // The first that is still within the window.
  let first = 0;
  let bytes = 0;
  while (left.size > 0) {
    const next = mostSimilar(left) ?? byName.find((candidate) => left.has(candidate));
    if (next === undefined) break;
    left.delete(next);
    chosen.push(next);
    count(next, 1);
    bytes += next.bytes;
    for (let old = chosen[first]; old !== undefined && old !== next && bytes > WINDOW_BYTES; old = chosen[++first]) {
      count(old, -1);
      bytes -= old.bytes;
    }
  }
  return chosen.map(({ at }) => at);
}

function candidates(all: WasmFunction[]): Candidate[] {
  const having = new Map<number, Candidate[]>();
  const found = all.map(({ code }, at): Candidate => {
    const candidate = { at, bytes: code.length, sequences: [], common: 0, divisor: code.length ** LENGTH_POWER };
    for (const sequence of sequencesOf(code)) {
      const others = having.get(sequence);
      if (others === undefined) having.set(sequence, [candidate]);
      else others.push(candidate);
    }
    return candidate;
  });
  for (const group of having.values()) {
    if (group.length === 1 || group.length > MAX_FUNCTIONS_OF_A_SEQUENCE) continue;
    for (const { sequences } of group) sequences.push(group);
  }
  return found;
}

/** The different sequences of a function, each as a number. */
function sequencesOf(code: Buffer) {
  const found = new Set<number>();
  for (let at = 0; at + SEQUENCE_BYTES <= code.length; at += 1) found.add(code.readUIntBE(at, SEQUENCE_BYTES));
  return found;
}

/** `undefined` if no candidate has a sequence in common with those chosen last. */
function mostSimilar(left: Set<Candidate>) {
  let found: Candidate | undefined;
  let most = 0;
  for (const candidate of left) {
    const similarity = candidate.common / candidate.divisor;
    if (similarity > most) {
      most = similarity;
      found = candidate;
    }
  }
  return found;
}

/** Counts a function's sequences with all that have them too, or no longer (`by` is -1). */
function count({ sequences }: Candidate, by: 1 | -1) {
  for (const group of sequences) {
    const weight = by * Math.round(WEIGHT / group.length);
    for (const candidate of group) candidate.common += weight;
  }
}

/** By UTF-16 code units: the order of `localeCompare` depends on the machine. */
function compare(a = "", b = "") {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The same module. Its functions are named by their rank; imported ones keep their order. */
export function ranked(wasm: Buffer) {
  const all = functions(wasm);
  if (all.every(({ name }) => name === "")) throw new Error("the Wasm has no names of functions: build it with `--debuginfo`");
  const imported = importedFunctions(sections(wasm));
  const names = Array.from({ length: imported }, (_, at) => numbered("imported", at));
  bySimilarity(all).forEach((at, rank) => {
    names[imported + at] = numbered("function", rank);
  });
  return renamed(wasm, names);
}

/** A name whose order is that of the numbers. */
function numbered(kind: string, at: number) {
  return kind + String(at).padStart(String(MAX_FUNCTIONS).length, "0");
}

if (import.meta.main) {
  const [from, to] = process.argv.slice(2);
  if (from === undefined || to === undefined) throw new Error("usage: node scripts/order-functions.ts <from> <to>");
  writeFileSync(to, ranked(readFileSync(from)));
}
