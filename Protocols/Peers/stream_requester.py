#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A requester of streams, for a server with the routes of demo.proto. Written from wire.md alone.

    stream_requester.py list          prints the names of all steps
    stream_requester.py STEP PORT     runs one of them against a server on this port
"""
import random
import socket
import struct
import sys
import zlib

from frames import *

ECHO, SLEEP, COUNT, SUM, RELAY, FEED = 1, 2, 6, 7, 8, 9
SERIAL = 50


def count_request(count, interval=0, item_bytes=0, fail_after=0, fail_code=0, detail=b""):
    return message(
        f1=count, f2=interval, f3=item_bytes, f4=fail_after, f5=fail_code, f6=detail)


def connect(port, max_body=None, stream_credit=None):
    """A connection on which streams are agreed, and the credit that the server gives at first."""
    connection = Connection(socket.create_connection(("127.0.0.1", int(port))))
    hello = message(f1=1, f2=FEATURES)
    if max_body is not None:
        hello += message(f3=max_body)
    if stream_credit is not None:
        hello += message(f11=stream_credit)
    connection.send(frame(HELLO, 3, hello))
    welcome = fields(connection.expect(WELCOME, 3).body)
    assert welcome[2] == FEATURES, welcome
    return connection, welcome.get(10) or 65_536


def receive_all(connection, incoming, window=65_536):
    """Takes items and keeps half a window granted, until the response comes."""
    while True:
        if incoming.left <= window // 2:
            incoming.grant(connection, window - incoming.left)
        found = connection.receive()
        assert found is not None, "the end of the stream before the response"
        if found.kind == RESPONSE:
            return found
        incoming.take(found)


class Outgoing:
    """The items of one direction, as their sender sends them: never beyond the credit."""

    def __init__(self, connection, serial, credit, take=None):
        self.connection, self.serial, self.left = connection, serial, credit
        self.take = take

    def send(self, item, largest=lambda: 65_536):
        """Sends an item in fragments of at most `largest()` bytes."""
        rest = item
        while True:
            room = min(self.left - HEADER, largest())
            if room >= len(rest):
                return self.pay(rest, 0)
            if room >= 1:
                self.pay(rest[:room], MORE)
                rest = rest[room:]
            else:
                self.wait()

    def pay(self, body, flags):
        self.left -= HEADER + len(body)
        assert self.left >= 0
        self.connection.send(frame(ITEM, self.serial, body, flags=flags))

    def wait(self):
        """Waits for credit. Items that come meanwhile are taken."""
        found = self.connection.receive()
        assert found is not None and found.kind in (CREDIT, ITEM), found
        if found.kind == CREDIT:
            self.left += struct.unpack(">I", found.body)[0]
        else:
            self.take(found)


def still_works(connection):
    """Whether the connection goes on: a request on it is answered."""
    connection.send(frame(REQUEST, SERIAL + 900, b"still here", tag=ECHO))
    while (found := connection.receive()) is not None:
        if found.kind == RESPONSE and found.serial == SERIAL + 900:
            assert found.tag == 200 and found.body == b"still here"
            return
    raise AssertionError("the connection has ended")


# What works

def count(port):
    connection, _ = connect(port)
    incoming = Incoming(SERIAL, 65_536)
    connection.send(request(COUNT, SERIAL, count_request(5, interval=1), credit=65_536))
    response = receive_all(connection, incoming)
    assert (response.tag, response.body) == (200, b""), response
    assert incoming.items == [message(f1=number) for number in range(1, 6)], incoming.items


def count_padded(port):
    """Items of several frames each; the credit never covers one."""
    connection, _ = connect(port)
    incoming = Incoming(SERIAL, 50_000)
    connection.send(request(COUNT, SERIAL, count_request(3, item_bytes=200_000), credit=50_000))
    response = receive_all(connection, incoming, window=50_000)
    assert response.tag == 200
    assert incoming.items == [message(f1=n, f2=bytes(200_000)) for n in (1, 2, 3)]


def error_in_band(port):
    for code in (1042, 503):
        connection, _ = connect(port)
        incoming = Incoming(SERIAL, 65_536)
        asked = count_request(9, fail_after=2, fail_code=code, detail=b"no more")
        connection.send(request(COUNT, SERIAL, asked, credit=65_536))
        response = receive_all(connection, incoming)
        assert (response.tag, response.body) == (code, b"no more"), response
        assert len(incoming.items) == 2 and not incoming.is_within


def malformed_requests(port):
    """Answers of 400: refused if no handler ran, otherwise without the mark."""
    connection, _ = connect(port)
    cases = [
        (COUNT, count_request(1, fail_after=1, fail_code=200), {}, False),
        (COUNT, count_request(1, fail_after=1, fail_code=999), {}, False),
        (COUNT, count_request(1, item_bytes=16_777_217), {}, False),
        (COUNT, b"\xff", {}, True),
        (COUNT, count_request(1), {"items": True}, True),
        (FEED, message(f1=b"yaml"), {}, False),
        (SUM, b"", {}, True),
        (ECHO, b"", {}, True),
    ]
    for number, (type, payload, extra, is_refused) in enumerate(cases):
        serial = SERIAL + number
        connection.send(request(type, serial, payload, credit=65_536, **extra))
        response = connection.expect(RESPONSE, serial)
        assert response.tag == 400 | (REFUSED if is_refused else 0), (number, response)
    connection.send(request(COUNT, SERIAL + 99, count_request(1)))
    assert connection.expect(RESPONSE, SERIAL + 99).tag == 400 | REFUSED
    still_works(connection)


def padding_is_bounded(port):
    """The items of all streams together cannot make the server hold more than 32 MiB."""
    connection, _ = connect(port)
    largest = 16_000_000
    for number in range(3):
        asked = count_request(1, item_bytes=largest)
        connection.send(request(COUNT, SERIAL + number, asked, credit=0))
    assert connection.expect(RESPONSE, SERIAL + 2).tag == 429
    # What is given up is free again, once its handler has returned.
    connection.send(frame(CANCEL, SERIAL))
    serial, found = SERIAL + 3, None
    while found is None or found.kind == RESPONSE:
        assert found is None or found.tag == 429, found
        connection.send(
            request(COUNT, serial, count_request(1, item_bytes=largest), credit=2_000))
        found = connection.receive()
        serial += 1
    assert found.kind == ITEM and found.has_more, found


def sum_of_items(port):
    connection, credit = connect(port)
    items = [b"", b"a", bytes(range(256)) * 700, b"", b"xyz" * 30_000]
    connection.send(request(SUM, SERIAL, items=True))
    outgoing = Outgoing(connection, SERIAL, credit)
    for item in items:
        outgoing.send(item, largest=lambda: 30_000)
    connection.send(frame(END, SERIAL))
    while (found := connection.receive()) is not None and found.kind == CREDIT:
        pass
    whole = b"".join(items)
    said = fields(found.body)
    assert found.kind == RESPONSE and found.tag == 200, found
    assert (said[1], said[2], said[3]) == (5, len(whole), zlib.adler32(whole)), said


def sum_of_nothing(port):
    connection, _ = connect(port)
    connection.send(request(SUM, SERIAL, items=True), frame(END, SERIAL))
    assert fields(connection.expect(RESPONSE, SERIAL, tag=200).body) == {3: 1}


def relay(port):
    """Items in both directions at once, in fragments, with an end before the last come back."""
    connection, credit = connect(port)
    items = [b"", b"one", bytes(200_000), b"two" * 40_000, b""]
    window = 70_000
    connection.send(request(RELAY, SERIAL, credit=window, items=True))
    incoming = Incoming(SERIAL, window)

    def take(found):
        incoming.take(found)
        incoming.grant(connection, found.cost)

    outgoing = Outgoing(connection, SERIAL, credit, take)
    for item in items:
        outgoing.send(item, largest=lambda: 20_000)
    connection.send(frame(END, SERIAL))
    while (found := connection.receive()) is not None and found.kind != RESPONSE:
        if found.kind == ITEM:
            take(found)
    assert found.tag == 200 and incoming.items == items


def feed(port):
    """A document in pieces whose ends mean nothing."""
    nodes = ['{"name":"café %d"}' % number for number in (1, 2, 3)]
    documents = {
        (b"xml", 0): "<root>%s</root>" % "".join("<node>%s</node>" % node for node in nodes),
        (b"json", 0): "[%s]" % ",".join(nodes),
        (b"xml", 1): "<root><node>%s</node><error>the feed has failed</error>" % nodes[0],
        (b"json", 1): '[%s,{"error":"the feed has failed"}' % nodes[0],
    }
    for (format, fails), document in documents.items():
        connection, _ = connect(port)
        incoming = Incoming(SERIAL, 65_536)
        asked = message(f1=format, f2=3, f4=fails)
        connection.send(request(FEED, SERIAL, asked, credit=65_536))
        assert receive_all(connection, incoming).tag == 200
        assert b"".join(incoming.items).decode() == document, incoming.items


# Credit

def withheld_credit(port):
    """The sender uses what it has down to less than 1,024 bytes, and never more."""
    connection, _ = connect(port)
    incoming = Incoming(SERIAL, 0)
    connection.send(request(COUNT, SERIAL, count_request(40, item_bytes=5_000), credit=0))
    assert connection.settle() == []
    for grant in (10_000, 1_024, 1, 1_500, 700, 700, 16_000, 66_000):
        incoming.grant(connection, grant)
        while incoming.left >= LEAST_CREDIT:
            incoming.take(connection.receive())
        for found in connection.settle():
            incoming.take(found)
    response = receive_all(connection, incoming)
    assert response.tag == 200 and len(incoming.items) == 40
    assert not incoming.is_within


def credit_one_by_one(port):
    """Credit for less than a header is kept until it is enough."""
    connection, _ = connect(port)
    incoming = Incoming(SERIAL, 0)
    connection.send(request(COUNT, SERIAL, count_request(2), credit=0))
    for _ in range(LEAST_CREDIT):
        incoming.grant(connection, 1)
    response = receive_all(connection, incoming)
    assert response.tag == 200 and len(incoming.items) == 2


def granted_to_an_item(port):
    """A receiver that waits for the rest of an item grants until it is whole."""
    connection, credit = connect(port)
    # No credit for what comes back: the server cannot take more than one item.
    connection.send(request(RELAY, SERIAL, credit=0, items=True))
    Outgoing(connection, SERIAL, credit).send(bytes(1_000_000))
    assert not any(found.kind == ITEM for found in connection.settle())
    connection.send(frame(CANCEL, SERIAL))
    still_works(connection)


def random_credit(port):
    """Several streams at once, each with random credit; none waits for another's."""
    for seed in range(5):
        random.seed(seed)
        connection, _ = connect(port)
        running, marks = {}, 0
        for serial in range(SERIAL, SERIAL + 4):
            first = random.choice([0, 1, 16, 17, 1_023, 1_024, 3_000])
            count = random.choice([1, 3, 20])
            size = random.choice([0, 1, 100, 1_000, 1_008, 5_000, 70_000])
            asked = count_request(count, item_bytes=size)
            connection.send(request(COUNT, serial, asked, credit=first))
            running[serial] = Incoming(serial, first), count

        def handle(found):
            incoming, count = running[found.serial]
            if found.kind == ITEM:
                return incoming.take(found)
            assert found.tag == 200 and len(incoming.items) == count, (seed, found)
            assert not incoming.is_within
            del running[found.serial]

        while running:
            incoming, _ = random.choice(list(running.values()))
            incoming.grant(connection, random.choice([1, 17, 500, 1_024, 1_040, 4_000, 70_000]))
            while any(incoming.left >= LEAST_CREDIT for incoming, _ in running.values()):
                handle(connection.receive())
            # What comes before this response was sent with less credit.
            marks += 1
            connection.send(frame(REQUEST, SERIAL + 900 + marks, tag=ECHO))
            while (found := connection.receive()).serial != SERIAL + 900 + marks:
                handle(found)


