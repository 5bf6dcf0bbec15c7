// Compares every answer of Gateward to this process's `fetch` with the API's description.
import { Description } from "./description.ts";

/** Origins of the running instances of Gateward. */
const origins = new Set<string>();
/** Violations that were found since they were last taken. */
let violations: string[] = [];
let description: Description | undefined;
let watching = false;

/** From now on, answers from this origin must match the document. */
export function expectDescribedAnswers(url: URL): void {
  origins.add(url.origin);
}

/** The instance with this origin is gone. Another server may get its port, in a later file of the same process. */
export function expectNothingMore(url: URL): void {
  origins.delete(url.origin);
}

/** Returns the violations that were found so far, and forgets them. */
export function takeViolations(): string[] {
  const taken = violations;
  violations = [];
  return taken;
}

/** Checks the answers to `fetch`, once per process. The caller gets them unchanged. */
export function watchFetch(): void {
  if (watching) return;
  watching = true;
  const plain = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const response = await plain(input, init);
    const url = new URL(input instanceof Request ? input.url : input);
    if (!origins.has(url.origin)) return response;
    description ??= Description.read();
    if (description.leavesOut(url.pathname)) return response;
    const method = (init?.method ?? (input instanceof Request ? input.method : "GET")).toUpperCase();
    let text: string;
    try {
      text = await response.clone().text();
    } catch {
      // The answer broke off. The caller notices this too.
      return response;
    }
    const { status, headers } = response;
    const found = description.violationsOf({ method, path: url.pathname, status, headers, text });
    violations.push(...found.map((violation) => `${method} ${url.pathname} was answered ${status}: ${violation}`));
    return response;
  };
}
