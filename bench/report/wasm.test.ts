import { expect, test } from "vitest";
import { added, beside, crateOf, replaced, tooLarge } from "./wasm.ts";

test("a part adds what the code is smaller without its functions", () => {
  const all = ["small", "the large function"].map((name) => ({ name, code: Buffer.from(name) }));
  expect(added(all, /^none$/)).toBe(0);
  expect(added(all, /large/)).toBeGreaterThan(added(all, /^small$/));
});

test("a part must not be above its budget", () => {
  const parts = [
    { part: "at its budget", bytes: 45_000, budget_kb: 45 },
    { part: "above it", bytes: 45_001, budget_kb: 45 },
    { part: "without a budget", bytes: 1_000_000 },
  ];
  expect(tooLarge(parts)).toEqual(["above it"]);
});

test.each([
  ["within its budget", { bytes: 45_000, budget_kb: 45 }, ["p", "45.0 KB", "45 KB", "within its budget"]],
  ["above its budget", { bytes: 66_351, budget_kb: 60 }, ["p", "66.4 KB", "60 KB", "above its budget"]],
  ["without a budget", { bytes: 16_000 }, ["p", "16.0 KB", "none", ""]],
])("the table says that a part is %s", (_, part, row) => expect(beside({ part: "p", ...part })).toEqual(row));

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
