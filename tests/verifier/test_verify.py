"""Tests of `verify.py`: true exports verify, and each tampering is found where it is.

    python3 -m unittest discover tests/verifier
"""

import contextlib
import copy
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import tracemalloc
import unittest

import verify
from history import HEAD, History, Signer, b64, canonical, example, hash_of, ndjson, random_history, sha256, tree_hash

WITNESS = "witness.example/w1"
ATTACKER = Signer("the attacker's key")


def run(export, *options):
    """Runs `verify.py` on these bytes. Returns its exit code and what it printed."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(export)
        file.flush()
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                code = verify.main([file.name, *options])
            except SystemExit as exit:
                code = exit.code
        return code, out.getvalue() + errors.getvalue()


def keys_of(history):
    return [option for vkey in history.vkeys() for option in ("--key", vkey)]


def line_of(lines, **members):
    """The number of the last line with these members."""
    return [number for number, line in enumerate(lines, 1) if all(line.get(name) == value for name, value in members.items())][-1]


def line_with(lines, **members):
    return lines[line_of(lines, **members) - 1]


# Tamperings. Each function changes a history or its lines. The first fault must be at this receipt of this log, or at
# the line that a function finds, and its text must have these words.

LANE_0, LANE_3, LANE_7, LANE_9, ACME = "acme.lane-0", "acme.lane-3", "acme.lane-7", "acme.lane-9", "acme.head"


def edit(number, index, reseal, **members):
    def tamper(history):
        log = history.head if number == HEAD else history.lanes[number]
        log.bodies[index].update(members)
        if reseal:
            history.reseal(log)

    return tamper


def remove(number, index, reseal):
    def tamper(history):
        log = history.lanes[number]
        del log.bodies[index]
        log.size -= 1
        if reseal:
            history.reseal(log)

    return tamper


def swap(history):
    bodies = history.lanes[0].bodies
    bodies[1], bodies[2] = bodies[2], bodies[1]
    history.reseal(history.lanes[0])


def remove_tail(history):
    """The newest receipts of a lane go, and the checkpoint before them comes back."""
    lane = history.lanes[0]
    old = next(body["checkpoint"] for body in history.head.bodies if body.get("of_lane") == 0)
    lane.bodies, lane.size, lane.note = lane.bodies[:4], 4, old


def remove_tail_of_head(history):
    history.head.bodies.pop()
    history.head.size -= 1


def fork_rows(history):
    """Other receipts after receipt 6, and a true checkpoint of the fork: the key's holder signed both."""
    lane = history.lanes[0]
    lane.bodies[6]["decision"] = "deny"
    history.reseal(lane)
    lane.note = history.note(lane, lane.size, tree_hash(lane.leaves(lane.size)))


def fork_checkpoint(history):
    """The rows are true. The final checkpoint is that of a fork."""
    fork = copy.deepcopy(history)
    fork_rows(fork)
    history.lanes[0].note = fork.lanes[0].note


def two_checkpoints(rows_of_fork):
    """The head has two checkpoints of a lane that do not extend each other. All is signed with the key."""

    def tamper(history):
        fork = copy.deepcopy(history)
        fork.lanes[0].bodies[1]["decision"] = "deny"
        fork.reseal(fork.lanes[0])
        lane = fork.lanes[0]
        for body in history.head.bodies:
            if body.get("of_lane") == 0 and "\n9\n" in body["checkpoint"]:
                body["checkpoint"] = history.note(lane, 9, tree_hash(lane.leaves(9)))
        history.reseal(history.head)
        history.sign(history.head)
        if rows_of_fork:
            history.lanes[0].bodies = lane.bodies
            history.lanes[0].note = history.note(lane, lane.size, tree_hash(lane.leaves(lane.size)))

    return tamper


def same_size(history):
    """Two checkpoints of one size with two roots, behind what was deleted, so that no tree shows which is true."""
    for index, root in [(0, bytes(32)), (1, bytes([1] * 32))]:
        body = [body for body in history.head.bodies if body.get("of_lane") == 3][index]
        body["checkpoint"] = history.note(history.lanes[3], 2, root)
    history.reseal(history.head)
    history.sign(history.head)


def smaller(history):
    """A checkpoint of the head is smaller than the one before."""
    first, second = [body for body in history.head.bodies if body.get("of_lane") == 3][:2]
    first["checkpoint"], second["checkpoint"] = second["checkpoint"], first["checkpoint"]
    history.reseal(history.head)
    history.sign(history.head)


def drop_lane(history):
    del history.lanes[0]


