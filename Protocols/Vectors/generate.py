#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the vectors beside this file, and the examples of ../wire.md, from wire.md's rules.

It shares no code with the library. `generate.py` writes the files; `generate.py --check` fails
when one of them is not current, or when wire.md and the vectors do not cite each other.
"""

import pathlib
import re
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
TEXT = HERE.parent / "wire.md"

# ---- Frames -------------------------------------------------------------------------------------

METADATA, MORE = 0x8000_0000, 0x4000_0000
REQUEST, RESPONSE, ITEM, END, CANCEL, CREDIT, PUSH, RENEWAL = range(8)
PING, PONG, HELLO, WELCOME, GOAWAY = range(8, 13)
REFUSED = 0x80_0000
SERVER = 0x8000_0000


def frame(kind, serial, body=b"", tag=0, flags=0, length=None, flip=0):
    """One frame. `length` states another length than the body's; `flip` damages the checksum."""
    stated = len(body) if length is None else length
    head = struct.pack(">III", flags | kind << 24 | tag, serial, stated)
    return head + struct.pack(">I", zlib.adler32(head + body) ^ flip) + body


def request(serial=50, body=b"", tag=1, **more):
    return frame(REQUEST, serial, body, tag, **more)


def response(serial=50, body=b"", tag=200, **more):
    return frame(RESPONSE, serial, body, tag, **more)


def push(body=b"", tag=7, serial=1, **more):
    return frame(PUSH, serial, body, tag, **more)


def hello(body=b""):
    return frame(HELLO, 3, body)


def welcome(body=b""):
    return frame(WELCOME, 3, body)


def goaway(body=b""):
    return frame(GOAWAY, 4, body)


def cancel(serial=50):
    return frame(CANCEL, serial)


def item(body=b"", serial=50, **more):
    return frame(ITEM, serial, body, **more)


def finish(serial=50):
    return frame(END, serial)


def credit(count, serial=50):
    return frame(CREDIT, serial, struct.pack(">I", count))


def renewal(body=b"", tag=0, **more):
    """A client's with its credential, or a server's with a code and `Renewed`."""
    return frame(RENEWAL, 0, body, tag, **more)


# ---- Protocol Buffers ---------------------------------------------------------------------------


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def block(metadata):
    return struct.pack(">H", len(metadata)) + metadata


def terms(credit=None, items=False):
    """The metadata that open a stream."""
    return (b"" if credit is None else number(6, credit)) + (number(7, 1) if items else b"")


DEADLINE = number(1, 1500)
FULL = (
    DEADLINE
    + number(2, 3)
    + data(3, b"\x01\x02")
    + data(4, data(1, "a") + data(2, "b"))
)

# ---- The files ----------------------------------------------------------------------------------

files = {}
names = set()


def short(raw):
    """Hexadecimal; a long run of one byte is written as that byte, `*` and how often it stands."""
    tokens, plain, at = [], "", 0
    while at < len(raw):
        run = 1
        while at + run < len(raw) and raw[at + run] == raw[at]:
            run += 1
        if run >= 40:
            if plain:
                tokens.append(plain)
            tokens.append(f"{raw[at]:02x}*{run}")
            plain = ""
        else:
            plain += raw[at : at + run].hex()
        at += run
    if plain:
        tokens.append(plain)
    return "+".join(tokens)


def spaced(raw):
    """A frame with its header's four numbers apart, as a `hex:` line has it."""
    parts = [raw[i : i + 4].hex() for i in range(0, min(16, len(raw)), 4)]
    if len(raw) > 16:
        parts.append(short(raw[16:]).replace("+", " "))
    return " ".join(parts)


def vector(file, name, sender, about, *steps, state="welcomed", features="metadata fragments", **setup):
    """Steps are bytes (a frame), ("times", n, frame), ("write", serial, item), text (an
    expectation), and otherwise the words of a line, such as ("at", ms) or ("answer", serial)."""
    assert name not in names, name
    names.add(name)
    lines = [f"name: {name}", f"about: {about}", f"from: {sender}", f"state: {state}"]
    if state == "welcomed":
        lines.append(f"features: {features or 'none'}")
    for key, value in setup.items():
        lines.append(f"{key}: {value}")
    expected = False
    for step in steps:
        if isinstance(step, bytes):
            lines.append(f"hex: {spaced(step)}")
        elif isinstance(step, str):
            expected = True
            lines.append(f"expect: {step}")
        elif step[0] == "times":
            lines.append(f"hex: {step[2].hex()}*{step[1]}")
        elif step[0] == "renew":
            lines.append(f"renew: {short(step[1]).replace('+', ' ')}")
        elif step[0] == "write":
            lines.append(f"write: {step[1]} {short(step[2]).replace('+', ' ')}".rstrip())
        else:
            lines.append(" ".join([f"{step[0]}:", *map(str, step[1:])]))
    if not expected:
        lines.append("expect: nothing")
    files.setdefault(file, []).append("\n".join(lines))


def got(kind, serial=None, body=b"", **fields):
    parts = [kind]
    if serial is not None:
        parts.append(f"serial={serial}")
    for key, value in fields.items():
        parts.append(f"{key}={short(value) if isinstance(value, bytes) else value}")
    return " ".join(parts + [f"body={short(body)}"])


def got_request(serial=50, body=b"", type=1, **more):
    return got("request", serial, body, type=type, **more)


def got_response(serial=50, body=b"", code=200, refused="no", **more):
    return got("response", serial, body, code=code, refused=refused, **more)


def got_push(body=b"", type=7, **more):
    return got("push", None, body, type=type, **more)


def pong(body=b""):
    return got("reply pong", None, body)


def got_item(body=b"", serial=50):
    return got("item", serial, body)


def sent_item(body=b"", serial=50):
    return got("reply item", serial, body)


def refuse(serial, code):
    return f"reply response serial={serial} code={code} refused=yes"


def violation(name, at=None):
    codes = {
        "lengthOverLimit": 413,
        "frameTimeout": 408,
        "firstFrameTimeout": 408,
        "tooManyPings": 429,
        "truncatedFrame": None,
    }
    code = codes.get(name, 400)
    text = f"violation {name}"
    if code:
        text += f" code={code}"
    return text if at is None else f"{text} at={at}"


def frames():
    add = lambda *a, **k: vector("frames", *a, **k)
    add("request", "client", "A request, whole.", request(body=b"hello"), got_request(body=b"hello"))
    add("request-empty", "client", "A body may be empty.", request(), got_request())
    add("request-from-server", "server", "Either side may ask.",
        request(SERVER | 50, b"hi", 9), got_request(SERVER | 50, b"hi", 9))
    add("request-largest-type", "client", "A message type has 24 bits, and 0 is one.",
        request(50, b"", 0xFFFFFF), got_request(50, b"", 0xFFFFFF),
        request(51, b"", 0), got_request(51, b"", 0))
    add("request-without-hello", "client", "Hello may be left out.",
        request(body=b"x"), got_request(body=b"x"), state="fresh")
    add("requests-out-of-order", "client", "The receiver assumes no order of serials.",
        request(52), got_request(52), request(50), got_request(50), request(51), got_request(51))
    add("response", "server", "A reply.", response(body=b"hello"), got_response(body=b"hello"),
        waiting="50")
    add("response-to-server", "client", "A reply to a request of the server.",
        response(SERVER | 50, b"ok"), got_response(SERVER | 50, b"ok"), waiting=str(SERVER | 50))
    add("response-refused", "server", "The request did not run, and may be made again.",
        response(50, b"no such type", REFUSED | 404),
        got_response(50, b"no such type", 404, "yes"), waiting="50")
    add("response-rejected", "server", "Without the refused mark, 404 proves nothing.",
        response(50, b"no such user", 404), got_response(50, b"no such user", 404), waiting="50")
    add("response-application-code", "server", "From 1000 on, code and body are the application's.",
        response(50, b"\x00\x01", 1000), got_response(50, b"\x00\x01", 1000),
        response(51, b"", 0x7FFFFF), got_response(51, b"", 0x7FFFFF), waiting="50 51")
    add("response-unlisted-code", "server", "A code below 1000 that no table has is a rejection.",
        response(50, b"", 418), got_response(50, b"", 418),
        response(51, b"", 0), got_response(51, b"", 0), waiting="50 51")
    add("responses-out-of-order", "server", "Responses come in any order.",
        response(51), got_response(51), response(50), got_response(50), waiting="50 51")
    add("cancel", "client", "The responder stops the work and owes nothing more.",
        request(), got_request(), cancel(), "cancel serial=50")
    add("cancel-late", "client", "A cancel that crosses the response is dropped.",
        request(), got_request(), ("answer", 50), cancel(), "drop unknownSerial serial=50")
    add("cancel-unknown", "client", "A cancel for nothing is dropped.",
        cancel(77), "drop unknownSerial serial=77", request(), got_request())
    add("cancel-twice", "client", "The second cancel finds nothing.",
        request(), got_request(), cancel(), "cancel serial=50", cancel(), "drop unknownSerial serial=50")
    add("response-late", "server", "Nobody waits for it: dropped, and the connection goes on.",
        response(), "drop lateReply serial=50", frame(PING, 0), pong())
    add("response-twice", "server", "The second one answers nothing.",
        response(body=b"1"), got_response(body=b"1"), response(body=b"2"), "drop lateReply serial=50",
        waiting="50")
    add("push", "server", "A one-way message.", push(b"news"), got_push(b"news"))
    add("push-from-client", "client", "Either side may push.", push(b"", 0xFFFFFF), got_push(b"", 0xFFFFFF))
    add("push-without-hello", "client", "Pushes need no hello.", push(b"x"), got_push(b"x"), state="fresh")
    add("ignored-kinds", "client", "0x30 to 0x3F are read and ignored, whatever they carry.",
        frame(0x30, 0, b"abc"), "drop ignoredKind",
        frame(0x3F, 0xFFFFFFFF, b"", 0xFFFFFF, METADATA | MORE), "drop ignoredKind",
        request(), got_request())
    add("unknown-kind", "client", "A kind that version 1 does not know.",
        frame(0x0D, 50), violation("unknownKind"))
    add("unknown-kind-last", "server", "The last one below those that are ignored.",
        frame(0x2F, 0), violation("unknownKind"))
    add("item-not-agreed", "client", "The welcome did not name streams.",
        request(), got_request(), item(), violation("kindNotAgreed"))
    add("item-not-agreed-from-server", "server", "The same in a response's place.",
        item(), violation("kindNotAgreed"), waiting="50")
    add("item-before-hello", "client", "Nothing is agreed without a hello.",
        item(), violation("kindNotAgreed"), state="fresh")
    add("item-before-welcome", "server", "Nothing is agreed before the welcome.",
        item(), violation("kindNotAgreed"), state="fresh")
    add("end-not-agreed", "client", "The welcome did not name streams.",
        finish(), violation("kindNotAgreed"))
    add("credit-not-agreed", "client", "The welcome did not name streams.",
        credit(65_536), violation("kindNotAgreed"))
    add("renewal-not-agreed", "client", "The welcome did not name renewal.",
        renewal(b"x"), violation("kindNotAgreed"))
    add("renewal-not-agreed-from-server", "server", "The same for an answer.",
        renewal(tag=200), violation("kindNotAgreed"))
    add("renewal-before-hello", "client", "Nothing is agreed without a hello.",
        renewal(b"x"), violation("kindNotAgreed"), state="fresh", identifies="yes")
    add("renewal-before-welcome", "server", "Nothing is agreed before the welcome.",
        renewal(tag=200), violation("kindNotAgreed"), state="fresh")
    add("stops-at-violation", "client", "Nothing behind a violation is acted on.",
        request(50), got_request(50), frame(0x20, 0), violation("unknownKind"), request(51))


