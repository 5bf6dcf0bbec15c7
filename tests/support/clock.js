// The clock of a worker under test: ahead of the machine's, or behind it. Imported before the built worker. The var
// CLOCK_AHEAD_MS says how it is at first. Its code
// reads the time with `new Date()`, and its glue with `Date.now()`. Worker and lanes share this module, and so the
// clock. The runtime runs alarms by the machine's clock: if the worker's clock is behind, an alarm runs at once.
import { env } from "cloudflare:workers";

const { Date: MachineDate } = globalThis;
let aheadMs = env.CLOCK_AHEAD_MS ?? 0;

globalThis.Date = class extends MachineDate {
  constructor(...values) {
    super(...(values.length === 0 ? [MachineDate.now() + aheadMs] : values));
  }

  static now() {
    return MachineDate.now() + aheadMs;
  }
};

/** From now on, the clock is ahead by this much. */
export function clockIsAhead(ms) {
  aheadMs = ms;
}
