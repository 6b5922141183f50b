#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes vectors.txt: what Python's protobuf package makes of bodies, good and bad.

    python3 make.py          writes it
    python3 make.py --check  writes nothing; fails where it is not current

A line has a message, an outcome, and the body in hexadecimal digits:

    MESSAGE same BODY               read, and written as the same bytes
    MESSAGE becomes BODY OTHER      read, and written as other bytes
    MESSAGE unknown BODY KEPT LEFT  the same, with unknown fields kept, and with them left out
    MESSAGE refused BODY            not read
    MESSAGE prefixes BODY MAP       which prefixes are read: a digit each, from no byte on, 1 for yes
"""

import contextlib
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import warnings

try:
    from google.protobuf import descriptor_pb2, message, message_factory
except ImportError:
    sys.exit("Python's package protobuf is missing (Debian: apt-get install python3-protobuf)")

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parents[2] / "Protos"
warnings.simplefilter("always", RuntimeWarning)


def classes():
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(
            ["protoc", f"--proto_path={PROTOS}", "--include_imports",
             f"--descriptor_set_out={file.name}", "corpus.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(file.name).read_bytes())
    # The one way that every version of the package has, Debian 12's too.
    made = message_factory.GetMessages(files.file)
    names = [m.name for f in files.file if f.name == "corpus.proto" for m in f.message_type]
    return {n: made[f"corpus.{n}"] for n in names}


CLASSES = classes()
LINES = []


def line(*words):
    text = " ".join(word if word else "-" for word in words)
    if text not in LINES:
        LINES.append(text)


def written(value):
    if value.DESCRIPTOR.name != "Maps":
        return value.SerializeToString(deterministic=True).hex()
    # No order of a map's entries is laid down; here it is that of the keys.
    rest = CLASSES["Maps"]()
    rest.CopyFrom(value)
    body = b""
    for f in value.DESCRIPTOR.fields:
        entries = getattr(value, f.name)
        for key in sorted(entries):
            one = CLASSES["Maps"]()
            one.CopyFrom(value)
            one.DiscardUnknownFields()
            for other in getattr(value, f.name):
                if other != key:
                    del getattr(one, f.name)[other]
            for g in value.DESCRIPTOR.fields:
                if g.name != f.name:
                    one.ClearField(g.name)
            body += one.SerializeToString(deterministic=True)
        rest.ClearField(f.name)
    return (body + rest.SerializeToString()).hex()


def read(name, body):
    """The message; None where it is refused."""
    # Version 21, Debian 12's, ends at a tag of 0 or at the end of a group that never began. It
    # returns how far it came, or warns.
    value = CLASSES[name]()
    with warnings.catch_warnings(record=True) as warned:
        try:
            return value if value.MergeFromString(body) == len(body) and not warned else None
        except message.DecodeError:
            return None


def judge(name, body, prefixes=False):
    value = read(name, body)
    if value is None:
        line(name, "refused", body.hex())
        return
    kept = written(value)
    value.DiscardUnknownFields()
    left = written(value)
    if kept != left:
        line(name, "unknown", body.hex(), kept, left)
    elif kept == body.hex():
        line(name, "same", kept)
    else:
        line(name, "becomes", body.hex(), kept)
    if prefixes and len(body) <= 400:
        digits = "".join(
            "0" if read(name, body[:n]) is None else "1" for n in range(len(body)))
        line(name, "prefixes", body.hex(), digits)


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, body, kind=2):
    head = varint(number << 3 | kind)
    return head + varint(len(body)) + body if kind == 2 else head + body


# -- Values --------------------------------------------------------------------------------------

NUMBERS = {
    "d": [0.0, -0.0, 1.5, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")],
    "f": [0.0, -0.0, 1.5, -1e30, 1e-45, float("inf"), float("-inf"), float("nan")],
}
for _bits, _names in ((32, ("i32", "s32", "y32")), (64, ("i64", "s64", "y64"))):
    for _name in _names:
        NUMBERS[_name] = [0, 1, -1, 127, 128, -128, 2 ** (_bits - 1) - 1, -2 ** (_bits - 1)]
for _bits, _names in ((32, ("u32", "x32")), (64, ("u64", "x64"))):
    for _name in _names:
        NUMBERS[_name] = [0, 1, 127, 128, 16383, 16384, 2 ** _bits - 1]
VALUES = dict(
    NUMBERS, b=[False, True], z=[b"", b"\0", bytes(range(256)), b"x" * 300],
    s=["", "a", "grüße", "無", "👩‍🚀", "\ufeff", "\u202e", "\U0010ffff", "x" * 300],
    e=[0, 1, 70000, -1, 5, 2 ** 31 - 1, -2 ** 31])


def edges():
    for name in ("Scalars", "Optionals"):
        for key, values in VALUES.items():
            for value in values:
                judge(name, CLASSES[name](**{key: value}).SerializeToString(deterministic=True))
    for key, values in VALUES.items():
        judge("Lists", CLASSES["Lists"](**{key: values}).SerializeToString(deterministic=True))
    full = CLASSES["Scalars"](**{key: values[-1] for key, values in VALUES.items()})
    body = full.SerializeToString()
    judge("Scalars", body)
    small = CLASSES["Scalars"](**{key: values[1] for key, values in VALUES.items() if key != "e"})
    judge("Scalars", small.SerializeToString(deterministic=True), prefixes=True)
    for number in (0, 5):
        judge("Optionals", CLASSES["Optionals"](
            m=CLASSES["Scalars"](i32=number)).SerializeToString(deterministic=True))


def maps():
    make, scalars = CLASSES["Maps"], CLASSES["Scalars"]
    for arguments in (
            {"texts": {"": ""}}, {"texts": {"b": "2", "a": "1", "": "0", "ab": "3"}},
            {"levels": {-1: 0, 0: 5, 2 ** 31 - 1: -1, -2 ** 31: 1}},
            {"ratios": {True: -0.0, False: 0.0}}, {"blobs": {-5: b"", 5: b"\0", 0: b"x"}},
            {"messages": {0: scalars(), 1: scalars(s="x"), 2 ** 64 - 1: scalars(i32=-1)}},
            {"flags": {0: False, 9: True, 2 ** 32 - 1: False}}):
        judge("Maps", bytes.fromhex(written(make(**arguments))), prefixes=True)
    # Entries without key or value, in another order, twice, and with fields that nobody knows.
    judge("Maps", field(1, b""))
    judge("Maps", field(1, field(1, b"k")))
    judge("Maps", field(1, field(2, b"v")))
    judge("Maps", field(1, field(2, b"v") + field(1, b"k")))
    judge("Maps", field(1, field(1, b"k") + field(2, b"1")) + field(
        1, field(1, b"k") + field(2, b"2")))
    judge("Maps", field(4, field(1, varint(3), 0)))
    # Not here: an entry with a field that nobody knows. Python counts all of the entry as unknown,
    # the others leave out that field.
    judge("Maps", field(1, field(1, b"\xff") + field(2, b"v")))


def choices():
    make, scalars = CLASSES["Choices"], CLASSES["Scalars"]
    for arguments in (
            {}, {"number": 0}, {"number": -1}, {"text": ""}, {"text": "a"}, {"blob": b""},
            {"blob": b"\0"}, {"flag": False}, {"ratio": -0.0}, {"ratio": 0.0}, {"level": 0},
            {"level": 12345}, {"message": scalars()}, {"message": scalars(u64=2 ** 64 - 1)},
            {"again": make(again=make(text="deep"))}, {"number": 7, "after": 9}):
        judge("Choices", make(**arguments).SerializeToString(deterministic=True), prefixes=True)
    # Of several, the last counts.
    judge("Choices", field(1, varint(5), 0) + field(2, b"text"))
    judge("Choices", field(2, b"text") + field(1, varint(5), 0))
    judge("Choices", field(7, field(3, varint(1), 0)) + field(3, b"blob") + field(9, b"\1", 0))
    judge("Choices", field(2, b"one") + field(2, b"two"))


def depth():
    for count in (1, 50, 98, 99, 100, 101, 102, 150, 1000):
        for number in (2, 3):
            body = field(1, b"\7", 0)
            for _ in range(count):
                body = field(number, body)
            judge("Tree", body)
    judge("Tree", field(1, b"\1", 0) + field(2, field(1, b"\2", 0) + field(3, b"")), prefixes=True)


def known():
    make = CLASSES["Known"]
    value = make()
    value.at.seconds, value.at.nanos = -62135596800, 999999999
    value.time.seconds, value.time.nanos = -315576000000, -999999999
    value.anything.type_url, value.anything.value = "type.example.com/corpus.Five", b"\x08\x01"
    judge("Known", value.SerializeToString(deterministic=True), prefixes=True)


def damaged():
    judge("Scalars", b"")
    for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\x80", b"\xe2\x82",
                 b"\xfe\xfe", b"\xc3\x28"):
        judge("Scalars", field(14, text))
        judge("Lists", field(14, b"fine") + field(14, text))
        judge("Choices", field(2, text))
        judge("Optionals", field(17, field(14, text)))
    # Varints that are long, longer than a number, and too long.
    judge("Scalars", b"\x18" + b"\x80" * 9 + b"\x01")
    judge("Scalars", b"\x18" + b"\xff" * 9 + b"\x7f")
    judge("Scalars", b"\x18" + b"\x80" * 10 + b"\x01")
    judge("Scalars", b"\x18" + b"\x81" + b"\x80" * 3 + b"\x00")
    judge("Scalars", field(5, varint(2 ** 40 + 7), 0))
    judge("Scalars", field(13, varint(2), 0))
    judge("Scalars", field(13, varint(2 ** 63), 0))
    judge("Scalars", field(16, varint(2 ** 32 + 1), 0))
    # Fields that nobody knows, of each wire type; the number 0; the types that do not exist.
    for number in (99, 2 ** 29 - 1):
        for kind, body in ((0, varint(2 ** 64 - 1)), (1, b"12345678"), (2, b"text"), (5, b"1234")):
            judge("Scalars", field(3, varint(1), 0) + field(number, body, kind))
    judge("Scalars", b"\x00\x01")
    judge("Scalars", b"\x02\x00")
    judge("Scalars", b"\x1e")
    judge("Scalars", b"\x1f")
    judge("Scalars", b"\x72\xff\xff\xff\xff\x0f")
    judge("Scalars", b"\x72\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
    # Numbers several times, packed and not; packed numbers that are cut off.
    judge("Scalars", field(3, b"\1", 0) + field(3, b"\2", 0) + field(3, b"\0", 0))
    judge("Lists", field(3, b"\1", 0) + field(3, b"\2\3") + field(3, b"\4", 0))
    judge("Lists", field(18, b"\1\2\3"))
    judge("Lists", field(19, varint(-1) + varint(70000)) + field(19, varint(9), 0))
    judge("Lists", field(3, b"\1\x80"))
    judge("Lists", field(9, b"12345"))
    judge("Lists", field(1, b""))


def chance():
    dice = random.Random(5)

    def fill(value, level):
        for f in value.DESCRIPTOR.fields:
            repeated = f.is_repeated if hasattr(f, "is_repeated") else f.label == 3
            if f.message_type is not None and f.message_type.GetOptions().map_entry:
                continue
            if dice.random() < (0.6 if level == 0 else 0.8):
                continue
            times = dice.randrange(4) if repeated else 1
            for _ in range(times):
                if f.message_type is not None:
                    if level < 3:
                        fill(getattr(value, f.name).add() if repeated
                             else getattr(value, f.name), level + 1)
                    continue
                one = chosen(f)
                if repeated:
                    getattr(value, f.name).append(one)
                else:
                    setattr(value, f.name, one)

    def chosen(f):
        kind = f.type
        if kind == 1:
            return struct.unpack("<d", dice.randbytes(8))[0]
        if kind == 2:
            return dice.choice(NUMBERS["f"])
        if kind == 8:
            return dice.random() < 0.5
        if kind == 9:
            return "".join(dice.choice("aé無👍 ") for _ in range(dice.randrange(9)))
        if kind == 12:
            return dice.randbytes(dice.randrange(9))
        if kind == 14:
            return dice.choice(VALUES["e"])
        bits = dice.choice((1, 7, 14, 31 if kind in (5, 13, 7, 15, 17) else 63))
        number = dice.getrandbits(bits)
        return -number if kind in (3, 5, 15, 16, 17, 18) and dice.random() < 0.5 else number

    for name in ("Scalars", "Optionals", "Lists", "Choices", "Tree", "Names", "Five", "Result"):
        for _ in range(12):
            value = CLASSES[name]()
            fill(value, 0)
            body = value.SerializeToString(deterministic=True)
            judge(name, body, prefixes=len(body) < 60)
            # A byte changed may mean anything, but the same to all.
            if body:
                harmed = bytearray(body)
                harmed[dice.randrange(len(harmed))] = dice.randrange(256)
                judge(name, bytes(harmed))


@contextlib.contextmanager
def silence():
    """Drops what C++ prints: a line for each string that is not UTF-8."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


with silence():
    for part in (edges, maps, choices, depth, known, damaged, chance):
        part()
TEXT = "# Made by make.py.\n" + "\n".join(LINES) + "\n"
TARGET = HERE / "vectors.txt"
if sys.argv[1:] == ["--check"]:
    if TARGET.read_text() != TEXT:
        sys.exit(f"{TARGET} is not what make.py makes now")
elif sys.argv[1:]:
    sys.exit(__doc__)
else:
    TARGET.write_text(TEXT)
