#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the vectors of dialects beside this file from their descriptions in JSON.

It shares no code with the library and knows no dialect: it writes what ../../dialects.md says
about a description. `generate.py` writes the files; `generate.py --check` fails when one of them
is not current.
"""

import json
import pathlib
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent


def number(value):
    return int(value, 16) if isinstance(value, str) else value


class Dialect:
    def __init__(self, name):
        self.text = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
        self.name = name
        self.layout = self.text["layout"]
        assert self.text["name"] == name
        mark = self.layout.get("delimiter")
        self.mark = bytes(map(number, mark["bytes"])) if mark else b""
        self.escape = number(mark["escape"]) if mark and mark["inside"] == "escaped" else None

    def frame(self, sender, type, serial, body=b"", code=None, stated=None, sum_flip=0, again=None):
        """A frame of this side. `stated` is another length than the real one, `sum_flip` damages
        the checksum, `again` is another repeated type."""
        side = "request" if sender == "client" else "response"
        shape = self.layout.get("both") or self.layout[side]
        header, trailer = shape["header"], shape.get("trailer", [])
        lead = sum(field["width"] for field in header) + len(self.mark)
        tail = sum(field["width"] for field in trailer) + len(self.mark)
        values = {"type": type, "serial": serial, "repeatedType": type if again is None else again}
        codes = self.text.get("codes")
        values["code"] = codes["success"][0] if code is None and codes else code

        def raw(field, at):
            width, kind = field["width"], field["field"]
            order = field.get("byteOrder", self.layout.get("byteOrder", "big"))
            if kind == "token":
                return bytes(0x41 + index % 26 for index in range(width))
            if kind == "filler":
                return bytes([number(field.get("value", 0))]) * width
            if kind in ("constant", "version"):
                value = number(field["value"])
            elif kind == "length":
                scope = field["of"]
                value = len(body) if stated is None else stated
                if scope == "frame":
                    value += lead + tail
                elif scope == "rest":
                    value += lead - at - width + tail
            elif kind == "checksum":
                value = 0
            else:
                value = values[kind]
            return value.to_bytes(width, order)

        parts, at = [], 0
        for field in header:
            parts.append((field.get("name", field["field"]), field, raw(field, at)))
            at += field["width"]
        parts.append(("body", None, body))
        for field in trailer:
            parts.append((field.get("name", field["field"]), field, raw(field, None)))
        return self.sealed(parts, len(header), sum_flip)

    def sealed(self, parts, header, sum_flip):
        for index, (_, field, _) in enumerate(parts):
            if field is None or field["field"] != "checksum":
                continue
            names = [name for name, _, _ in parts]
            over = field["over"]
            if over == "body":
                covered = [header]
            elif over == "headerAndBody":
                covered = [i for i in range(header + 1) if i != index]
            else:
                covered = range(names.index(over["from"]), names.index(over["to"]) + 1)
            data = b"".join(parts[i][2] for i in covered)
            value = (zlib.crc32 if field["algorithm"] == "crc32" else zlib.adler32)(data)
            order = field.get("byteOrder", self.layout.get("byteOrder", "big"))
            parts[index] = (names[index], field, (value ^ sum_flip).to_bytes(field["width"], order))
        before = b"".join(raw for _, _, raw in parts[:header])
        body = parts[header][2]
        if self.escape is not None:
            special = (self.escape, self.mark[0])
            body = b"".join(
                bytes([self.escape, byte]) if byte in special else bytes([byte]) for byte in body)
        behind = b"".join(raw for _, _, raw in parts[header + 1 :])
        return before + self.mark + body + behind + self.mark


files = {}
names = set()


def short(raw):
    """Hexadecimal; a long run of one byte is written as that byte, `*` and how often it stands."""
    parts, at = [""], 0
    while at < len(raw):
        run = 1
        while at + run < len(raw) and raw[at + run] == raw[at]:
            run += 1
        if run >= 40:
            parts += [f"{raw[at]:02x}*{run}", ""]
        else:
            parts[-1] += raw[at : at + run].hex()
        at += run
    return " ".join(part for part in parts if part)


def vector(dialect, name, sender, about, *steps, raw=False):
    """Steps are bytes that arrive and text that is expected. `raw`: nobody would write this."""
    name = f"{dialect.name}-{name}"
    assert name not in names, name
    names.add(name)
    lines = [f"name: {name}", f"about: {about}", f"dialect: {dialect.name}", f"from: {sender}"]
    if not raw:
        lines.append("written: yes")
    for step in steps:
        lines.append(f"hex: {short(step)}" if isinstance(step, bytes) else f"expect: {step}")
    if not any(isinstance(step, str) for step in steps):
        lines.append("expect: nothing")
    files.setdefault(dialect.name, []).append("\n".join(lines))


def guarded():
    d = Dialect("guarded")
    hello = b"hello".hex()
    vector(d, "request", "client", "A request.", d.frame("client", 0x105, 51, b"hello"),
           f"request serial=51 type=261 body={hello}")
    vector(d, "request-empty", "client", "Adler-32 of no bytes is 1.", d.frame("client", 0x105, 52),
           "request serial=52 type=261 body=")
    vector(d, "request-largest", "client", "The largest body and serial.",
           d.frame("client", 0xFFFFFF, 0xFFFFFFFF, b"\xff" * 20000),
           "request serial=4294967295 type=16777215 body=ff*20000")
    vector(d, "response", "server", "A response.", d.frame("server", 0x105, 51, b"hello"),
           f"response serial=51 type=261 code=200 native=200 body={hello}")
    vector(d, "response-error", "server", "Nobody handles the type.",
           d.frame("server", 0x105, 51, code=401),
           "response serial=51 type=261 code=401 native=404 body=")
    vector(d, "response-unlisted", "server", "A code that no table lists.",
           d.frame("server", 0x105, 51, code=1001),
           "response serial=51 type=261 code=1001 native=1001 body=")
    vector(d, "heartbeat", "server", "The server pings.", d.frame("server", 0, 7), "ping serial=7")
    vector(d, "heartbeat-echo", "client", "The client echoes.", d.frame("client", 0, 7),
           "pong serial=7")
    vector(d, "push", "server", "A push.", d.frame("server", 1, 0, b"hello"),
           f"push type=1 body={hello}")
    vector(d, "push-serial", "server", "The serial of a push means nothing.",
           d.frame("server", 1, 99, b"hello"), f"push type=1 body={hello}", raw=True)
    vector(d, "cancel", "client", "A cancel names the type.", d.frame("client", 2, 0x105),
           "cancel type=261")
    vector(d, "cancel-body", "client", "A cancel may repeat the body.",
           d.frame("client", 2, 0x105, b"hello"), "cancel type=261", raw=True)
    vector(d, "unknown-serial", "server", "A serial that no request can have is a heartbeat.",
           d.frame("server", 0x105, 50, b"hello"), "ping serial=50", raw=True)
    vector(d, "several", "client", "Frames follow each other without gaps.",
           d.frame("client", 0x105, 51) + d.frame("client", 0, 3) + d.frame("client", 0x106, 52),
           "request serial=51 type=261 body=", "pong serial=3", "request serial=52 type=262 body=")
    vector(d, "checksum", "client", "A damaged checksum.",
           d.frame("client", 0x105, 51, b"hello", sum_flip=1), "violation checksumMismatch", raw=True)
    vector(d, "checksum-wide", "client", "The four bytes before the sum are 0.",
           d.frame("client", 0x105, 51, b"hello", sum_flip=1 << 32), "violation checksumMismatch",
           raw=True)
    vector(d, "type-again", "client", "Another type at the end.",
           d.frame("client", 0x105, 51, again=0x106), "violation fieldMismatch", raw=True)
    vector(d, "too-long", "client", "A body of one byte too many is found on the header.",
           d.frame("client", 0x105, 51, stated=20001)[:48], "violation lengthOverLimit", raw=True)
    vector(d, "reserved-serial", "client", "A request has a serial from 51.",
           d.frame("client", 0x105, 50), "violation serialOutOfRange", raw=True)
    vector(d, "wide-type", "client", "A type of more than 24 bits.",
           d.frame("client", 0x1000000, 51), "violation typeNotAllowed", raw=True)
    vector(d, "unfinished", "client", "The last byte is missing.",
           d.frame("client", 0x105, 51, b"hello")[:-1], "nothing", raw=True)


def bare():
    d = Dialect("bare")
    text = b'{"id":1}'
    vector(d, "request", "client", "A request.", d.frame("client", 0x401, 0x401, text),
           f"request serial=1025 type=1025 body={text.hex()}")
    vector(d, "request-last-serial", "client", "The last serial before the wrap.",
           d.frame("client", 0x401, 0xFFFFFFFE), "request serial=4294967294 type=1025 body=")
    vector(d, "response", "server", "A response.", d.frame("server", 0x401, 0x401, text),
           f"response serial=1025 type=1025 code=200 native=200 body={text.hex()}")
    vector(d, "response-error", "server", "The database failed.",
           d.frame("server", 0x401, 0x401, code=403),
           "response serial=1025 type=1025 code=403 native=500 body=", raw=True)
    vector(d, "response-failed", "server", "The request failed.",
           d.frame("server", 0x401, 0x401, code=404),
           "response serial=1025 type=1025 code=404 native=500 body=")
    vector(d, "heartbeat-client", "client", "The client's heartbeat has serial 1.",
           d.frame("client", 1, 1), "ping serial=1")
    vector(d, "heartbeat-client-echo", "server", "The server echoes it.",
           d.frame("server", 1, 1), "pong serial=1")
    vector(d, "heartbeat-server", "server", "The server's has any other.",
           d.frame("server", 1, 2), "ping serial=2")
    vector(d, "heartbeat-server-echo", "client", "The client echoes it.",
           d.frame("client", 1, 2), "pong serial=2")
    vector(d, "push-last", "server", "The last type of a push.",
           d.frame("server", 0x400, 0, text), f"push type=1024 body={text.hex()}")
    vector(d, "push-first", "server", "The first one.", d.frame("server", 0, 0),
           "push type=0 body=")
    vector(d, "unknown-serial", "server", "A serial that no request can have is a late response.",
           d.frame("server", 0x401, 12), "response serial=12 type=1025 code=200 native=200 body=",
           raw=True)
    vector(d, "reserved-serial", "client", "A request has a serial from 0x401.",
           d.frame("client", 0x401, 0x400), "violation serialOutOfRange", raw=True)
    vector(d, "too-long", "client", "A body of one byte too many.",
           d.frame("client", 0x401, 0x401, stated=16777217), "violation lengthOverLimit", raw=True)


def small():
    d = Dialect("small")
    vector(d, "request", "client", "The checksum is in front, the length is the whole frame's.",
           d.frame("client", 0x102, 3, b"\xaa"), "request serial=3 type=258 body=aa")
    vector(d, "response", "server", "A response's type is its request's plus 0x4000.",
           d.frame("server", 0x4102, 3, b"\xaa"),
           "response serial=3 type=16642 code=0 native=200 body=aa")
    vector(d, "response-busy", "server", "A code that the library knows by another number.",
           d.frame("server", 0x4102, 3, code=2),
           "response serial=3 type=16642 code=2 native=429 body=")
    vector(d, "request-from-server", "server", "The server asks.",
           d.frame("server", 0x102, 0x80000000), "request serial=2147483648 type=258 body=")
    vector(d, "response-to-server", "client", "And is answered.",
           d.frame("client", 0x4102, 0x80000000),
           "response serial=2147483648 type=16642 code=0 native=200 body=")
    vector(d, "cancel", "client", "A cancel names the serial.", d.frame("client", 0xFF03, 3),
           "cancel serial=3")
    vector(d, "ping", "client", "A ping.", d.frame("client", 0xFF01, 9), "ping serial=9")
    vector(d, "pong", "server", "Its answer has another type.", d.frame("server", 0xFF02, 9),
           "pong serial=9")
    vector(d, "push", "server", "A push.", d.frame("server", 0xF000, 0, b"\x01"),
           "push type=61440 body=01")
    vector(d, "push-from-client", "client", "A client's push.", d.frame("client", 0xF1FF, 0),
           "push type=61951 body=")
    vector(d, "checksum", "client", "A damaged checksum.",
           d.frame("client", 0x102, 3, b"\xaa", sum_flip=0x80000000), "violation checksumMismatch",
           raw=True)
    vector(d, "too-short", "client", "A length that does not hold the header.",
           d.frame("client", 0x102, 3, stated=-1), "violation sizeNotAllowed", raw=True)
    vector(d, "unknown-serial", "server", "A serial that no request can have is a violation.",
           d.frame("server", 0x4102, 0), "violation serialOutOfRange", raw=True)
    vector(d, "type-below", "server", "No request has a type that would give this one.",
           d.frame("server", 0x3FFF, 3), "violation typeNotAllowed", raw=True)


def lines():
    d = Dialect("lines")
    one = d.frame("client", 9, 1, b"one")
    two = d.frame("client", 9, 2, b"two")
    got_one = "request serial=1 type=9 body=" + b"one".hex()
    got_two = "request serial=2 type=9 body=" + b"two".hex()
    vector(d, "request", "client", "Header, delimiter, body, delimiter.", one, got_one)
    vector(d, "escaped", "client", "What the delimiter begins with, and the escape byte itself.",
           d.frame("client", 9, 1, b"\r\n\\\r\r\n"),
           "request serial=1 type=9 body=" + b"\r\n\\\r\r\n".hex())
    vector(d, "delimiter-in-header", "client", "A header is counted, not searched.",
           d.frame("client", 0x0D0A, 0x20D), "request serial=525 type=3338 body=")
    vector(d, "cancel", "client", "A cancel names the serial in its body.",
           d.frame("client", 4, 0, (3).to_bytes(4, "big")), "cancel serial=3")
    vector(d, "response", "server", "A response.", d.frame("server", 9, 1, b"one"),
           "response serial=1 type=9 code=200 native=200 body=" + b"one".hex())
    vector(d, "damaged-checksum", "client", "The damaged packet is dropped, the next one is read.",
           d.frame("client", 9, 1, b"one", sum_flip=1) + two, "damaged checksumMismatch", got_two,
           raw=True)
    vector(d, "damaged-constant", "client", "The same with a damaged header.",
           b"\0" + one[1:] + two, "damaged fieldMismatch", got_two, raw=True)
    vector(d, "damaged-delimiter", "client", "Without its end a packet takes the next one along.",
           one[:-2] + two + d.frame("client", 9, 3), "damaged checksumMismatch",
           "damaged delimiterMissing", "request serial=3 type=9 body=", raw=True)
    vector(d, "damaged-start", "client", "A byte too few at the beginning.",
           one[1:] + two, "damaged delimiterMissing", got_two, raw=True)
    vector(d, "damaged-noise", "client", "What stands between two packets.",
           one + b"\xff" * 40 + b"\r\n" + two, got_one, "damaged delimiterMissing", got_two,
           raw=True)
    vector(d, "damaged-length", "client", "A body without an end is given up at the limit.",
           one[:14] + b"x" * 129 + b"\r\n" + two, "damaged lengthOverLimit", got_two, raw=True)
    vector(d, "damaged-cancel", "client", "A cancel of the wrong size.",
           d.frame("client", 4, 0, b"\0\0\3") + two, "damaged sizeNotAllowed", got_two, raw=True)


def mixed():
    d = Dialect("mixed")
    vector(d, "request", "client", "A length of all that follows it, filler and a wide serial.",
           d.frame("client", 7, 0x01020304, b"abc"), "request serial=16909060 type=7 body=616263")
    vector(d, "filler", "client", "Nobody looks at filler, which this checksum does not cover.",
           b"".join([d.frame("client", 7, 1)[:5], bytes(3), d.frame("client", 7, 1)[8:]]),
           "request serial=1 type=7 body=", raw=True)
    vector(d, "response", "server", "Without a code, and a type, it is a success.",
           d.frame("server", 0, 1, b"abc"),
           "response serial=1 type=0 code=0 native=200 body=616263")
    vector(d, "cancel", "client", "A serial of 8 bytes in the body.",
           d.frame("client", 255, 0, (5).to_bytes(8, "big")), "cancel serial=5")
    vector(d, "version", "client", "Another version.", b"\x04" + d.frame("client", 7, 1)[1:],
           "violation fieldMismatch", raw=True)
    vector(d, "constant", "client", "Another constant behind the body.",
           d.frame("client", 7, 1)[:-9] + bytes(9), "violation fieldMismatch", raw=True)
    vector(d, "checksum", "client", "A damaged checksum.",
           d.frame("client", 7, 1, sum_flip=1), "violation checksumMismatch", raw=True)
    vector(d, "wide-serial", "client", "A serial of more than 32 bits.",
           d.frame("client", 7, 1 << 32), "violation serialOutOfRange", raw=True)
    vector(d, "too-short", "client", "A length that does not hold the fields behind it.",
           d.frame("client", 7, 1, stated=-1), "violation sizeNotAllowed", raw=True)
    vector(d, "too-long", "server", "A body of one byte too many.",
           d.frame("server", 0, 1, stated=101), "violation lengthOverLimit", raw=True)


def framed():
    d = Dialect("framed")
    mark = b"\0\xff\0"
    vector(d, "request", "client", "A length of all behind it, both delimiters too.",
           d.frame("client", 7, 3, b"abc"), "request serial=3 type=7 body=616263")
    vector(d, "delimiter-inside", "client", "A body that holds the delimiter.",
           d.frame("client", 7, 3, mark + b"a" + mark),
           "request serial=3 type=7 body=" + (mark + b"a" + mark).hex())
    vector(d, "largest", "client", "The largest body.", d.frame("client", 7, 3, b"x" * 240),
           "request serial=3 type=7 body=78*240")
    vector(d, "request-from-server", "server", "The server asks.", d.frame("server", 7, 2001),
           "request serial=2001 type=7 body=")
    vector(d, "response", "server", "Every response has type 9.", d.frame("server", 9, 3, code=255),
           "response serial=3 type=9 code=255 native=255 body=")
    vector(d, "response-second-success", "server", "There are two codes of success.",
           d.frame("server", 9, 3, code=1), "response serial=3 type=9 code=1 native=200 body=",
           raw=True)
    vector(d, "ping", "client", "A ping.", d.frame("client", 1, 0), "ping serial=0")
    vector(d, "pong", "server", "Its echo.", d.frame("server", 1, 0), "pong serial=0")
    vector(d, "ping-from-server", "server", "One that nobody answers.", d.frame("server", 2, 0),
           "ping serial=0")
    two = d.frame("client", 7, 4, b"two")
    got = "request serial=4 type=7 body=" + b"two".hex()
    vector(d, "damaged-length", "client", "A length that leads into the next packet.",
           d.frame("client", 7, 3, b"one", stated=9) + two, "damaged delimiterMissing", got,
           raw=True)
    vector(d, "damaged-end", "client", "A damaged end takes the next packet along.",
           d.frame("client", 7, 3, b"one")[:-1] + b"\x01" + two + d.frame("client", 7, 5),
           "damaged delimiterMissing", "request serial=5 type=7 body=", raw=True)
    vector(d, "damaged-serial", "client", "A serial that no request has.",
           d.frame("client", 7, 1500, b"one") + two, "damaged serialOutOfRange", got, raw=True)
    vector(d, "damaged-type", "server", "A response with another type than all have.",
           d.frame("server", 8, 3) + d.frame("server", 9, 4), "damaged typeNotAllowed",
           "response serial=4 type=9 code=0 native=200 body=", raw=True)


HEAD = "# Made by generate.py from {}.json and the rules of ../../dialects.md.\n"


def main():
    check = "--check" in sys.argv[1:]
    for topic in (guarded, bare, small, lines, mixed, framed):
        topic()
    stale = []
    for name, blocks in files.items():
        path = HERE / f"{name}.txt"
        content = HEAD.format(name) + "\n" + "\n\n".join(blocks) + "\n"
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        if check:
            stale.append(name)
        else:
            path.write_text(content, encoding="utf-8")
    for name in stale:
        print(f"{name}.txt is not current: run generate.py", file=sys.stderr)
    sys.exit(1 if stale else 0)


main()
