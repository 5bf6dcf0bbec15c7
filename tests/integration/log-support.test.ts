// Tests of the tests' own witness and mirror client, against a static log that is made here from the definitions of
// RFC 9162. They need no worker.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LogClient, pathOf } from "../support/log-client.ts";
import { COSIGNATURE, EMPTY_ROOT, leafHash, Note, nodeHash, parseTreeHead, Signer, type TreeHead, treeHeadText, VerifierKey, verifyConsistency, verifyInclusion } from "../support/tlog.ts";
import { type Misbehaviour, Witness } from "../support/witness.ts";

const ORIGIN = "gateward.example/v1/log/acme.head";
const WITNESS = "witness.example/w1";

// A tree by its definition, without optimisation.

/** MTH of RFC 9162, section 2.1.1. */
function mth(leaves: Buffer[]): Buffer {
  const [leaf] = leaves;
  if (leaf === undefined) return EMPTY_ROOT;
  if (leaves.length === 1) return leaf;
  const half = 2 ** (Math.ceil(Math.log2(leaves.length)) - 1);
  return nodeHash(mth(leaves.slice(0, half)), mth(leaves.slice(half)));
}

/** SUBPROOF of section 2.1.4.1. */
function subproof(m: number, leaves: Buffer[], b: boolean): Buffer[] {
  const n = leaves.length;
  if (m === n) return b ? [] : [mth(leaves)];
  const k = 2 ** (Math.ceil(Math.log2(n)) - 1);
  if (m <= k) return [...subproof(m, leaves.slice(0, k), b), mth(leaves.slice(k))];
  return [...subproof(m - k, leaves.slice(k), false), mth(leaves.slice(0, k))];
}

const proofOf = (from: number, leaves: Buffer[]) => (from === 0 ? [] : subproof(from, leaves, true));

const entriesOf = (count: number, name = "entry") => Array.from({ length: count }, (_, index) => Buffer.from(`${name} ${index}`));

const headOf = (leaves: Buffer[], origin = ORIGIN): TreeHead => ({ origin, size: leaves.length, root: mth(leaves) });

function noteOf(signers: Signer[], head: TreeHead): string {
  const text = treeHeadText(head);
  return `${text}\n${signers.map((signer) => signer.sign(text)).join("")}`;
}

/** The files of a log with these entries, by the definitions of tlog-tiles. */
function filesOf(signer: Signer, entries: Buffer[]): Map<string, Buffer> {
  const leaves = entries.map(leafHash);
  const files = new Map<string, Buffer>([["checkpoint", Buffer.from(noteOf([signer], headOf(leaves)))]]);
  const name = (number: number, width: number) => {
    const digits = [Math.floor(number / 1000), number % 1000].map((part) => String(part).padStart(3, "0"));
    return `${number < 1000 ? digits[1] : `x${digits[0]}/${digits[1]}`}${width === 256 ? "" : `.p/${width}`}`;
  };
  let row: Buffer[] = leaves;
  for (let level = 0; row.length > 0; level++) {
    const above: Buffer[] = [];
    for (let number = 0; number * 256 < row.length; number++) {
      const tile = row.slice(number * 256, (number + 1) * 256);
      files.set(`tile/${level}/${name(number, tile.length)}`, Buffer.concat(tile));
      if (tile.length === 256) above.push(mth(tile));
      if (level > 0) continue;
      const bundle = entries.slice(number * 256, (number + 1) * 256).flatMap((entry) => {
        const length = Buffer.alloc(2);
        length.writeUInt16BE(entry.length);
        return [length, entry];
      });
      files.set(`tile/entries/${name(number, tile.length)}`, Buffer.concat(bundle));
    }
    row = above;
  }
  return files;
}