def headers():
    add = lambda *a, **k: vector("headers", *a, **k)
    add("checksum-header", "client", "A damaged serial is found.",
        request(50, b"hello").replace(b"\0\0\0\x32", b"\0\0\0\x33"), violation("checksumMismatch"))
    add("checksum-body", "client", "A damaged body is found.",
        request(50, b"hello")[:-1] + b"0", violation("checksumMismatch"))
    add("checksum-itself", "server", "A damaged checksum is found.",
        frame(PING, 0, b"x", flip=0x100), violation("checksumMismatch"))
    add("checksum-ignored-kind", "client", "Frames that are ignored have to be whole as well.",
        frame(0x30, 0, b"x", flip=1), violation("checksumMismatch"))
    add("checksum-awaits-body", "client", "It is verified when the body is complete.",
        request(50, b"hello", flip=1)[:-1])
    add("checksum-largest-sums", "client", "Both sums wrap many times.",
        request(50, b"\xff" * 20_000), got_request(50, b"\xff" * 20_000))
    add("checked-on-header", "client", "A bad header is a violation before any byte of the body.",
        frame(0x0D, 50, b"", length=5)[:16], violation("unknownKind"))
    add("checked-before-checksum", "client", "What the header forbids is named, not the checksum.",
        frame(PING, 50, flip=1), violation("serialOutOfRange"))
    add("body-at-limit", "client", "The limit itself is allowed.",
        request(50, b"x" * 100), got_request(50, b"x" * 100), limits="max_body=100")
    add("body-over-limit", "client", "The header alone is the violation.",
        request(50, b"", length=101)[:16], violation("lengthOverLimit"), limits="max_body=100")
    add("body-over-default", "server", "Without a word about it the limit is 16 MiB.",
        push(b"", length=16_777_217)[:16], violation("lengthOverLimit"))
    add("body-huge", "server", "The largest length that can be stated.",
        response(50, b"", length=0xFFFFFFFF)[:16], violation("lengthOverLimit"), waiting="50")
    add("body-over-limit-ignored-kind", "client", "The limit holds for what is ignored.",
        frame(0x31, 0, b"", length=101)[:16], violation("lengthOverLimit"), limits="max_body=100")
    add("body-limit-with-metadata", "client", "The limit counts the metadata block.",
        request(50, block(DEADLINE) + b"x" * 95, flags=METADATA),
        got_request(50, b"x" * 95, metadata=DEADLINE),
        request(51, b"", flags=METADATA, length=101)[:16], violation("lengthOverLimit"),
        limits="max_body=100")
    for name, raw in {
        "ping": frame(PING, 0, flags=MORE), "pong": frame(PONG, 0, flags=METADATA),
        "cancel": frame(CANCEL, 50, flags=MORE), "goaway": frame(GOAWAY, 4, flags=METADATA),
    }.items():
        add(f"flag-on-{name}", "client", "The kind has no flags.", raw, violation("flagNotAllowed"))
    renewable = {"features": "metadata fragments renewal"}
    add("flag-on-renewal", "client", "The kind has no flags.",
        renewal(b"xy", flags=METADATA), violation("flagNotAllowed"), identifies="yes", **renewable)
    add("tag-on-renewal", "client", "A client's tag has to be 0.",
        renewal(b"x", 200), violation("tagNotAllowed"), identifies="yes", **renewable)
    add("tag-of-renewed", "server", "A code has 23 bits.",
        renewal(tag=0x80_00C8), violation("tagNotAllowed"), **renewable)
    add("size-of-renewal", "client", "A credential has at least one byte.",
        renewal(), violation("sizeNotAllowed"), identifies="yes", **renewable)
    add("size-of-renewal-too-large", "client", "A credential has at most 65,536 bytes.",
        renewal(length=65_537)[:16], violation("sizeNotAllowed"), identifies="yes", **renewable)
    add("size-of-renewed", "server", "Nor has an answer more.",
        renewal(tag=200, length=65_537)[:16], violation("sizeNotAllowed"), **renewable)
    add("flag-on-hello", "client", "Hello has no flags.",
        frame(HELLO, 3, flags=MORE), violation("flagNotAllowed"), state="fresh")
    add("flag-on-welcome", "server", "Welcome has no flags.",
        frame(WELCOME, 3, b"\0\0", flags=METADATA), violation("flagNotAllowed"), state="fresh")
    for name, raw, state in [
        ("ping", frame(PING, 0, tag=1), "welcomed"), ("pong", frame(PONG, 0, tag=1), "welcomed"),
        ("cancel", frame(CANCEL, 50, tag=1), "welcomed"), ("goaway", frame(GOAWAY, 4, tag=503), "welcomed"),
        ("hello", frame(HELLO, 3, tag=1), "fresh"),
    ]:
        add(f"tag-on-{name}", "client", "The tag has to be 0.", raw, violation("tagNotAllowed"), state=state)
    add("tag-on-welcome", "server", "The tag has to be 0.",
        frame(WELCOME, 3, tag=1), violation("tagNotAllowed"), state="fresh")
    add("tag-ok-and-refused", "server", "200 cannot be refused.",
        response(50, b"", REFUSED | 200), violation("tagNotAllowed"), waiting="50")
    add("size-of-cancel", "client", "A cancel has no body.",
        frame(CANCEL, 50, b"x"), violation("sizeNotAllowed"))
    add("size-of-ping", "client", "A ping has at most 64 bytes.",
        frame(PING, 0, b"x" * 65), violation("sizeNotAllowed"))
    add("size-of-pong", "client", "A pong has at most 64 bytes.",
        frame(PONG, 0, b"x" * 65), violation("sizeNotAllowed"))
    add("size-of-hello", "client", "A hello has at most 65,536 bytes.",
        frame(HELLO, 3, b"", length=65_537)[:16], violation("lengthOverLimit"), state="fresh")
    add("size-of-welcome", "server", "A welcome has at most 65,536 bytes.",
        frame(WELCOME, 3, b"", length=65_537)[:16], violation("lengthOverLimit"), state="fresh")
    add("size-of-goaway", "server", "A goaway has at most 65,536 bytes.",
        frame(GOAWAY, 4, b"", length=65_537)[:16], violation("lengthOverLimit"))


def serials():
    add = lambda *a, **k: vector("serials", *a, **k)
    add("serial-ends", "client", "50 and 0x7FFFFFFF are the ends of the client's range.",
        request(50), got_request(50), request(0x7FFFFFFF), got_request(0x7FFFFFFF))
    add("serial-ends-server", "server", "The same with bit 31 set for the server.",
        request(0x80000032), got_request(0x80000032), request(0xFFFFFFFF), got_request(0xFFFFFFFF))
    bad = violation("serialOutOfRange")
    add("serial-reserved", "client", "0 to 49 are reserved.", request(49), bad)
    add("serial-zero", "client", "0 is for pings.", request(0), bad)
    add("serial-reserved-server", "server", "The low 31 bits begin at 50 too.", request(0x80000031), bad)
    add("serial-of-server-from-client", "client", "Bit 31 is the server's.", request(0x80000032), bad)
    add("serial-of-client-from-server", "server", "Without bit 31 it is the client's.", request(50), bad)
    add("serial-of-response", "server", "A response names a request of the receiver.",
        response(0x80000032), bad)
    add("serial-of-response-reserved", "server", "No request has a reserved serial.", response(3), bad)
    add("serial-of-cancel", "client", "Only the requester cancels.", cancel(0x80000032), bad)
    add("serial-of-cancel-from-responder", "server", "The responder has no cancel.", cancel(50), bad)
    add("serial-of-push", "server", "Pushes have serial 1.", push(serial=0), bad)
    add("serial-of-push-other", "server", "Pushes have no other serial.", push(serial=2), bad)
    add("serial-of-ping", "client", "Pings have serial 0.", frame(PING, 1), bad)
    add("serial-of-pong", "client", "Pongs have serial 0.", frame(PONG, 50), bad)
    add("serial-of-hello", "client", "Hello has serial 3.", frame(HELLO, 0), bad, state="fresh")
    add("serial-of-welcome", "server", "Welcome has serial 3.", frame(WELCOME, 4), bad, state="fresh")
    add("serial-of-goaway", "server", "Goaway has serial 4.", frame(GOAWAY, 3), bad)
    add("serial-of-renewal", "client", "Renewals have serial 0.", frame(RENEWAL, 1, b"x"), bad,
        features="metadata fragments renewal", identifies="yes")
    add("serial-in-use", "client", "The request before still runs.",
        request(50), got_request(50), request(50), violation("serialInUse"))
    add("serial-in-use-fragment", "client", "A first fragment takes a serial too.",
        request(50), got_request(50), request(50, b"x", flags=MORE), violation("serialInUse"))
    add("serial-again", "client", "A serial is free once its request has been answered.",
        request(50, b"1"), got_request(50, b"1"), ("answer", 50), request(50, b"2"), got_request(50, b"2"))


