// A witness on loopback (C2SP tlog-witness), which can be told to misbehave. It shares no code with the worker.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { COSIGNATURE, EMPTY_ROOT, fromBase64, fromUtf8, Note, parseTreeHead, Signer, type TreeHead, VerifierKey, verifyConsistency } from "./tlog.ts";

/** The most bytes that it reads of a request. A note with 16 large signatures has less. */
const MAX_REQUEST_BYTES = 256 * 1024;
/** The most lines of a proof. */
const MAX_PROOF_LINES = 63;

/** The path of both of its URL prefixes. It has one, so that a client that drops the prefix's path is found. */
const PREFIX = "/witness";

/**
 * How it misbehaves:
 * - `slow`: cosigns, and answers after `ms`;
 * - `lost`: cosigns, and breaks the connection in place of an answer;
 * - `silent`: neither cosigns nor answers;
 * - `broken`: breaks the connection, and does not cosign;
 * - `status`: answers with this status, and does not cosign;
 * - `conflict`: answers that it has another size, which is not true;
 * - `garbage`: answers 200 and bytes that are not signature lines;
 * - `wrong-signature`: answers a line with its name and its key's id, whose signature is of another checkpoint;
 * - `stranger`: answers a true cosignature with its name, but with another key;
 * - `timeless`: answers a cosignature whose time is zero;
 * - `endless`: answers 200 and a body of valid lines that does not end.
 */
export type Misbehaviour =
  | { kind: "slow"; ms: number }
  | { kind: "lost" | "silent" | "broken" | "garbage" | "wrong-signature" | "stranger" | "timeless" | "endless" }
  | { kind: "status"; status: number }
  | { kind: "conflict"; size: number };

/** A checkpoint that it cosigned. */
export interface Cosigned extends TreeHead {
  /** Of the cosignature, in POSIX seconds. */
  time: number;
  /** The checkpoint with the signatures of the log and of the witness. */
  note: string;
}

/** A request to add a checkpoint, and how it was answered. */
export interface Submission {
  body: string;
  /** The status; undefined if there was no answer. */
  status: number | undefined;
}

interface Answer {
  status: number;
  text: string;
  type?: string;
}

const answer = (status: number, text: string): Answer => ({ status, text: `${text}\n` });

export class Witness {
  /** Everything that it cosigned, in order. */
  readonly cosigned: Cosigned[] = [];
  readonly submissions: Submission[] = [];
  /** The time of its cosignatures, in POSIX seconds. */
  now = () => Math.floor(Date.now() / 1000);
  readonly #signer: Signer;
  /** The keys of each log, by origin. */
  readonly #logs = new Map<string, VerifierKey[]>();
  readonly #latest = new Map<string, Cosigned>();
  #misbehaviour: { how: Misbehaviour; times: number } | undefined;
  #server: Server | undefined;
  #port = 0;

  private constructor(name: string, logs: string[]) {
    this.#signer = new Signer(name, COSIGNATURE);
    for (const vkey of logs) this.trust(vkey);
  }

  /** Starts a witness with a new key, which knows these logs. A log's key has its origin for a name. */
  static async start({ name, logs }: { name: string; logs: string[] }): Promise<Witness> {
    const witness = new Witness(name, logs);
    await witness.resume();
    return witness;
  }

  get vkey(): string {
    return this.#signer.vkey;
  }

  /** Its submission prefix and its monitoring prefix. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}${PREFIX}`;
  }

  /** Adds a key of a log, as in a rotation. */
  trust(vkey: string): void {
    const key = new VerifierKey(vkey);
    this.#logs.set(key.name, [...(this.#logs.get(key.name) ?? []), key]);
  }

  /** The newest checkpoint that it cosigned of a log. */
  latest(origin: string): Cosigned | undefined {
    return this.#latest.get(origin);
  }

  /** Answers the next `times` requests in a wrong way. */
  misbehave(how: Misbehaviour, times = Number.POSITIVE_INFINITY): void {
    this.#misbehaviour = { how, times };
  }

  behave(): void {
    this.#misbehaviour = undefined;
  }

  /** Stops listening, and breaks every connection. It keeps its key and its state. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }

  /** Listens again, at the same URL. */
  async resume(): Promise<void> {
    const server = createServer((request, response) => {
      this.#route(request, response).catch(() => response.destroy());
    });
    this.#server = server;
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = "" } = request;
    const reading = /^\/witness\/([0-9a-f]{64})\/checkpoint$/.exec(url);
    if (url === `${PREFIX}/add-checkpoint` && method === "POST") return this.#submitted(request, response);
    if (reading !== null && method === "GET") return send(response, this.#checkpointOf(reading[1] ?? ""));
    const isKnown = url === `${PREFIX}/add-checkpoint` || reading !== null;
    send(response, isKnown ? answer(405, "another method is needed") : answer(404, "not found"));
  }

