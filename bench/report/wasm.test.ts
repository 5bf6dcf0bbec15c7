import binaryen from "binaryen";
import { expect, test } from "vitest";
import { added, crateOf, functions, replaced, sections } from "./wasm.ts";

const MODULE = `(module
  (import "e" "f" (func $imported (param i32)))
  (import "e" "m" (memory 1 2))
  (import "e" "g" (global $counter (mut i32)))
  (import "e" "t" (table 1 funcref))
  (data (i32.const 0) "twenty bytes of data")
  (func $small (export "small"))
  (func $large (export "large") (param i32) (result i32)
    (i32.add (i32.mul (local.get 0) (i32.const 300000)) (i32.const 70000))))`;

function built() {
  const module = binaryen.parseText(MODULE);
  binaryen.setDebugInfo(true);
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
});

test("functions have their names, and the code's bytes between them", () => {
  const wasm = built();
  const found = functions(wasm);
  expect(found.map(({ name }) => name)).toEqual(["small", "large"]);
  const [small, large] = found.map(({ code }) => code.length);
  // A length, no locals, the end. The other has two constants of three bytes, and four operators.
  expect([small, large]).toEqual([3, 15]);
});

test("a part adds what the code is smaller without its functions", () => {
  const all = functions(built());
  expect(added(all, /^none$/)).toBe(0);
  expect(added(all, /^large$/)).toBeGreaterThan(added(all, /^small$/));
});

test.each([
  ["gateward_core::json::parse::h30211d3c68c0bb25", "gateward_core"],
  ["<gateward_core::name::Name as core::str::traits::FromStr>::from_str::h1", "gateward_core"],
  ["core::ptr::drop_in_place<alloc::vec::Vec<boon::Schema>>::h1", "boon"],
  ["core::slice::sort::stable::drift::sort::h1", "core"],
  ["<&mut serde_json::de::Deserializer<R> as serde_core::de::Deserializer>::deserialize_struct::h1", "serde_json"],
  ["<dlmalloc[e24a27700634d609]::dlmalloc::Dlmalloc<A>>::malloc", "dlmalloc"],
  ["__wbindgen_malloc", "(no name)"],
])("%s is of %s", (name, crate) => expect(crateOf(name)).toBe(crate));

test("the report replaces what is between its comments", () => {
  const page = "a\n<!-- wasm-report: begin -->\nold\n<!-- wasm-report: end -->\nb\n";
  const once = replaced(page, "new");
  expect(once).toBe("a\n<!-- wasm-report: begin -->\nnew\n<!-- wasm-report: end -->\nb\n");
  expect(replaced(once, "new")).toBe(once);
  expect(() => replaced("no comments", "new")).toThrow(/has no/);
});