def metadata():
    add = lambda *a, **k: vector("metadata", *a, **k)
    add("metadata-request", "client", "A count, the metadata, the payload.",
        request(50, block(DEADLINE) + b"hello", flags=METADATA),
        got_request(50, b"hello", metadata=DEADLINE))
    add("metadata-all-fields", "client", "Every field of a request's metadata.",
        request(50, block(FULL), flags=METADATA), got_request(50, b"", metadata=FULL))
    add("metadata-empty", "client", "An empty block is metadata of which every field is absent.",
        request(50, b"\0\0x", flags=METADATA), got_request(50, b"x", metadata=b""))
    add("metadata-response", "server", "A response says when to ask again.",
        response(50, block(number(5, 250)) + b"busy", REFUSED | 429, flags=METADATA),
        got_response(50, b"busy", 429, "yes", metadata=number(5, 250)), waiting="50")
    add("metadata-interrupted", "server", "A response says that its handler did not make it.",
        response(50, block(number(8, 1)) + b"late", 408, flags=METADATA),
        got_response(50, b"late", 408, metadata=number(8, 1)), waiting="50")
    add("metadata-push", "server", "A push may have metadata.",
        push(block(data(4, data(1, "k") + data(2, "v"))) + b"p", flags=METADATA),
        got_push(b"p", metadata=data(4, data(1, "k") + data(2, "v"))))
    add("metadata-unknown-field", "client", "Fields that a receiver does not know are ignored.",
        request(50, block(number(99, 1) + DEADLINE), flags=METADATA),
        got_request(50, b"", metadata=number(99, 1) + DEADLINE))
    opening = terms(4_000, True)
    add("metadata-stream-not-agreed", "client", "Without streams the fields have no effect.",
        request(50, block(opening), flags=METADATA), got_request(50, metadata=opening), ("answer", 50),
        request(51, block(terms(2**31)), flags=METADATA), got_request(51, metadata=terms(2**31)))
    add("metadata-stream-in-response", "server", "Nor do they have any in a response.",
        response(50, block(terms(2**31, True)), flags=METADATA),
        got_response(50, metadata=terms(2**31, True)),
        waiting="50", features="metadata fragments streams")
    add("metadata-stream-in-push", "client", "Nor in a push.",
        push(block(terms(2**31, True)), flags=METADATA), got_push(metadata=terms(2**31, True)),
        features="metadata fragments streams")
    bad = violation("metadataTooLong")
    add("metadata-no-count", "client", "There is no room for the count.",
        request(50, b"\0", flags=METADATA), bad)
    add("metadata-over-body", "client", "The block would end behind the body.",
        request(50, b"\0\x04" + DEADLINE, flags=METADATA), bad)
    add("metadata-over-body-response", "server", "The same in a response.",
        response(50, b"\xff\xff", flags=METADATA), bad, waiting="50")
    add("metadata-over-body-refused", "client", "The block is checked before the refusal.",
        request(50), got_request(50), request(51, b"\0\x04" + DEADLINE, flags=METADATA), bad,
        limits="max_in_flight=1")
    add("metadata-over-body-late", "server", "No request waits for the response; it is checked all the same.",
        response(50, b"\0\x01", flags=METADATA), bad)
    add("metadata-malformed-late", "server", "Nobody waits for it, but the block cannot be decoded.",
        response(50, block(DEADLINE[:-1]), flags=METADATA), violation("malformedControl"))
    add("metadata-malformed", "client", "It ends in the middle of a field.",
        request(50, block(DEADLINE[:-1]), flags=METADATA), violation("malformedControl"))
    add("metadata-malformed-text", "client", "A key that is not UTF-8.",
        request(50, block(data(4, data(1, b"\xff") + data(2, b""))), flags=METADATA),
        violation("malformedControl"))
    add("metadata-not-agreed", "client", "The welcome did not name the feature.",
        request(50, b"\0\0", flags=METADATA), violation("flagNotAllowed"), features="fragments")
    add("metadata-before-hello", "client", "Nothing is agreed without a hello.",
        request(50, b"\0\0", flags=METADATA), violation("flagNotAllowed"), state="fresh")
    add("metadata-before-welcome", "server", "Nothing is agreed before the welcome.",
        push(b"\0\0", flags=METADATA), violation("flagNotAllowed"), state="fresh")


def fragments():
    add = lambda *a, **k: vector("fragments", *a, **k)
    part = lambda body, serial=50, flags=0, **k: request(serial, body, flags=MORE | flags, **k)
    add("fragments-two", "client", "Joined in order, up to the first frame without the flag.",
        part(b"hel"), request(50, b"lo"), got_request(50, b"hello"))
    add("fragments-three-interleaved", "client", "Frames of other exchanges may stand between them.",
        part(b"a"), request(51, b"whole"), got_request(51, b"whole"), part(b"b"),
        frame(PING, 0, b"p"), pong(b"p"), request(50, b"c"), got_request(50, b"abc"))
    add("fragments-of-two-requests", "client", "Two messages at once, fragment by fragment.",
        part(b"a"), part(b"1", 51), request(51, b"2"), got_request(51, b"12"),
        request(50, b"b"), got_request(50, b"ab"))
    add("fragments-last-empty", "client", "The last fragment may be empty.",
        part(b"a"), request(50, b""), got_request(50, b"a"))
    add("fragments-largest", "client", "65,536 bytes is the most that one has.",
        part(b"x" * 65_536), request(50, b"y" * 65_536),
        got_request(50, b"x" * 65_536 + b"y" * 65_536))
    add("fragments-response", "server", "A response in fragments.",
        response(50, b"a", flags=MORE), response(50, b"b"), got_response(50, b"ab"), waiting="50")
    add("fragments-response-and-push", "server", "Kinds are told apart.",
        response(50, b"a", flags=MORE), push(b"1", flags=MORE), response(50, b"b"),
        got_response(50, b"ab"), push(b"2"), got_push(b"12"), waiting="50")
    add("fragments-metadata", "client", "The first fragment may have metadata, and counts it once.",
        part(block(DEADLINE) + b"he", flags=METADATA), request(50, b"llo"),
        got_request(50, b"hello", metadata=DEADLINE))
    add("fragments-metadata-across", "client", "The block may go on in the next fragment.",
        part(block(DEADLINE)[:3], flags=METADATA), request(50, block(DEADLINE)[3:] + b"x"),
        got_request(50, b"x", metadata=DEADLINE))
    add("fragments-metadata-too-long", "client", "The block would end behind the last fragment.",
        part(b"\0\x09" + DEADLINE, flags=METADATA), request(50, b"x"), violation("metadataTooLong"))
    add("fragments-metadata-no-count", "client", "The first fragment has no room for the count.",
        part(b"\0", flags=METADATA), violation("metadataTooLong"))
    bad = violation("fragmentMismatch")
    add("fragments-other-tag", "client", "All have the same tag.", part(b"a"), request(50, b"b", 2), bad)
    add("fragments-later-metadata", "client", "Only the first may have metadata.",
        part(b"a"), request(50, b"\0\0", flags=METADATA), bad)
    add("fragments-empty", "client", "A fragment with the more flag carries something.",
        part(b""), violation("sizeNotAllowed"))
    add("fragments-too-large", "client", "65,537 bytes are no fragment.",
        part(b"", length=65_537)[:16], violation("sizeNotAllowed"))
    add("fragments-last-too-large", "client", "Nor are they a last one.",
        part(b"a"), request(50, b"x" * 65_537), violation("sizeNotAllowed"))
    add("fragments-not-agreed", "client", "The welcome did not name the feature.",
        part(b"a"), violation("flagNotAllowed"), features="metadata")
    add("fragments-before-hello", "client", "Nothing is agreed without a hello.",
        part(b"a"), violation("flagNotAllowed"), state="fresh")
    add("fragments-before-welcome", "server", "Nothing is agreed before the welcome.",
        push(b"a", flags=MORE), violation("flagNotAllowed"), state="fresh")
    add("fragments-over-limit", "client", "Refused with 413; the rest is discarded.",
        part(b"x" * 60), part(b"x" * 60), refuse(50, 413), part(b"x" * 60), request(50, b"x"),
        request(51), got_request(51), limits="max_body=100")
    add("fragments-at-limit", "client", "The limit itself is allowed.",
        part(b"x" * 60), request(50, b"x" * 40), got_request(50, b"x" * 100), limits="max_body=100")
    add("fragments-over-limit-at-last", "client", "The last fragment ends the discarding.",
        part(b"x" * 60), request(50, b"x" * 60), refuse(50, 413), request(50, b"again"),
        got_request(50, b"again"), limits="max_body=100")
    add("fragments-over-limit-then-cancel", "client", "A cancel ends the discarding.",
        part(b"x" * 60), part(b"x" * 60), refuse(50, 413), cancel(50), request(50, b"again"),
        got_request(50, b"again"), limits="max_body=100")
    add("fragments-over-limit-then-cancel-twice", "client", "The second cancel finds nothing.",
        part(b"x" * 60), part(b"x" * 60), refuse(50, 413), cancel(50), cancel(50),
        "drop unknownSerial serial=50", limits="max_body=100")
    add("fragments-over-limit-at-last-then-cancel", "client", "Nothing is being discarded any more.",
        part(b"x" * 60), request(50, b"x" * 60), refuse(50, 413), cancel(50),
        "drop unknownSerial serial=50", limits="max_body=100")
    overloaded = [request(50), got_request(50), part(b"a", 51), refuse(51, 429)]
    add("fragments-discarded-other-tag", "client", "What is discarded has the same tag too.",
        *overloaded, request(51, b"b", 2), bad, limits="max_in_flight=1")
    add("fragments-discarded-metadata", "client", "And metadata in the first fragment alone.",
        *overloaded, part(b"\0\0", 51, METADATA), bad, limits="max_in_flight=1")
    add("fragments-discarded-too-large", "client", "And at most 65,536 bytes.",
        *overloaded, request(51, b"x" * 65_537), violation("sizeNotAllowed"), limits="max_in_flight=1")
    add("fragments-response-late", "server", "Nothing is remembered of what is dropped; it counts once.",
        response(50, b"a", flags=MORE), response(50, block(b"") + b"b", 404, flags=METADATA | MORE),
        response(50, b"c", 404), "drop lateReply serial=50", frame(PING, 0), pong())
    add("fragments-over-limit-response", "server", "A response over the limit is a violation.",
        response(50, b"x" * 60, flags=MORE), response(50, b"x" * 60), violation("lengthOverLimit"),
        waiting="50", limits="max_body=100")
    add("fragments-over-limit-push", "server", "So is a push.",
        push(b"x" * 60, flags=MORE), push(b"x" * 60, flags=MORE), violation("lengthOverLimit"),
        limits="max_body=100")
    add("fragments-over-memory", "client", "The receiver bounds what all assemblies hold together.",
        part(b"x" * 60), part(b"x" * 60, 51), refuse(51, 429), request(51, b"x"),
        request(50, b"y"), got_request(50, b"x" * 60 + b"y"), limits="max_request_bytes=100")
    add("fragments-cancelled", "client", "A cancel discards what has come.",
        part(b"a"), cancel(50), request(50, b"b"), got_request(50, b"b"))
    add("fragments-count-as-request", "client", "A request counts from its first fragment on.",
        part(b"a"), request(51), refuse(51, 429), request(50, b"b"), got_request(50, b"ab"),
        limits="max_in_flight=1")
    add("fragments-refused-overloaded", "client", "Refused at its first fragment; the rest is discarded.",
        request(50), got_request(50), part(b"a", 51), refuse(51, 429), part(b"b", 51),
        request(51, b"c"), frame(PING, 0), pong(), limits="max_in_flight=1")
    add("fragments-refused-draining", "client", "The same while draining.",
        part(b"a"), refuse(50, 503), request(50, b"b"), frame(PING, 0), pong(), draining="yes")


