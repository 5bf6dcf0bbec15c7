// Warrants of the Tenuo format, made independently of the worker's code: keys, chains, proofs.
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

/** A number of a map of the format, or a text of a map of arguments. */
export type Cbor = number | string | boolean | null | Uint8Array | Cbor[] | Map<number | string, Cbor>;

/** Arguments of a call. Numbers are whole. */
export type Input = Record<string, string | number | boolean | null>;

function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  if (value < 256) return Buffer.from([(major << 5) | 24, value]);
  const bytes = value < 65_536 ? Buffer.alloc(3) : Buffer.alloc(5);
  bytes.writeUInt8((major << 5) | (bytes.length === 3 ? 25 : 26));
  if (bytes.length === 3) bytes.writeUInt16BE(value, 1);
  else bytes.writeUInt32BE(value, 1);
  return bytes;
}

export function cbor(value: Cbor): Buffer {
  if (value === null) return Buffer.from([0xf6]);
  if (typeof value === "boolean") return Buffer.from([value ? 0xf5 : 0xf4]);
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)]);
  return Buffer.concat([head(5, value.size), ...[...value].flatMap(([key, item]) => [cbor(key), cbor(item)])]);
}

/** A key pair: of a number, which is always the same, or of 32 secret bytes. */
export class Key {
  readonly #secret: KeyObject;
  readonly public: Buffer;

  constructor(secret: number | Buffer) {
    const bytes = typeof secret === "number" ? Buffer.alloc(32, secret) : secret;
    // RFC 8410: the prefix of an Ed25519 key in PKCS #8.
    const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), bytes]);
    this.#secret = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
    this.public = createPublicKey(this.#secret).export({ format: "der", type: "spki" }).subarray(-32);
  }

  get hex(): string {
    return this.public.toString("hex");
  }

  sign(...parts: (string | Uint8Array)[]): Buffer {
    return sign(null, Buffer.concat([Buffer.from("tenuo-warrant-v1"), ...parts.map((part) => Buffer.from(part))]), this.#secret);
  }
}

/** A constraint on an argument, as the format has it. */
export type Constraint = [number, Cbor];
export const anything: Constraint = [16, null];
export const exact = (value: string | number): Constraint => [1, new Map([["value", value]])];
export const upTo = (max: number): Constraint => [3, new Map<string, Cbor>([["min", null], ["max", max], ["min_inclusive", true], ["max_inclusive", true]])];

export interface Grant {
  tools: Record<string, Record<string, Constraint>>;
  holder: Key;
  /** Who signs: the root's key, or the holder of the warrant before it. */
  by: Key;
  lifeS?: number;
  clearance?: number;
  /** Each call of each tool needs the approval of all of these. */
  approvers?: Key[];
}

let made = 0;

/** A chain from the root to the leaf. */
export class Chain {
  readonly #payloads: Buffer[] = [];
  readonly #envelopes: Buffer[] = [];
  #id = "";
  #holder: Key | undefined;
  #expires = 0;

  static root(grant: Grant): Chain {
    return new Chain().#add(grant);
  }

  /** The same chain with another link. */
  attenuate(grant: Grant): Chain {
    const chain = new Chain();
    chain.#payloads.push(...this.#payloads);
    chain.#envelopes.push(...this.#envelopes);
    chain.#expires = this.#expires;
    return chain.#add(grant);
  }

