#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A responder of streams, for a client that is told what to send. Written from wire.md alone.

    stream_responder.py list     prints the names of all steps
    stream_responder.py STEP     listens, prints its port, and serves as the step says
"""
import socket
import struct
import sys

from frames import *


class Request:
    """A request that has arrived, and what its metadata say."""

    def __init__(self, found):
        assert found.kind == REQUEST and not found.has_more, found
        self.serial, self.type, self.payload = found.serial, found.tag, found.body
        self.credit, self.has_items, self.remaining = None, False, None
        if found.has_metadata:
            length = struct.unpack_from(">H", found.body)[0]
            said = fields(found.body[2:2 + length])
            self.payload = found.body[2 + length:]
            self.credit, self.has_items = said.get(6), bool(said.get(7))
            self.remaining = said.get(1)


def respond(request, code=200, body=b"", mark=0):
    return frame(RESPONSE, request.serial, body, tag=code | mark)


def item(request, body=b"", flags=0):
    return frame(ITEM, request.serial, body, flags=flags)


def listen():
    listener = socket.create_server(("127.0.0.1", 0))
    # A client that exits without connecting does not leave this process behind.
    listener.settimeout(600)
    print(listener.getsockname()[1], flush=True)
    return listener


def greet(stream, stream_credit=None):
    """A connection on which streams are agreed."""
    connection = Connection(stream)
    hello = fields(connection.expect(HELLO, 3).body)
    assert hello[2] & FEATURES == FEATURES, hello
    welcome = message(f1=1, f2=FEATURES)
    if stream_credit is not None:
        welcome += message(f10=stream_credit)
    connection.send(frame(WELCOME, 3, welcome))
    return connection


def accept(stream_credit=None):
    """The first connection, and its request."""
    connection = greet(listen().accept()[0], stream_credit)
    return connection, Request(connection.receive())


def read_to_end(connection):
    found = []
    while (next := connection.receive()) is not None:
        found.append(next)
    return found


# What works

def items():
    connection, asked = accept()
    assert (asked.type, asked.payload, asked.has_items) == (9, b"ask", False)
    # No item is sent on credit that was not given.
    assert asked.credit >= LEAST_CREDIT
    connection.send(
        item(asked, b"one"), item(asked), item(asked, b"line\n\x1b[2K \xff"),
        respond(asked, body=b"done"))
    read_to_end(connection)


def fragments():
    """An item in fragments, with other frames between them, and an empty last one."""
    connection, asked = accept()
    connection.send(
        item(asked, b"fra", flags=MORE), frame(PING, 0, b"?"), item(asked, b"gment", flags=MORE),
        frame(PUSH, 1, b"news", tag=77), item(asked), item(asked, b"next"), respond(asked))
    read_to_end(connection)


def large_items():
    """Items larger than the window: the requester grants until each is whole."""
    connection, asked = accept()
    left = asked.credit
    for _ in range(3):
        rest = b"x" * 300_000
        while rest:
            room = min(left - HEADER, 65_536, len(rest))
            if room < 1:
                left += struct.unpack(">I", connection.expect(CREDIT, asked.serial).body)[0]
                continue
            connection.send(item(asked, rest[:room], flags=MORE if room < len(rest) else 0))
            left -= HEADER + room
            rest = rest[room:]
    connection.send(respond(asked))
    read_to_end(connection)


def relay():
    """Each item back as it came, in both directions at once."""
    connection, asked = accept(stream_credit=2_000)
    assert asked.has_items and asked.credit >= LEAST_CREDIT
    incoming = Incoming(asked.serial, 2_000)
    while (found := connection.receive()).kind != END:
        if found.kind != CREDIT:
            incoming.take(found)
            incoming.grant(connection, found.cost)
            if not found.has_more:
                connection.send(item(asked, incoming.items[-1]))
    assert not incoming.is_within
    connection.send(respond(asked))
    read_to_end(connection)


def error_in_band():
    """An error behind two items; the third one is never whole."""
    connection, asked = accept()
    connection.send(
        item(asked, b"one"), item(asked, b"two"), item(asked, b"thr", flags=MORE),
        respond(asked, 1042, b"no more \x1b[2K"))
    read_to_end(connection)


def timed_out():
    """The responder's clock is the first."""
    connection, asked = accept()
    assert 0 < asked.remaining <= 100_000
    connection.send(item(asked, b"one"), respond(asked, 408, b"too slow"))
    read_to_end(connection)


def call_timed_out():
    """The same for a plain request."""
    connection, asked = accept()
    connection.send(respond(asked, 408, b"too slow"))
    read_to_end(connection)