def handshake():
    add = lambda *a, **k: vector("handshake", *a, state="fresh", **k)
    reply = lambda interval=30_000, timeout=10_000, features=0: (
        f"reply welcome version=1 features={features}"
        f" heartbeat_interval={interval} heartbeat_timeout={timeout}")
    add("hello-empty", "client", "Every field absent: the defaults, no features.", hello(), "hello", reply())
    every = (number(1, 1) + number(2, 3) + number(3, 1_000_000) + number(4, 10) + number(5, 5_000)
             + number(6, 2_000) + data(7, b"\x00\xff") + data(8, "probe") + number(11, 9_000)
             + data(12, bytes(range(16))))
    add("hello-full", "client", "Every field.", hello(every),
        "hello version=1 features=3 max_body=1000000 max_in_flight=10 heartbeat_interval=5000"
        " heartbeat_timeout=2000 credential=00ff name=probe stream_credit=9000"
        " client_id=000102030405060708090a0b0c0d0e0f",
        reply(5_000, 2_000, 3))
    add("hello-then-request", "client", "Requests may follow at once.",
        hello(), "hello", reply(), request(), got_request())
    add("hello-features-both-have", "client", "The welcome names the features that both have.",
        hello(number(2, 0xFFFF_FFFF_FFFF_FFFE)), "hello features=18446744073709551614", reply(features=2))
    add("hello-streams", "client", "Streams, and the first credit that the client grants.",
        hello(number(2, 7) + number(11, 1_000)), "hello features=7 stream_credit=1000", reply(features=7))
    add("hello-streams-without-metadata", "client", "Streams need metadata.",
        hello(number(2, 6)), "hello features=6", reply(features=2))
    add("hello-streams-without-fragments", "client", "Streams need fragments.",
        hello(number(2, 5)), "hello features=5", reply(features=1))
    add("hello-renewal-nobody-decides", "client", "The server accepts everyone.",
        hello(number(2, 8) + data(7, b"k")), "hello features=8 credential=6b", reply())
    add("hello-later-version", "client", "The server answers with what it speaks.",
        hello(number(1, 2)), "hello version=2", reply())
    add("hello-heartbeat-smaller", "client", "The smaller of both interval and timeout is used.",
        hello(number(5, 60_000) + number(6, 3_000)),
        "hello heartbeat_interval=60000 heartbeat_timeout=3000", reply(30_000, 3_000))
    add("hello-heartbeat-least", "client", "An interval has at least 200 ms, a timeout 100 ms.",
        hello(number(5, 1) + number(6, 1)), "hello heartbeat_interval=1 heartbeat_timeout=1",
        reply(200, 100))
    add("hello-unknown-field", "client", "Unknown fields are ignored.",
        hello(data(1000, b"x") + number(2, 1)), "hello features=1", reply(features=1))
    add("hello-last-value-counts", "client", "Of a field that stands twice the last one counts.",
        hello(number(5, 900) + number(5, 800)), "hello heartbeat_interval=800", reply(800))
    add("hello-client-id-empty", "client", "An empty client_id is none.",
        hello(data(12, b"")), "hello", reply())
    add("hello-fields-retired", "client", "Fields 9 and 10 are unknown.",
        hello(data(9, b"x") + number(10, 1)), "hello", reply())
    add("hello-second", "client", "Hello is sent once.",
        hello(), "hello", reply(), hello(), violation("unexpectedHello"))
    add("hello-after-ping", "client", "Hello comes first or not at all.",
        frame(PING, 0), pong(), hello(), violation("helloNotFirst"))
    add("hello-after-request", "client", "Hello comes first or not at all.",
        request(), got_request(), hello(), violation("helloNotFirst"))
    add("hello-after-ignored", "client", "A frame that is ignored was a first frame too.",
        frame(0x30, 0), "drop ignoredKind", hello(), violation("helloNotFirst"))
    add("hello-from-server", "server", "A server says no hello.", hello(), violation("unexpectedHello"))
    for name, body, about in [
        ("truncated", DEADLINE[:2], "It ends in the middle of a number."),
        ("length", b"\x42\x05ab", "A string that would end behind the body."),
        ("utf8", data(8, b"\xc3\x28"), "A string that is not UTF-8."),
        ("nul", data(8, b"a\x00b"), "A string with a NUL."),
        ("field-zero", b"\x00\x00", "There is no field 0."),
        ("group", b"\x0b\x0c", "Groups are not used."),
        ("field-wide", b"\x88\x80\x80\x80\x10\x01", "A field number that 32 bits do not hold."),
        ("length-wide", b"\x42\x81\x80\x80\x80\x10a", "A length that 32 bits do not hold."),
        ("wire-type", data(1, b"x"), "A known field in another encoding than its own."),
        ("client-id-short", data(12, bytes(15)), "A client_id of 15 bytes."),
        ("client-id-long", data(12, bytes(17)), "A client_id of 17 bytes."),
    ]:
        add(f"hello-malformed-{name}", "client", about, hello(body), violation("malformedControl"))
    add("welcome-empty", "server", "Every field absent: the defaults, no features.", welcome(), "welcome")
    add("welcome-full", "server", "Every field.",
        welcome(number(1, 1) + number(2, 3) + number(3, 1_000_000) + number(4, 10) + number(5, 5_000)
                + number(6, 2_000) + data(9, "host")
                + number(10, 9_000) + number(11, 60_000)),
        "welcome version=1 features=3 max_body=1000000 max_in_flight=10 heartbeat_interval=5000"
        " heartbeat_timeout=2000 name=host stream_credit=9000 credential_expires=60000")
    add("welcome-not-first", "server", "Pings, pushes and a goaway may come before it.",
        frame(PING, 0, b"a"), pong(b"a"), push(b"b"), got_push(b"b"), welcome(), "welcome")
    add("welcome-second", "server", "It is sent once.",
        welcome(), "welcome", welcome(), violation("unexpectedWelcome"))
    add("welcome-from-client", "client", "A client sends none.", welcome(), violation("unexpectedWelcome"))
    add("welcome-feature-not-offered", "server", "The hello did not name renewal.",
        welcome(number(2, 15)), violation("featureNotOffered"))
    add("welcome-streams-without-metadata", "server", "Streams need metadata.",
        welcome(number(2, 6)), violation("featureNotOffered"))
    add("welcome-streams-without-fragments", "server", "Streams need fragments.",
        welcome(number(2, 5)), violation("featureNotOffered"))
    add("welcome-version-not-offered", "server", "The hello named version 1.",
        welcome(number(1, 2)), violation("versionNotOffered"))
    add("welcome-malformed", "server", "It cannot be decoded.",
        welcome(data(9, b"\xff")), violation("malformedControl"))
    add("welcome-flags-after", "server", "What was agreed may be used from the welcome on.",
        welcome(number(2, 3)), "welcome features=3",
        push(block(b"") + b"a", flags=METADATA | MORE), push(b"b"), got_push(b"ab", metadata=b""))
    add("first-frame-late", "client", "10 s without a frame.",
        ("at", 10_000), violation("firstFrameTimeout", 10_000))
    add("first-frame-incomplete", "client", "A part of a frame is no frame.",
        ("at", 9_000), hello()[:10], ("at", 10_000), violation("firstFrameTimeout", 10_000))
    add("first-frame-in-time", "client", "Any frame is a first frame.",
        ("at", 9_999), frame(PING, 0), pong(), ("at", 12_000))
    add("first-frame-largest", "client", "A first frame may have 65,536 bytes.",
        request(50, b"x" * 65_536), got_request(50, b"x" * 65_536))
    add("first-frame-too-large", "client", "One byte more, by the header alone.",
        request(50, b"", length=65_537)[:16], violation("lengthOverLimit"))
    add("second-frame-large", "client", "A later frame has the body limit alone.",
        frame(PING, 0), pong(), request(50, b"x" * 65_537), got_request(50, b"x" * 65_537))


def security():
    add = lambda *a, **k: vector("security", *a, state="fresh", **k)
    record = bytes.fromhex("16030100f5010000f10303") + bytes(8)
    told = "securePeer code=400 requests_accepted=0"
    add("tls-client", "client", "The first record of a client that speaks TLS.", record, told)
    add("tls-client-two-bytes", "client", "Two bytes are enough.", record[:2], told)
    add("tls-client-other-version", "client", "0x16 without 0x03 is a frame of an unknown kind.",
        b"\x16\x02" + record[2:], violation("unknownKind"))
    add("tls-client-late", "client", "Behind a frame it is a frame of an unknown kind, too.",
        frame(PING, 0), pong(), record, violation("unknownKind"))
    add("tls-alert-to-server", "client", "A client begins with a handshake, not with an alert.",
        bytes.fromhex("15030300020246") + bytes(9), violation("unknownKind"))
    add("tls-server", "server", "The alert of a server that speaks TLS; it gets no goaway.",
        bytes.fromhex("15030300020246"), "securePeer")
    add("tls-server-late", "server", "Behind a frame it is a frame of an unknown kind.",
        frame(PING, 0), pong(), bytes.fromhex("15030300020246") + bytes(9), violation("unknownKind"))
    add("tls-hello-of-server", "server", "A server does not begin a handshake.",
        record, violation("unknownKind"))
    welcomed = ("reply welcome version=1 features=0 heartbeat_interval=30000 heartbeat_timeout=10000"
                " credential_expires=60000")
    named = hello(data(7, b"\x00\xff"))
    add("credential", "client", "The server decides before its welcome.",
        named, "identify body=00ff", ("admit", 60_000), "hello credential=00ff", welcomed, identifies="yes")
    add("credential-empty", "client", "A client may have none.",
        hello(), "identify body=", ("admit", 0), "hello", welcomed.rsplit(" ", 1)[0], identifies="yes")
    add("credential-then-request", "client", "Nothing is acted on before the server has decided.",
        named, "identify body=00ff", request(50, b"x"), frame(PING, 0, b"a"), ("at", 1_000),
        ("admit", 60_000), "hello credential=00ff", welcomed, got_request(50, b"x"), pong(b"a"),
        identifies="yes")
    add("credential-without-hello", "client", "A client that skips the hello has no credential.",
        request(50, b"x"), "identify", ("admit", 60_000), got_request(50, b"x"), identifies="yes")
    add("credential-refused", "client", "A goaway takes the place of the welcome.",
        named, "identify body=00ff", ("refuse", 401), "refused code=401 requests_accepted=0",
        identifies="yes")
    add("credential-refused-with-request", "client", "The requests behind the hello did not run.",
        named + request(50, b"x"), "identify body=00ff", ("refuse", 403),
        "refused code=403 requests_accepted=0", identifies="yes")
    add("credential-refused-without-hello", "client", "Nor did the one without a hello.",
        request(50, b"x"), "identify", ("refuse", 401), "refused code=401 requests_accepted=0",
        identifies="yes")
    add("hello-renewal", "client", "Renewal is agreed to where the server decides about its clients.",
        hello(number(2, 8) + data(7, b"k")), "identify body=6b", ("admit", 0),
        "hello features=8 credential=6b",
        "reply welcome version=1 features=8 heartbeat_interval=30000 heartbeat_timeout=10000",
        identifies="yes")
    add("renewal-behind-hello", "client", "It waits for the decision about the hello.",
        hello(number(2, 8) + data(7, b"k")) + renewal(b"m"), "identify body=6b", ("admit", 60_000),
        "hello features=8 credential=6b", welcomed.replace("features=0", "features=8"),
        "identify body=6d", ("admit", 90_000), "reply renewal code=200 credential_expires=90000",
        identifies="yes")


