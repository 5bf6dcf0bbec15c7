#!/usr/bin/env python3
"""Verifies an export of Gateward's transparency log, without network and with public keys only.

It shares no code with Gateward. Read it as a description of the format: first canonical JSON, then
the Merkle tree, then signed notes, then the lines of an export in the order in which they come.
It reads the export once. Its memory is one line, and for each log the right edge of its tree.

It stops at the first fault that it meets. It cannot detect what the holder of the key did between two
checkpoints that a witness cosigned, nor that an export is true but old: its newest receipts are absent.
"""

import argparse
import base64
import dataclasses
import hashlib
import json
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

HEAD_LANE = 65_535  # The lane number of the head log. Lanes have smaller numbers.
GENESIS = "0" * 64  # `prev_hash` of receipt 1.
MAX_LINE_BYTES = 4 << 20  # A row of D1 has at most 2 MB. JSON in a JSON string can take twice that.
MAX_ENTRY_BYTES = 65_535  # An entry bundle of tlog-tiles has lengths of 16 bits.
MAX_NOTE_BYTES = 64 << 10
MAX_SIGNATURES = 100
MAX_INTEGER = 1 << 53  # Beyond it, the doubles of RFC 8785 do not hold every integer.


class Fault(Exception):
    """What is wrong. `at` is (line, log, receipt), if that is not where the reader is."""

    def __init__(self, what, at=None):
        super().__init__(what)
        self.at = at


def require(holds, what, at=None):
    if not holds:
        raise Fault(what, at)


# JSON, and its canonical form (RFC 8785).


def refuse(token):
    raise ValueError(f"`{token[:40]}` is not an integer")


def integer(token):
    if len(token) > 17 or abs(int(token)) > MAX_INTEGER:
        raise ValueError("an integer is too large")
    return int(token)


def distinct(pairs):
    if len(members := dict(pairs)) < len(pairs):
        raise ValueError("an object has a member twice")
    return members


def ascending(pairs):
    order = [name.encode("utf-16-be", "surrogatepass") for name, _ in pairs]
    if any(a >= b for a, b in zip(order, order[1:])):
        raise ValueError("the members of an object are not sorted, or not distinct")
    return dict(pairs)


def parse(text, what, members=distinct, number=refuse):
    """An object. Its numbers are integers, unless `number` reads others."""
    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=integer, parse_float=number, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Fault(f"{what} is not JSON of the right form: {error}") from None
    require(isinstance(value, dict), f"{what} is not a JSON object")
    return value


def parse_canonical(text, what):
    """An object in canonical form: members sorted by UTF-16 code units, no white space, integers without
    exponent, and in strings only these escapes: \\" \\\\ \\b \\f \\n \\r \\t, and \\u00xx in lower case for
    other characters below U+0020. `json.dumps` writes that form."""
    value = parse(text, what, ascending)
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    require(written == text, f"{what} is not in its canonical form")
    return value


def utf8(text, what):
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Fault(f"{what} is not Unicode text") from None


def has(value, members):
    """Whether an object has these members, with these types. Its integers are not negative."""
    return all(
        of is object or type(value.get(name)) is of and (of is not int or value[name] >= 0)
        for name, of in members.items()
    )


# The Merkle tree (RFC 6962, section 2.1).


def leaf_hash(entry):
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """The right edge of a tree: its perfect subtrees, largest first. There is one for each bit of the size."""

    def __init__(self, size, edge):
        self.size, self.edge = size, edge

    def append(self, leaf):
        bits = self.size
        while bits & 1:  # A subtree of this height exists. Both together are a subtree of the next height.
            leaf = node_hash(self.edge.pop(), leaf)
            bits >>= 1
        self.edge.append(leaf)
        self.size += 1

    def root(self):
        if not self.edge:
            return hashlib.sha256().digest()
        root = self.edge[-1]
        for subtree in reversed(self.edge[:-1]):
            root = node_hash(subtree, root)
        return root


# Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint, tlog-cosignature).

ED25519, COSIGNATURE = 1, 4  # Types of signatures.
CHECKPOINT = re.compile(r"(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]{0,15})\n(?P<root>[^\n]+)\n")


