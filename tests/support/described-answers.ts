// Compares every answer of Gateward to this process's `fetch` with the API's description.
import { Description } from "./description.ts";

/** Origins of the running instances of Gateward. */
const origins = new Set<string>();
/** Violations that were found since they were last taken. */
let violations: string[] = [];
let description: Description | undefined;

/** From now on, the answers from there must be as the document says. */
export function expectDescribedAnswers(url: URL): void {
  origins.add(url.origin);
}

/** What was wrong with the answers so far; they are forgotten. */
export function takeViolations(): string[] {
  const taken = violations;
  violations = [];
  return taken;
}

/** Looks at the answers to `fetch`; what the caller gets is as it was. */
export function watchFetch(): void {
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
      // The answer broke off, as its caller will find.
      return response;
    }
    const { status, headers } = response;
    const found = description.violationsOf({ method, path: url.pathname, status, headers, text });
    violations.push(...found.map((violation) => `${method} ${url.pathname} was answered ${status}: ${violation}`));
    return response;
  };
}