def random_fragments(port):
    """Items in random fragments, down to a byte each; the server grants until each is whole."""
    for seed in range(4):
        random.seed(seed)
        connection, credit = connect(port)
        connection.send(request(SUM, SERIAL, items=True))
        outgoing = Outgoing(connection, SERIAL, credit)
        sizes = random.choices([0, 1, 50, 5_000, 40_000], k=8)
        items = [random.randbytes(size) for size in sizes]
        for item in items:
            outgoing.send(item, largest=lambda: random.choice([1, 3, 100, 1_000, 65_536]))
        connection.send(frame(END, SERIAL))
        while (found := connection.receive()).kind == CREDIT:
            pass
        whole = b"".join(items)
        assert fields(found.body).get(2, 0) == len(whole), (seed, found)
        assert fields(found.body)[3] == zlib.adler32(whole), (seed, found)


def credit_default(port):
    """The credit of the server's hello or welcome is what a sender begins with."""
    connection, credit = connect(port)
    connection.send(request(RELAY, SERIAL, credit=0, items=True))
    connection.send(frame(ITEM, SERIAL, bytes(credit - HEADER)))
    still_works(connection)


# The end

def early_response(port):
    """An item that this side would not accept ends the exchange before its items do."""
    connection, _ = connect(port, max_body=1_000)
    connection.send(
        request(RELAY, SERIAL, credit=65_536, items=True), frame(ITEM, SERIAL, bytes(1_001)))
    while (found := connection.receive()).kind == CREDIT:
        pass
    assert (found.kind, found.tag) == (RESPONSE, 400), found
    # What crosses the response is dropped.
    connection.send(
        frame(ITEM, SERIAL, b"late", flags=MORE), frame(ITEM, SERIAL), credit(SERIAL, 1),
        frame(END, SERIAL), frame(CANCEL, SERIAL))
    still_works(connection)


