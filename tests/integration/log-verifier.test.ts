// Runs the tests of the independent verifier of exports, which is a program in Python.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const PYTHON = process.env.GATEWARD_VERIFIER_PYTHON;

test.skipIf(PYTHON === undefined)("the independent verifier finds every tampering", async () => {
  const { stderr } = await promisify(execFile)(PYTHON ?? "", ["-B", "-m", "unittest", "discover", "tests/verifier"]);
  expect(stderr).toMatch(/\nOK\n$/);
});
