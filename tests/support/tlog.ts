// Transparency logs as C2SP and RFC 9162 describe them, for the tests: verifier keys, signed notes, checkpoints,
// cosignatures, hashes and proofs. Written against those texts. It shares no code with the worker.
import { createHash, createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign, verify } from "node:crypto";

/** Types of signatures. */
export const ED25519 = 0x01;
export const COSIGNATURE = 0x04;

/** What comes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

const sha256 = (...parts: (Buffer | string)[]) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** Standard base64 in its canonical form; undefined if it is something else. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}

/** The text of these bytes; undefined if they are not UTF-8. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

// Keys and notes.

const isKeyName = (name: string) => name !== "" && !/[+\p{White_Space}]/u.test(name);

const keyId = (name: string, kind: number, key: Buffer) => sha256(name, "\n", Buffer.from([kind]), key).subarray(0, 4);

/** What a cosignature signs. */
const cosigned = (text: string, time: bigint) => Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);

/** Signs notes: as a log, or as a witness. */
export class Signer {
  readonly name: string;
  readonly kind: number;
  readonly public: Buffer;
  readonly #key: KeyObject;

  constructor(name: string, kind = ED25519, seed: Buffer = randomBytes(32)) {
    this.name = name;
    this.kind = kind;
    this.#key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
    this.public = createPublicKey(this.#key).export({ format: "der", type: "spki" }).subarray(-32);
  }

  get vkey(): string {
    const key = Buffer.concat([Buffer.from([this.kind]), this.public]);
    return `${this.name}+${keyId(this.name, this.kind, this.public).toString("hex")}+${key.toString("base64")}`;
  }

  /** A signature line for a note's text. A cosignature has a time, in POSIX seconds. */
  sign(text: string, time = 0): string {
    const parts = [keyId(this.name, this.kind, this.public)];
    if (this.kind === COSIGNATURE) {
      const timestamp = Buffer.alloc(8);
      timestamp.writeBigUInt64BE(BigInt(time));
      parts.push(timestamp, sign(null, cosigned(text, BigInt(time)), this.#key));
    } else {
      parts.push(sign(null, Buffer.from(text), this.#key));
    }
    return `— ${this.name} ${Buffer.concat(parts).toString("base64")}\n`;
  }
}

/** A verifier key. */
export class VerifierKey {
  readonly name: string;
  readonly kind: number;
  readonly id: Buffer;
  readonly #key: KeyObject;

  constructor(vkey: string) {
    const [, name = "", id, key = ""] = /^([^+]*)\+([0-9a-f]{8})\+(.*)$/.exec(vkey) ?? [];
    const bytes = fromBase64(key);
    if (!isKeyName(name) || bytes?.length !== 33) throw new Error(`not a verifier key: ${vkey}`);
    const kind = bytes[0] ?? 0;
    if (kind !== ED25519 && kind !== COSIGNATURE) throw new Error(`a verifier key of an unknown type: ${vkey}`);
    this.name = name;
    this.kind = kind;
    this.id = keyId(name, kind, bytes.subarray(1));
    if (this.id.toString("hex") !== id) throw new Error(`a verifier key with another key's id: ${vkey}`);
    const x = bytes.subarray(1).toString("base64url");
    this.#key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  }

  verifies(text: string, signature: Buffer): boolean {
    if (this.kind === ED25519) return verify(null, Buffer.from(text), this.#key, signature);
    if (signature.length !== 72) return false;
    const time = signature.readBigUInt64BE();
    return time > 0n && time < 1n << 63n && verify(null, cosigned(text, time), this.#key, signature.subarray(8));
  }
}

export interface Signature {
  name: string;
  id: Buffer;
  bytes: Buffer;
  /** With its newline. */
  line: string;
}

/** A signed note. */
export class Note {
  /** With its last newline, without the empty line. */
  readonly text: string;
  readonly signatures: Signature[];

  constructor(note: string) {
    if (/[\x00-\x09\x0b-\x1f]/.test(note)) throw new Error("the note has a control character");
    const end = note.lastIndexOf("\n\n");
    const lines = note.slice(end + 2).split("\n");
    if (end < 0 || lines.length < 2 || lines.pop() !== "") throw new Error("not a signed note");
    this.text = note.slice(0, end + 1);
    this.signatures = lines.map((line) => {
      const [, name = "", base64 = ""] = /^— ([^ ]+) ([^ ]+)$/.exec(line) ?? [];
      const bytes = fromBase64(base64);
      if (!isKeyName(name) || bytes === undefined || bytes.length < 5) throw new Error(`malformed signature: ${line}`);
      return { name, id: bytes.subarray(0, 4), bytes: bytes.subarray(4), line: `${line}\n` };
    });
  }

  /** The signatures of these keys. Throws if one of them does not hold. Ignores the signatures of other keys. */
  signaturesOf(keys: VerifierKey[]): Signature[] {
    return this.signatures.filter(({ name, id, bytes }) => {
      const key = keys.find((key) => key.name === name && key.id.equals(id));
      if (key !== undefined && !key.verifies(this.text, bytes)) throw new Error(`a signature of ${name} does not hold`);
      return key !== undefined;
    });
  }
}

/** What a checkpoint says. */
export interface TreeHead {
  origin: string;
  size: number;
  root: Buffer;
}

/** The tree head in a note's text. Throws if the text is not that of a checkpoint. */
export function parseTreeHead(text: string): TreeHead {
  const [origin = "", digits = "", base64 = "", ...extensions] = text.split("\n");
  const root = fromBase64(base64);
  const size = Number(digits);
  const isSize = /^(0|[1-9][0-9]*)$/.test(digits) && Number.isSafeInteger(size);
  // The text ends with a newline, so the last of these is empty, and only that one.
  const isWhole = extensions.indexOf("") === extensions.length - 1 && extensions.length > 0;
  if (origin === "" || !isSize || root?.length !== 32 || !isWhole) throw new Error(`not a checkpoint: ${text}`);
  return { origin, size, root };
}

export function treeHeadText({ origin, size, root }: TreeHead): string {
  return `${origin}\n${size}\n${root.toString("base64")}\n`;
}

// Trees (RFC 9162, section 2.1).

export const EMPTY_ROOT = sha256("");

export const leafHash = (entry: Buffer) => sha256(Buffer.from([0]), entry);

export const nodeHash = (left: Buffer, right: Buffer) => sha256(Buffer.from([1]), left, right);

/** The largest power of two below a number above 1: where RFC 9162 splits a tree of this size. */
export function splitOf(size: number): number {
  let half = 1;
  while (half * 2 < size) half *= 2;
  return half;
}

/** The root of the tree over these leaves (section 2.1.1). */
export function treeHash(leaves: Buffer[]): Buffer {
  const [first] = leaves;
  if (first === undefined) return EMPTY_ROOT;
  if (leaves.length === 1) return first;
  const split = splitOf(leaves.length);
  return nodeHash(treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split)));
}

const isOdd = (value: number) => value % 2 === 1;
const half = (value: number) => Math.floor(value / 2);

/** RFC 9162, section 2.1.3.2. */
export function verifyInclusion(index: number, size: number, leaf: Buffer, proof: Buffer[], root: Buffer): boolean {
  if (index >= size) return false;
  let [fn, sn, r] = [index, size - 1, leaf];
  for (const p of proof) {
    if (sn === 0) return false;
    if (isOdd(fn) || fn === sn) {
      r = nodeHash(p, r);
      while (!isOdd(fn) && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    } else {
      r = nodeHash(r, p);
    }
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && r.equals(root);
}

/** RFC 9162, section 2.1.4.2. Every tree extends the empty tree, with an empty proof. */
export function verifyConsistency(from: TreeHead, to: TreeHead, proof: Buffer[]): boolean {
  if (from.size === 0) return proof.length === 0 && from.root.equals(EMPTY_ROOT);
  if (from.size >= to.size) return from.size === to.size && proof.length === 0 && from.root.equals(to.root);
  if (proof.length === 0) return false;
  const isPerfect = splitOf(from.size * 2) === from.size;
  const [first, ...path] = isPerfect ? [from.root, ...proof] : proof;
  if (first === undefined) return false;
  let [fn, sn, fr, sr] = [from.size - 1, to.size - 1, first, first];
  while (isOdd(fn)) [fn, sn] = [half(fn), half(sn)];
  for (const c of path) {
    if (sn === 0) return false;
    if (isOdd(fn) || fn === sn) {
      [fr, sr] = [nodeHash(c, fr), nodeHash(c, sr)];
      while (!isOdd(fn) && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    } else {
      sr = nodeHash(sr, c);
    }
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && fr.equals(from.root) && sr.equals(to.root);
}