test("the hashes and the keys are those of the texts", () => {
  // The reference tree of Certificate Transparency.
  const leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
  const root = mth(leaves.map((leaf) => leafHash(Buffer.from(leaf, "hex"))));
  expect(root.toString("hex")).toBe("5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
  // The example of signed-note.
  const key = new VerifierKey("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k");
  const line = "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";
  const note = `This is an example message.\n\n${line}`;
  expect(new Note(note).signaturesOf([key]).map(({ line }) => line)).toEqual([line]);
  expect(() => new Note(note.replace("This", "That")).signaturesOf([key])).toThrow("does not hold");
  const cosigner = new Signer(WITNESS, COSIGNATURE);
  const cosigned = `text\n\n${cosigner.sign("text\n", 1_679_315_147)}`;
  expect(new Note(cosigned).signaturesOf([new VerifierKey(cosigner.vkey)])).toHaveLength(1);
  expect(() => new Note(cosigned.replace("text", "test")).signaturesOf([new VerifierKey(cosigner.vkey)])).toThrow("does not hold");
});

test("malformed notes, checkpoints and keys are refused", () => {
  const signature = "— x AAAAAAA=\n";
  for (const note of ["", "x\n", `x\n${signature}`, `x\n\n${signature}y\n`, `x\n\n${signature.trim()}`, "x\n\n— x AAAA\n", "x\n\n— x AAAAAAA\n", "x\n\n- x AAAAAAA=\n", "x\n\n— x+ AAAAAAA=\n", `x\r\n\n${signature}`]) {
    expect(() => new Note(note), note).toThrow();
  }
  const root = EMPTY_ROOT.toString("base64");
  expect(parseTreeHead(`x\n0\n${root}\n`)).toEqual({ origin: "x", size: 0, root: EMPTY_ROOT });
  expect(parseTreeHead(`x\n7\n${root}\nan extension\n`).size).toBe(7);
  for (const text of ["", `x\n00\n${root}\n`, `x\n-1\n${root}\n`, `x\n1e3\n${root}\n`, `x\n9007199254740993\n${root}\n`, `\n1\n${root}\n`, `x\n1\n${root}`, "x\n1\nAAAA\n", `x\n1\n${root}\n\n`]) {
    expect(() => parseTreeHead(text), text).toThrow();
  }
  const { vkey } = new Signer("x");
  for (const other of ["", "x", vkey.slice(1), vkey.slice(0, -4), vkey.replace("+", "++"), vkey.toUpperCase()]) {
    expect(() => new VerifierKey(other), other).toThrow();
  }
});

const changed = (bytes: Buffer, at = 0) => {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
};

test("a consistency proof verifies only between its own trees", () => {
  const leaves = entriesOf(34).map(leafHash);
  const heads = leaves.map((_, size) => headOf(leaves.slice(0, size)));
  for (const from of heads) {
    for (const to of heads.slice(from.size)) {
      const proof = proofOf(from.size, leaves.slice(0, to.size));
      const name = `${from.size} to ${to.size}`;
      expect(verifyConsistency(from, to, proof), name).toBe(true);
      const wrong: Buffer[][] = [[...proof, EMPTY_ROOT], [EMPTY_ROOT, ...proof], ...proof.map((hash, at) => proof.with(at, changed(hash)))];
      if (proof.length > 0) wrong.push(proof.slice(1), proof.slice(0, -1));
      for (const other of wrong) expect(verifyConsistency(from, to, other), name).toBe(false);
      expect(verifyConsistency({ ...from, root: changed(from.root) }, to, proof), name).toBe(false);
      // Every tree extends the empty tree.
      if (from.size > 0) expect(verifyConsistency(from, { ...to, root: changed(to.root) }, proof), name).toBe(false);
      if (from.size < to.size && from.size > 0) expect(verifyConsistency(to, from, proof), name).toBe(false);
    }
  }
});

describe("the witness", () => {
  const [log, old, stranger] = [new Signer(ORIGIN), new Signer(ORIGIN), new Signer(ORIGIN)];
  const leaves = entriesOf(300).map(leafHash);
  const fork = [...leaves.slice(0, 4), ...entriesOf(20, "fork").map(leafHash)];
  let witness: Witness;

  beforeAll(async () => {
    witness = await Witness.start({ name: WITNESS, logs: [log.vkey, old.vkey] });
  });
  afterAll(() => witness.stop());

  const body = (from: number, proof: Buffer[], note: string) => `old ${from}\n${proof.map((hash) => `${hash.toString("base64")}\n`).join("")}\n${note}`;

  const submit = async (text: string, init: RequestInit = {}) => {
    const response = await fetch(`${witness.url}/add-checkpoint`, { method: "POST", body: text, ...init });
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };

  /** Submits the log's checkpoint of a size. */
  const grow = (from: number, to: number, all = leaves) => submit(body(from, proofOf(from, all.slice(0, to)), noteOf([log], headOf(all.slice(0, to)))));

  const fresh = async () => {
    await witness.stop();
    witness = await Witness.start({ name: WITNESS, logs: [log.vkey, old.vkey] });
  };

  test("cosigns checkpoints that extend each other", async () => {
    await fresh();
    let size = 0;
    for (const next of [0, 1, 1, 2, 3, 7, 8, 8, 64, 65, 256, 300]) {
      const { status, text } = await grow(size, next);
      expect({ status, next }).toEqual({ status: 200, next });
      const head = treeHeadText(headOf(leaves.slice(0, next)));
      expect(new Note(`${head}\n${text}`).signaturesOf([new VerifierKey(witness.vkey)])).toHaveLength(1);
      size = next;
    }
    expect(witness.cosigned.map(({ size }) => size)).toEqual([0, 1, 1, 2, 3, 7, 8, 8, 64, 65, 256, 300]);
    expect(witness.latest(ORIGIN)).toMatchObject(headOf(leaves));
    expect(Math.abs((witness.latest(ORIGIN)?.time ?? 0) - Date.now() / 1000)).toBeLessThan(60);
  });

  test("serves the newest checkpoint with the log's signature and its own", async () => {
    await fresh();
    const path = (origin: string) => `${witness.url}/${createHash("sha256").update(origin).digest("hex")}/checkpoint`;
    expect((await fetch(path(ORIGIN))).status).toBe(404);
    await grow(0, 5);
    const response = await fetch(path(ORIGIN));
    const note = new Note(await response.text());
    expect(note.signaturesOf([new VerifierKey(log.vkey), new VerifierKey(witness.vkey)])).toHaveLength(2);
    expect(parseTreeHead(note.text)).toEqual(headOf(leaves.slice(0, 5)));
    expect((await fetch(path("other.example"))).status).toBe(404);
  });

  test("answers every wrong request with the status of the text, and cosigns nothing", async () => {
    await fresh();
    await grow(0, 5);
    const at = (size: number) => headOf(leaves.slice(0, size));
    const note = noteOf([log], at(9));
    const proof = proofOf(5, leaves.slice(0, 9));
    const forged = new Signer(ORIGIN);
    // The true key's name and id, and a signature of another text.
    const broken = `${treeHeadText(at(9))}\n${log.sign("another text\n")}`;
    const cases: Record<string, [number, string]> = {
      "an empty request": [400, ""],
      "no old size": [400, `\n${note}`],
      "an old size with a zero": [400, body(5, proof, note).replace("old 5", "old 05")],
      "a negative old size": [400, body(5, proof, note).replace("old 5", "old -5")],
      "a short hash": [400, body(5, [...proof, EMPTY_ROOT.subarray(1)], note)],
      "a hash that is not base64": [400, body(5, proof, note).replace("\n", "\n~\n")],
      "64 hashes": [400, body(5, Array.from({ length: 64 }, () => EMPTY_ROOT), note)],
      "no empty line": [400, body(5, proof, note).replaceAll("\n\n", "\n")],
      "no signature": [400, body(5, proof, treeHeadText(at(9)))],
      "not a checkpoint": [400, body(5, proof, `${ORIGIN}\n\n${log.sign(`${ORIGIN}\n`)}`)],
      "no last newline": [400, body(5, proof, note).slice(0, -1)],
      "an old size above the new one": [400, body(10, [], note)],
      "a very large request": [400, body(5, proof, note) + "x".repeat(300_000)],
      "an unknown log": [404, body(0, [], noteOf([new Signer("other.example")], headOf(leaves, "other.example")))],
      "a signature of an unknown key": [403, body(5, proof, noteOf([forged], at(9)))],
      "a signature that does not hold": [403, body(5, proof, broken)],
      "a signature that holds, and one that does not": [403, body(5, proof, note + log.sign("another text\n"))],
      "a signature with another name": [403, body(5, proof, note.replace(`— ${ORIGIN}`, "— other.example"))],
      "an older size": [409, body(3, proofOf(3, leaves.slice(0, 9)), note)],
      "a newer size": [409, body(7, proofOf(7, leaves.slice(0, 9)), note)],
      "no size": [409, body(0, [], note)],
      "no proof": [422, body(5, [], note)],
      "a changed proof": [422, body(5, proof.with(1, EMPTY_ROOT), note)],
      "a longer proof": [422, body(5, [...proof, EMPTY_ROOT], note)],
      "another tree": [422, body(5, proofOf(5, fork.slice(0, 9)), noteOf([log], headOf(fork.slice(0, 9))))],
      "another tree of the same size": [422, body(5, [], noteOf([log], headOf(fork.slice(0, 5))))],
      "a proof between equal sizes": [422, body(5, [EMPTY_ROOT], noteOf([log], at(5)))],
    };
    const got: Record<string, number> = {};
    for (const [name, [, text]] of Object.entries(cases)) {
      const answer = await submit(text);
      got[name] = answer.status;
      if (answer.status === 409) expect(answer, name).toMatchObject({ type: "text/x.tlog.size", text: "5\n" });
    }
    expect(got).toEqual(Object.fromEntries(Object.entries(cases).map(([name, [status]]) => [name, status])));
    expect(witness.cosigned).toHaveLength(1);
    expect((await fetch(`${witness.url}/add-checkpoint`)).status).toBe(405);
    expect((await fetch(`${witness.url}/sign-subtree`, { method: "POST", body: "" })).status).toBe(404);
    expect((await grow(5, 9)).status).toBe(200);
  });

  test("answers 422 to a proof from the empty tree, and to another root of it", async () => {
    await fresh();
    const head = headOf(leaves.slice(0, 3));
    expect((await submit(body(0, [EMPTY_ROOT], noteOf([log], head)))).status).toBe(422);
    expect((await submit(body(0, [], noteOf([log], { origin: ORIGIN, size: 0, root: head.root })))).status).toBe(422);
    expect(witness.cosigned).toEqual([]);
  });

  test("takes the signatures of each key in a rotation, and ignores those of strangers", async () => {
    await fresh();
    const note = noteOf([stranger, old, new Signer("other.example")], headOf(leaves.slice(0, 3)));
    expect((await submit(body(0, [], note))).status).toBe(200);
    expect(new Note(witness.latest(ORIGIN)?.note ?? "").signatures.map(({ name }) => name)).toEqual([ORIGIN, WITNESS]);
    expect((await submit(body(3, [], noteOf([stranger], headOf(leaves.slice(0, 3)))))).status).toBe(403);
    witness.trust(stranger.vkey);
    expect((await submit(body(3, [], noteOf([stranger], headOf(leaves.slice(0, 3)))))).status).toBe(200);
  });

  test("keeps its state and its key while it is stopped", async () => {
    await fresh();
    await grow(0, 4);
    const { url, vkey } = witness;
    await witness.stop();
    await expect(grow(4, 6)).rejects.toThrow();
    await witness.resume();
    expect([witness.url, witness.vkey]).toEqual([url, vkey]);
    expect((await grow(4, 6)).status).toBe(200);
  });

  test("misbehaves as it is told, as often as it is told", async () => {
    await fresh();
    const key = () => new VerifierKey(witness.vkey);
    const signatures = (text: string) => new Note(`${treeHeadText(headOf(leaves.slice(0, 2)))}\n${text}`).signaturesOf([key()]);
    const told = (how: Misbehaviour) => {
      witness.misbehave(how, 1);
      return grow(0, 2);
    };
    expect((await told({ kind: "status", status: 503 })).status).toBe(503);
    expect(await told({ kind: "conflict", size: 77 })).toEqual({ status: 409, type: "text/x.tlog.size", text: "77\n" });
    expect(() => signatures("<html>")).toThrow();
    const garbage = await told({ kind: "garbage" });
    expect(garbage.status).toBe(200);
    expect(() => signatures(garbage.text)).toThrow();
    const wrong = await told({ kind: "wrong-signature" });
    expect(() => signatures(wrong.text)).toThrow("does not hold");
    const timeless = await told({ kind: "timeless" });
    expect(() => signatures(timeless.text)).toThrow("does not hold");
    expect(signatures((await told({ kind: "stranger" })).text)).toEqual([]);
    await expect(told({ kind: "broken" })).rejects.toThrow();
    witness.misbehave({ kind: "silent" }, 1);
    await expect(submit("", { signal: AbortSignal.timeout(100) })).rejects.toThrow();
    witness.misbehave({ kind: "endless" }, 1);
    const response = await fetch(`${witness.url}/add-checkpoint`, { method: "POST", body: "" });
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > 1_000_000) break;
    }
    expect(bytes).toBeGreaterThan(1_000_000);
    expect(witness.cosigned).toEqual([]);
    await expect(told({ kind: "lost" })).rejects.toThrow();
    expect(witness.cosigned.map(({ size }) => size)).toEqual([2]);
    witness.misbehave({ kind: "slow", ms: 50 }, 1);
    const begin = performance.now();
    expect((await grow(2, 3)).status).toBe(200);
    expect(performance.now() - begin).toBeGreaterThan(45);
    witness.misbehave({ kind: "status", status: 500 });
    expect([(await grow(3, 4)).status, (await grow(3, 4)).status]).toEqual([500, 500]);
    witness.behave();
    expect((await grow(3, 4)).status).toBe(200);
    expect(witness.submissions.map(({ status }) => status)).toEqual([503, 409, 200, 200, 200, 200, undefined, undefined, undefined, undefined, 200, 500, 500, 200]);
  });
});