def decode(text, length=None):
    """Standard base64 in its only canonical form. None: it is something else, or has another length."""
    try:
        value = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return value if base64.b64encode(value).decode() == text and length in (None, len(value)) else None


def is_key_name(name):
    return name != "" and "+" not in name and not any(character.isspace() for character in name)


class Key:
    """A verifier key: `<name>+<id in hex>+<base64 of its type and its 32 bytes>`."""

    def __init__(self, name, kind, public):
        self.name, self.kind, self.public = name, kind, public
        self.id = hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]

    @classmethod
    def parse(cls, text, kind):
        name, key_id, material = (text.split("+", 2) + ["", ""])[:3]
        material = decode(material, 33)
        if not is_key_name(name) or material is None or material[0] != kind:
            raise ValueError(f"`{text}` is not a verifier key of type {kind}")
        key = cls(name, kind, material[1:])
        if key.id.hex() != key_id:
            raise ValueError(f"`{text}` must have the id {key.id.hex()}")
        return key

    def verify(self, text, signature):
        """Verifies a signature of a note's text. Returns the time of a cosignature, otherwise None."""
        time, message = None, text.encode()
        if self.kind == COSIGNATURE:  # It has eight bytes with the time before the signature.
            time, signature = int.from_bytes(signature[:8], "big"), signature[8:]
            require(0 < time < 1 << 63, f"a cosignature of `{self.name}` has no valid time")
            message = b"cosignature/v1\ntime %d\n" % time + message
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise Fault(f"a signature of `{self.name}` does not hold") from None
        return time


def parse_note(note):
    """The text of a signed note, and its signatures as (name, key id, signature)."""
    require(len(utf8(note, "the note")) <= MAX_NOTE_BYTES, "the note is too long")
    require(not re.search(r"[\x00-\x09\x0b-\x1f]", note), "the note has a control character")
    text, _, lines = note.rpartition("\n\n")
    *lines, rest = lines.split("\n")
    require(text and lines and not rest, "the note is not a signed note")
    require(len(lines) <= MAX_SIGNATURES, "the note has too many signatures")
    signatures = []
    for line in lines:
        name, _, value = line.removeprefix("\u2014 ").rpartition(" ")
        value = decode(value)
        is_valid = line.startswith("\u2014 ") and is_key_name(name) and value is not None and len(value) > 4
        require(is_valid, "the note has a malformed signature line")
        signatures.append((name, value[:4], value[4:]))
    return text + "\n", signatures


def verify_note(note, keys):
    """The text, and what `Key.verify` returned for each key that signed. Signatures of unknown keys are ignored."""
    text, signatures = parse_note(note)
    signers = {}
    for name, key_id, signature in signatures:
        for key in keys:
            if (key.name, key.id) == (name, key_id):
                signers[key] = key.verify(text, signature)
    return text, signers


def verify_checkpoint(note, origin, keys):
    """The size and the root of a checkpoint of the log with this origin. At least one of the keys signed it."""
    text, signers = verify_note(note, [Key(origin, key.kind, key.public) for key in keys])
    lines = CHECKPOINT.fullmatch(text)
    root = lines and decode(lines["root"], 32)
    require(root, "the note is not a checkpoint")
    require(lines["origin"] == origin, f"the checkpoint is of another log than `{origin}`")
    require(signers, "the checkpoint has no signature of a given key")
    return int(lines["size"]), root


# The export: its lines, in their order. Every line also has `type`.

LINES = {
    "export": {"version": int, "tenant": str, "origin": str, "created_at": str},
    "log": {"log": str, "first": int, "begin": int, "edge": list, "prev_hash": str},
    "entry": {"log": str, "index": int, "body": str},
    "missing": {"log": str, "index": int, "leaf_hash": str},
    "event": {"log": str, "index": int, "event": object},
    "checkpoint": {"log": str, "note": str},
    "end": {"entries": int},
}
LANE_CHECKPOINT = {"checkpoint": str, "first": int, "of_lane": int, "pruned_through": int}
REGISTRY_EVENT = {"event_id": str, "event_hash": str}
EVENT_ID = re.compile(r"registry\.([0-9]{1,16})", re.ASCII)
EVENT = {"at_ms", "detail", "event_id", "kind", "source"}
TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
HASH = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass
class Log:
    name: str
    lane: int
    first: int  # The number of the receipt that is entry 0.
    begin: int  # The index of the first entry in the export.
    tree: Tree
    prev_hash: str  # The hash of the last receipt before the next entry.
    line: int
    is_closed: bool = False  # Its final checkpoint was read.