def cancelled(port):
    connection, _ = connect(port)
    incoming = Incoming(SERIAL, 65_536)
    # Without the cancel, the items would come for a year.
    asked = count_request(31_536_000, interval=1_000)
    connection.send(request(COUNT, SERIAL, asked, credit=65_536))
    incoming.take(connection.receive())
    connection.send(frame(CANCEL, SERIAL))
    # Items may cross the cancel, but none comes behind the answer to a later frame.
    for found in connection.settle():
        incoming.take(found)
    connection.send(credit(SERIAL, 1_000), frame(CANCEL, SERIAL))
    assert connection.settle() == []
    still_works(connection)


def cancelled_upload(port):
    connection, _ = connect(port)
    connection.send(
        request(SUM, SERIAL, items=True), frame(ITEM, SERIAL, b"half", flags=MORE),
        frame(CANCEL, SERIAL), frame(ITEM, SERIAL, b"late"), frame(END, SERIAL))
    assert not any(found.kind == RESPONSE for found in connection.settle())
    still_works(connection)


def deadline(port):
    """The time for the whole exchange passes in the server: 408 behind the items."""
    connection, _ = connect(port)
    incoming = Incoming(SERIAL, 65_536)
    asked = count_request(2, interval=86_400_000)
    connection.send(request(COUNT, SERIAL, asked, credit=65_536, remaining=300))
    response = receive_all(connection, incoming)
    assert response.tag == 408, response
    still_works(connection)