def renewals():
    shape = {"features": "metadata fragments renewal"}
    add = lambda *a, **k: vector("security", *a, **shape, **k)
    asked = lambda *a, **k: add(a[0], "client", *a[1:], identifies="yes", **k)
    told = lambda *a: add(a[0], "server", *a[1:])
    yes, no = number(1, 60_000), data(2, "old")
    answered = "reply renewal code=200 credential_expires=60000"
    asked("renewal", "Requests go on while the server decides.",
          renewal(b"k"), "identify body=6b", request(), got_request(), ("admit", 60_000), answered)
    asked("renewal-largest", "A credential has at most 65,536 bytes.",
          renewal(b"k" * 65_536), "identify body=6b*65536", ("admit", 0), "reply renewal code=200")
    asked("renewal-refused", "The connection goes on.",
          renewal(b"k"), "identify body=6b", ("refuse", 401), "reply renewal code=401",
          request(), got_request())
    asked("renewal-again", "A second after the last one, another is decided about.",
          renewal(b"k"), "identify body=6b", ("admit", 60_000), answered,
          ("at", 1_000), renewal(b"m"), "identify body=6d", ("admit", 60_000), answered)
    asked("renewal-too-soon", "Within that second, none is.",
          renewal(b"k"), "identify body=6b", ("admit", 60_000), answered,
          ("at", 999), renewal(b"m"), "reply renewal code=429")
    asked("renewal-twice", "A client waits for the answer.",
          renewal(b"k"), "identify body=6b", renewal(b"m"), violation("kindNotAgreed"))
    asked("renewal-behind-goaway", "The server has said goaway.",
          renewal(b"k"), "reply renewal code=503", draining="yes")
    told("renewed", "The new time.",
         ("renew", b"m"), renewal(yes, 200), "renewed code=200 credential_expires=60000")
    told("renewed-without-end", "An absent time is none.", ("renew", b"m"), renewal(b"", 200), "renewed code=200")
    told("renewed-not", "The former credential stays as it is.",
         ("renew", b"m"), renewal(no, 401), "renewed code=401 reason=old",
         ("renew", b"n"), renewal(yes, 507), "renewed code=507")
    told("renewed-unasked", "No renewal waits for it.", renewal(yes, 200), violation("kindNotAgreed"))
    told("renewed-twice", "Nor for the second.",
         ("renew", b"m"), renewal(yes, 200), "renewed code=200 credential_expires=60000",
         renewal(yes, 200), violation("kindNotAgreed"))
    told("renewed-malformed", "It cannot be decoded.",
         ("renew", b"m"), renewal(b"\x12\x7f", 401), violation("malformedControl"))


def control():
    add = lambda *a, **k: vector("control", *a, **k)
    add("ping", "client", "Answered with its body.", frame(PING, 0, b"12345678"), pong(b"12345678"))
    add("ping-empty", "server", "Answered with its body, which may be empty.", frame(PING, 0), pong())
    add("ping-largest", "server", "64 bytes.", frame(PING, 0, b"p" * 64), pong(b"p" * 64))
    add("pings-in-order", "client", "Answered in order.",
        frame(PING, 0, b"1"), frame(PING, 0, b"2"), pong(b"1"), pong(b"2"))
    add("ping-without-hello", "client", "Pings need no hello.", frame(PING, 0), pong(), state="fresh")
    add("ping-before-welcome", "server", "Nor a welcome.", frame(PING, 0), pong(), state="fresh")
    add("pong-unsolicited", "client", "Nobody asked: dropped.",
        frame(PONG, 0, b"x"), "drop unsolicitedPong", request(), got_request())
    add("pings-100", "client", "100 within 10 s are allowed.", ("times", 100, frame(PING, 0)), pong() + " times=100")
    add("pings-101", "client", "The 101st is a violation.", ("times", 101, frame(PING, 0)), pong() + " times=100",
        violation("tooManyPings"))
    add("pings-101-within-window", "client", "9,999 ms is within 10 s.",
        ("at", 0), ("times", 100, frame(PING, 0)), pong() + " times=100",
        ("at", 9_999), frame(PING, 0), violation("tooManyPings", 9_999))
    add("pings-101-over-window", "client", "10,000 ms is not.",
        ("at", 0), ("times", 100, frame(PING, 0)), pong() + " times=100", ("at", 10_000), frame(PING, 0), pong())
    full = (number(1, 503) + data(2, "restart") + number(3, 7) + number(4, 5_000) + number(5, 1_000)
            + data(6, "b.example:9000") + data(6, "[2001:db8::1]:9000"))
    add("goaway", "server", "Every field.", goaway(full),
        "goaway code=503 reason=restart requests_accepted=7 spread=5000 retry_after=1000"
        " alternatives=b.example:9000 alternatives=[2001:db8::1]:9000")
    add("goaway-empty", "client", "Every field absent.", goaway(), "goaway")
    add("goaway-before-welcome", "server", "It may come at any time.",
        goaway(number(1, 401)), "goaway code=401", state="fresh")
    add("goaway-then-response", "server", "What is under way finishes.",
        goaway(number(1, 503) + number(3, 1)), "goaway code=503 requests_accepted=1",
        response(50, b"x"), got_response(50, b"x"), waiting="50")
    add("goaway-twice", "server", "The later one counts.",
        goaway(number(1, 503)), "goaway code=503", goaway(number(1, 400)), "goaway code=400")
    add("goaway-malformed", "server", "It cannot be decoded.",
        goaway(b"\x12\x7f"), violation("malformedControl"))
    add("request-while-draining", "client", "Refused with 503.",
        request(), refuse(50, 503), draining="yes")
    add("request-overloaded", "client", "More at once than is allowed: refused with 429.",
        request(50), got_request(50), request(51), refuse(51, 429), limits="max_in_flight=1")
    add("request-after-overload", "client", "There is room again once one has been answered.",
        request(50), got_request(50), request(51), refuse(51, 429), ("answer", 50),
        request(52), got_request(52), limits="max_in_flight=1")
    add("end-of-stream", "client", "Between two frames it is an ordinary end; nothing is owed.",
        request(), got_request(), ("end",), "closed")
    add("end-of-stream-from-server", "server", "The same for a client.", ("end",), "closed", waiting="50")
    add("end-in-header", "client", "In the middle of a header it is damage.",
        request()[:7], ("end",), violation("truncatedFrame"))
    add("end-in-body", "client", "In the middle of a body it is damage.",
        request(50, b"hello")[:-1], ("end",), violation("truncatedFrame"))
    add("frame-in-time", "client", "A frame has 30 s from its first byte to its last.",
        ("at", 1_000), request(50, b"x")[:5], ("at", 30_999), request(50, b"x")[5:], got_request(50, b"x"))
    add("frame-late", "client", "Not a millisecond more.",
        ("at", 1_000), request(50, b"x")[:5], ("at", 31_000), violation("frameTimeout", 31_000))
    add("frame-dribbled", "client", "Single bytes do not buy time.",
        ("at", 0), request(50, b"x")[:1], ("at", 14_000), request(50, b"x")[1:2],
        ("at", 28_000), request(50, b"x")[2:3], ("at", 30_000), violation("frameTimeout", 30_000))
    add("frame-late-behind-whole", "client", "The time begins with the frame's own first byte.",
        ("at", 0), request(50)[:8], ("at", 20_000), request(50)[8:] + request(51)[:1],
        got_request(50), ("at", 49_999), request(51)[1:], got_request(51))


def streams():
    opening(), ordering(), crediting(), ending(), crossing(), stream_headers()


def add_short(*arguments, **setup):
    vector("short", *arguments, **{"state": "short", **setup})


def broken(name):
    """A violation that a client finds on a short link: it breaks the link off, without a goaway."""
    return f"violation {name}"


def shorts():
    add = add_short
    all_features = number(2, 7)
    add("short-request", "client", "A request, whole.", request(body=b"hello"),
        got_request(body=b"hello"), ("answer", 50), "ended")
    add("short-items-up", "client", "Items of the client, then the end.", *asked(items=True),
        item(b"one"), got_item(b"one"), finish(), "end serial=50", ("answer", 50), "ended")
    add("short-response", "server", "The answer.", response(body=b"hello"),
        got_response(body=b"hello"), waiting="50")
    add("short-items-down", "server", "Items of the server, then the response.",
        ("ask", 50, "credit=4000"), item(b"one"), got_item(b"one"), response(), got_response())
    add("short-features-hold", "client", "The hello's features hold before the welcome was read.",
        hello(all_features), "hello features=7", *asked(credit=4_000),
        "reply welcome features=7", state="short-fresh")
    add("short-beyond-credit", "client", "No item costs anything.",
        *asked(items=True), item(b"x" * 3_000), got_item(b"x" * 3_000), limits="stream_credit=1024")
    add("short-beyond-credit-down", "server", "The client's credit only asks for items.",
        ("ask", 50, "credit=1024"), item(b"x" * 3_000), got_item(b"x" * 3_000))
    add("short-ping", "server", "A ping that keeps the link awake is not answered.",
        frame(PING, 0), response(), got_response(), waiting="50")
    add("short-ping-with-body", "server", "Only empty ones.",
        frame(PING, 0, b"x"), broken("sizeNotAllowed"), waiting="50")
    add("short-client-ended", "client", "The end in good order cancels nothing.",
        request(), got_request(), ("end",), ("answer", 50), "ended")
    add("short-client-ended-early", "client", "The end before the items' end gives the exchange up.",
        *asked(items=True), item(b"one"), got_item(b"one"), ("end",), "closed")
    add("short-goaway", "server", "In place of the response.",
        goaway(number(1, 400)), "goaway code=400", waiting="50")
    add("short-while-draining", "client", "A request is refused by a frame.",
        request(), refuse(50, 503), "ended", draining="yes")
    out = violation("kindNotAgreed")
    add("short-request-first", "client", "The hello comes first.", request(), out, state="short-fresh")
    add("short-two-requests", "client", "One request.", request(), got_request(), request(51), out)
    add("short-item-first", "client", "An item before the request.", item(), out)
    add("short-item-of-another", "client", "An item with another serial.",
        *asked(items=True), item(b"", 51), out)
    add("short-cancel", "client", "The end of the link cancels.", request(), got_request(), cancel(), out)
    add("short-credit", "client", "There is no credit.", *asked(credit=4_000), credit(1_024), out)
    add("short-push", "client", "No pushes.", push(), out)
    add("short-ping-of-client", "client", "Only the server pings.", frame(PING, 0), out)
    add("short-goaway-of-client", "client", "A client has nobody to leave.", goaway(), out)
    add("short-ignored-kind", "client", "Not even what the long link ignores.", frame(0x30, 0), out)
    gone = broken("kindNotAgreed")
    add("short-response-first", "server", "The welcome comes first.",
        response(), gone, state="short-fresh", waiting="50")
    add("short-behind-response", "server", "Nothing behind the response.",
        response(), got_response(), frame(PING, 0), gone, waiting="50")
    add("short-request-of-server", "server", "A server asks nothing.", request(SERVER | 50), gone,
        waiting="50")
    add("short-push-of-server", "server", "No pushes.", push(), gone, waiting="50")
    add("short-credit-of-server", "server", "There is no credit.",
        ("ask", 50, "items"), credit(1_024), gone)
    add("short-pong", "server", "A client does not ping.", frame(PONG, 0), gone, waiting="50")
    add("short-renewal", "client", "Each short link shows its own credential.",
        request(), got_request(), renewal(b"x"), violation("kindNotAgreed"))
    add("short-response-to-another", "server", "An answer to no request.",
        response(51), gone, waiting="50")
    add("short-no-request", "client", "The hello alone is not enough.",
        ("at", 10_000), violation("firstFrameTimeout", 10_000))
    add("short-no-response", "server", "The end proves nothing.", ("end",), "closed", waiting="50")