describe("the mirror client", () => {
  const log = new Signer(ORIGIN);
  /** What the server has now, and how it answers. */
  let files = new Map<string, Buffer>();
  let type = (path: string): string => (path === "checkpoint" ? "text/plain; charset=utf-8" : "application/octet-stream");
  let requests: string[] = [];
  // Computing proofs blocks this process for seconds. By default, the server would then close an idle connection that the
  // client is about to use.
  const server = createServer({ keepAliveTimeout: 0 }, ({ url = "", headers }, response) => {
    const path = url.replace("/v1/log/acme.head/", "");
    requests.push(path);
    const file = files.get(path);
    if (headers.authorization !== "Bearer t") return void response.writeHead(401).end();
    if (file === undefined) return void response.writeHead(404).end();
    const isZipped = path.startsWith("tile/entries");
    response.writeHead(200, { "content-type": type(path), ...(isZipped ? { "content-encoding": "gzip" } : {}) });
    response.end(isZipped ? gzipSync(file) : file);
  });
  let client: LogClient;

  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const prefix = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/log/acme.head/`;
    client = new LogClient(prefix, [log.vkey], { headers: { authorization: "Bearer t" } });
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  test("paths are those of the text", () => {
    expect(pathOf({ layer: 0, number: 1_234_067, width: 256 })).toBe("tile/0/x001/x234/067");
    expect(pathOf({ layer: "entries", number: 0, width: 255 })).toBe("tile/entries/000.p/255");
    expect(pathOf({ layer: 63, number: 1_000, width: 1 })).toBe("tile/63/x001/000.p/1");
  });

  test.each([0, 1, 2, 255, 256, 257, 600, 1_024])("mirrors a log of %i entries", async (size) => {
    const entries = entriesOf(size);
    files = filesOf(log, entries);
    const mirror = await client.mirror();
    expect(mirror.entries).toEqual(entries);
    expect(mirror.files).toEqual(files);
    expect([mirror.absent, mirror.minimumIndex]).toEqual([[], 0]);
  });

  test("mirrors the log of 70,000 entries of the text", async () => {
    const entries = entriesOf(70_000);
    files = filesOf(log, entries);
    const mirror = await client.mirror();
    expect(mirror.entries.length).toBe(70_000);
    const paths = [...mirror.files.keys()];
    expect(paths.filter((path) => path.startsWith("tile/0/") && !path.includes(".p/"))).toHaveLength(273);
    expect(paths.filter((path) => /^tile\/[0-9]+\//.test(path) && path.includes(".p/"))).toEqual(["tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"]);
    expect(paths).toContain("tile/1/000");
    const leaves = entries.map(leafHash);
    for (const from of [1, 255, 65_536, 65_537, 69_999]) {
      const head = headOf(leaves.slice(0, from));
      mirror.mustExtend(head);
      expect(verifyConsistency(head, mirror.checkpoint, mirror.consistency(from))).toBe(true);
    }
  });

  test("computes the proofs of the definition", async () => {
    const entries = entriesOf(600);
    const leaves = entries.map(leafHash);
    files = filesOf(log, entries);
    const mirror = await client.mirror();
    for (const [from, to] of [[0, 600], [1, 600], [3, 7], [256, 257], [255, 512], [300, 600], [512, 600], [600, 600]] as const) {
      expect(mirror.consistency(from, to), `${from} to ${to}`).toEqual(proofOf(from, leaves.slice(0, to)));
      const [older, newer] = [headOf(leaves.slice(0, from)), headOf(leaves.slice(0, to))];
      expect(verifyConsistency(older, newer, mirror.consistency(from, to))).toBe(true);
    }
    for (const [index, size] of [[0, 1], [0, 600], [255, 256], [256, 257], [599, 600], [3, 7]] as const) {
      const head = headOf(leaves.slice(0, size));
      const leaf = leaves[index] ?? EMPTY_ROOT;
      const proof = mirror.inclusion(index, size);
      expect(verifyInclusion(index, size, leaf, proof, head.root), `${index} in ${size}`).toBe(true);
      expect(verifyInclusion(index + 1, size, leaf, proof, head.root)).toBe(false);
      expect(verifyInclusion(index, size, EMPTY_ROOT, proof, head.root)).toBe(false);
      expect(verifyInclusion(index, size, leaf, [...proof, EMPTY_ROOT], head.root)).toBe(false);
    }
  });

  test("finds that a log does not extend an older checkpoint", async () => {
    const entries = entriesOf(300);
    files = filesOf(log, entries.slice(0, 270));
    const older = await client.checkpoint();
    files = filesOf(log, entries);
    (await client.mirror()).mustExtend(older);
    files = filesOf(log, entries.with(3, Buffer.from("other")));
    const fork = await client.mirror();
    expect(() => fork.mustExtend(older)).toThrow("another root at the size 270");
    files = filesOf(log, entries.slice(0, 200));
    const shorter = await client.mirror();
    expect(() => shorter.mustExtend(older)).toThrow("not an older checkpoint");
  });

  test("fetches only what is new for a newer checkpoint", async () => {
    const entries = entriesOf(600);
    files = filesOf(log, entries.slice(0, 520));
    const { files: mirrored } = await client.mirror();
    files = filesOf(log, entries);
    requests = [];
    expect((await client.mirror({ files: mirrored })).entries).toEqual(entries);
    expect(requests.sort()).toEqual(["checkpoint", "tile/0/002.p/88", "tile/entries/002.p/88"]);
  });

  test("takes a full tile where the partial one is gone", async () => {
    const entries = entriesOf(600);
    files = filesOf(log, entries.slice(0, 500));
    const checkpoint = await client.checkpoint();
    files = new Map([...files, ...filesOf(log, entries)]);
    for (const path of ["tile/0/001.p/244", "tile/entries/001.p/244"]) files.delete(path);
    const mirror = await client.mirror({ checkpoint });
    expect(mirror.entries).toEqual(entries.slice(0, 500));
    expect([...mirror.files.keys()]).toContain("tile/entries/001.p/244");
  });

  test("mirrors a pruned log", async () => {
    const entries = entriesOf(800);
    const leaves = entries.map(leafHash);
    files = filesOf(log, entries);
    for (const path of ["tile/entries/000", "tile/0/000", "tile/entries/001"]) files.delete(path);
    const mirror = await client.mirror();
    expect(mirror.entries).toEqual([...Array.from({ length: 512 }), ...entries.slice(512)]);
    expect(mirror.absent.sort()).toEqual(["tile/0/000", "tile/entries/000", "tile/entries/001"]);
    expect(mirror.minimumIndex).toBe(512);
    mirror.mustExtend(headOf(leaves.slice(0, 256)));
    mirror.mustExtend(headOf(leaves.slice(0, 300)));
    expect(() => mirror.mustExtend(headOf(leaves.slice(0, 255)))).toThrow("is absent");
    const [older, proof] = [headOf(leaves.slice(0, 700)), mirror.consistency(700)];
    expect(verifyConsistency(older, mirror.checkpoint, proof)).toBe(true);
    files.delete("tile/entries/003.p/32");
    await expect(client.mirror()).rejects.toThrow("tile/entries/003.p/32 is absent");
    const gap = await client.mirror({ withGaps: true });
    expect(gap.entries).toEqual([...Array.from({ length: 512 }), ...entries.slice(512, 768), ...Array.from({ length: 32 })]);
    files.delete("tile/0/003.p/32");
    await expect(client.mirror({ withGaps: true })).rejects.toThrow("tile/0/003.p/32 is absent");
  });

  test("finds a changed byte in any file, also of a pruned log", async () => {
    for (const pruned of [[], ["tile/entries/000"], ["tile/0/000"], ["tile/entries/000", "tile/0/000"]]) {
      const whole = filesOf(log, entriesOf(600));
      for (const path of pruned) whole.delete(path);
      files = whole;
      await client.mirror();
      for (const [path, bytes] of whole) {
        for (const at of [0, Math.floor(bytes.length / 2), bytes.length - 1]) {
          files = new Map(whole).set(path, changed(bytes, at));
          await expect(client.mirror(), `${path} at ${at} without ${pruned}`).rejects.toThrow();
        }
        files = new Map(whole).set(path, bytes.subarray(0, -1));
        await expect(client.mirror(), `${path} without its end`).rejects.toThrow();
        files = new Map(whole).set(path, Buffer.concat([bytes, Buffer.alloc(32)]));
        await expect(client.mirror(), `${path} and more`).rejects.toThrow();
      }
    }
  });

  test("refuses other keys, origins, types and statuses", async () => {
    files = filesOf(new Signer(ORIGIN), entriesOf(3));
    await expect(client.mirror()).rejects.toThrow("no signature of the log's keys");
    const other = { ...headOf(entriesOf(3).map(leafHash)), origin: "other.example" };
    files = filesOf(log, entriesOf(3)).set("checkpoint", Buffer.from(noteOf([log], other)));
    await expect(client.mirror()).rejects.toThrow("the checkpoint is of other.example");
    files = new Map();
    await expect(client.mirror()).rejects.toThrow("absent");
    files = filesOf(log, entriesOf(3));
    const right = type;
    type = () => "text/html";
    await expect(client.mirror()).rejects.toThrow("has the type text/html");
    type = right;
    const anonymous = new LogClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/log/acme.head`, [log.vkey]);
    await expect(anonymous.mirror()).rejects.toThrow("answered 401");
  });
});