def cut_anywhere(port):
    """A requester that is cut off gets no response, wherever that happens."""
    whole = b"".join([
        request(SUM, SERIAL, items=True), frame(ITEM, SERIAL, b"on", flags=MORE),
        frame(ITEM, SERIAL, b"e"), frame(ITEM, SERIAL), frame(END, SERIAL)])
    for place in range(len(whole)):
        connection, _ = connect(port)
        connection.send(whole[:place])
        connection.stream.shutdown(socket.SHUT_WR)
        while (found := connection.receive()) is not None:
            assert found.kind != RESPONSE, (place, found)
        connection.close()


# Violations

def opened(port, credit=0):
    """A connection with a relay that can do nothing but wait, and the credit for its items."""
    connection, first = connect(port)
    connection.send(request(RELAY, SERIAL, credit=credit, items=True))
    return connection, first


def plain(connection):
    """A request without items that runs for a day."""
    connection.send(frame(REQUEST, SERIAL, message(f1=86_400_000), tag=SLEEP))


def counting(connection):
    connection.send(
        request(COUNT, SERIAL, count_request(2, interval=86_400_000), credit=65_536))


def broken(port, rule, begin, *frames):
    connection, _ = connect(port)
    begin(connection)
    connection.send(*frames)
    connection.expect_goaway(rule)
    connection.close()


