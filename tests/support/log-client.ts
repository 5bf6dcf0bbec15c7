// A client of a tiled transparency log (C2SP tlog-tiles), written against that text. It shares no code with the worker.
// It fetches all of a log, verifies all of it against the signed checkpoint, and computes proofs from the tiles.
import { EMPTY_ROOT, fromUtf8, leafHash, Note, nodeHash, parseTreeHead, splitOf, type TreeHead, VerifierKey } from "./tlog.ts";

const TILE_WIDTH = 256;
const HASH_BYTES = 32;
/** Requests at a time. */
const PARALLEL = 16;

/** A checkpoint whose signature was verified. */
export interface Checkpoint extends TreeHead {
  /** The whole note. */
  note: string;
}

interface Resource {
  /** `entries`, or a level of hashes. */
  layer: number | "entries";
  number: number;
  width: number;
}

/** The path of a tile or of an entry bundle, under the log's prefix. */
export function pathOf({ layer, number, width }: Resource): string {
  const digits = String(number);
  const parts = digits.padStart(Math.ceil(digits.length / 3) * 3, "0").match(/.{3}/g) ?? [];
  const name = parts.map((part, at) => (at < parts.length - 1 ? `x${part}` : part)).join("/");
  return `tile/${layer}/${name}${width < TILE_WIDTH ? `.p/${width}` : ""}`;
}

/** The tiles of a layer with this many hashes or entries. Only the last can be partial. */
function resourcesOf(layer: number | "entries", count: number): Resource[] {
  return Array.from({ length: Math.ceil(count / TILE_WIDTH) }, (_, number) => {
    return { layer, number, width: Math.min(TILE_WIDTH, count - number * TILE_WIDTH) };
  });
}

/** How many hashes each level has in a tree of this size. */
function countsOf(size: number): number[] {
  return size === 0 ? [] : [size, ...countsOf(Math.floor(size / TILE_WIDTH))];
}

/** The root of a perfect subtree whose leaves are these. Their number is a power of two. */
function perfectRoot(hashes: Buffer[]): Buffer {
  let row = hashes;
  while (row.length > 1) row = pairs(row);
  const [root] = row;
  if (root === undefined) throw new Error("a subtree without leaves");
  return root;
}

function pairs(row: Buffer[]): Buffer[] {
  const above: Buffer[] = [];
  for (let at = 0; at + 1 < row.length; at += 2) {
    const [left, right] = row.slice(at, at + 2);
    if (left !== undefined && right !== undefined) above.push(nodeHash(left, right));
  }
  return above;
}

function hashesOf(tile: Buffer, { width }: Resource): Buffer[] {
  if (tile.length !== width * HASH_BYTES) throw new Error(`a tile of ${tile.length} bytes does not have ${width} hashes`);
  return Array.from({ length: width }, (_, at) => tile.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES));
}

function entriesOf(bundle: Buffer, { width }: Resource): Buffer[] {
  const entries: Buffer[] = [];
  let at = 0;
  while (at + 2 <= bundle.length) {
    const end = at + 2 + bundle.readUInt16BE(at);
    if (end > bundle.length) break;
    entries.push(bundle.subarray(at + 2, end));
    at = end;
  }
  if (at !== bundle.length || entries.length !== width) throw new Error(`a bundle does not have ${width} entries`);
  return entries;
}

/** The beginning of a full tile or bundle. */
function truncated(full: Buffer, { layer, number, width }: Resource): Buffer {
  if (layer !== "entries") return full.subarray(0, width * HASH_BYTES);
  const kept = entriesOf(full, { layer, number, width: TILE_WIDTH }).slice(0, width);
  return full.subarray(0, kept.reduce((bytes, entry) => bytes + 2 + entry.length, 0));
}

/** A log up to a checkpoint. Everything that the server still has of it was verified. */
export class Mirror {
  readonly checkpoint: Checkpoint;
  /** The log's files by their paths under its prefix: `checkpoint`, `tile/0/000`, `tile/entries/000.p/7`. */
  readonly files: Map<string, Buffer>;
  /** By index. Undefined: the server does not have its bundle. */
  readonly entries: (Buffer | undefined)[];
  /** The paths that the server does not have. */
  readonly absent: string[];
  /** The log's minimum index cannot be lower: the end of the last full tile or bundle that is absent. */
  readonly minimumIndex: number;
  /** By level and index. */
  readonly #hashes: (Buffer | undefined)[][];

