"""Tests of what `verify.py` reads and computes, apart from exports: canonical JSON, trees, notes and keys."""

import json
import unittest

import verify
from history import Signer, b64, edge_of, sha256, tree_hash


class Canonical(unittest.TestCase):
    """RFC 8785, without the numbers that are not integers."""

    def test_accepts_the_canonical_form(self):
        # The order of section 3.2.3 of the RFC.
        names = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
        members = ",".join(f"{json.dumps(name, ensure_ascii=False)}:0" for name in names)
        texts = [
            "{}",
            "{" + members + "}",
            '{"a":[true,false,null,-1,0,9007199254740992],"b":{"a":"\u007f\u2028\u00e9/"},"c":[]}',
            '{"":"\\b\\t\\n\\f\\r\\"\\\\\\u0000\\u001f"}',
        ]
        for text in texts:
            self.assertIsInstance(verify.parse_canonical(text, "it"), dict, text)

    def test_refuses_every_other_form(self):
        texts = {
            "white space": '{"a": 1}',
            "white space after it": '{"a":1}\n',
            "not sorted": '{"b":1,"a":1}',
            "not sorted inside": '{"a":{"b":1,"a":1}}',
            "sorted by code points": '{"\ufb33":0,"\U0001f600":0}',
            "a member twice": '{"a":1,"a":1}',
            "a float": '{"a":1.5}',
            "an integer as a float": '{"a":1.0}',
            "an exponent": '{"a":1e3}',
            "minus zero": '{"a":-0}',
            "a large integer": '{"a":9007199254740993}',
            "a very large integer": '{"a":' + "9" * 5000 + "}",
            "not a number": '{"a":NaN}',
            "an escaped slash": '{"a":"\\/"}',
            "an escaped letter": '{"a":"\\u0061"}',
            "an escape in upper case": '{"a":"\\u001F"}',
            "a long escape": '{"a":"\\u000a"}',
            "an escaped pair": '{"a":"\\ud83d\\ude00"}',
            "a lone surrogate": '{"a":"\\ud83d"}',
            "a control character": '{"a":"\u0001"}',
            "an array": "[]",
            "two values": "{}{}",
            "nothing": "",
            "very deep": '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
        }
        for name, text in texts.items():
            with self.subTest(name), self.assertRaises(verify.Fault):
                verify.parse_canonical(text, "it")


class Trees(unittest.TestCase):
    # The reference tree of Certificate Transparency.
    LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    ROOTS = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ]

    def test_roots_are_those_of_the_reference_and_of_the_definition(self):
        leaves = [verify.leaf_hash(bytes.fromhex(leaf)) for leaf in self.LEAVES]
        tree = verify.Tree(0, [])
        for size, root in enumerate(self.ROOTS):
            self.assertEqual((tree.root().hex(), tree_hash(leaves[:size]).hex()), (root, root))
            if size < len(leaves):
                tree.append(leaves[size])

    def test_a_tree_goes_on_from_any_edge(self):
        leaves = [sha256(b"\x00", bytes([index])) for index in range(70)]
        for begin in range(70):
            tree = verify.Tree(begin, edge_of(leaves[:begin]))
            for leaf in leaves[begin:]:
                tree.append(leaf)
            self.assertEqual(tree.root(), tree_hash(leaves))


class Notes(unittest.TestCase):
    # The example of the text of C2SP.
    VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
    SIGNATURE = "\u2014 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
    NOTE = "This is an example message.\n\n" + SIGNATURE

    def setUp(self):
        self.key = verify.Key.parse(self.VKEY, verify.ED25519)

    def test_the_example_of_the_text_verifies(self):
        text, signers = verify.verify_note(self.NOTE, [self.key])
        self.assertEqual((text, list(signers)), ("This is an example message.\n", [self.key]))

    def test_signatures_of_unknown_keys_are_ignored(self):
        for line in ["\u2014 example.com/bar AAAAAAA=\n", "\u2014 example.com/foo AAAAAAA=\n"]:
            _, signers = verify.verify_note(self.NOTE + line, [self.key])
            self.assertEqual(list(signers), [self.key])
        self.assertEqual(verify.verify_note(self.NOTE, [])[1], {})

    def test_the_last_empty_line_ends_the_text(self):
        signer, text = Signer("x"), "a\n\n\u2014 not a signature\n\nb\n"
        note = text + "\n" + signer.sign("x", text)
        self.assertEqual(verify.verify_note(note, [verify.Key.parse(signer.vkey("x"), 1)])[0], text)

    def test_refuses_other_notes(self):
        notes = {
            "another text": self.NOTE.replace("This", "That"),
            "no signature": "This is an example message.\n\n",
            "no empty line": self.NOTE.replace("\n\n", "\n"),
            "no last newline": self.NOTE[:-1],
            "a text after it": self.NOTE + "x\n",
            "a hyphen": self.NOTE.replace("\u2014", "-"),
            "no name": self.NOTE.replace("example.com/foo ", ""),
            "a plus in a name": self.NOTE.replace("example.com/foo", "example.com/f+o"),
            "a space in a name": self.NOTE.replace("example.com/foo", "example.com/f\u00a0o"),
            "base64 without its end": self.NOTE.replace("M=", "M"),
            "another base64 of the same bytes": self.NOTE.replace("M=", "N="),
            "a signature of four bytes": self.NOTE + "\u2014 x AAAAAA==\n",
            "too many signatures": self.NOTE + "\u2014 x AAAAAAA=\n" * 100,
        }
        for name, note in notes.items():
            with self.subTest(name), self.assertRaises(verify.Fault):
                verify.verify_note(note, [self.key])

    def test_refuses_signed_texts_that_are_not_notes(self):
        signer = Signer("x")
        key = verify.Key.parse(signer.vkey("x"), 1)
        for words, text in {"control character": "Th\ris\n", "too long": "x" * 66_000 + "\n", "not Unicode": "\ud800\n"}.items():
            note = text + "\n" + signer.sign("x", text if "Unicode" not in words else "")
            with self.subTest(words), self.assertRaisesRegex(verify.Fault, words):
                verify.verify_note(note, [key])

    def test_refuses_other_keys(self):
        others = ["", "x", "x+y", self.VKEY.replace("530d903a", "530D903A"), self.VKEY.replace("530d903a", "530d903b"), self.VKEY + "A", self.VKEY[1:]]
        for vkey in [*others, Signer("w", 4).vkey("x")]:
            with self.subTest(vkey), self.assertRaises(ValueError):
                verify.Key.parse(vkey, verify.ED25519)

    def test_refuses_other_checkpoints(self):
        signer, root = Signer("x"), b64(bytes(32))
        key = verify.Key.parse(signer.vkey("log"), 1)

        def checked(text):
            return verify.verify_checkpoint(text + "\n" + signer.sign("log", text), "log", [key])

        self.assertEqual(checked(f"log\n7\n{root}\n"), (7, bytes(32)))
        for text in [
            f"other\n7\n{root}\n",
            f"log\n07\n{root}\n",
            f"log\n-7\n{root}\n",
            f"log\n\u0667\n{root}\n",
            f"log\n7\n{root[4:]}\n",
            f"log\n7\n{root}\nextension\n",
            "log\n7\n",
            f"\nlog\n7\n{root}\n",
        ]:
            with self.subTest(text), self.assertRaises(verify.Fault):
                checked(text)


if __name__ == "__main__":
    unittest.main()