def add_stream(*arguments, **setup):
    vector("streams", *arguments, **{"features": "metadata fragments streams", **setup})


def asked(serial=50, credit=None, items=False, body=b""):
    """A request that opens a stream, and what its receiver makes of it."""
    metadata = terms(credit, items)
    return (request(serial, block(metadata) + body, flags=METADATA),
            got_request(serial, body, metadata=metadata))


def opening():
    add = add_stream
    add("stream-up", "client", "Items of the requester, then the end.",
        *asked(items=True, body=b"hello"), item(b"one"), got_item(b"one"), item(b"two"), got_item(b"two"),
        finish(), "end serial=50", ("answer", 50))
    add("stream-up-empty", "client", "An end without an item.",
        *asked(items=True), finish(), "end serial=50")
    add("stream-down", "server", "Items of the responder, then the response.",
        ("ask", 50, "credit=4000"), item(b"one"), got_item(b"one"), item(b"two"), got_item(b"two"),
        response(50, b"done"), got_response(50, b"done"))
    add("stream-down-empty", "server", "A response without an item.",
        ("ask", 50, "credit=4000"), response(), got_response())
    add("stream-both", "client", "Items in both directions.",
        *asked(credit=4_000, items=True), item(b"ping"), got_item(b"ping"),
        ("write", 50, b"pong"), sent_item(b"pong"), finish(), "end serial=50")
    add("stream-half-closed", "client", "The responder may go on behind the end.",
        *asked(credit=4_000, items=True), finish(), "end serial=50",
        ("write", 50, b"more"), sent_item(b"more"))
    add("stream-from-server", "server", "Either side may open a stream.",
        *asked(SERVER | 50, credit=4_000, items=True), item(b"up", SERVER | 50), got_item(b"up", SERVER | 50),
        ("write", SERVER | 50, b"down"), sent_item(b"down", SERVER | 50),
        finish(SERVER | 50), f"end serial={SERVER | 50}")
    add("stream-of-server", "client", "The same, asked for by the receiver.",
        ("ask", SERVER | 50, "credit=4000", "items"), item(b"down", SERVER | 50),
        got_item(b"down", SERVER | 50), ("write", SERVER | 50, b"up"), sent_item(b"up", SERVER | 50),
        ("finish", SERVER | 50), f"reply end serial={SERVER | 50}",
        response(SERVER | 50), got_response(SERVER | 50))
    add("stream-request-in-fragments", "client", "The metadata are whole with the last fragment.",
        request(50, block(terms(None, True)) + b"a", flags=METADATA | MORE), request(50, b"b"),
        got_request(50, b"ab", metadata=terms(None, True)), item(b"x"), got_item(b"x"))
    add("stream-while-draining", "client", "Refused like any request; its items are dropped.",
        request(50, block(terms(None, True)), flags=METADATA), refuse(50, 503),
        item(b"x"), "drop lateItem serial=50", draining="yes")
    add("stream-overloaded", "client", "It counts as a request, and is refused like one.",
        *asked(items=True), request(51, block(terms(None, True)), flags=METADATA), refuse(51, 429),
        item(b"x", 51), "drop lateItem serial=51", finish(51), "drop lateEnd serial=51",
        limits="max_in_flight=1")


def ordering():
    add = add_stream
    add("item-empty", "client", "An item may be empty.", *asked(items=True), item(), got_item())
    add("item-fragments", "client", "Joined in order, up to the first frame without the flag.",
        *asked(items=True), item(b"a", flags=MORE), item(b"b", flags=MORE), item(b"c"), got_item(b"abc"),
        item(b"d"), got_item(b"d"))
    add("item-fragments-last-empty", "client", "The last fragment may be empty.",
        *asked(items=True), item(b"a", flags=MORE), item(), got_item(b"a"))
    add("item-fragments-interleaved", "client", "Other frames may stand between them.",
        *asked(items=True), *asked(51, items=True), item(b"a", flags=MORE), item(b"1", 51, flags=MORE),
        frame(PING, 0), pong(), request(52, b"x", flags=MORE), item(b"b"), got_item(b"ab"),
        request(52, b"y"), got_request(52, b"xy"), item(b"2", 51), got_item(b"12", 51))
    add("item-fragments-both-ways", "server", "Each direction has items of its own.",
        ("ask", 50, "credit=4000", "items"), item(b"a", flags=MORE), ("write", 50, b"up"), sent_item(b"up"),
        item(b"b"), got_item(b"ab"))
    add("item-largest", "server", "65,536 bytes in one frame, and more in two.",
        ("ask", 50, "credit=200000"), item(b"x" * 65_536), got_item(b"x" * 65_536),
        item(b"y" * 65_536, flags=MORE), item(b"z"), got_item(b"y" * 65_536 + b"z"))
    add("item-at-limit", "client", "The limit itself is allowed.",
        *asked(items=True), item(b"x" * 60, flags=MORE), item(b"x" * 40), got_item(b"x" * 100),
        limits="max_body=100")
    add("item-over-limit", "client", "The body limit holds for the sum.",
        *asked(items=True), item(b"x" * 60, flags=MORE), item(b"x" * 60), violation("lengthOverLimit"),
        limits="max_body=100")
    add("item-over-limit-in-one", "client", "And for the frame.",
        *asked(items=True), item(length=101)[:16], violation("lengthOverLimit"), limits="max_body=100")
    bad = violation("itemNotExpected")
    add("item-not-announced", "client", "The request did not say that items follow.",
        *asked(credit=4_000), item(), bad)
    add("end-not-announced", "client", "Nor has it an end.", *asked(credit=4_000), finish(), bad)
    add("item-of-plain-request", "client", "A request without a stream.", request(), got_request(), item(), bad)
    add("end-of-plain-request", "client", "A request without a stream.",
        request(), got_request(), finish(), bad)
    add("item-not-asked-for", "server", "The request did not ask for items.",
        ("ask", 50, "items"), item(), bad)
    add("item-for-plain-request", "server", "A request without a stream.", item(), bad, waiting="50")
    half = request(50, block(terms(4_000, True)) + b"a", flags=METADATA | MORE)
    add("item-before-request-whole", "client", "The whole request comes first.", half, item(), bad)
    add("end-before-request-whole", "client", "Before the end as well.", half, finish(), bad)
    add("credit-before-request-whole", "client", "And before credit.", half, credit(1_000), bad)
    add("item-after-end", "client", "The end was the end.",
        *asked(items=True), finish(), "end serial=50", item(), violation("itemAfterEnd"))
    add("end-twice", "client", "There is one end.",
        *asked(items=True), finish(), "end serial=50", finish(), violation("itemAfterEnd"))
    add("end-within-item", "client", "The item before it has to be whole.",
        *asked(items=True), item(b"a", flags=MORE), finish(), violation("itemCutOff"))
    add("response-within-item", "server", "200 says that all items were whole.",
        ("ask", 50, "credit=4000"), item(b"a", flags=MORE), response(), violation("itemCutOff"))
    add("response-within-item-in-fragments", "server", "The first fragment says it.",
        ("ask", 50, "credit=4000"), item(b"a", flags=MORE), response(50, b"a", flags=MORE),
        violation("itemCutOff"))


def crediting():
    add = add_stream
    upward = lambda body: [("write", 50, body), sent_item(body)]
    add("credit", "client", "What the responder may send grows by the number.",
        *asked(credit=100), *upward(b"x" * 84), ("write", 50, b"yy"), "nothing",
        credit(18), sent_item(b"yy"))
    add("credit-none-at-first", "client", "With 0, nothing may be sent until credit comes.",
        *asked(credit=0), ("write", 50, b""), "nothing", credit(15), "nothing", credit(1), sent_item())
    add("credit-default", "server", "Without a word in the greeting, a requester begins with 65,536.",
        ("ask", 50, "items"), *upward(b"x" * 65_520), ("write", 50, b"y"), "nothing",
        credit(17), sent_item(b"y"))
    add("credit-of-welcome", "server", "The welcome states what a requester begins with.",
        welcome(number(2, 7) + number(10, 1_000)), "welcome features=7 stream_credit=1000",
        ("ask", 50, "items"), *upward(b"x" * 984), ("write", 50, b"y"), "nothing",
        credit(17), sent_item(b"y"), state="fresh")
    own = SERVER | 50
    add("credit-of-hello", "client", "For requests of the server, the hello states it.",
        hello(number(2, 7) + number(11, 1_000)), "hello features=7 stream_credit=1000",
        "reply welcome features=7", ("ask", own, "items"), ("write", own, b"x" * 984),
        sent_item(b"x" * 984, own), ("write", own, b"y"), "nothing",
        credit(17, own), sent_item(b"y", own), state="fresh")
    add("credit-of-hello-too-large", "client", "A larger first credit counts as 2,147,483,647.",
        hello(number(2, 7) + number(11, 2**32 - 1)), "hello features=7 stream_credit=4294967295",
        "reply welcome features=7", ("ask", own, "items"), credit(1, own), violation("creditOverflow"),
        state="fresh")
    add("credit-in-lumps", "client", "An item larger than the credit goes as the credit comes.",
        *asked(credit=1_024), ("write", 50, b"x" * 3_000), "nothing", credit(1_024), "nothing",
        credit(3_000), sent_item(b"x" * 3_000))
    add("credit-when-taken", "client", "The receiver grants more when its application has taken items.",
        *asked(items=True), *[step for _ in range(4) for step in (item(b"x" * 1_008), got_item(b"x" * 1_008))],
        ("take", 50, 4), "credit serial=50 least=1024", limits="stream_credit=4096")
    large = lambda last=False: item(b"x" * 1_008, flags=0 if last else MORE)
    add("credit-within-item", "client", "An item larger than the window comes whole.",
        *asked(items=True), large(), large(), "credit serial=50 least=1024", large(),
        "credit serial=50 least=2048", large(True), got_item(b"x" * 4_032), limits="stream_credit=2048")
    add("credit-within-next-item", "client", "So does the next one, when the first has been taken.",
        *asked(items=True), large(True), got_item(b"x" * 1_008), large(), ("take", 50, 1),
        "credit serial=50 least=1024", large(True), got_item(b"x" * 2_016), limits="stream_credit=2048")
    add("credit-used-up", "client", "All of the credit may be used.",
        *asked(items=True), item(b"x" * 1_000), got_item(b"x" * 1_000), item(b"y" * 16), got_item(b"y" * 16),
        limits="stream_credit=1048")
    bad = violation("creditExceeded")
    add("credit-exceeded", "client", "The header counts too.",
        *asked(items=True), item(b"x" * 1_009), bad, limits="stream_credit=1024")
    add("credit-exceeded-by-empty-items", "client", "Empty items are not free.",
        *asked(items=True), ("times", 64, item()), got_item() + " times=64", item(), bad,
        limits="stream_credit=1024")
    add("credit-exceeded-by-fragment", "client", "A fragment has to be within the credit like an item.",
        *asked(items=True), item(b"x" * 1_009, flags=MORE), bad, limits="stream_credit=1024")
    add("credit-exceeded-down", "server", "The responder has what the request grants.",
        ("ask", 50, "credit=1024"), item(b"x" * 1_009), bad)
    add("credit-largest", "client", "2,147,483,647 is the most that may be out.",
        *asked(credit=0), credit(2**31 - 1), ("write", 50, b"x"), sent_item(b"x"))
    add("credit-overflow", "client", "More than that is out.",
        *asked(credit=1), credit(2**31 - 1), violation("creditOverflow"))
    bad = violation("creditNotAllowed")
    add("credit-zero", "client", "0 grants nothing.", *asked(credit=1), credit(0), bad)
    add("credit-too-large", "client", "A number has 31 bits.", *asked(credit=0), credit(2**31), bad)
    add("credit-zero-late", "client", "The number is checked in a frame that is dropped, too.",
        credit(0, 77), bad)
    add("credit-of-request-too-large", "client", "The same in a request.",
        request(50, block(terms(2**31)), flags=METADATA), bad)
    add("credit-not-asked-for", "client", "The responder sends no items.",
        *asked(items=True), credit(1_000), bad)
    add("credit-not-announced", "server", "The requester sends no items.",
        ("ask", 50, "credit=4000"), credit(1_000), bad)
    add("credit-of-plain-request", "client", "A request without a stream.",
        request(), got_request(), credit(1_000), bad)
    add("credit-for-plain-request", "server", "A request without a stream.",
        credit(1_000), bad, waiting="50")
    add("windows-full", "client", "A first credit that does not fit: refused; what follows is dropped.",
        *asked(items=True), request(51, block(terms(None, True)), flags=METADATA), refuse(51, 429),
        item(b"x", 51), "drop lateItem serial=51", finish(51), "drop lateEnd serial=51",
        *asked(52, credit=4_000), limits="stream_credit=60000 max_windows=100000")
    add("windows-full-in-fragments", "client", "The same with a request in fragments.",
        *asked(items=True), request(51, block(terms(None, True)), flags=METADATA | MORE),
        request(51, b"x"), refuse(51, 429), item(b"x", 51), "drop lateItem serial=51",
        limits="stream_credit=60000 max_windows=100000")
    add("windows-free-again", "client", "The end of the items makes room.",
        *asked(items=True), finish(), "end serial=50", *asked(51, items=True),
        limits="stream_credit=60000 max_windows=100000")