@dataclasses.dataclass
class Named:
    """The newest checkpoint of a lane in the head."""

    size: int
    root: bytes
    first: int
    pruned_through: int
    at: tuple


class Verifier:
    def __init__(self, keys, witnesses):
        self.keys, self.witnesses = keys, witnesses
        self.phase = "export"  # Then `entries`, `checkpoints`, `end`, `over`.
        self.line, self.log, self.receipt = 0, None, None  # Where the reader is.
        self.logs = {}  # By name.
        self.named = {}  # By name of the lane's log.
        self.event = None  # The body of a registry event whose event line comes next.
        self.entries = self.events = self.events_gone = 0
        self.newest_epoch, self.epochs_skipped, self.first_skipped = None, 0, None
        self.cosigned = {}

    def read(self, file):
        while raw := file.readline(MAX_LINE_BYTES + 1):
            self.line, self.log, self.receipt = self.line + 1, None, None
            require(len(raw) <= MAX_LINE_BYTES, "the line is too long")
            require(self.phase != "over", "a line follows the end line")
            try:
                line = parse(raw.decode(), "the line")
            except UnicodeDecodeError:
                raise Fault("the line is not UTF-8") from None
            kind = line.pop("type", None)
            members = LINES.get(kind) if isinstance(kind, str) else None
            require(members, "the line has an unknown type")
            is_valid = has(line, members) and line.keys() == members.keys()
            require(is_valid, f"the line does not have the members of the type `{kind}`")
            is_first, waits = self.phase == "export", self.event is not None
            require((kind == "export") == is_first, "an export line must come first, and nowhere else")
            require((kind == "event") == waits, "an event line must follow each registry event, and nothing else")
            getattr(self, f"on_{kind}")(**line)
        self.line, self.log, self.receipt = self.line + 1, None, None
        require(self.phase == "over", "the export has no end line: it was cut off")

    def on_export(self, version, tenant, origin, created_at):
        require(version == 1, "the export has an unknown version")
        require(TENANT.fullmatch(tenant), "the tenant has an invalid name")
        require(RFC_3339.fullmatch(created_at), "`created_at` is not a time of RFC 3339")
        self.tenant, self.origin, self.head = tenant, origin, f"{tenant}.head"
        require(f"{origin}/{self.head}" == self.keys[0].name, f"the export is not of `{self.keys[0].name}`, as the keys are")
        self.phase = "entries"

    def on_log(self, log, first, begin, edge, prev_hash):
        require(self.phase == "entries", "a log line follows the final checkpoints")
        lane = re.fullmatch(re.escape(self.tenant) + r"\.lane-(0|[1-9][0-9]{0,4})", log)
        require(log == self.head or lane and int(lane[1]) < HEAD_LANE, "the tenant has no log of this name")
        require(log not in self.logs, "the log has a second log line")
        self.log = log
        require(first >= 1 and HASH.fullmatch(prev_hash), "the log line has an invalid `first` or `prev_hash`")
        require(first + begin > 1 or prev_hash == GENESIS, "no receipt precedes receipt 1, and `prev_hash` has a hash")
        hashes = [decode(text, 32) if isinstance(text, str) else None for text in edge]
        require(None not in hashes and len(hashes) == begin.bit_count(), "the edge is not that of a tree of this size")
        number = int(lane[1]) if lane else HEAD_LANE
        self.logs[log] = Log(log, number, first, begin, Tree(begin, hashes), prev_hash, self.line)
        if log in self.named:
            self.compare(self.named[log], self.logs[log])

    def next_entry(self, log, index):
        require(self.phase == "entries", "an entry follows the final checkpoints")
        require(log in self.logs, "an entry precedes its log line")
        state = self.logs[log]
        self.log, self.receipt = log, state.first + index
        require(index == state.tree.size, f"receipt {state.first + state.tree.size} must come here")
        self.entries += 1
        return state

    def on_missing(self, log, index, leaf_hash):
        self.next_entry(log, index)
        raise Fault("the receipt is missing: its row was lost")

    def on_entry(self, log, index, body):
        state = self.next_entry(log, index)
        entry = utf8(body, "the body")
        require(len(entry) <= MAX_ENTRY_BYTES, "the body is too long")
        members = parse_canonical(body, "the body")
        require(has(members, {"seq": int, "lane": int, "kind": str}), "the body does not have the members of every receipt")
        require(members.get("tenant") == self.tenant, "the body is of another tenant")
        require(members["seq"] == self.receipt, "the body has another number")
        require(members["lane"] == state.lane, "the body is of another lane")
        require(members.get("prev_hash") == state.prev_hash, "`prev_hash` is not the hash of the receipt before")
        state.prev_hash = hashlib.sha256(entry).hexdigest()
        state.tree.append(leaf_hash(entry))
        if log == self.head and members["kind"] == "lane_checkpoint":
            require(has(members, LANE_CHECKPOINT), "the body does not have the members of a lane checkpoint")
            self.lane_checkpoint(**{name: members[name] for name in LANE_CHECKPOINT})
        elif log == self.head:
            require(members["kind"] == "registry_event", "the head has a receipt of an unknown kind")
            require(has(members, REGISTRY_EVENT), "the body does not have the members of a registry event")
            epoch = EVENT_ID.fullmatch(members["event_id"])
            require(epoch, "the id of a registry event is not `registry.` and an epoch")
            self.registry_epoch(int(epoch[1]))
            self.event = members

    def registry_epoch(self, epoch):
        """Counts the epochs between two registry events that have none. After a fault, the head can have an event twice."""
        newest = epoch if self.newest_epoch is None else self.newest_epoch
        if epoch > newest + 1:
            self.epochs_skipped += epoch - newest - 1
            self.first_skipped = self.first_skipped or (newest + 1, self.receipt)
        self.newest_epoch = max(newest, epoch)

    def lane_checkpoint(self, checkpoint, first, of_lane, pruned_through):
        require(of_lane < HEAD_LANE, "the checkpoint is not of a lane")
        lane = f"{self.tenant}.lane-{of_lane}"
        size, root = verify_checkpoint(checkpoint, f"{self.origin}/{lane}", self.keys)
        if older := self.named.get(lane):
            require(older.size <= size, f"the checkpoint of {lane} is smaller than the one before")
            require(older.size < size or older.root == root, f"two checkpoints of {lane} have the same size and different roots")
            require(older.first == first, f"the first receipt of {lane} changed")
        self.named[lane] = Named(size, root, first, pruned_through, (self.line, self.log, self.receipt))
        if lane in self.logs:
            self.compare(self.named[lane], self.logs[lane])

    def compare(self, named, log):
        """Compares a checkpoint in the head with the lane as it was read so far. A checkpoint must come when its
        lane has just its size. Only one before the lane's begin can come at another time: its root is unknown."""
        size = log.tree.size
        require(named.first == log.first, f"{log.name} does not have the first receipt that the head says")
        require(named.size <= size, f"the head has a checkpoint of {named.size} entries of {log.name}, and {size} precede it")
        require(named.size < log.begin or named.size == size, f"{log.name} has entries that must come after the checkpoint of {named.size}")
        require(named.size < size or named.root == log.tree.root(), f"{log.name} has another root at {size} entries than its checkpoint")

    def on_event(self, log, index, event):
        head, body, self.event = self.logs[self.head], self.event, None
        self.log, self.receipt = self.head, body["seq"]
        require(log == self.head and index == head.tree.size - 1, "the event line is not of the entry before it")
        self.events += 1
        if event is None:
            self.events_gone += 1
            return
        require(isinstance(event, str), "the event is not a text")
        event_hash = hashlib.sha256(utf8(event, "the event")).hexdigest()
        require(event_hash == body["event_hash"], "the registry event does not have the hash in its receipt")
        # The hash is all that its form has to match. Its numbers can have fractions.
        members = parse(event, "the event", number=float)
        require(members.keys() == EVENT, "the event does not have the members of an event")
        require(members["event_id"] == body["event_id"], "the event has another id than its receipt")

    def end_of_entries(self):
        require(self.head in self.logs, f"{self.head} is absent")
        for lane, named in self.named.items():
            require(lane in self.logs, f"the head has a checkpoint of {lane}, and the export does not have that log", named.at)
        for log in self.logs.values():
            if log.begin > 0 and log.name != self.head:
                named, last = self.named.get(log.name), log.first + log.begin - 1
                is_pruned = named is not None and last <= named.pruned_through and log.begin <= named.size
                at = (log.line, log.name, last)
                require(is_pruned, "receipts up to this one are absent, and the head does not say that they were deleted", at)

    def on_checkpoint(self, log, note):
        if self.phase == "entries":
            self.end_of_entries()
            self.phase = "checkpoints"
        require(self.phase == "checkpoints", "a checkpoint follows that of the head")
        require(log in self.logs, "the checkpoint is of a log that the export does not have")
        self.log, state = log, self.logs[log]
        require(not state.is_closed, "the log has a second final checkpoint")
        size, root = verify_checkpoint(note, f"{self.origin}/{log}", self.keys)
        unequal = (self.line, log, state.first + min(size, state.tree.size))  # The first receipt that only one has.
        require(size == state.tree.size, f"the final checkpoint is of {size} entries, and the export has {state.tree.size}", unequal)
        require(root == state.tree.root(), "the tree has another root than the final checkpoint")
        state.is_closed = True
        if log == self.head:
            for other in self.logs.values():
                require(other.is_closed, "the log has no final checkpoint", (self.line, other.name, None))
            _, self.cosigned = verify_note(note, self.witnesses)
            for witness in self.witnesses:
                require(witness in self.cosigned, f"the checkpoint has no cosignature of `{witness.name}`")
            self.phase = "end"

    def on_end(self, entries):
        require(self.phase == "end", "the end line precedes the final checkpoint of the head")
        require(entries == self.entries, f"the end line counts {entries} entries, and there are {self.entries}")
        self.phase = "over"

    def report(self):
        yield f"verified: {self.origin}/{self.head} with {self.logs[self.head].tree.size} entries"
        yield f"{len(self.logs) - 1} lanes, {self.entries} entries in this export, {self.events} registry events"
        for witness, time in self.cosigned.items():
            yield f"cosigned by {witness.name} at {time} (POSIX seconds)"
        for log in self.logs.values():
            if log.begin > 0:
                unproven = " (the head has no record of its own deletions)" if log.name == self.head else ""
                yield f"note: {log.name}: receipts up to {log.first + log.begin - 1} were deleted by retention{unproven}"
            if log.name != self.head and log.name not in self.named:
                yield f"note: {log.name}: no checkpoint has reached the head yet"
        if self.events_gone:
            yield f"note: {self.events_gone} registry events were deleted; the head has their hashes"
        if self.first_skipped:
            epoch, receipt = self.first_skipped
            yield f"note: {self.epochs_skipped} epochs of the registry have no event, the first is {epoch}, before receipt {receipt} of the head; nothing records why"


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Verifies an export of Gateward's transparency log.")
    parser.add_argument("export", metavar="EXPORT", help="a file of NDJSON")
    parser.add_argument("--key", metavar="VKEY", action="append", required=True, help="a key of the head log; repeat it after a rotation")
    parser.add_argument("--witness", metavar="VKEY", action="append", default=[], help="a witness that must have cosigned the head's checkpoint")
    options = parser.parse_args(arguments)
    try:
        keys = [Key.parse(text, ED25519) for text in options.key]
        verifier = Verifier(keys, [Key.parse(text, COSIGNATURE) for text in options.witness])
        file = open(options.export, "rb")
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if len({key.name for key in keys}) > 1:
        parser.error("the keys are of different logs")
    with file:
        try:
            verifier.read(file)
        except Fault as fault:
            line, log, receipt = fault.at or (verifier.line, verifier.log, verifier.receipt)
            where = "" if log is None else f"{log}: " if receipt is None else f"{log} receipt {receipt}: "
            print(f"line {line}: {where}{fault}")
            return 1
    print(*verifier.report(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
