import binaryen from "binaryen";
import { expect, test } from "vitest";
import { bySimilarity, ranked } from "./order-functions.ts";
import { functions, sections } from "./wasm-module.ts";

// `$a` and `$y` are similar, and so are `$b` and `$x`: by name, neither pair is together. `$both` calls all of them, and
// `$one` calls the imported function that it imports second.
const MODULE = `(module
  (import "e" "z" (func $z (result i32)))
  (import "e" "c" (func $c (result i32)))
  (func $a (param i32) (result i32)
    (i32.add (i32.mul (local.get 0) (i32.const 3000000)) (i32.xor (local.get 0) (i32.const 7000000))))
  (func $b (param i32) (result i32)
    (i32.sub (i32.shl (i32.const 123456789) (local.get 0)) (i32.rotl (local.get 0) (i32.const 987654321))))
  (func $x (param i32) (result i32)
    (i32.or (i32.shl (i32.const 123456789) (local.get 0)) (i32.rotl (local.get 0) (i32.const 987654321))))
  (func $y (param i32) (result i32)
    (i32.and (i32.mul (local.get 0) (i32.const 3000000)) (i32.xor (local.get 0) (i32.const 7000000))))
  (func $both (export "both") (param i32) (result i32)
    (i32.add (call $a (call $b (local.get 0))) (call $x (call $y (local.get 0)))))
  (func $one (export "one") (result i32) (call $c)))`;

function built() {
  const module = binaryen.parseText(MODULE);
  binaryen.setDebugInfo(true);
  const bytes = Buffer.from(module.emitBinary());
  module.dispose();
  return bytes;
}

/** As scripts/build-wasm.sh orders it. */
function ordered(wasm: Buffer) {
  const module = binaryen.readBinary(ranked(wasm));
  module.runPasses(["reorder-functions-by-name"]);
  binaryen.setDebugInfo(true);
  const bytes = Buffer.from(module.emitBinary());
  module.dispose();
  return bytes;
}

/** Node's types do not have it. */
interface WebAssembly {
  Module: new (wasm: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { exports: Record<string, (value?: number) => number> };
}
const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssembly }).WebAssembly;

function results(wasm: Buffer) {
  const { both, one } = new Instance(new Module(wasm), { e: { z: () => 26, c: () => 3 } }).exports;
  return [both?.(1), both?.(-77), one?.()];
}

test("similar functions come one after the other", () => {
  const all = functions(built());
  const order = bySimilarity(all).map((at) => all[at]?.name);
  expect(order.toSorted()).toEqual(["a", "b", "both", "one", "x", "y"]);
  const distance = (a: string, b: string) => Math.abs(order.indexOf(a) - order.indexOf(b));
  expect([distance("a", "y"), distance("b", "x")]).toEqual([1, 1]);
});

test("functions in which nothing is similar are in the order of their names", () => {
  const all = ["c", "a", "B", ""].map((name) => ({ name, code: Buffer.from(name.repeat(20)) }));
  expect(bySimilarity(all)).toEqual([3, 2, 1, 0]);
  expect(bySimilarity([])).toEqual([]);
});

test("only the names of the module change, and always in the same way", () => {
  const wasm = built();
  const once = ranked(wasm);
  expect(functions(once).map(({ code }) => code)).toEqual(functions(wasm).map(({ code }) => code));
  const withoutNames = (module: Buffer) => sections(module).filter(({ name }) => name !== "name").map(({ bytes }) => bytes);
  expect(withoutNames(once)).toEqual(withoutNames(wasm));
  expect(ranked(wasm)).toEqual(once);
  expect(new Set(functions(once).map(({ name }) => name)).size).toBe(functions(wasm).length);
});

test("the ordered module has the same functions, and does the same", () => {
  const wasm = built();
  const other = ordered(wasm);
  expect(functions(other).map(({ name }) => name)).toEqual(functions(ranked(wasm)).map(({ name }) => name).toSorted());
  // Not the code itself: calls have other numbers in it.
  const lengths = (module: Buffer) => functions(module).map(({ code }) => code.length).toSorted((a, b) => a - b);
  expect(lengths(other)).toEqual(lengths(wasm));
  expect(results(wasm)).toEqual([expect.any(Number), expect.any(Number), 3]);
  expect(results(other)).toEqual(results(wasm));
});

test.each([
  ["too many functions", Array.from({ length: 30_001 }, () => ({ name: "f", code: Buffer.alloc(2) }))],
  ["too much code", [{ name: "f", code: Buffer.alloc(2 ** 24 + 1) }]],
])("%s is an error", (_, all) => expect(() => bySimilarity(all)).toThrow(/the limits are/));
