#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes messages.txt: what Python's protobuf package makes of the messages of ../../uploads.proto
and ../../upload_store.proto. With --check it writes nothing, and fails if the file is not current.

A line has a message, an outcome, and the body in hexadecimal digits:

    MESSAGE writes BODY VALUE  this value is written as this body, and read from it
    MESSAGE reads BODY VALUE   it is read from this body, but written otherwise
    MESSAGE refuses BODY       it cannot be read
    MESSAGE prefixes BODY MAP  which prefixes can be read: a digit each, from no byte on, 1 for yes

A value is `{NAME=VALUE;...}` with all fields in their order, by their names in JSON; `[VALUE,...]`
for a repeated field, `-` for one that is absent, a number for a number, an enumeration or a bool,
and hexadecimal digits for a string or bytes.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

try:
    from google.protobuf import descriptor_pb2, message, message_factory
except ImportError:
    sys.exit("Python's package protobuf is missing (Debian: apt-get install python3-protobuf)")

HERE = pathlib.Path(__file__).resolve().parent
PROTOCOLS = HERE.parents[1]
PROTOS = ["uploads.proto", "upload_store.proto"]
DICE = random.Random(1)
LETTERS = "aB0 \n/ß無🚲"
UNKNOWN = bytes.fromhex("f801ac02" "fa0103010203" "fd0101020304" "f90101020304" "05060708")


def classes():
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(
            ["protoc", f"--proto_path={PROTOCOLS}", f"--descriptor_set_out={file.name}", *PROTOS],
            check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(file.name).read_bytes())
    # The one way that every version of the package has, Debian 12's too.
    made = message_factory.GetMessages(files.file)
    return [made[f"{f.package}.{m.name}"] for f in files.file for m in f.message_type]


def is_repeated(field):
    return field.label == field.LABEL_REPEATED


# ---- Values -------------------------------------------------------------------------------------


def text(value, field=None):
    """The value of a message; with a field, one value of it."""
    if field is None or field.type == field.TYPE_MESSAGE:
        fields = value.DESCRIPTOR.fields
        return "{" + ";".join(f"{f.json_name}={field_text(value, f)}" for f in fields) + "}"
    if field.type == field.TYPE_STRING:
        return value.encode().hex()
    return value.hex() if field.type == field.TYPE_BYTES else str(int(value))


def field_text(value, field):
    if is_repeated(field):
        return "[" + ",".join(text(one, field) for one in getattr(value, field.name)) + "]"
    can_lack = field.message_type or field.containing_oneof
    if can_lack and not value.HasField(field.name):
        return "-"
    return text(getattr(value, field.name), field)


def edges(field):
    """Values of a field, of which the first is the default."""
    if field.type == field.TYPE_STRING:
        return ["", "a", "無🚲" * 20]
    if field.type == field.TYPE_BYTES:
        return [b"", b"\0", bytes(range(100, 228))]
    if field.type == field.TYPE_BOOL:
        return [False, True]
    if field.type == field.TYPE_ENUM:
        return [0, 1, 7, 2**31 - 1, -(2**31)]
    return [0, 1, 127, 128, 2**64 - 1]


def put(value, field, content):
    """Sets a field, or adds to a repeated one."""
    if is_repeated(field):
        getattr(value, field.name).append(content)
    else:
        setattr(value, field.name, content)


def singles(kind):
    """Messages with one field."""
    for field in kind.DESCRIPTOR.fields:
        for content in edges(field) if field.type != field.TYPE_MESSAGE else []:
            value = kind()
            put(value, field, content)
            yield value


def fill(value):
    """Sets fields at random."""
    for field in value.DESCRIPTOR.fields:
        for _ in range(DICE.choice([0, 1, 3] if is_repeated(field) else [0, 1])):
            if field.type != field.TYPE_MESSAGE:
                put(value, field, one(field))
            elif is_repeated(field):
                fill(getattr(value, field.name).add())
            else:
                fill(getattr(value, field.name)).SetInParent()
    return value