def ending():
    add = add_stream
    add("stream-error", "server", "An error comes behind the items in front of it.",
        ("ask", 50, "credit=4000"), item(b"one"), got_item(b"one"),
        response(50, b"\x01", 1000), got_response(50, b"\x01", 1000))
    add("stream-error-within-item", "server", "What has come of an item is discarded.",
        ("ask", 50, "credit=4000"), item(b"one"), got_item(b"one"), item(b"tw", flags=MORE),
        response(50, b"broken", 500), got_response(50, b"broken", 500))
    add("stream-refused", "server", "It did not run.",
        ("ask", 50, "credit=4000", "items"), response(50, b"", REFUSED | 404),
        got_response(50, b"", 404, "yes"))
    bad = violation("refusedAfterItems")
    add("stream-refused-after-item", "server", "The mark contradicts the item.",
        ("ask", 50, "credit=4000"), item(), got_item(), response(50, b"", REFUSED | 503), bad)
    add("stream-refused-after-fragment", "server", "A part of an item is enough.",
        ("ask", 50, "credit=4000"), item(b"a", flags=MORE), response(50, b"", REFUSED | 503), bad)
    add("stream-refused-after-credit", "server", "So does credit.",
        ("ask", 50, "items"), credit(1_000), response(50, b"", REFUSED | 503), bad)
    add("stream-refused-after-late-credit", "server", "Also when it was dropped.",
        ("ask", 50, "items"), ("finish", 50), "reply end serial=50", credit(1_000),
        "drop lateCredit serial=50", response(50, b"", REFUSED | 503), bad)
    add("stream-answered-early", "server", "The requester stops: no end, no cancel, no further item.",
        ("ask", 50, "items"), ("write", 50, b"one"), sent_item(b"one"), response(), got_response(),
        ("write", 50, b"two"), ("finish", 50), "nothing")
    add("stream-answered-within-item", "server", "It stops within an item, too.",
        welcome(number(2, 7) + number(10, 1_024)), "welcome features=7 stream_credit=1024",
        ("ask", 50, "items"), ("write", 50, b"x" * 3_000), response(50, b"", 1000),
        got_response(50, b"", 1000), credit(4_000), "drop lateCredit serial=50", state="fresh")
    add("stream-cancelled", "client", "A cancel stops both directions.",
        *asked(credit=4_000, items=True), item(b"a", flags=MORE), cancel(), "cancel serial=50",
        ("write", 50, b"x"), "nothing")
    add("stream-cut", "server", "Without a response it is no normal end.",
        ("ask", 50, "credit=4000"), item(b"one"), got_item(b"one"), ("end",), "closed")


def crossing():
    add = add_stream
    add("late-item", "client", "It crossed the response.",
        *asked(items=True), item(b"1"), got_item(b"1"), ("answer", 50), item(b"2"),
        "drop lateItem serial=50", item(), "drop lateItem serial=50")
    add("late-end", "client", "It crossed the response.",
        *asked(items=True), ("answer", 50), finish(), "drop lateEnd serial=50")
    add("late-credit", "client", "It crossed the response.",
        *asked(credit=4_000), ("answer", 50), credit(1_000), "drop lateCredit serial=50")
    add("late-credit-after-end", "server", "It crossed the end.",
        ("ask", 50, "items"), ("finish", 50), "reply end serial=50",
        credit(1_000), "drop lateCredit serial=50", response(), got_response())
    add("late-after-cancel", "server", "All of it crossed the cancel.",
        ("ask", 50, "credit=4000", "items"), ("cancel", 50), item(b"x"), "drop lateItem serial=50",
        credit(1_000), "drop lateCredit serial=50", response(), "drop lateReply serial=50")
    add("late-item-after-cancel", "client", "Its sender should not have sent it, but it harms nobody.",
        *asked(items=True), cancel(), "cancel serial=50", item(b"x"), "drop lateItem serial=50")
    add("late-unknown", "client", "There never was such an exchange.",
        item(b"x", 77), "drop lateItem serial=77", finish(77), "drop lateEnd serial=77",
        credit(1, 77), "drop lateCredit serial=77", item(b"x", SERVER | 77),
        f"drop lateItem serial={SERVER | 77}", credit(1, SERVER | 77),
        f"drop lateCredit serial={SERVER | 77}")
    add("late-item-fragments", "client", "Nothing is remembered of what is dropped; it counts once.",
        item(b"a", 77, flags=MORE), item(b"b", 77, flags=MORE), item(b"c", 77),
        "drop lateItem serial=77", item(b"d", 77), "drop lateItem serial=77")
    add("late-item-over-limit", "client", "The sum of what is dropped is not checked.",
        item(b"x" * 60, 77, flags=MORE), item(b"x" * 60, 77), "drop lateItem serial=77",
        limits="max_body=100")
    add("late-item-too-large", "client", "Its header is.",
        item(b"", 77, length=65_537)[:16], violation("sizeNotAllowed"))
    add("late-behind-response-fragment", "server", "The first frame of the response ends the stream.",
        ("ask", 50, "credit=4000", "items"), response(50, b"a", flags=MORE), item(b"x"),
        "drop lateItem serial=50", credit(1_000), "drop lateCredit serial=50",
        response(50, b"b"), got_response(50, b"ab"))


def stream_headers():
    add = add_stream
    begin = asked(credit=4_000, items=True)
    add("flag-on-item", "client", "Items have no metadata.",
        *begin, item(b"\0\0", flags=METADATA), violation("flagNotAllowed"))
    for name, raw in {"end": frame(END, 50, flags=MORE), "credit": frame(CREDIT, 50, b"\0\0\0\1", flags=MORE)}.items():
        add(f"flag-on-{name}", "client", "The kind has no flags.", *begin, raw, violation("flagNotAllowed"))
    for name, raw in {
        "item": frame(ITEM, 50, tag=1), "end": frame(END, 50, tag=1), "credit": frame(CREDIT, 50, b"\0\0\0\1", tag=1),
    }.items():
        add(f"tag-on-{name}", "client", "The tag has to be 0.", *begin, raw, violation("tagNotAllowed"))
    bad = violation("sizeNotAllowed")
    add("size-of-item", "client", "A frame of an item has at most 65,536 bytes.",
        *begin, item(length=65_537)[:16], bad)
    add("size-of-item-fragment", "client", "One with the more flag carries something.",
        *begin, item(flags=MORE), bad)
    add("size-of-end", "client", "An end has no body.", *begin, frame(END, 50, b"x"), bad)
    add("size-of-credit", "client", "Credit has 4 bytes.", *begin, frame(CREDIT, 50, b"\0\0\1"), bad)
    add("size-of-credit-too-large", "client", "Not one more.", *begin, frame(CREDIT, 50, b"\0\0\0\0\1"), bad)
    bad = violation("serialOutOfRange")
    add("serial-of-item", "client", "No request has a reserved serial.", item(b"", 49), bad)
    add("serial-of-item-reserved-server", "client", "Nor with bit 31.", item(b"", SERVER | 49), bad)
    add("serial-of-end", "client", "No request has a reserved serial.", finish(0), bad)
    add("serial-of-end-from-responder", "server", "Only the requester ends.", finish(50), bad)
    add("serial-of-credit", "client", "No request has a reserved serial.", credit(1, 1), bad)


SPACE = bytes(range(1, 17))
TERMS = data(12, SPACE) + number(13, 60_000) + number(14, 1_000)


def once(key=b"k", space=SPACE, time=1_200, more=b""):
    """The metadata of a request that runs once."""
    return (b"" if key is None else data(3, key)) + more + data(9, space) + (number(10, time) if time else b"")


