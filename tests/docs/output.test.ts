import { expect, test } from "vitest";
import { difference } from "./output.ts";

const text = (text: string) => ({ language: "text", text });
const json = (text: string) => ({ language: "json", text });
const ID = "01a1fe8b-8546-7000-8000-000001448570";
const OTHER_ID = "01a202eb-db8e-7000-8000-0000088c7058";

test.each([
  ["the same text", text("a\nb"), "a\nb\n", true],
  ["another text", text("a\nb"), "a\nc\n", false],
  ["a line too few", text("a\nb"), "a\n", false],
  ["a line too many", text("a"), "a\nb\n", false],
  ["wider columns", text("name  at\nx     y"), "name   at\nx      y", true],
  ["lines left out in between", text("a\n…\nd"), "a\nb\nc\nd", true],
  ["no line where some may be left out", text("a\n…\nb"), "a\nb", true],
  ["lines left out at the end", text("a\n…"), "a\nb\nc", true],
  ["a line after those left out that is missing", text("a\n…\nd"), "a\nb\nc", false],
  ["text of a line left out", text('{"a":1,…,"z":2}'), '{"a":1,"b":3,"z":2}', true],
  ["text left out does not reach into the next line", text("a…b"), "a\nb", false],
  ["characters with a meaning in patterns", text("a.c (d)"), "abc (d)", false],
  ["another id", text(`${ID} allow`), `${OTHER_ID} allow`, true],
  ["an id where there should be a word", text("none"), ID, false],
  ["another time", text("2026-11-21T14:38:38.918Z ok"), "2027-01-01T00:00:00.000Z ok", true],
  ["another key id", text("k2200dc469427bc4d"), "kd9f376d011ec93aa", true],
  ["a key id where there should be a ban's", text("ban-b3b577684407a0a6"), "kb3b577684407a0a6", false],
  ["another token", text("gw_demo.a.0.k1.x"), "gw_demo.b.0.k2.y-z", true],
  ["an agent's token where there should be none", text("null"), "gw_demo.b.0.k2.y", false],
  ["another epoch", text("registry.37"), "registry.4", true],
  ["another revision", text("agent  a\nrevision  3"), "agent  a\nrevision  81", true],
  ["other revisions in a table", text("tool  revision\na  3\nb  4"), "tool  revision\na  71\nb  72", true],
  ["another number in a table", text("tool  lane\na  3"), "tool  lane\na  4", false],
  ["JSON in another layout", json('{\n  "a": [1, 2]\n}'), '{"a":[1,2]}', true],
  ["JSON with another value", json('{"a": 1}'), '{"a":2}', false],
  ["JSON whose text is left out", json('{"a": "b…"}'), '{"a":"bcd"}', true],
])("%s: the comparison says so", (_, shown, printed, same) => {
  expect(difference(shown, printed) === undefined).toBe(same);
});