  #add({ tools, holder, by, lifeS = 300, clearance, approvers }: Grant): Chain {
    const issued = Math.floor(Date.now() / 1000) - 5;
    const [parent] = this.#payloads.slice(-1);
    const expires = parent === undefined ? issued + lifeS : Math.min(issued + lifeS, this.#expires);
    made += 1;
    const id = Buffer.alloc(16);
    id.writeUInt32BE(process.pid, 0);
    id.writeUInt32BE(made, 12);
    const key = (of: Key): Cbor => [1, of.public];
    const constraints = (of: Record<string, Constraint>): Cbor => new Map([["constraints", new Map(Object.entries(of))]]);
    const payload = new Map<number, Cbor>([
      [0, 1],
      [1, id],
      [2, 0],
      [3, new Map(Object.entries(tools).map(([tool, of]) => [tool, constraints(of)]))],
      [4, key(holder)],
      [5, key(by)],
      [6, issued],
      [7, expires],
      [8, 8],
    ]);
    if (parent !== undefined) payload.set(9, [...createHash("sha256").update(parent).digest()]);
    if (approvers !== undefined) {
      const gates = cbor(new Map(Object.keys(tools).map((tool): [string, Cbor] => [tool, new Map([["args", null]])])));
      payload.set(10, new Map([["tenuo.approval_gates", [...gates]]]));
      payload.set(15, approvers.map(key));
      payload.set(16, approvers.length);
    }
    if (clearance !== undefined) payload.set(17, clearance);
    payload.set(18, this.#payloads.length);
    const bytes = cbor(payload);
    this.#payloads.push(bytes);
    this.#envelopes.push(cbor([1, bytes, [1, by.sign(Buffer.from([1]), bytes)]]));
    this.#id = id.toString("hex");
    this.#holder = holder;
    this.#expires = expires;
    return this;
  }

  /** The leaf's id. */
  get id(): string {
    return this.#id;
  }

  get text(): string {
    const stack = Buffer.concat([head(4, this.#envelopes.length), ...this.#envelopes]);
    return stack.toString("base64url");
  }

  get sha256(): string {
    return createHash("sha256").update(Buffer.from(this.text, "base64url")).digest("hex");
  }

  /** The proof of a call, of the window at this time. */
  prove(holder: Key, tool: string, input: Input, atMs = Date.now()): string {
    const seconds = Math.floor(atMs / 1000);
    const pairs = sorted(input).map(([name, value]): Cbor => [name, value]);
    const statement = cbor([this.#id, tool, pairs, seconds - (seconds % 30)]);
    return holder.sign("tenuo-pop-v1", statement).toString("base64url");
  }

  /** What approvals of a call name, in hex. */
  requestHash(tool: string, input: Input): string {
    if (this.#holder === undefined) throw new Error("the chain has no link");
    const call: Cbor = [`tnu_wrt_${this.#id}`, tool, cbor(new Map(sorted(input))), this.#holder.public];
    return createHash("sha256").update(cbor(call)).digest("hex");
  }

  /** An approver's signature of a call, in CBOR. */
  approve(approver: Key, tool: string, input: Input): Buffer {
    const now = Math.floor(Date.now() / 1000);
    const payload = cbor(new Map<string, Cbor>([
      ["version", 1],
      ["request_hash", [...Buffer.from(this.requestHash(tool, input), "hex")]],
      ["nonce", [...Buffer.alloc(16)]],
      ["external_id", ""],
      ["approved_at", now - 5],
      ["expires_at", now + 300],
    ]));
    return cbor(new Map<string, Cbor>([
      ["approval_version", 1],
      ["payload", payload],
      ["approver_key", [1, approver.public]],
      ["signature", [1, approver.sign("tenuo-approval-v1", Buffer.from([1]), payload)]],
    ]));
  }

  /** The headers of a call. */
  headers(holder: Key, tool: string, input: Input, atMs?: number): Record<string, string> {
    return { "x-tenuo-warrant": this.text, "x-tenuo-pop": this.prove(holder, tool, input, atMs) };
  }

  /** The member of `_meta`, or of a body. */
  member(holder: Key, tool: string, input: Input): Record<string, string> {
    return { warrant: this.text, signature: this.prove(holder, tool, input) };
  }
}

function sorted(input: Input): [string, Cbor][] {
  return Object.entries(input).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** The two forms of `X-Tenuo-Approvals` that clients send: those of the libraries in Rust and in Python. */
export const APPROVALS_HEADER: Record<string, (approvals: Buffer[]) => string> = {
  cbor: (approvals) => Buffer.concat([head(4, approvals.length), ...approvals]).toString("base64url"),
  json: (approvals) => Buffer.from(JSON.stringify(approvals.map((approval) => approval.toString("base64")))).toString("base64"),
};

/** A signed list of revocations, in base64. */
export function revocationList(by: Key, ids: string[], version: number): string {
  const payload = cbor(new Map<string, Cbor>([
    ["revoked_ids", ids.map((id) => `tnu_wrt_${id}`)],
    ["version", version],
    ["issued_at", "2026-01-01T00:00:00Z"],
    ["issuer", [1, by.public]],
  ]));
  const signature = cbor([1, by.sign("tenuo-srl-v1", payload)]);
  return Buffer.concat([head(5, 2), cbor("payload"), payload, cbor("signature"), signature]).toString("base64");
}