def silent():
    """No response ever: the requester's clock is the first."""
    connection, asked = accept()
    connection.send(item(asked, b"one"))
    # A requester that gives up a stream sends a cancel.
    assert any(found.kind == CANCEL for found in read_to_end(connection))


def cancelled():
    connection, asked = accept()
    connection.send(item(asked, b"one"), item(asked, b"two"), item(asked, b"three"))
    found = [next for next in read_to_end(connection) if next.kind != CREDIT]
    assert [(next.kind, next.serial) for next in found] == [(CANCEL, asked.serial)], found


def withheld_credit():
    """The sender uses what it has down to less than 1,024 bytes, and never more."""
    connection, asked = accept(stream_credit=3_000)
    assert asked.has_items and asked.credit is None
    incoming = Incoming(asked.serial, 3_000)
    for grant in (0, 1_024, 1, 1_500, 700, 700, 5_000):
        if grant:
            incoming.grant(connection, grant)
        while incoming.left >= LEAST_CREDIT:
            incoming.take(connection.receive())
        for found in connection.settle():
            incoming.take(found)
    while True:
        if incoming.left < LEAST_CREDIT:
            incoming.grant(connection, 4_000)
        found = connection.receive()
        if found.kind == END:
            break
        incoming.take(found)
    assert not incoming.is_within
    connection.send(respond(asked, body=b"%d items" % len(incoming.items)))
    read_to_end(connection)


def early_response():
    """The response comes while the requester waits for something to send."""
    connection, asked = accept()
    connection.send(respond(asked, body=b"enough"))
    assert read_to_end(connection) == []


def early_within_item():
    """The response comes while the requester waits for credit within an item."""
    connection, asked = accept(stream_credit=1_024)
    incoming = Incoming(asked.serial, 1_024)
    while incoming.left > 0:
        incoming.take(connection.receive())
    assert incoming.is_within
    connection.send(respond(asked, 1042, b"too much"))
    # Neither an end nor a cancel.
    assert read_to_end(connection) == []


def cut_anywhere():
    """One request for each place at which the stream can be cut; the last one gets all of it."""
    listener = listen()
    place, length = 0, None
    while length is None or place <= length:
        stream = listener.accept()[0]
        try:
            connection = greet(stream)
            found = connection.receive()
        except (Ended, ConnectionError):
            found = None
        if found is None:
            # A client whose stream was cut connects again, until it is told to close.
            stream.close()
            continue
        asked = Request(found)
        whole = item(asked, b"a") + respond(asked)
        connection.send(whole[:place])
        try:
            connection.stream.shutdown(socket.SHUT_WR)
            read_to_end(connection)
        except ConnectionError:
            pass  # A client that finds a cut frame just closes.
        connection.close()
        place, length = place + 1, len(whole)


# Violations

def broken(rule, *make):
    connection, asked = accept()
    connection.send(*[frame(asked) for frame in make])
    connection.expect_goaway(rule)


def item_not_asked_for():
    broken("itemNotExpected", lambda asked: item(asked, b"x"))


def item_of_a_plain_request():
    item_not_asked_for()


def item_cut_off():
    broken("itemCutOff", lambda asked: item(asked, b"x", flags=MORE), respond)


def credit_not_announced():
    broken("creditNotAllowed", lambda asked: credit(asked.serial, 1))


def credit_of_zero():
    broken("creditNotAllowed", lambda asked: credit(asked.serial, 0))


def credit_of_a_plain_request():
    credit_not_announced()


def credit_overflow():
    broken("creditOverflow", lambda asked: credit(asked.serial, MOST_CREDIT))


def credit_exceeded():
    # One frame that the first credit does not cover. Nothing was taken, so no more was granted.
    broken("creditExceeded", lambda asked: item(asked, bytes(asked.credit - HEADER + 1)))


def refused_after_item():
    broken("refusedAfterItems", item, lambda asked: respond(asked, 503, mark=REFUSED))


def refused_after_credit():
    broken(
        "refusedAfterItems", lambda asked: credit(asked.serial, 1),
        lambda asked: respond(asked, 503, mark=REFUSED))


STEPS = {
    step.__name__: step for step in (
        items, fragments, large_items, relay, error_in_band, timed_out, call_timed_out, silent,
        cancelled, withheld_credit, early_response, early_within_item, item_not_asked_for,
        item_of_a_plain_request, item_cut_off, credit_not_announced, credit_of_zero,
        credit_of_a_plain_request, credit_overflow, credit_exceeded, refused_after_item,
        refused_after_credit, cut_anywhere)
}

run(STEPS, sys.argv)
