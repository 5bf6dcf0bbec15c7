// Reads a Wasm module: its sections, and its functions with their names. Gives functions other names.
//
// https://webassembly.github.io/spec/core/binary/modules.html, and for the names
// https://webassembly.github.io/spec/core/appendix/custom.html

/** The magic number, and version 1. */
const HEADER = Buffer.from([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]);
const SECTIONS = [
  "custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data",
  "data count", "tag",
];
const CUSTOM = SECTIONS.indexOf("custom");
const CODE = SECTIONS.indexOf("code");
const IMPORT = SECTIONS.indexOf("import");
const IMPORTED = { function: 0, table: 1, memory: 2, global: 3, tag: 4 };
/** The custom section with names. */
const NAMES = "name";
/** The part of this section with the names of functions. */
const FUNCTION_NAMES = 1;

export class Reader {
  readonly bytes: Buffer;
  at: number;
  readonly end: number;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  /** An unsigned LEB128 of at most 32 bits. */
  number() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.bytes.readUInt8(this.at++);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  /** The next `length` bytes, and goes on after them. */
  part(length = this.number()) {
    this.at += length;
    if (this.at > this.end) throw new Error("the Wasm is cut off, or is not a module");
    return new Reader(this.bytes, this.at - length, this.at);
  }

  text() {
    const { at, end } = this.part();
    return this.bytes.toString("utf8", at, end);
  }

  get left() {
    return this.bytes.subarray(this.at, this.end);
  }
}

export interface Section {
  kind: number;
  /** A custom section's own name. */
  name: string;
  /** After the name. */
  body: Reader;
  /** All of the section, with its kind and its length. */
  bytes: Buffer;
}

export function sections(wasm: Buffer): Section[] {
  if (!wasm.subarray(0, HEADER.length).equals(HEADER)) throw new Error("this is not a Wasm module of version 1");
  const reader = new Reader(wasm, HEADER.length);
  const found: Section[] = [];
  while (reader.at < reader.end) {
    const start = reader.at;
    const kind = reader.number();
    const body = reader.part();
    const name = kind === CUSTOM ? body.text() : (SECTIONS[kind] ?? `section ${kind}`);
    found.push({ kind, name, body, bytes: wasm.subarray(start, reader.at) });
  }
  return found;
}

export interface WasmFunction {
  name: string;
  /** With its length before it. */
  code: Buffer;
}

/** The functions that the Wasm defines, in its order. */
export function functions(wasm: Buffer): WasmFunction[] {
  const all = sections(wasm);
  const code = all.find(({ kind }) => kind === CODE)?.body;
  const names = all.find(isNames)?.body;
  if (code === undefined || names === undefined) throw new Error("the Wasm has no code, or no names");
  const imported = importedFunctions(all);
  const named = functionNames(names);
  return Array.from({ length: code.number() }, (_, at) => {
    const start = code.at;
    code.part();
    return { name: named.get(imported + at) ?? "", code: wasm.subarray(start, code.at) };
  });
}

/** How many functions the Wasm imports: they have the first numbers. */
export function importedFunctions(all: Section[]) {
  const imports = all.find(({ kind }) => kind === IMPORT)?.body;
  let found = 0;
  for (let count = imports?.number() ?? 0; imports !== undefined && count > 0; count -= 1) {
    imports.text();
    imports.text();
    const kind = imports.number();
    switch (kind) {
      case IMPORTED.function:
        imports.number();
        found += 1;
        break;
      case IMPORTED.table:
        imports.number();
        limits(imports);
        break;
      case IMPORTED.memory:
        limits(imports);
        break;
      // A global's type, and whether it is mutable. A tag's attribute, and its type.
      case IMPORTED.global:
      case IMPORTED.tag:
        imports.number();
        imports.number();
        break;
      default:
        throw new Error(`the Wasm imports something of the unknown kind ${kind}`);
    }
  }
  return found;
}

function limits(reader: Reader) {
  const hasMaximum = (reader.number() & 1) === 1;
  reader.number();
  if (hasMaximum) reader.number();
}

function isNames({ kind, name }: Section) {
  return kind === CUSTOM && name === NAMES;
}

function functionNames(section: Reader) {
  const names = new Map<number, string>();
  while (section.at < section.end) {
    const kind = section.number();
    const entries = section.part();
    if (kind !== FUNCTION_NAMES) continue;
    for (let count = entries.number(); count > 0; count -= 1) names.set(entries.number(), entries.text());
  }
  return names;
}

/** The same module with these names of all its functions, imported ones first, and with no other names. */
export function renamed(wasm: Buffer, names: string[]) {
  const entries = names.flatMap((name, at) => [leb128(at), withLength(Buffer.from(name))]);
  const list = withLength(Buffer.concat([leb128(names.length), ...entries]));
  const section = withLength(Buffer.concat([withLength(Buffer.from(NAMES)), leb128(FUNCTION_NAMES), list]));
  const kept = sections(wasm).filter((section) => !isNames(section));
  return Buffer.concat([HEADER, ...kept.map(({ bytes }) => bytes), leb128(CUSTOM), section]);
}

function withLength(bytes: Buffer) {
  return Buffer.concat([leb128(bytes.length), bytes]);
}

function leb128(value: number) {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 0x80)) {
    if (left < 0x80) return Buffer.from([...bytes, left]);
    bytes.push((left % 0x80) | 0x80);
  }
}