def drop_lane_and_its_names(history):
    drop_lane(history)
    history.head.bodies = [body for body in history.head.bodies if body.get("of_lane") != 0]
    history.head.size = len(history.head.bodies)
    history.reseal(history.head)


def other_tenants_rows(reseal):
    def tamper(history):
        other = History("globex", ["new key", "old key"])
        other.receipts(0, 9)
        history.lanes[0].bodies[4:7] = other.lanes[0].bodies[4:7]
        if reseal:
            for body in history.lanes[0].bodies:
                body["tenant"] = "acme"
            history.reseal(history.lanes[0])

    return tamper


def other_tenants_export(history):
    """A true export of another tenant of the same deployment, signed with the same key."""
    other = example()
    other.__init__("globex", ["new key", "old key"])
    other.sign(other.head)
    history.__dict__ = other.__dict__


def resign(log_of, forge_id):
    """The attacker edits a lane, and signs the checkpoint with a key of his own, with or without the true key's id."""

    def tamper(history):
        log = log_of(history)
        signer, name = Signer("the attacker's key"), history.origin(log)
        if forge_id:
            signer.id = history.signers[0].id
        text = log.note.partition("\n\n")[0] + "\n"
        log.note = text + "\n" + signer.sign(name, text)

    return tamper


def edit_event(reseal):
    def tamper(history):
        history.events[1]["detail"]["server"] = "evil"
        if reseal:
            event_hash = hash_of(canonical(history.events[1]))
            next(body for body in history.head.bodies if body.get("event_id") == "registry.2")["event_hash"] = event_hash
            history.reseal(history.head)

    return tamper


def beyond_the_end(history):
    """A receipt that no checkpoint has is exported."""
    history.lanes[9].size += 1
    history.receipts(9)


def signed(change):
    """A fault that the key's holder made: everything after it is true and signed."""

    def tamper(history):
        change(history)
        for body in history.head.bodies:
            if body["kind"] == "lane_checkpoint":
                lane = history.lanes[body["of_lane"]]
                size = int(body["checkpoint"].split("\n")[1])
                body["checkpoint"] = history.note(lane, size, tree_hash(lane.leaves(size)))
        for index, body in enumerate(history.head.bodies):
            body["prev_hash"] = history.head.hash_before(index)
        for log in [*history.lanes.values(), history.head]:
            log.note = history.note(log, log.size, tree_hash(log.leaves(log.size)))

    return tamper


def another_first(history):
    """Two checkpoints of one lane say that it begins at different receipts. The export has no row that old."""
    history.lanes[3].begin = 9
    history.head.bodies[1]["first"] = 2


def in_lane_0(index, relink=True, write=None, **members):
    def change(history):
        lane = history.lanes[0]
        lane.bodies[index].update(members)
        lane.write = write or lane.write
        if relink:
            for at, body in enumerate(lane.bodies):
                body["prev_hash"] = lane.hash_before(at)

    return signed(change)


def hide_the_begin(history):
    """Receipts are deleted, and no record in the head says so."""
    history.lanes[0].begin = 3


def hide_more(history):
    """More receipts are deleted than the head says."""
    history.lanes[3].begin = 6


def lose(history):
    history.lanes[7].lost = {2}