def one(field):
    """A value of a field at random."""
    count = DICE.choice([0, 1, 15, 16])
    if field.type == field.TYPE_STRING:
        return "".join(DICE.choice(LETTERS) for _ in range(count))
    if field.type == field.TYPE_BYTES:
        return DICE.randbytes(count)
    if field.type in (field.TYPE_BOOL, field.TYPE_ENUM):
        return DICE.choice(edges(field))
    return DICE.getrandbits(64) >> DICE.choice([1, 20, 40, 57])


# ---- Bodies -------------------------------------------------------------------------------------


def varint(number, least=1):
    """A number in at least so many bytes."""
    digits = []
    while number >= 0x80 or len(digits) + 1 < least:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(digits + [number])


def tag(field, kind):
    return varint(field.number << 3 | kind)


def content(body):
    return varint(len(body), least=3) + body


def element(value, field):
    """One value of a field, in a longer form than needed, and with unknown fields in messages."""
    if field.type == field.TYPE_MESSAGE:
        return tag(field, 2) + content(loose(value))
    if field.type == field.TYPE_STRING:
        return tag(field, 2) + content(value.encode())
    if field.type == field.TYPE_BYTES:
        return tag(field, 2) + content(value)
    number = int(value) % 2**64
    return tag(field, 0) + varint(number, least=10)


def loose(value):
    """The message with its fields in reverse order, each singular one twice, and unknown ones."""
    body = UNKNOWN
    for field in reversed(value.DESCRIPTOR.fields):
        if is_repeated(field):
            for inner in getattr(value, field.name):
                body += element(inner, field) + UNKNOWN
        elif field.type != field.TYPE_MESSAGE:
            body += element(one(field), field) + element(getattr(value, field.name), field)
        elif value.HasField(field.name):
            body += element(getattr(value, field.name), field)
    return body + UNKNOWN


def can_read(kind, body):
    # Version 21, Debian 12's, ends at a tag of 0 or at the end of a group that never began. It
    # returns how far it came, or warns.
    with warnings.catch_warnings(record=True) as warned:
        try:
            return kind().MergeFromString(body) == len(body) and not warned
        except message.DecodeError:
            return False


# ---- Lines --------------------------------------------------------------------------------------


def lines(kind):
    name = kind.DESCRIPTOR.name
    filled = [fill(kind()) for _ in range(3)]
    for value in [*singles(kind), *filled]:
        body = value.SerializeToString(deterministic=True)
        yield f"{name} writes {body.hex() or '-'} {text(value)}"
    for value in filled[:2]:
        body = loose(value)
        yield f"{name} reads {body.hex()} {text(kind.FromString(body))}"
    for body in [max(map(kind.SerializeToString, filled), key=len), loose(filled[0])]:
        body = body[:250]
        reads = "".join(str(int(can_read(kind, body[:count]))) for count in range(len(body) + 1))
        yield f"{name} prefixes {body.hex() or '-'} {reads}"
    # Field 0, a group that is not ended, a wire type that does not exist, and a varint of 11 bytes.
    broken = [bytes.fromhex(body) for body in ["0001", "7b", "7e01", "78" + "80" * 10 + "01"]]
    for field in kind.DESCRIPTOR.fields:
        if field.type == field.TYPE_STRING:
            # An overlong form, a surrogate, and a character that is cut off.
            for bad in [b"a\xc0\x80", b"\xed\xa0\x80", b"ab\xe7\x84"]:
                broken.append(tag(field, 2) + varint(len(bad)) + bad)
        if field.type == field.TYPE_MESSAGE:
            # A field of the inner message that goes past its end.
            broken.append(tag(field, 2) + bytes([2, 0x12, 5]) + b"abcde")
    for body in broken:
        if can_read(kind, body):
            raise ValueError(f"{name} can be read from {body.hex()}")
        yield f"{name} refuses {body.hex()}"


def main():
    # Some versions report what they refuse.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    made = dict.fromkeys(line for kind in classes() for line in lines(kind))
    current = "\n".join(["# Made by generate.py, which describes the lines.", *made, ""])
    path = HERE / "messages.txt"
    if sys.argv[1:] != ["--check"]:
        path.write_text(current)
    elif not path.exists() or path.read_text() != current:
        print(f"{path} is not current: run {__file__}")
        sys.exit(1)


main()