def item_not_expected(port):
    begun = frame(REQUEST, SERIAL, metadata(0, True) + b"x", tag=RELAY, flags=METADATA | MORE)
    for begin in (plain, counting, lambda connection: connection.send(begun)):
        broken(port, "itemNotExpected", begin, frame(ITEM, SERIAL, b"x"))
        broken(port, "itemNotExpected", begin, frame(END, SERIAL))
    broken(port, "itemNotExpected", lambda c: c.send(begun), credit(SERIAL, 100))


def item_after_end(port):
    for last in (frame(ITEM, SERIAL), frame(END, SERIAL)):
        connection, _ = opened(port)
        # The relay waits for credit with this item, so the exchange goes on behind the end.
        connection.send(frame(ITEM, SERIAL, b"held"), frame(END, SERIAL), last)
        connection.expect_goaway("itemAfterEnd")


def item_cut_off(port):
    connection, _ = opened(port)
    connection.send(frame(ITEM, SERIAL, b"half", flags=MORE), frame(END, SERIAL))
    connection.expect_goaway("itemCutOff")


def credit_not_allowed(port):
    for begin in (plain, lambda c: c.send(request(SUM, SERIAL, items=True))):
        broken(port, "creditNotAllowed", begin, credit(SERIAL, 1))
    for number in (0, MOST_CREDIT + 1):
        broken(port, "creditNotAllowed", counting, credit(SERIAL, number))
        # Even if the frame would be dropped.
        broken(port, "creditNotAllowed", counting, credit(SERIAL + 1, number))
    broken(
        port, "creditNotAllowed", lambda connection: None,
        request(COUNT, SERIAL, count_request(1), credit=MOST_CREDIT + 1))


def credit_overflow(port):
    connection, _ = opened(port, credit=MOST_CREDIT)
    connection.send(credit(SERIAL, 1))
    connection.expect_goaway("creditOverflow")


def credit_exceeded(port):
    # One frame that no credit covers: the server has taken nothing, and so granted no more.
    connection, first = opened(port)
    connection.send(frame(ITEM, SERIAL, bytes(first - HEADER + 1)))
    connection.expect_goaway("creditExceeded")
    # The relay takes one item of 16 bytes, so no more than these can have been granted again.
    connection, first = opened(port)
    connection.send(frame(ITEM, SERIAL), frame(ITEM, SERIAL, bytes(first - 2 * HEADER)))
    connection.send(frame(ITEM, SERIAL), frame(ITEM, SERIAL))
    connection.expect_goaway("creditExceeded")


STEPS = {
    step.__name__: step for step in (
        count, count_padded, error_in_band, malformed_requests, padding_is_bounded,
        sum_of_items, sum_of_nothing, relay, feed, withheld_credit, credit_one_by_one,
        random_credit, random_fragments, granted_to_an_item, credit_default, early_response,
        cancelled, cancelled_upload, deadline, cut_anywhere, item_not_expected, item_after_end,
        item_cut_off, credit_not_allowed, credit_overflow, credit_exceeded)
}

run(STEPS, sys.argv)
