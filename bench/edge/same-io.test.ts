import { test } from "vitest";
import { assertSameIo } from "./same-io.ts";

// Throws, and says where they differ.
test("the floor answers, journals and flushes as many bytes and rows as Gateward", () => assertSameIo());
