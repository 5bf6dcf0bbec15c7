// Verifies receipts from their published form alone: SHA-256 over RFC 8785 JSON, each body holding
// the hash of the one before. It shares no code with the worker.
import { createHash } from "node:crypto";
import type { ReceiptRecord } from "./api/types.gen.ts";

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** The previous hash of a lane's first receipt. */
export const GENESIS = "0".repeat(64);

/**
 * RFC 8785. Its numbers and strings are ECMAScript's, which is what `JSON.stringify` writes, and
 * its keys are sorted by UTF-16 code units, which is how `sort` compares strings.
 */
export function canonicalize(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const fields = Object.keys(value).sort();
    return `{${fields.map((key) => `${JSON.stringify(key)}:${canonicalize(value[key] ?? null)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

export function sha256Hex(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/**
 * What is wrong with a run of receipts of one lane, each problem with its sequence number;
 * empty when nothing is. `previous` is the hash before the first: by default a lane's beginning.
 */
export function problemsOf(receipts: ReceiptRecord[], previous = GENESIS): string[] {
  const problems: string[] = [];
  const check = (seq: number, holds: boolean, problem: string) => {
    if (!holds) problems.push(`${seq}: ${problem}`);
  };
  let expectedPrevious = previous;
  let expectedSeq = receipts[0]?.seq ?? 1;
  for (const receipt of receipts) {
    const { body, seq } = receipt;
    check(seq, seq === expectedSeq, `expected ${expectedSeq}`);
    check(seq, receipt.canon_version === "rfc8785", `unknown form ${receipt.canon_version}`);
    check(seq, receipt.receipt_id === `rcpt_${receipt.lane}_${seq}`, `wrong id ${receipt.receipt_id}`);
    check(seq, body.seq === seq && body.lane === receipt.lane, "the body is another receipt's");
    check(seq, body.prev_hash === receipt.prev_receipt_hash, "body and row disagree on the previous hash");
    check(seq, body.prev_hash === expectedPrevious, "the previous hash is not the hash of the receipt before");
    check(seq, sha256Hex(canonicalize(body)) === receipt.receipt_hash, "the hash is not that of the body");
    expectedPrevious = receipt.receipt_hash;
    expectedSeq = seq + 1;
  }
  return problems;
}
