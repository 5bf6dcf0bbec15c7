// What somebody does to receipts who can write to D1, or to an export, and has no key.
import { type Entry, type Line, linesOf, originOf } from "./exports.ts";
import type { Gateward } from "./gateward.ts";
import { canonicalize, type JsonValue, sha256Hex } from "./receipts.ts";
import { leafHash, type Signer, treeHash, treeHeadText } from "./tlog.ts";

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

/** An export that somebody changes. */
export class Forgery {
  lines: Line[];

  constructor(file: string) {
    this.lines = linesOf(file);
  }

  entries(log: string): Entry[] {
    return this.lines.filter((line): line is Entry => line.type === "entry" && line.log === log);
  }

  /** Changes the members of an entry's body. */
  edit(entry: Entry | undefined, change: (body: Members) => void): void {
    if (entry === undefined) throw new Error("the export does not have this entry");
    const body = JSON.parse(entry.body) as Members;
    change(body);
    entry.body = canonicalize(body);
  }

  /** The entries of the head log that have a checkpoint of this lane. */
  checkpointsOf(head: string, lane: number): Entry[] {
    return this.entries(head).filter(({ body }) => (JSON.parse(body) as Members).of_lane === lane);
  }

  remove(removed: (line: Line) => boolean): void {
    this.lines = this.lines.filter((line) => !removed(line));
  }

  /** Computes everything again that needs no key: the numbers, the links, the hashes of events, and the count. */
  seal(): void {
    const links = new Map<string, { index: number; first: number; previous: string }>();
    this.lines.forEach((line, at) => {
      if (line.type === "log") links.set(line.log, { index: line.begin, first: line.first, previous: line.prev_hash });
      if (line.type !== "entry") return;
      const link = links.get(line.log);
      if (link === undefined) throw new Error(`an entry of ${line.log} precedes its log line`);
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

  /** A checkpoint of the entries of a log that are in the export, from its first on. */
  checkpoint(log: string, signer: Signer, size = this.entries(log).length): string {
    const leaves = this.entries(log).slice(0, size).map(({ body }) => leafHash(Buffer.from(body)));
    const text = treeHeadText({ origin: originOf(log), size, root: treeHash(leaves) });
    return `${text}\n${signer.sign(text)}`;
  }

  /** Puts a checkpoint in the place of the log's final one. */
  sign(log: string, signer: Signer): void {
    const note = this.checkpoint(log, signer);
    for (const line of this.lines) if (line.type === "checkpoint" && line.log === log) line.note = note;
  }

  text(): string {
    return this.lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  }
}
