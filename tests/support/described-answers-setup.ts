// Runs in each test file: an answer that does not match the API's description fails the test that got it.
import { afterAll, afterEach } from "vitest";
import { takeViolations, watchFetch } from "./described-answers.ts";

watchFetch();

const check = () => {
  const violations = [...new Set(takeViolations())];
  if (violations.length > 0) throw new Error(`answers are not as docs/openapi.json says:\n${violations.join("\n")}`);
};
afterEach(check);
// What `beforeAll` and `afterAll` of the file got.
afterAll(check);
