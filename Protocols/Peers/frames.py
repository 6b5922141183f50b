# SPDX-License-Identifier: Apache-2.0
"""Frames, control messages and streams, written from wire.md alone."""
import signal
import socket
import struct
import sys
import traceback
import zlib

REQUEST, RESPONSE, ITEM, END, CANCEL, CREDIT, PUSH = range(0x00, 0x07)
PING, PONG, HELLO, WELCOME, GOAWAY = range(0x08, 0x0D)
MORE, METADATA = 0x40000000, 0x80000000
REFUSED = 1 << 23
# metadata, fragments, streams
FEATURES = 7
HEADER = 16
MOST_CREDIT = 2_147_483_647
# A sender with less credit may wait (section 15).
LEAST_CREDIT = 1_024
# Only reached if the other side is wrong, so it may be long.
PATIENCE = 600


def frame(kind, serial, body=b"", tag=0, flags=0):
    head = struct.pack(">III", flags | kind << 24 | tag, serial, len(body))
    return head + struct.pack(">I", zlib.adler32(head + body)) + body


class Frame:
    def __init__(self, head, body):
        word, self.serial, length = struct.unpack(">III", head[:12])
        assert length == len(body)
        checksum = struct.unpack(">I", head[12:])[0]
        assert zlib.adler32(head[:12] + body) == checksum, "a wrong checksum"
        self.kind, self.tag, self.body = word >> 24 & 0x3F, word & 0xFFFFFF, body
        self.has_more, self.has_metadata = bool(word & MORE), bool(word & METADATA)

    @property
    def cost(self):
        """What a frame of an item takes of the credit."""
        return HEADER + len(self.body)

    def __repr__(self):
        return f"kind {self.kind} serial {self.serial} tag {self.tag} {self.body[:80]}"


# Protocol Buffers (section 13)

def varint(number):
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def message(**fields):
    """A message; the fields are named f1, f2, … and are numbers or bytes."""
    encoded = b""
    for name, value in fields.items():
        number = int(name[1:])
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(value)
        else:
            encoded += varint(number << 3 | 2) + varint(len(value)) + value
    return encoded


def fields(encoded):
    """The fields of a message, by number; the last value counts."""
    found, place = {}, 0

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = encoded[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(encoded):
        key = number()
        if key & 7 == 0:
            found[key >> 3] = number()
        else:
            assert key & 7 == 2, "an unexpected type of field"
            length = number()
            assert place + length <= len(encoded), "a field that is cut off"
            found[key >> 3] = encoded[place:place + length]
            place += length
    return found


def metadata(credit=None, items=False, remaining=None):
    block = b""
    if remaining is not None:
        block += message(f1=remaining)
    if credit is not None:
        block += message(f6=credit)
    if items:
        block += message(f7=1)
    return struct.pack(">H", len(block)) + block


def request(type, serial, payload=b"", credit=None, items=False, remaining=None):
    """A request in one frame."""
    block = metadata(credit, items, remaining)
    return frame(REQUEST, serial, block + payload, tag=type, flags=METADATA)


def credit(serial, count):
    return frame(CREDIT, serial, struct.pack(">I", count))


class Ended(Exception):
    """The stream ended where a frame was expected."""


class Connection:
    """A connection. Answers pings, and keeps the frames that are not asked for yet."""

    def __init__(self, stream):
        self.stream = stream
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""
        self.pings = 0

    def send(self, *frames):
        self.stream.sendall(b"".join(frames))

    def read(self):
        """The next frame, pings and pongs included; None at the end of the stream."""
        while True:
            if len(self.pending) >= HEADER:
                whole = HEADER + struct.unpack_from(">I", self.pending, 8)[0]
                if len(self.pending) >= whole:
                    data, self.pending = self.pending[:whole], self.pending[whole:]
                    return Frame(data[:HEADER], data[HEADER:])
            more = self.stream.recv(65_536)
            if not more:
                assert not self.pending, "the stream ended within a frame"
                return None
            self.pending += more

    def receive(self):
        """The next frame that is no ping."""
        while True:
            found = self.read()
            if found is None or found.kind != PING:
                return found
            self.send(frame(PONG, 0, found.body))

    def expect(self, kind, serial, body=None, tag=None):
        found = self.receive()
        if found is None:
            raise Ended(f"the end of the stream instead of kind {kind}")
        assert (found.kind, found.serial) == (kind, serial), f"{found} instead of kind {kind}"
        assert body is None or found.body == body, f"{found} instead of {body[:80]}"
        assert tag is None or found.tag == tag, f"{found} instead of tag {tag}"
        return found

    def settle(self):
        """The frames that come before the pong to a ping of now."""
        self.pings += 1
        mark = b"%8d" % self.pings
        self.send(frame(PING, 0, mark))
        found = []
        while (next := self.receive()) is not None:
            if next.kind == PONG and next.body == mark:
                return found
            found.append(next)
        raise AssertionError(f"the stream ended before a pong, after {found}")

    def expect_goaway(self, rule):
        """A goaway with 400 for this rule, and then the end. What was on its way may come first."""
        before = []
        while (found := self.receive()) is not None and found.kind != GOAWAY:
            before.append(found)
        assert found is not None, f"the end of the stream without a goaway, after {before}"
        said = fields(found.body)
        # The text is free; this implementation begins it with the name of the rule.
        assert said[1] == 400 and said[2].decode().startswith(rule), said
        assert self.receive() is None, "a frame behind the goaway of a violation"
        return said

    def close(self):
        self.stream.close()


class Incoming:
    """The items of one direction, as their receiver sees them: joined, and paid for."""

    def __init__(self, serial, credit):
        self.serial, self.granted = serial, credit
        self.used, self.partial, self.items = 0, b"", []
        self.is_within = False

    @property
    def left(self):
        return self.granted - self.used

    def take(self, found):
        assert (found.kind, found.serial) == (ITEM, self.serial), found
        assert len(found.body) <= 65_536 and (found.body or not found.has_more), found
        self.used += found.cost
        assert self.used <= self.granted, f"{self.used} bytes used of {self.granted}"
        self.partial += found.body
        self.is_within = found.has_more
        if not found.has_more:
            self.items.append(self.partial)
            self.partial = b""

    def grant(self, connection, count):
        self.granted += count
        connection.send(credit(self.serial, count))


def give_up(number, place):
    raise TimeoutError


def run(steps, arguments):
    """Runs a step by its name; prints what went wrong, or that nothing did."""
    if arguments[1] == "list":
        print("\n".join(steps))
        return
    # A step that waits for what never comes is ended, and shows where it waits.
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        steps[arguments[1]](*arguments[2:])
    except Exception:
        traceback.print_exc(file=sys.stdout)
        sys.exit(1)
    print("all is well")