# name: (tamper, (type of the line, log, receipt), words)
TAMPERINGS = {
    "an edited field": (edit(0, 1, True, decision="deny"), ("entry", ACME, 3), "acme.lane-0 has another root at 4 entries"),
    "an edited field, and nothing computed again": (edit(0, 1, False, decision="deny"), ("entry", LANE_0, 3), "`prev_hash`"),
    "an edited field that the head has not covered yet": (edit(0, 10, True, decision="deny"), ("checkpoint", LANE_0, None), "another root"),
    "an edited field after deleted receipts": (edit(3, 6, True, decision="deny"), ("entry", ACME, 8), "acme.lane-3 has another root at 9 entries"),
    "an edited head": (edit(HEAD, 9, True, pruned_through=9), ("checkpoint", ACME, None), "another root"),
    "an edited head, with a false first receipt": (edit(HEAD, 4, True, first=42), ("entry", ACME, 5), "not have the first receipt that the head says"),
    "a removed row": (remove(0, 1, True), ("entry", ACME, 3), "acme.lane-0 has another root at 4 entries"),
    "a removed row, and nothing computed again": (remove(0, 1, False), ("entry", LANE_0, 2), "another number"),
    "a removed tail": (remove_tail, ("entry", ACME, 10), "a checkpoint of 9 entries of acme.lane-0, and 4 precede it"),
    "a removed tail of the head": (remove_tail_of_head, ("checkpoint", ACME, 12), "of 12 entries, and the export has 11"),
    "swapped rows": (swap, ("entry", ACME, 3), "acme.lane-0 has another root at 4 entries"),
    "a fork's rows": (fork_rows, ("entry", ACME, 10), "acme.lane-0 has another root at 9 entries"),
    "a fork's checkpoint": (fork_checkpoint, ("checkpoint", LANE_0, None), "another root than the final checkpoint"),
    "two checkpoints that do not extend each other": (two_checkpoints(False), ("entry", ACME, 10), "acme.lane-0 has another root at 9 entries"),
    "two such checkpoints, with the rows of the second": (two_checkpoints(True), ("entry", ACME, 3), "acme.lane-0 has another root at 4 entries"),
    "two checkpoints of one size": (same_size, ("entry", ACME, 4), "the same size and different roots"),
    "a checkpoint that goes back": (smaller, ("entry", ACME, 4), "smaller than the one before"),
    "a missing lane": (drop_lane, ("entry", ACME, 10), "a checkpoint of acme.lane-0, and the export does not have that log"),
    "a missing lane, also in the head": (drop_lane_and_its_names, ("checkpoint", ACME, 10), "of 12 entries, and the export has 9"),
    "another tenant's rows": (other_tenants_rows(False), ("entry", LANE_0, 5), "of another tenant"),
    "another tenant's rows, with this tenant's name": (other_tenants_rows(True), ("entry", ACME, 10), "acme.lane-0 has another root at 9 entries"),
    "another tenant's export": (other_tenants_export, ("export", None, None), "the export is not of"),
    "a lane's checkpoint with another key": (resign(lambda history: history.lanes[9], False), ("checkpoint", LANE_9, None), "no signature of a given key"),
    "a lane's checkpoint with another key and the true id": (resign(lambda history: history.lanes[9], True), ("checkpoint", LANE_9, None), "does not hold"),
    "the head's checkpoint with another key": (resign(lambda history: history.head, False), ("checkpoint", ACME, None), "no signature of a given key"),
    "the head's checkpoint with another key and the true id": (resign(lambda history: history.head, True), ("checkpoint", ACME, None), "does not hold"),
    "an edited registry event": (edit_event(False), ("event", ACME, 6), "the registry event does not have the hash in its receipt"),
    "an edited registry event, and all computed again": (edit_event(True), ("checkpoint", ACME, None), "another root"),
    "rows beyond the end": (beyond_the_end, ("checkpoint", LANE_9, 3), "of 2 entries, and the export has 3"),
    "deleted receipts without a record": (hide_the_begin, ("log", LANE_0, 3), "the head does not say that they were deleted"),
    "more deleted receipts than the record says": (hide_more, ("log", LANE_3, 6), "the head does not say that they were deleted"),
    "a lost row": (lose, ("missing", LANE_7, 43), "missing"),
    # Faults of the key's holder. Only the check that each is named for can find them.
    "a signed body that is not canonical": (in_lane_0(2, write=lambda body: json.dumps(body, sort_keys=True)), ("entry", LANE_0, 1), "canonical"),
    "a signed body with a float": (in_lane_0(2, cost=1.5), ("entry", LANE_0, 3), "not an integer"),
    "a signed body without a kind": (in_lane_0(2, kind=None), ("entry", LANE_0, 3), "members of every receipt"),
    "a signed body of another tenant": (in_lane_0(2, tenant="globex"), ("entry", LANE_0, 3), "of another tenant"),
    "a first receipt that changes": (signed(another_first), ("entry", ACME, 4), "the first receipt of acme.lane-3 changed"),
    "a signed body with another number": (in_lane_0(2, seq=2), ("entry", LANE_0, 3), "another number"),
    "a signed body of another lane": (in_lane_0(2, lane=3), ("entry", LANE_0, 3), "of another lane"),
    "a signed body with a false link": (in_lane_0(2, False, prev_hash="0" * 64), ("entry", LANE_0, 3), "`prev_hash`"),
    "a signed body that is too long": (in_lane_0(2, text="x" * 65_535), ("entry", LANE_0, 3), "too long"),
}


def change(at, **members):
    """Changes the members of the line that `at` finds."""

    def tamper(lines):
        lines[at(lines) - 1].update(members)

    return tamper


def entry(log, index):
    return at(type="entry", log=log, index=index)


def at(**members):
    return lambda lines: line_of(lines, **members)


def drop(where):
    def tamper(lines):
        del lines[where(lines) - 1]

    return tamper


