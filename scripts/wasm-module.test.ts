import binaryen from "binaryen";
import { expect, test } from "vitest";
import { functions, importedFunctions, renamed, sections } from "./wasm-module.ts";

const MODULE = `(module
  (import "e" "f" (func $imported (param i32)))
  (import "e" "m" (memory 1 2))
  (import "e" "g" (global $counter (mut i32)))
  (import "e" "t" (table 1 funcref))
  (data (i32.const 0) "twenty bytes of data")
  (func $small (export "small"))
  (func $large (export "large") (param i32) (result i32)
    (i32.add (i32.mul (local.get 0) (i32.const 300000)) (i32.const 70000))))`;

function built(names = true) {
  const module = binaryen.parseText(MODULE);
  binaryen.setDebugInfo(names);
  const bytes = Buffer.from(module.emitBinary());
  module.dispose();
  return bytes;
}

test("sections are those of the module, with all its bytes", () => {
  const wasm = built();
  const found = sections(wasm);
  expect(found.map(({ name }) => name)).toEqual(["type", "import", "function", "export", "code", "data", "name"]);
  expect(found.find(({ name }) => name === "data")?.body.left.toString()).toContain("twenty bytes of data");
  expect(found.at(-1)?.body.end).toBe(wasm.length);
  expect(Buffer.concat([wasm.subarray(0, 8), ...found.map(({ bytes }) => bytes)])).toEqual(wasm);
});

test("functions have their names, and the code's bytes between them", () => {
  const wasm = built();
  const found = functions(wasm);
  expect(importedFunctions(sections(wasm))).toBe(1);
  expect(found.map(({ name }) => name)).toEqual(["small", "large"]);
  const [small, large] = found.map(({ code }) => code.length);
  // A length, no locals, the end. The other has two constants of three bytes, and four operators.
  expect([small, large]).toEqual([3, 15]);
});

test("a renamed module has the new names, and nothing else is different", () => {
  const wasm = built();
  // Longer than what one byte can count.
  const long = "l".repeat(200);
  const other = renamed(wasm, ["i", "s", long]);
  expect(functions(other)).toEqual(functions(wasm).map(({ code }, at) => ({ name: ["s", long][at], code })));
  const withoutNames = (module: Buffer) => sections(module).slice(0, -1).map(({ bytes }) => bytes);
  expect(withoutNames(other)).toEqual(withoutNames(wasm));
});

test.each([
  ["no module", Buffer.from("this is a text"), /not a Wasm module/],
  ["a component", Buffer.from([0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00]), /not a Wasm module/],
  ["a module without its last byte", built().subarray(0, -1), /cut off/],
  ["no names", built(false), /no names/],
])("%s is an error", (_, bytes, error) => expect(() => functions(bytes)).toThrow(error));