  constructor(checkpoint: Checkpoint, files: Map<string, Buffer>, found: { resource: Resource; bytes: Buffer | undefined }[]) {
    this.checkpoint = checkpoint;
    this.files = files;
    this.entries = Array.from({ length: checkpoint.size });
    this.#hashes = countsOf(checkpoint.size).map((length) => Array.from({ length }));
    const absent = found.filter(({ bytes }) => bytes === undefined).map(({ resource }) => resource);
    this.absent = absent.map(pathOf);
    const end = ({ layer, number }: Resource) => (number + 1) * TILE_WIDTH ** ((layer === "entries" ? 0 : layer) + 1);
    const full = absent.filter(({ width }) => width === TILE_WIDTH);
    this.minimumIndex = full.reduce((most, resource) => Math.max(most, end(resource)), 0);
    for (const { resource, bytes } of found) if (bytes !== undefined) this.#read(resource, bytes);
    this.#verifyLevels();
    if (!this.root().equals(checkpoint.root)) throw new Error("the tiles have another root than the checkpoint");
  }

  #read(resource: Resource, bytes: Buffer): void {
    const { layer, number } = resource;
    const row = this.#hashes[layer === "entries" ? 0 : layer] ?? [];
    const entries = layer === "entries" ? entriesOf(bytes, resource) : [];
    const hashes = layer === "entries" ? entries.map(leafHash) : hashesOf(bytes, resource);
    for (const [at, hash] of hashes.entries()) {
      const index = number * TILE_WIDTH + at;
      if (row[index]?.equals(hash) === false) throw new Error(`entry ${index} does not have the hash in its tile`);
      row[index] = hash;
      if (layer === "entries") this.entries[index] = entries[at];
    }
  }

  /** Each hash above level 0 must be that of a full tile below it. If that tile is absent, the hash is all that is left. */
  #verifyLevels(): void {
    for (const [level, row] of this.#hashes.entries()) {
      for (const [number, above] of (this.#hashes[level + 1] ?? []).entries()) {
        const tile = row.slice(number * TILE_WIDTH, (number + 1) * TILE_WIDTH).filter((hash) => hash !== undefined);
        if (tile.length < TILE_WIDTH) continue;
        const hash = perfectRoot(tile);
        if (above?.equals(hash) === false) throw new Error(`tile ${number} of level ${level} does not have the hash in level ${level + 1}`);
        (this.#hashes[level + 1] ?? [])[number] = hash;
      }
    }
  }

  /** The hash of the subtree over the entries from `begin` to before `end`; RFC 9162 splits it at a power of two. */
  #subtree(begin: number, end: number): Buffer {
    const size = end - begin;
    if (size === 0) return EMPTY_ROOT;
    const middle = begin + splitOf(size);
    if (size === 1 || end - middle === middle - begin) {
      // It is perfect: its leaves are hashes of the highest level whose hashes are not larger.
      const level = this.#hashes.findLastIndex((_, level) => TILE_WIDTH ** level <= size);
      const [first, width] = [begin / TILE_WIDTH ** level, size / TILE_WIDTH ** level];
      const hashes = (this.#hashes[level] ?? []).slice(first, first + width).filter((hash) => hash !== undefined);
      if (hashes.length === width) return perfectRoot(hashes);
      if (level === 0) throw new Error(`the tile of entry ${begin} is absent`);
    }
    return nodeHash(this.#subtree(begin, middle), this.#subtree(middle, end));
  }

  /** The root that the tree had at a size. */
  root(size = this.checkpoint.size): Buffer {
    return this.#subtree(0, size);
  }

  /** Throws if an older checkpoint is not of this log, or if this log does not extend it. */
  mustExtend(older: TreeHead): void {
    const { origin, size } = this.checkpoint;
    if (older.origin !== origin || older.size > size) throw new Error(`not an older checkpoint of ${origin}`);
    if (!this.root(older.size).equals(older.root)) throw new Error(`the tree had another root at the size ${older.size}`);
  }

  /** RFC 9162, section 2.1.3.1. */
  inclusion(index: number, size = this.checkpoint.size): Buffer[] {
    const path = (begin: number, end: number): Buffer[] => {
      if (end - begin <= 1) return [];
      const middle = begin + splitOf(end - begin);
      if (index < middle) return [...path(begin, middle), this.#subtree(middle, end)];
      return [...path(middle, end), this.#subtree(begin, middle)];
    };
    return path(0, size);
  }

  /** RFC 9162, section 2.1.4.1. */
  consistency(from: number, to = this.checkpoint.size): Buffer[] {
    if (from === 0) return [];
    // If the old tree's part of the range begins at 0, it is the whole old tree. The caller knows its root from the old
    // checkpoint.
    const proof = (begin: number, end: number, isWhole: boolean): Buffer[] => {
      if (from === end) return isWhole ? [] : [this.#subtree(begin, end)];
      const middle = begin + splitOf(end - begin);
      if (from <= middle) return [...proof(begin, middle, isWhole), this.#subtree(middle, end)];
      return [...proof(middle, end, false), this.#subtree(begin, middle)];
    };
    return proof(0, to, true);
  }
}

export class LogClient {
  readonly #prefix: string;
  readonly #keys: VerifierKey[];
  readonly #init: RequestInit;

  /** `prefix`: the log's URL prefix. `vkeys`: its keys, whose name is its origin. `init`: for example its headers. */
  constructor(prefix: string, vkeys: string[], init: RequestInit = {}) {
    this.#prefix = prefix.replace(/\/$/, "");
    this.#keys = vkeys.map((vkey) => new VerifierKey(vkey));
    this.#init = init;
  }

  /** Fetches the checkpoint, and verifies its signature and its origin. */
  async checkpoint(): Promise<Checkpoint> {
    const bytes = await this.#get("checkpoint", "text/plain; charset=utf-8");
    const note = bytes && fromUtf8(bytes);
    if (note === undefined) throw new Error("the checkpoint is absent, or it is not text");
    const parsed = new Note(note);
    if (parsed.signaturesOf(this.#keys).length === 0) throw new Error("the checkpoint has no signature of the log's keys");
    const head = parseTreeHead(parsed.text);
    if (head.origin !== this.#keys[0]?.name) throw new Error(`the checkpoint is of ${head.origin}`);
    return { ...head, note };
  }

  /**
   * Fetches and verifies all of a log. `files`: what was fetched before. It is used again, and what is new is added.
   *
   * A pruned log may lack full tiles and bundles. With `withGaps` it may also lack its partial bundle, which C2SP
   * does not allow.
   */
  async mirror({ checkpoint, files = new Map(), withGaps = false }: { checkpoint?: Checkpoint; files?: Map<string, Buffer>; withGaps?: boolean } = {}): Promise<Mirror> {
    const head = checkpoint ?? (await this.checkpoint());
    const counts = countsOf(head.size);
    const resources = [...counts.flatMap((count, level) => resourcesOf(level, count)), ...resourcesOf("entries", head.size)];
    const found: { resource: Resource; bytes: Buffer | undefined }[] = [];
    for (let at = 0; at < resources.length; at += PARALLEL) {
      const some = resources.slice(at, at + PARALLEL);
      found.push(...(await Promise.all(some.map(async (resource) => ({ resource, bytes: await this.#fetch(resource, files) })))));
    }
    for (const { resource, bytes } of found) {
      const mayLack = resource.width === TILE_WIDTH || (withGaps && resource.layer === "entries");
      if (bytes === undefined && !mayLack) throw new Error(`${pathOf(resource)} is absent`);
    }
    const mirror = new Mirror(head, files, found);
    for (const { resource, bytes } of found) if (bytes !== undefined) files.set(pathOf(resource), bytes);
    files.set("checkpoint", Buffer.from(head.note));
    return mirror;
  }

  /** A tile or a bundle; undefined if the server does not have it. A partial one can also be cut from the full one. */
  async #fetch(resource: Resource, files: Map<string, Buffer>): Promise<Buffer | undefined> {
    const path = pathOf(resource);
    const full = pathOf({ ...resource, width: TILE_WIDTH });
    const bytes = files.get(path) ?? (await this.#get(path));
    if (bytes !== undefined || path === full) return bytes;
    const larger = files.get(full) ?? (await this.#get(full));
    return larger && truncated(larger, resource);
  }

  /** Undefined: 404. */
  async #get(path: string, type = "application/octet-stream"): Promise<Buffer | undefined> {
    const headers = new Headers(this.#init.headers);
    headers.set("accept-encoding", "gzip, identity");
    const response = await fetch(`${this.#prefix}/${path}`, { ...this.#init, headers });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.status === 404) return undefined;
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${bytes.subarray(0, 200)}`);
    const got = response.headers.get("content-type");
    if (got !== type) throw new Error(`${path} has the type ${got}`);
    return bytes;
  }
}