def drop_all(**members):
    def tamper(lines):
        lines[:] = [line for line in lines if not members.items() <= line.items()]

    return tamper


def move(where, to):
    def tamper(lines):
        line = lines.pop(where(lines) - 1)
        lines.insert(to(lines) - 1, line)

    return tamper


def insert(line, to):
    def tamper(lines):
        lines.insert(to(lines) - 1, line)

    return tamper


def repeat_at(where, to):
    def tamper(lines):
        lines.insert(to(lines) - 1, dict(lines[where(lines) - 1]))

    return tamper


def repeat(where):
    def tamper(lines):
        lines.insert(where(lines), dict(lines[where(lines) - 1]))

    return tamper


NEW_LOG = {"type": "log", "log": "acme.lane-1", "first": 1, "begin": 0, "edge": [], "prev_hash": "0" * 64}
LOG_0, LOG_3, LAST = at(type="log", log=LANE_0), at(type="log", log=LANE_3), at(type="end")
# Faults in the lines of a true history, with the words of the fault, and the line that it must be at.
FAULTY_LINES = {
    "no export line": (drop(lambda lines: 1), "must come first", lambda lines: 1),
    "a second export line": (repeat(lambda lines: 1), "must come first", lambda lines: 2),
    "an unknown version": (change(lambda lines: 1, version=2), "unknown version", lambda lines: 1),
    "another tenant": (change(lambda lines: 1, tenant="globex"), "the export is not of", lambda lines: 1),
    "another origin": (change(lambda lines: 1, origin="other.example/v1/log"), "the export is not of", lambda lines: 1),
    "an invalid tenant": (change(lambda lines: 1, tenant="Acme"), "invalid name", lambda lines: 1),
    "no time": (change(lambda lines: 1, created_at="today"), "not a time", lambda lines: 1),
    "an unknown type": (change(LOG_0, type="comment"), "unknown type", at(type="comment")),
    "a type that is not a text": (change(LOG_0, type=[]), "unknown type", at(type=[])),
    "an unknown member": (change(LOG_0, x=1), "not have the members", LOG_0),
    "a number that is a boolean": (change(LOG_0, begin=False), "not have the members", LOG_0),
    "a negative number": (change(LOG_0, begin=-1), "not have the members", LOG_0),
    "a log of another tenant": (change(LOG_0, log="globex.lane-0"), "no log of this name", at(log="globex.lane-0")),
    "a lane with the head's number": (change(LOG_0, log="acme.lane-65535"), "no log of this name", at(log="acme.lane-65535")),
    "a lane with another form of its number": (change(LOG_0, log="acme.lane-00"), "no log of this name", at(log="acme.lane-00")),
    "a second log line": (repeat(LOG_0), "second log line", LOG_0),
    "no log line": (drop(LOG_0), "precedes its log line", entry(LANE_0, 0)),
    "a begin without an edge": (change(LOG_0, begin=1), "the edge is not", LOG_0),
    "an edge without a begin": (change(LOG_0, edge=[b64(bytes(32))]), "the edge is not", LOG_0),
    "a short hash in the edge": (change(LOG_3, edge=[b64(bytes(32)), b64(bytes(31))]), "the edge is not", LOG_3),
    "an edge that is not base64": (change(LOG_3, edge=[b64(bytes(32)), 7]), "the edge is not", LOG_3),
    "a false edge": (change(LOG_3, edge=[b64(bytes(32))] * 2), "acme.lane-3 has another root at 5 entries", lambda lines: line_of(lines[: LOG_3(lines) + 1], type="entry", log=ACME)),
    "a false `prev_hash` after deleted receipts": (change(LOG_3, prev_hash="1" * 64), "`prev_hash`", entry(LANE_3, 5)),
    "a `prev_hash` before receipt 1": (change(LOG_0, prev_hash="1" * 64), "no receipt precedes", LOG_0),
    "a false first receipt": (change(LOG_0, first=2), "another number", entry(LANE_0, 0)),
    "no first receipt": (change(LOG_0, first=0), "invalid `first`", LOG_0),
    "a gap": (drop(entry(LANE_0, 1)), "receipt 2 must come here", entry(LANE_0, 2)),
    "an entry twice": (repeat(entry(LANE_0, 1)), "receipt 3 must come here", entry(LANE_0, 1)),
    "entries in another order": (move(entry(LANE_0, 2), entry(LANE_0, 1)), "receipt 2 must come here", entry(LANE_0, 2)),
    "an entry that comes after its checkpoint": (move(entry(LANE_0, 3), LOG_3), "a checkpoint of 4 entries of acme.lane-0, and 3 precede it", entry(ACME, 2)),
    "an entry that comes before an older checkpoint": (move(entry(LANE_0, 4), entry(ACME, 2)), "must come after the checkpoint of 4", entry(ACME, 2)),
    "a body that is not text": (change(entry(LANE_0, 1), body={}), "not have the members", entry(LANE_0, 1)),
    "a body that is not JSON": (change(entry(LANE_0, 1), body="{"), "not JSON", entry(LANE_0, 1)),
    "a body that is not Unicode": (change(entry(LANE_0, 1), body="\ud800"), "not Unicode", entry(LANE_0, 1)),
    "no event line": (drop(at(type="event")), "an event line must follow", lambda lines: line_of(lines, type="entry", log=ACME, index=11) + 1),
    "an event line that nothing asks for": (repeat(at(type="event")), "an event line must follow", at(type="event")),
    "an event of another entry": (change(at(type="event"), index=1), "not of the entry before it", at(type="event", index=1)),
    "an event of another log": (change(at(type="event"), log=LANE_0), "not of the entry before it", at(type="event", log=LANE_0)),
    "an event that is not text": (change(at(type="event"), event=1), "not a text", at(type="event")),
    "no final checkpoint of a lane": (drop(at(type="checkpoint", log=LANE_9)), "no final checkpoint", at(type="checkpoint", log=ACME)),
    "no final checkpoint of the head": (drop(at(type="checkpoint", log=ACME)), "the end line precedes", LAST),
    "a final checkpoint after the head's": (repeat_at(at(type="checkpoint", log=LANE_9), LAST), "follows that of the head", at(type="checkpoint", log=LANE_9)),
    "a final checkpoint twice": (repeat(at(type="checkpoint", log=LANE_9)), "a second final checkpoint", at(type="checkpoint", log=LANE_9)),
    "a final checkpoint of an absent log": (change(at(type="checkpoint", log=LANE_9), log="acme.lane-1"), "does not have", at(type="checkpoint", log="acme.lane-1")),
    "a final checkpoint of another lane": (change(at(type="checkpoint", log=LANE_9), log=LANE_0), "a second final checkpoint", lambda lines: len(lines) - 2),
    "a log line after the final checkpoints": (insert(NEW_LOG, LAST), "a log line follows the final checkpoints", lambda lines: len(lines) - 1),
    "no head": (drop_all(log=ACME), "acme.head is absent", at(type="checkpoint", log=LANE_7)),
    "an entry after the final checkpoints": (repeat_at(entry(LANE_9, 1), LAST), "follows the final checkpoints", entry(LANE_9, 1)),
    "a false count": (change(LAST, entries=3), "counts 3 entries", LAST),
    "no end line": (drop(LAST), "cut off", lambda lines: len(lines) + 1),
    "a line after the end": (repeat(LAST), "follows the end line", LAST),
}