def once_greetings():
    add = lambda *a, **k: vector("once", *a, **{"state": "fresh", "once": "yes", **k})
    told = f"key_space={SPACE.hex()} key_retention=60000 key_time=1000"
    add("hello-once", "client", "The server asks where it keeps this client's keys.",
        hello(number(2, 17)), "identify", ("admit", 0, "once"), "hello features=17",
        f"reply welcome version=1 features=17 {told}")
    add("hello-once-with-credential", "client", "One decision about both.",
        hello(number(2, 17) + data(7, b"k")), "identify body=6b", ("admit", 60_000, "once"),
        "hello features=17 credential=6b",
        f"reply welcome version=1 features=17 credential_expires=60000 {told}", identifies="yes")
    add("hello-once-no-scope", "client", "Nothing names the client.",
        hello(number(2, 17)), "identify", ("admit", 0), "hello features=17",
        "reply welcome version=1 features=1")
    add("hello-once-no-store", "client", "A server without a store.",
        hello(number(2, 17)), "hello features=17", "reply welcome version=1 features=1", once="no")
    add("hello-once-without-metadata", "client", "It needs metadata.",
        hello(number(2, 16)), "hello features=16", "reply welcome version=1 features=0")
    add("welcome-once", "server", "What a client is told.",
        welcome(number(2, 17) + TERMS), f"welcome features=17 {told}")
    add("welcome-once-not-offered", "server", "The hello did not name it.",
        welcome(number(2, 17) + TERMS), violation("featureNotOffered"), once="no")
    add("welcome-once-without-metadata", "server", "It needs metadata.",
        welcome(number(2, 16) + TERMS), violation("featureNotOffered"))
    bad = violation("malformedControl")
    for name, about, fields in [
        ("without-terms", "A welcome with the bit states all three.", number(2, 17)),
        ("without-space", "The space is missing.", number(2, 17) + number(13, 1) + number(14, 1)),
        ("without-retention", "The retention is missing.", number(2, 17) + data(12, SPACE) + number(14, 1)),
        ("without-time", "The time is missing.", number(2, 17) + data(12, SPACE) + number(13, 1)),
        ("space-zero", "16 zero bytes are no space.",
         number(2, 17) + data(12, bytes(16)) + number(13, 1) + number(14, 1)),
        ("space-short", "A space of 15 bytes.",
         number(2, 17) + data(12, SPACE[1:]) + number(13, 1) + number(14, 1)),
    ]:
        add(f"welcome-once-{name}", "server", about, welcome(fields), bad)
    add("welcome-terms-without-once", "server", "A welcome without the bit states none of them.",
        welcome(number(2, 1) + number(14, 1)), bad)


def once_requests():
    add = lambda *a, **k: vector("once", *a, **{"features": "metadata fragments streams once", **k})

    def asked(metadata, body=b""):
        return request(50, block(metadata) + body, flags=METADATA)

    def good(name, about, metadata, **setup):
        add(name, "client", about, asked(metadata, b"x"), got_request(50, b"x", metadata=metadata), **setup)

    def refused(name, about, metadata, **setup):
        add(name, "client", about, asked(metadata, b"x"), refuse(50, 400), **setup)

    good("once", "A key, a space and a time.", once())
    good("once-key-longest", "A key has at most 255 bytes.", once(b"k" * 255))
    good("once-space-zero", "16 zero bytes are a request for once, too, though no space is equal.",
         once(space=bytes(16), time=1))
    good("once-key-alone", "Without a space, a key is data for the handler.", data(3, b"k"))
    good("once-time-alone", "Without a space, the time says nothing.", number(10, 1))
    good("once-space-empty", "An empty space is none.", data(3, b"k") + data(9, b""))
    refused("once-not-agreed", "It never runs unkept.", once(), features="metadata")
    refused("once-space-zero-not-agreed", "Nor does one with zero bytes.", once(space=bytes(16)),
            features="metadata")
    refused("once-without-key", "It needs a key.", once(None))
    refused("once-key-too-long", "A key of 256 bytes.", once(b"k" * 256))
    refused("once-without-time", "It needs a time.", once(time=0))
    refused("once-with-items", "It opens no stream.", once(more=number(7, 1)))
    refused("once-asks-for-items", "Nor down.", once(more=number(6, 1_000)))
    add("once-in-fragments", "client", "Refused when it is whole.",
        request(50, block(once(time=0)), flags=METADATA | MORE), "nothing", request(50, b"x"),
        refuse(50, 400))
    for name, space in {"short": SPACE[1:], "long": SPACE + b"x"}.items():
        add(f"once-space-{name}", "client", f"A space of {len(space)} bytes.",
            asked(once(space=space)), violation("malformedControl"))
    add("once-of-server", "server", "Only clients ask for it: the fields are passed over.",
        request(SERVER | 50, block(once()), flags=METADATA),
        got_request(SERVER | 50, metadata=once()))
    busy = {"limits": "max_in_flight=1"}
    add("once-overloaded", "client", "Its key may be known: it is delivered, and the server decides.",
        request(), got_request(), request(51), refuse(51, 429),
        request(52, block(once()), flags=METADATA), got_request(52, metadata=once()), **busy)
    add("once-overloaded-malformed", "client", "So its metadata is read.",
        request(), got_request(), request(51, block(data(9, SPACE[1:])), flags=METADATA),
        violation("malformedControl"), **busy)
    add("once-while-draining", "client", "Behind a goaway, nothing is looked up.",
        asked(once()), refuse(50, 503), draining="yes")
    told = number(11, 1)
    add("once-replayed", "server", "The answer to an earlier request.",
        response(50, block(told) + b"x", flags=METADATA), got_response(50, b"x", metadata=told),
        response(51, block(told), 410, flags=METADATA), got_response(51, b"", 410, metadata=told),
        waiting="50 51")
    lost = number(8, 1) + told
    add("once-gone", "server", "There is no answer to be had: no handler has made this response.",
        response(50, block(lost), 410, flags=METADATA), got_response(50, b"", 410, metadata=lost),
        waiting="50")
    add("once-replayed-refused", "server", "It ran before, so it was not refused.",
        response(50, block(told), REFUSED | 429, flags=METADATA), violation("tagNotAllowed"),
        waiting="50")
    add("once-replayed-not-agreed", "server", "Without the feature, the field says nothing.",
        response(50, block(told), REFUSED | 429, flags=METADATA),
        got_response(50, b"", 429, "yes", metadata=told), waiting="50", features="metadata")
    now = data(9, SPACE) + number(10, 2_000)
    add("once-other-space", "server", "The refusal says what holds.",
        response(50, block(now), REFUSED | 412, flags=METADATA),
        got_response(50, b"", 412, "yes", metadata=now), waiting="50")
    add("once-other-space-short", "server", "It says a space of 15 bytes.",
        response(50, block(data(9, SPACE[1:])), REFUSED | 412, flags=METADATA),
        violation("malformedControl"), waiting="50")


def once_short():
    add = lambda *a, **k: vector("once", *a, **{"state": "short-fresh", "once": "yes", **k})
    asked = hello(number(2, 23)) + request(50, block(once()), flags=METADATA)
    told = f"key_space={SPACE.hex()} key_retention=60000 key_time=1000"
    add("short-once", "client", "The same on a short link.",
        asked, "identify", ("admit", 0, "once"), "hello features=23",
        f"reply welcome features=23 {told}", got_request(50, metadata=once()))
    add("short-once-no-scope", "client", "The hello's feature holds, and is missing here.",
        asked, "identify", ("admit", 0), "hello features=23", "reply welcome features=7",
        refuse(50, 400), "ended")
    add("short-once-no-store", "client", "A server without a store.",
        asked, "hello features=23", "reply welcome features=7", refuse(50, 400), "ended", once="no")
    add("short-once-not-used", "client", "A request that is not to run once needs no store.",
        hello(number(2, 23)) + request(50), "hello features=23", "reply welcome features=7", got_request(50),
        once="no")
    add("short-once-not-named", "client", "The hello does not name it.",
        hello(number(2, 7)) + request(50, block(once()), flags=METADATA), "hello features=7",
        "reply welcome features=7", refuse(50, 400), "ended")


HEAD = """\
# Made by generate.py; README.md describes the format.
"""


def examples():
    lines = []

    def show(title, *raws):
        lines.append(f"{title}\n\n```")
        for raw in raws:
            lines.append(spaced(raw[:16]))
            rest = raw[16:]
            for at in range(0, len(rest), 32):
                lines.append("  " + rest[at : at + 32].hex(" "))
        lines.append("```\n")

    show("A hello with version 1, features metadata and fragments, and the name `probe`. Its body is"
         "\n11 bytes: `08 01` version 1, `10 03` features 3, `42 05 …` name.",
         hello(number(1, 1) + number(2, 3) + data(8, "probe")))
    show("A welcome that agrees to both features, with the default heartbeat spelled out.",
         welcome(number(1, 1) + number(2, 3) + number(5, 30_000) + number(6, 10_000)))
    show("A request of type 1 with serial 50 and the payload `hello`.", request(50, b"hello"))
    show("Its response: code 200 (0xC8), the same payload.", response(50, b"hello"))
    show("A refusal of request 51: code 404 with the refused bit (0x800194), detail `unknown type`.",
         response(51, b"unknown type", REFUSED | 404))
    show("A request with metadata that says 1,500 ms remain: count `00 03`, `08 dc 0b`, then `hello`.",
         request(52, block(DEADLINE) + b"hello", flags=METADATA))
    show("The request `hello` with serial 53 in two fragments.",
         request(53, b"hel", flags=MORE), request(53, b"lo"))
    show("A cancel of request 53.", cancel(53))
    show("A request of type 6 with serial 54 that asks for items, with 4,096 bytes of credit, and announces"
         "\nitems of its own: count `00 05`, `30 80 20` credit, `38 01` items.",
         request(54, block(terms(4_096, True)), tag=6, flags=METADATA))
    show("An item of that exchange, `tick`, which takes 20 bytes of credit. Either side's would look like this.",
         item(b"tick", 54))
    show("Credit for 32,768 bytes more, and the end of the requester's items.",
         credit(32_768, 54), finish(54))
    show("A push of type 7 with the payload `news`.", push(b"news"))
    show("A ping that carries eight bytes, and its pong.",
         frame(PING, 0, b"\0\0\0\0\0\0\0\x01"), frame(PONG, 0, b"\0\0\0\0\0\0\0\x01"))
    show("A goaway: code 503, reason `restart`, 7 requests accepted, "
         "reconnects to be spread over 5,000 ms.",
         goaway(number(1, 503) + data(2, "restart") + number(3, 7) + number(4, 5_000)))
    return "\n".join(lines)


def main():
    check = "--check" in sys.argv[1:]
    for topic in (frames, headers, serials, metadata, fragments, handshake, security, renewals, control, streams,
                  shorts, once_greetings, once_requests, once_short):
        topic()
    failures = []

    def write(path, content):
        if path.exists() and path.read_text(encoding="utf-8") == content:
            return
        if check:
            failures.append(f"{path.name} is not current: run generate.py")
        else:
            path.write_text(content, encoding="utf-8")

    for topic, blocks in files.items():
        write(HERE / f"{topic}.txt", HEAD + "\n" + "\n\n".join(blocks) + "\n")
    text = TEXT.read_text(encoding="utf-8")
    begin, end = "<!-- examples: made by Vectors/generate.py -->\n", "<!-- end of examples -->"
    before, rest = text.split(begin)
    write(TEXT, before + begin + "\n" + examples() + "\n" + end + rest.split(end)[1])

    cited = set(re.findall(r"`\[([a-z0-9-]+)\]`", text))
    failures += [f"wire.md cites {name}, which is no vector" for name in sorted(cited - names)]
    failures += [f"wire.md does not cite {name}" for name in sorted(names - cited)]
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
