// Changes of receipts by somebody who can write to D1, or to an export, and has no key.
import { type Entry, type Line, linesOf, originOf } from "./exports.ts";
import type { Gateward } from "./gateward.ts";
import { canonicalize, type JsonValue, sha256Hex } from "./receipts.ts";
import { leafHash, Note, parseTreeHead, type Signer, treeHash, treeHeadText } from "./tlog.ts";

/** The body with another link. */
export const linked = (body: string, previous: string) => body.replace(/"prev_hash":"[0-9a-f]{64}"/, `"prev_hash":"${previous}"`);

const linkOf = (body: string) => /"prev_hash":"([0-9a-f]{64})"/.exec(body)?.[1] ?? "";

/** Changes the body of a receipt in D1, and seals the chain again from there to its end. */
export async function rewrite(gateward: Gateward, tenant: string, lane: number, seq: number, change: (body: string) => string): Promise<void> {
  const rows = await gateward.rows<{ seq: number; body: string }>(
    "SELECT seq, body FROM receipts WHERE tenant = ?1 AND lane = ?2 AND seq >= ?3 ORDER BY seq",
    tenant,
    lane,
    seq,
  );
  let previous: string | undefined;
  for (const row of rows) {
    const body = previous === undefined ? change(row.body) : linked(row.body, previous);
    if (body === row.body) throw new Error(`receipt ${row.seq} has nothing to change: ${body}`);
    previous = sha256Hex(body);
    await gateward.execute(
      "UPDATE receipts SET body = ?4, receipt_hash = ?5, prev_receipt_hash = ?6 WHERE tenant = ?1 AND lane = ?2 AND seq = ?3",
      tenant,
      lane,
      row.seq,
      body,
      previous,
      linkOf(body),
    );
  }
}

type Members = { [member: string]: JsonValue };
const membersOf = ({ body }: Entry) => JSON.parse(body) as Members;

/** A checkpoint of a lane in the head log. */
export interface Embedded {
  entry: Entry;
  /** The number of the head log's receipt with this checkpoint. */
  receipt: number;
  /** The first receipt of the lane that this checkpoint covers, and the checkpoint before it does not cover. */
  from: number;
  size: number;
}

/** An export that somebody changes. Each of its logs begins with receipt 1. */
export class Forgery {
  lines: Line[];

  constructor(file: string) {
    this.lines = linesOf(file);
  }

  /** The number of a line. */
  numberOf(line: Line): number {
    return this.lines.indexOf(line) + 1;
  }

  entries(log: string): Entry[] {
    return this.lines.filter((line): line is Entry => line.type === "entry" && line.log === log);
  }

  /** The entry with this receipt. */
  entry(log: string, receipt: number): Entry {
    return found(this.entries(log)[receipt - 1]);
  }

  /** The last checkpoint of a log. */
  last(log: string): Final {
    return found(this.lines.find((line): line is Final => line.type === "checkpoint" && line.log === log));
  }

  /** The checkpoints of a lane in the head log. */
  checkpointsOf(head: string, lane: number): Embedded[] {
    let from = 1;
    return this.entries(head).flatMap((entry) => {
      const { of_lane, checkpoint, seq } = membersOf(entry);
      if (of_lane !== lane) return [];
      const { size } = parseTreeHead(new Note(String(checkpoint)).text);
      const embedded = { entry, receipt: Number(seq), from, size };
      from = size + 1;
      return [embedded];
    });
  }

  /** Changes the members of an entry's body. */
  edit(entry: Entry, change: (body: Members) => void): void {
    const body = membersOf(entry);
    change(body);
    entry.body = canonicalize(body);
  }

  remove(removed: (line: Line) => boolean): void {
    this.lines = this.lines.filter((line) => !removed(line));
  }

  /** Moves a line, or adds it, behind or before another one. */
  put(line: Line, where: "before" | "behind", other: Line): void {
    this.remove((it) => it === line);
    this.lines.splice(this.lines.indexOf(other) + (where === "before" ? 0 : 1), 0, line);
  }

  /** Computes again everything that needs no key: the numbers, the links, the hashes of events, and the count. */
  seal(): void {
    const links = new Map<string, { index: number; first: number; previous: string }>();
    this.lines.forEach((line, at) => {
      if (line.type === "log") links.set(line.log, { index: line.begin, first: line.first, previous: line.prev_hash });
      if (line.type !== "entry") return;
      const link = found(links.get(line.log));
      const next = this.lines[at + 1];
      line.index = link.index;
      this.edit(line, (body) => {
        body.seq = link.first + link.index;
        body.prev_hash = link.previous;
        if (next?.type !== "event") return;
        next.index = link.index;
        if (next.event !== null) body.event_hash = sha256Hex(next.event);
      });
      link.index += 1;
      link.previous = sha256Hex(line.body);
    });
    const end = this.lines.find((line) => line.type === "end");
    if (end?.type === "end") end.entries = this.lines.filter(({ type }) => type === "entry" || type === "missing").length;
  }

  /** The tree of the first entries of a log. */
  root(log: string, size: number): Buffer {
    return treeHash(this.entries(log).slice(0, size).map(({ body }) => leafHash(Buffer.from(body))));
  }

  /** A checkpoint of the entries of a log that are in the export. */
  checkpoint(log: string, signer: Signer, size = this.entries(log).length): string {
    const text = treeHeadText({ origin: originOf(log), size, root: this.root(log, size) });
    return `${text}\n${signer.sign(text)}`;
  }

  text(): string {
    return this.lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  }
}

type Final = Extract<Line, { type: "checkpoint" }>;

function found<T>(line: T | undefined): T {
  if (line === undefined) throw new Error("the export does not have it");
  return line;
}