  async #submitted(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length <= MAX_REQUEST_BYTES) chunks.push(chunk);
    }
    const body = length > MAX_REQUEST_BYTES ? undefined : fromUtf8(Buffer.concat(chunks));
    const submission: Submission = { body: body ?? "", status: undefined };
    this.submissions.push(submission);
    const misbehaviour = this.#misbehaviour;
    if (misbehaviour !== undefined && --misbehaviour.times <= 0) this.#misbehaviour = undefined;
    response.on("finish", () => {
      submission.status = response.statusCode;
    });
    await this.#answer(misbehaviour?.how, body, response);
  }

  async #answer(how: Misbehaviour | undefined, body: string | undefined, response: ServerResponse): Promise<void> {
    const text = textOf(body);
    const line = (signer: Signer, of = text, time = this.now()) => ({ status: 200, text: signer.sign(of, time) });
    switch (how?.kind) {
      case undefined:
        return send(response, this.#add(body));
      case "slow": {
        const added = this.#add(body);
        await new Promise((resolve) => setTimeout(resolve, how.ms));
        return send(response, added);
      }
      case "lost":
        this.#add(body);
        response.destroy();
        return;
      case "broken":
        response.destroy();
        return;
      case "silent":
        return;
      case "status":
        return send(response, answer(how.status, "told to"));
      case "conflict":
        return send(response, conflict(how.size));
      case "garbage":
        return send(response, answer(200, "<html>\u0000\ufffd not a signature"));
      case "wrong-signature":
        return send(response, line(this.#signer, `${text}more\n`));
      case "stranger":
        return send(response, line(new Signer(this.#signer.name, COSIGNATURE)));
      case "timeless":
        return send(response, line(this.#signer, text, 0));
      case "endless":
        return endless(response, line(new Signer("other.example", COSIGNATURE)).text);
    }
  }

  /** Verifies a request and cosigns. It awaits nothing, so nothing comes between the checks and the new state. */
  #add(body: string | undefined): Answer {
    const parsed = parse(body);
    if (parsed === undefined) return answer(400, "malformed request");
    const { old, proof, note, head } = parsed;
    const keys = this.#logs.get(head.origin);
    if (keys === undefined) return answer(404, "unknown log");
    let signatures: { line: string }[];
    try {
      signatures = note.signaturesOf(keys);
    } catch (error) {
      return answer(403, String(error));
    }
    if (signatures.length === 0) return answer(403, "no signature of a trusted key");
    if (old > head.size) return answer(400, "the old size is above the checkpoint's");
    const latest = this.#latest.get(head.origin);
    if (old !== (latest?.size ?? 0)) return conflict(latest?.size ?? 0);
    if (head.size === 0 && !head.root.equals(EMPTY_ROOT)) return answer(422, "not the root of the empty tree");
    const from = latest ?? { origin: head.origin, size: 0, root: EMPTY_ROOT };
    if (!verifyConsistency(from, head, proof)) return answer(422, "the checkpoint does not extend the latest");
    const time = this.now();
    const line = this.#signer.sign(note.text, time);
    const cosigned = { ...head, time, note: `${note.text}\n${signatures.map(({ line }) => line).join("")}${line}` };
    this.#latest.set(head.origin, cosigned);
    this.cosigned.push(cosigned);
    return { status: 200, text: line };
  }

  #checkpointOf(originHash: string): Answer {
    for (const [origin, { note }] of this.#latest) {
      if (createHash("sha256").update(origin).digest("hex") === originHash) return { status: 200, text: note };
    }
    return answer(404, "it cosigned nothing of this log");
  }
}

function conflict(size: number): Answer {
  return { status: 409, text: `${size}\n`, type: "text/x.tlog.size" };
}

function send(response: ServerResponse, { status, text, type = "text/plain; charset=utf-8" }: Answer): void {
  response.writeHead(status, { "content-type": type }).end(text);
}

/** Writes a line again and again, as fast as it is read, until the client goes away. */
function endless(response: ServerResponse, line: string): void {
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
  const lines = line.repeat(100);
  const write = () => {
    while (!response.destroyed && response.write(lines));
  };
  response.on("drain", write);
  write();
}

/** The text of the note in a request; empty if there is none. */
function textOf(body = ""): string {
  try {
    return new Note(body.slice(body.indexOf("\n\n") + 2)).text;
  } catch {
    return "";
  }
}

/** The parts of a request; undefined if it is malformed. */
function parse(body: string | undefined): { old: number; proof: Buffer[]; note: Note; head: TreeHead } | undefined {
  const end = body?.indexOf("\n\n") ?? -1;
  if (body === undefined || end < 0) return undefined;
  const [first = "", ...lines] = body.slice(0, end).split("\n");
  const digits = /^old (0|[1-9][0-9]*)$/.exec(first)?.[1];
  const old = Number(digits);
  const proof = lines.map(fromBase64).filter((hash) => hash?.length === 32);
  const isValid = digits !== undefined && Number.isSafeInteger(old) && proof.length === lines.length;
  if (!isValid || lines.length > MAX_PROOF_LINES) return undefined;
  try {
    const note = new Note(body.slice(end + 2));
    return { old, proof: proof as Buffer[], note, head: parseTreeHead(note.text) };
  } catch {
    return undefined;
  }
}
