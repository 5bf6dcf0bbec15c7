// The lines of Gateward's log, as docs/logs.md has them.

export interface LogLine {
  time: string;
  level: "error" | "warn" | "info";
  event: string;
  message: string;
  tenant?: string;
  lane?: number;
  request_id?: string;
  trace_id?: string;
  decision_id?: string;
  detail?: string;
}

const text = (form: RegExp) => (value: unknown) => typeof value === "string" && form.test(value);

/** The members in their order, and what each may be. */
const MEMBERS: Record<keyof LogLine, (value: unknown) => boolean> = {
  time: text(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  level: text(/^(error|warn|info)$/),
  event: text(/^[a-z]+(_[a-z]+)*$/),
  message: text(/^[A-Z].+\.$/),
  tenant: text(/^.+$/),
  lane: Number.isInteger,
  request_id: text(/^[\w.-]{1,64}$/),
  trace_id: text(/^[0-9a-f]{32}$/),
  decision_id: text(/^[0-9a-f-]{36}$/),
  detail: (value) => typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 1_024,
};
const ALWAYS = ["time", "level", "event", "message"];

/** Whether a line of the runtime's log is Gateward's own. */
export const isOwn = (line: string) => line.startsWith("{");

/** Reads a line; throws if it is not as the page says. */
export function readLine(line: string): LogLine {
  const read = JSON.parse(line) as Record<string, unknown>;
  const names = Object.keys(MEMBERS);
  const inOrder = Object.keys(read).every((name, at, all) => names.includes(name) && (at === 0 || names.indexOf(all[at - 1] ?? "") < names.indexOf(name)));
  const fits = Object.entries(MEMBERS).every(([name, is]) => (name in read ? is(read[name]) : !ALWAYS.includes(name)));
  if (!inOrder || !fits || line.includes("\n")) throw new Error(`this line of the log is not as docs/logs.md says: ${line}`);
  return read as unknown as LogLine;
}