class Exports(unittest.TestCase):
    def verified(self, history, *options):
        code, said = run(ndjson(history.lines()), *keys_of(history), *options)
        self.assertEqual(code, 0, said)
        return said

    def test_a_true_export_verifies_and_the_report_says_what_it_does_not_show(self):
        history = example()
        history.events[2] = None
        self.assertEqual(
            self.verified(history).splitlines(),
            [
                "verified: gateward.example/v1/log/acme.head with 12 entries",
                "4 lanes, 36 entries in this export, 3 registry events",
                "note: acme.lane-3: receipts up to 5 were deleted by retention",
                "note: acme.lane-9: no checkpoint has reached the head yet",
                "note: 1 registry events were deleted; the head has their hashes",
            ],
        )

    def test_random_true_exports_verify(self):
        for seed in range(60):
            with self.subTest(seed=seed):
                self.verified(random_history(seed))

    def test_finds_each_tampering_where_it_is(self):
        original = example()
        options = keys_of(original)
        for name, (tamper, (kind, log, receipt), words) in TAMPERINGS.items():
            with self.subTest(name):
                history = copy.deepcopy(original)
                tamper(history)
                lines = history.lines()
                members = {"type": kind} if log is None else {"type": kind, "log": log}
                if kind in ("entry", "missing", "event"):
                    members["index"] = receipt - line_with(lines, type="log", log=log)["first"]
                where = "" if log is None else f"{log}: " if receipt is None else f"{log} receipt {receipt}: "
                where = f"line {line_of(lines, **members)}: {where}"
                code, said = run(ndjson(lines), *options)
                self.assertEqual(code, 1, said)
                self.assertTrue(said.startswith(where) and words in said, f"{said} must begin with: {where}")

    def test_finds_each_fault_of_the_lines_at_its_line(self):
        original = example()
        for name, (tamper, words, line) in FAULTY_LINES.items():
            with self.subTest(name):
                lines = original.lines()
                tamper(lines)
                # A lone surrogate is written as its escape.
                export = "".join(json.dumps(line) + "\n" for line in lines).encode()
                code, said = run(export, *keys_of(original))
                self.assertEqual((code, words in said), (1, True), said)
                self.assertTrue(said.startswith(f"line {line(lines)}: "), f"{said} must be at line {line(lines)}")

    def test_finds_bytes_that_are_not_lines(self):
        history = example()
        lines = ndjson(history.lines()).splitlines(keepends=True)
        for name, number, bytes_, words in [
            ("an empty line", 5, b"\n", "not JSON"),
            ("not UTF-8", 5, lines[4].replace(b"acme", b"acm\xff"), "not UTF-8"),
            ("an array", 5, b"[]\n", "not a JSON object"),
            ("a member twice", 5, lines[4].replace(b"{", b'{"type":"entry",', 1), "twice"),
            ("a float", 5, lines[4].replace(b'"index":', b'"index":0.0,"x":', 1), "not an integer"),
            ("two values", 5, lines[4].rstrip() + lines[4], "not JSON"),
            ("half a line", 5, lines[4][:20], "not JSON"),
            ("a line that is too long", 5, b" " * (verify.MAX_LINE_BYTES + 1), "too long"),
        ]:
            with self.subTest(name):
                code, said = run(b"".join([*lines[: number - 1], bytes_, *lines[number:]]), *keys_of(history))
                self.assertEqual((code, said.startswith(f"line {number}: ") and words in said), (1, True), said)

    def test_finds_a_change_of_any_character(self):
        dice = random.Random(21)
        for seed in range(8):
            # A second signature would be ignored if its name or its id were changed.
            history = random_history(seed, ["one key"])
            lines = [line + "\n" for line in ndjson(history.lines()).decode().split("\n")[:-1]]
            for _ in range(60):
                number = dice.randrange(len(lines))
                line = lines[number]
                position = dice.randrange(len(line) - 1)
                old, new = line[position], dice.choice("0123456789abcdefABCDEF+/=\"{}\n ")
                changed = [*lines]
                changed[number] = line[:position] + new + line[position + 1 :]
                is_time = number == 0 and position > line.index("created_at")
                # Nothing is left that has this link.
                name = json.loads(line).get("log")
                entries = f'"entry","log":"{name}"'
                is_unused = '"prev_hash":"' in line[:position] and '"type":"log"' in line and entries not in "".join(lines)
                if new == old or is_time or is_unused:
                    continue
                code, said = run("".join(changed).encode(), *keys_of(history))
                with self.subTest(seed=seed, line=number + 1, position=position, new=new):
                    self.assertEqual(code, 1, said)

    def test_an_older_true_state_verifies(self):
        """What the help says that it cannot detect: the report shows the size and the time of a witness."""
        history = History()
        history.receipts(0, 3)
        history.flush(0)
        history.sign(history.head)
        history.cosign(Signer("witness", 4), WITNESS)
        before = copy.deepcopy(history)
        history.receipts(0, 3)
        history.flush(0)
        history.sign(history.head)
        options = ("--witness", Signer("witness", 4).vkey(WITNESS))
        self.assertIn("acme.head with 1 entries\n", self.verified(before, *options))
        self.assertIn("at 1790000000 (POSIX seconds)", self.verified(before, *options))

    def test_an_empty_log_verifies(self):
        history = History()
        history.sign(history.head)
        self.assertIn("with 0 entries", self.verified(history))
        history.lane(1)
        history.flush(1)
        history.sign(history.head)
        self.assertIn("1 lanes, 1 entries", self.verified(history))

    def test_a_lane_of_which_all_was_deleted_verifies(self):
        history = example()
        history.prune(7, 4)
        history.publish(7)
        history.sign(history.head)
        self.assertIn("acme.lane-7: receipts up to 44 were deleted", self.verified(history))
        lines = history.lines()
        self.assertFalse(any(line["type"] == "entry" and line["log"] == LANE_7 for line in lines))
        lines[line_of(lines, type="log", log=LANE_7) - 1]["edge"] = [b64(bytes(32))]
        code, said = run(ndjson(lines), *keys_of(history))
        self.assertEqual((code, "acme.lane-7 has another root at 4 entries" in said), (1, True), said)

    def test_a_head_of_which_much_was_deleted_verifies(self):
        history = example()
        history.head.begin = 9
        self.assertIn("acme.head: receipts up to 9 were deleted by retention (the head has no record", self.verified(history))

    def test_reports_epochs_that_have_no_registry_event(self):
        for name, epochs, expected in [
            ("all in order", [1, 2, 3], None),
            ("the first is not known", [4, 5], None),
            ("twice, after a fault", [1, 2, 1, 2, 3], None),
            ("a gap", [1, 4], "2 epochs of the registry have no event, the first is 2, before receipt 2"),
            ("two gaps", [2, 4, 5, 9], "4 epochs of the registry have no event, the first is 3, before receipt 2"),
            ("a gap, then one of them late", [1, 4, 2, 5], "2 epochs of the registry have no event, the first is 2, before receipt 2"),
        ]:
            with self.subTest(name):
                history = History()
                history.events = [{"at_ms": 1, "detail": {}, "event_id": f"registry.{epoch}", "kind": "agent_paused", "source": "api"} for epoch in range(1, 10)]
                for epoch in epochs:
                    event = history.events[epoch - 1]
                    members = {"event_hash": hash_of(canonical(event)), "event_id": event["event_id"]}
                    history.head.append({"kind": "registry_event", "tenant": "acme", **members})
                history.sign(history.head)
                said = self.verified(history)
                self.assertEqual("have no event" in said, expected is not None, said)
                self.assertIn(expected or "", said)

    def test_checks_the_checkpoints_inside_the_head(self):
        def inside(change):
            history = example()
            body = [body for body in history.head.bodies if body.get("of_lane") == 7][0]
            body["checkpoint"] = change(history, body["checkpoint"])
            history.reseal(history.head)
            history.sign(history.head)
            return run(ndjson(history.lines()), *keys_of(history))

        def other_key(history, note):
            text = note.partition("\n\n")[0] + "\n"
            return text + "\n" + ATTACKER.sign(history.origin(history.lanes[7]), text)

        for words, change in {
            "does not hold": lambda history, note: note.replace("\n1\n", "\n2\n"),
            "no signature of a given key": other_key,
            "of another log": lambda history, note: history.note(history.lanes[7], 1, bytes(32)).replace("lane-7", "lane-0"),
            "not a signed note": lambda history, note: note.partition("\n\n")[0] + "\n",
            "another root at 1 entries": lambda history, note: history.note(history.lanes[7], 1, bytes(32)),
        }.items():
            with self.subTest(words):
                code, said = inside(change)
                self.assertEqual(code, 1)
                self.assertTrue("acme.head receipt 5: " in said and words in said, said)

    def test_checks_the_bodies_of_the_head(self):
        for words, receipt, members in [
            ("an unknown kind", 5, {"kind": "comment"}),
            ("the members of a lane checkpoint", 5, {"first": None}),
            ("the members of a lane checkpoint", 5, {"pruned_through": -1}),
            ("the members of a registry event", 6, {"event_hash": 7}),
            ("not `registry.` and an epoch", 6, {"event_id": "registry.x"}),
            ("not have the first receipt", 5, {"first": 5}),
            ("not of a lane", 5, {"of_lane": HEAD}),
        ]:
            with self.subTest(words):
                history = example()
                history.head.bodies[receipt - 1].update(members)
                history.reseal(history.head)
                history.sign(history.head)
                code, said = run(ndjson(history.lines()), *keys_of(history))
                self.assertTrue(code == 1 and f"acme.head receipt {receipt}: " in said and words in said, said)

    def test_checks_the_form_of_events(self):
        for words, event in {
            "not JSON": lambda event: "x",
            "not have the members": lambda event: canonical({**event, "x": 1}),
            "another id": lambda event: canonical({**event, "event_id": "registry.7"}),
        }.items():
            with self.subTest(words):
                history = example()
                text = event(history.events[0])
                history.head.bodies[0]["event_hash"] = hash_of(text)
                history.reseal(history.head)
                history.sign(history.head)
                lines = history.lines()
                lines[3]["event"] = text  # After the export line, the head's log line and its first entry.
                code, said = run(ndjson(lines), *keys_of(history))
                self.assertTrue(code == 1 and said.startswith("line 4: acme.head receipt 1: ") and words in said, said)

    def test_witnesses(self):
        witness, other = Signer("witness", 4), Signer("other witness", 4)
        cosigned = example()
        cosigned.cosign(witness, WITNESS)
        option = ("--witness", witness.vkey(WITNESS))
        said = self.verified(cosigned, *option)
        self.assertIn(f"cosigned by {WITNESS} at 1790000000", said)
        self.assertNotIn("cosigned", self.verified(cosigned))
        two = copy.deepcopy(cosigned)
        two.cosign(other, "other.example")
        self.assertIn("cosigned by other.example", self.verified(two, *option, "--witness", other.vkey("other.example")))

        liar = Signer("liar", 4)
        liar.id = witness.id
        bare = example()
        forged = example()
        forged.cosign(liar, WITNESS)
        timeless = example()
        timeless.cosign(witness, WITNESS, 0)
        renamed = example()
        renamed.cosign(witness, "witness.example/w2")
        for words, history in {
            "no cosignature": bare,
            "does not hold": forged,
            "no valid time": timeless,
            f"no cosignature of `{WITNESS}`": renamed,
        }.items():
            code, said = run(ndjson(history.lines()), *keys_of(history), *option)
            self.assertTrue(code == 1 and words in said and "acme.head: " in said, said)
        code, said = run(ndjson(cosigned.lines()), *keys_of(cosigned), *option, "--witness", other.vkey("other.example"))
        self.assertTrue(code == 1 and "no cosignature of `other.example`" in said, said)

    def test_keys(self):
        history = example()
        export = ndjson(history.lines())
        new, old = history.vkeys()
        # The first checkpoints have only the old key's signature, and all later ones both.
        self.assertEqual(run(export, "--key", new)[0], 1)
        self.assertEqual(run(export, "--key", old)[0], 0)
        self.assertEqual(run(export, "--key", new, "--key", old)[0], 0)
        stranger = Signer("stranger").vkey(history.origin(history.head))
        self.assertEqual(run(export, "--key", stranger)[0], 1)
        self.assertEqual(run(export, "--key", stranger, "--key", old)[0], 0)
        of_lane = history.signers[0].vkey(history.origin(history.lanes[0]))
        self.assertEqual(run(export, "--key", of_lane)[0], 1)

    def test_wrong_usage(self):
        history = example()
        export = ndjson(history.lines())
        vkey = history.vkeys()[0]
        witness = Signer("witness", 4).vkey(WITNESS)
        for options in [
            (),
            ("--key",),
            ("--key", "x"),
            ("--key", witness),
            ("--key", vkey, "--witness", vkey),
            ("--key", vkey, "--key", Signer("x").vkey("other.example")),
            ("--key", vkey, "--what"),
        ]:
            self.assertEqual(run(export, *options)[0], 2, options)
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as exit:
            verify.main(["/nonexistent", "--key", vkey])
        self.assertEqual(exit.exception.code, 2)

    def test_as_a_program(self):
        history = example()
        program = pathlib.Path(__file__).parent / "verify.py"
        with tempfile.TemporaryDirectory() as directory:
            export = os.path.join(directory, "export.ndjson")
            for content, code, begin in [(ndjson(history.lines()), 0, "verified: "), (b"{}\n", 1, "line 1: ")]:
                pathlib.Path(export).write_bytes(content)
                ended = subprocess.run([sys.executable, program, export, *keys_of(history)], capture_output=True, text=True)
                self.assertEqual((ended.returncode, ended.stdout.startswith(begin), ended.stderr), (code, True, ""), ended)
        self.assertEqual(subprocess.run([sys.executable, program], capture_output=True).returncode, 2)

    def test_memory_does_not_grow_with_the_export(self):
        def peak(receipts):
            history = History()
            previous, tree, lines = "0" * 64, verify.Tree(0, []), []
            for index in range(receipts):
                body = {"kind": "decision", "lane": 0, "prev_hash": previous, "seq": index + 1, "tenant": "acme"}
                text = canonical(body)
                previous = hash_of(text)
                tree.append(sha256(b"\x00", text.encode()))
                lines.append({"type": "entry", "log": LANE_0, "index": index, "body": text})
            lane = history.lane(0)
            log = history.log_line(lane)
            lane.note = history.note(lane, receipts, tree.root())
            history.sign(history.head)
            notes = [{"type": "checkpoint", "log": log.name, "note": log.note} for log in (lane, history.head)]
            head = history.lines()
            lines = [head[0], log, *lines, next(line for line in head if line["type"] == "log" and line["log"] == ACME)]
            export = ndjson([*lines, *notes, {"type": "end", "entries": receipts}])
            verifier = verify.Verifier([verify.Key.parse(history.vkeys()[0], 1)], [])
            file = io.BytesIO(export)
            tracemalloc.start()
            try:
                verifier.read(file)
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        small, large = peak(500), peak(20_000)
        self.assertLess(large, small + 50_000)


if __name__ == "__main__":
    unittest.main()
