"""Makes true exports for the tests of the verifiers, and tampers with them.

It shares no code with Gateward, nor with `verify.py`. Its Merkle tree is the recursive definition of
RFC 6962. A `History` is what the operator has: rows, signed checkpoints and audit events. `export`
writes what an honest exporter finds there. `reseal` does what somebody can do who may write to the
database but does not have the key: it computes every number, link and hash again.
"""

import base64
import hashlib
import json
import random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HEAD = 65_535
ORIGIN = "gateward.example/v1/log"
TIME = "2026-11-24T10:00:00.000Z"


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def hash_of(text):
    return sha256(text.encode()).hex()


def b64(value):
    return base64.b64encode(value).decode()


def canonical(value):
    """The RFC 8785 form of objects whose member names are ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def tree_hash(leaves):
    """MTH of RFC 6962, section 2.1."""
    if not leaves:
        return sha256()
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01", tree_hash(leaves[:half]), tree_hash(leaves[half:]))


def edge_of(leaves):
    """The perfect subtrees, largest first."""
    if not leaves:
        return []
    size = 1 << len(leaves).bit_length() - 1
    return [tree_hash(leaves[:size]), *edge_of(leaves[size:])]


class Signer:
    """An Ed25519 key. `kind` is the type of its signatures: 1 of a log, 4 of a witness."""

    def __init__(self, seed, kind=1):
        self.key = Ed25519PrivateKey.from_private_bytes(sha256(seed.encode()))
        self.kind = bytes([kind])
        self.public = self.key.public_key().public_bytes_raw()

    def id(self, name):
        return sha256(name.encode(), b"\n", self.kind, self.public)[:4]

    def vkey(self, name):
        return f"{name}+{self.id(name).hex()}+{b64(self.kind + self.public)}"

    def sign(self, name, text, time=None):
        if time is None:
            signature = self.key.sign(text.encode())
        else:
            signature = time.to_bytes(8, "big") + self.key.sign(f"cosignature/v1\ntime {time}\n{text}".encode())
        return f"\u2014 {name} {b64(self.id(name) + signature)}\n"


class Log:
    def __init__(self, name, lane, first):
        self.name, self.lane, self.first = name, lane, first
        self.bodies = []  # All that were ever written, as objects.
        self.begin = 0  # Receipts before this index were deleted by retention.
        self.note = None  # The newest signed checkpoint.
        self.size = 0  # Its size.
        self.write = canonical
        self.lost = set()  # Indices whose rows were lost.

    def text(self, index):
        return self.write(self.bodies[index])

    def leaves(self, size=None):
        return [sha256(b"\x00", self.text(i).encode()) for i in range(len(self.bodies) if size is None else size)]

    def hash_before(self, index):
        return hash_of(self.text(index - 1)) if index > 0 else "0" * 64 if self.first == 1 else hash_of("an older receipt")

    def append(self, body):
        seq = self.first + len(self.bodies)
        self.bodies.append({**body, "lane": self.lane, "prev_hash": self.hash_before(len(self.bodies)), "seq": seq, "time": TIME, "version": 2})


class History:
    def __init__(self, tenant="acme", signers=("first key",)):
        self.tenant = tenant
        self.signers = [Signer(seed) for seed in signers]
        self.head = Log(f"{tenant}.head", HEAD, 1)
        self.lanes = {}
        self.events = []
        self.pruned_through = {}

    def origin(self, log):
        return f"{ORIGIN}/{log.name}"

    def vkeys(self):
        return [signer.vkey(self.origin(self.head)) for signer in self.signers]

    def lane(self, number, first=1):
        return self.lanes.setdefault(number, Log(f"{self.tenant}.lane-{number}", number, first))

    def receipts(self, number, count=1, **members):
        lane = self.lane(number)
        for _ in range(count):
            body = {"agent": "bot", "decision": "allow", "decision_id": f"d{len(lane.bodies)}", "kind": "decision", "resource": 'r"\u0001\\\u00e9\u2028\U0001f600', "tenant": self.tenant}
            lane.append({**body, **members})

    def note(self, log, size, root):
        text = f"{self.origin(log)}\n{size}\n{b64(root)}\n"
        return text + "\n" + "".join(signer.sign(self.origin(log), text) for signer in self.signers)

    def sign(self, log):
        log.size = len(log.bodies)
        log.note = self.note(log, log.size, tree_hash(log.leaves()))

    def publish(self, number):
        """Sends the lane's newest checkpoint to the head."""
        lane = self.lanes[number]
        pruned = self.pruned_through.get(number, 0)
        members = {"checkpoint": lane.note, "first": lane.first, "of_lane": number, "pruned_through": pruned}
        self.head.append({"kind": "lane_checkpoint", "tenant": self.tenant, **members})

    def flush(self, number):
        self.sign(self.lanes[number])
        self.publish(number)

    def event(self, kind, detail):
        event = {"at_ms": 1_790_000_000_000, "detail": detail, "event_id": f"registry.{len(self.events) + 1}", "kind": kind, "source": "api"}
        self.events.append(event)
        members = {"event_hash": hash_of(canonical(event)), "event_id": event["event_id"]}
        self.head.append({"kind": "registry_event", "tenant": self.tenant, **members})

    def prune(self, number, begin):
        lane = self.lanes[number]
        lane.begin, self.pruned_through[number] = begin, lane.first + begin - 1

    def cosign(self, witness, name, time=1_790_000_000):
        text = self.head.note.rpartition("\n\n")[0] + "\n"
        self.head.note += witness.sign(name, text, time)

    def reseal(self, log):
        """Numbers and links the rows again, and hashes them. Signed notes stay: the key is not at hand."""
        for index, body in enumerate(log.bodies):
            body["seq"] = log.first + index
            body["prev_hash"] = log.hash_before(index)

    # The export.

    def log_line(self, log):
        edge = [b64(subtree) for subtree in edge_of(log.leaves(log.begin))]
        return {"type": "log", "log": log.name, "first": log.first, "begin": log.begin, "edge": edge, "prev_hash": log.hash_before(log.begin)}

    def lines(self):
        written = {}

        def entries(log, end):
            if log.name not in written:
                yield self.log_line(log)
                written[log.name] = log.begin
            for index in range(written[log.name], end):
                if index in log.lost:
                    yield {"type": "missing", "log": log.name, "index": index, "leaf_hash": b64(log.leaves()[index])}
                else:
                    yield {"type": "entry", "log": log.name, "index": index, "body": log.text(index)}
            written[log.name] = max(end, written[log.name])

        lines = [{"type": "export", "version": 1, "tenant": self.tenant, "origin": ORIGIN, "created_at": TIME}]
        events = {event["event_id"]: event for event in self.events if event is not None}
        lines += entries(self.head, self.head.begin)
        for index in range(self.head.begin, self.head.size):
            body = self.head.bodies[index]
            if body["kind"] == "lane_checkpoint" and body["of_lane"] in self.lanes:
                lane = self.lanes[body["of_lane"]]
                size = int(body["checkpoint"].split("\n")[1])
                if size >= lane.begin:
                    lines += entries(lane, min(size, lane.size))
            lines += entries(self.head, index + 1)
            if body["kind"] == "registry_event":
                event = events.get(body["event_id"])
                lines.append({"type": "event", "log": self.head.name, "index": index, "event": event and canonical(event)})
        for lane in self.lanes.values():
            lines += entries(lane, lane.size)
        for log in [*self.lanes.values(), self.head]:
            lines.append({"type": "checkpoint", "log": log.name, "note": log.note})
        count = sum(line["type"] in ("entry", "missing") for line in lines)
        return [*lines, {"type": "end", "entries": count}]


def ndjson(lines):
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines).encode()


def example():
    """A history with each thing that an export can have."""
    history = History(signers=["new key", "old key"])
    new, history.signers = history.signers[:1], history.signers[1:]
    both = [*new, *history.signers]
    history.lane(7, first=41)  # It is older than its log.
    history.event("tenant_created", {"name": "Acme \u00e9\n", "limits": {"rate": 10, "burst": None, "on": True}})
    for count, number in [(3, 3), (4, 0), (2, 3), (1, 7)]:
        history.receipts(number, count)
        history.flush(number)
    history.signers = both  # A rotation: two signatures.
    history.event("server_added", {"server": "web", "tags": ["a", "b"]})
    history.publish(0)  # The same checkpoint again.
    for count, number in [(4, 3), (3, 7), (5, 0)]:
        history.receipts(number, count, tool="read")
        history.flush(number)
    history.prune(3, 5)
    history.receipts(3, 3)
    history.flush(3)
    history.event("agent_paused", {})
    history.receipts(0, 2)
    history.sign(history.lanes[0])  # It has not reached the head yet.
    history.receipts(9, 2)
    history.sign(history.lanes[9])  # The head does not name this lane yet.
    history.receipts(0)  # It has no checkpoint yet.
    history.sign(history.head)
    return history


def random_history(seed, signers=None):
    """A true history of a random shape."""
    dice = random.Random(seed)
    history = History(signers=signers or dice.choice([["a"], ["b", "a"]]))
    numbers = dice.sample(range(HEAD), dice.randint(1, 5))
    for number in numbers:
        history.lane(number, first=dice.choice([1, 1, 1, 2, 500]))
    for _ in range(dice.randint(0, 120)):
        number = dice.choice(numbers)
        lane = history.lanes[number]
        match dice.randrange(6):
            case 0 | 1 | 2:
                history.receipts(number, dice.randint(1, 9), nonce=dice.randrange(1 << 40))
            case 3:
                history.flush(number)
            case 4:
                history.event(dice.choice(["agent_paused", "server_added"]), {"n": dice.randrange(9)})
            case 5 if lane.size > lane.begin:
                history.prune(number, dice.randint(lane.begin, lane.size))
    for number, lane in history.lanes.items():
        if lane.note is None or lane.begin > 0:
            history.flush(number)  # The head has to say what was deleted.
        if dice.random() < 0.5:
            history.receipts(number, dice.randint(0, 3))
            history.sign(lane)
    history.events = [event if dice.random() < 0.9 else None for event in history.events]
    history.sign(history.head)
    history.head.begin = dice.choice([0, 0, dice.randint(0, history.head.size)])
    if history.head.begin > 0:  # The record of what was deleted must remain.
        for number in numbers:
            history.flush(number)
        history.sign(history.head)
    return history
