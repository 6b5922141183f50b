#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speaks the dialect `small` on its own, from its description alone.

Little-endian. A frame is: CRC-32 of all that follows (4 bytes), length of the whole frame (2), type
(2), serial (4), from the server a code (1), and the body, at most 4,096 bytes.

Requests have serials from 1 to 0x7FFFFFFF, those of the server from 0x80000000. A response has the
type of its request plus 0x4000, and its serial; code 0 is success, 1 a failure, 2 busy, 3 gone. The
client pings with type 0xFF01, the server answers with 0xFF02 and the same serial. Types 0xF000 to
0xF0FF are pushes of the server, 0xF100 to 0xF1FF of the client. 0xFF03 cancels the request whose
serial it has.

    small.py serve         listens, prints its port, serves one connection until it ends
    small.py call PORT     calls a server that echoes type 0x500 and has no handler for 0x501
"""
import socket
import struct
import sys
import zlib


class Peer:
    def __init__(self, stream, is_server):
        self.stream = stream
        self.is_server = is_server
        self.pending = b""

    def send(self, kind, serial, body=b"", code=0, flip=False):
        head = struct.pack("<HI", kind, serial)
        if self.is_server:
            head += struct.pack("<B", code)
        rest = struct.pack("<H", 6 + len(head) + len(body)) + head + body
        checksum = zlib.crc32(rest) ^ (1 if flip else 0)
        data = struct.pack("<I", checksum) + rest
        # In two pieces, so that the other side has to put them together.
        self.stream.sendall(data[:7])
        self.stream.sendall(data[7:])

    def receive(self):
        """Type, serial, code and body of the next frame; None at the end of the stream."""
        while True:
            if len(self.pending) >= 6:
                checksum, length = struct.unpack_from("<IH", self.pending)
                if len(self.pending) >= length:
                    frame, self.pending = self.pending[:length], self.pending[length:]
                    assert zlib.crc32(frame[4:]) == checksum, "a wrong checksum"
                    kind, serial = struct.unpack_from("<HI", frame, 6)
                    code = None if self.is_server else frame[12]
                    return kind, serial, code, frame[12 if self.is_server else 13:]
            more = self.stream.recv(65536)
            if not more:
                assert not self.pending, "the stream ended within a frame"
                return None
            self.pending += more


def serve():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    stream, _ = listener.accept()
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer = Peer(stream, True)
    held, cancelled, pings, pushed = [], [], 0, []
    while (frame := peer.receive()) is not None:
        kind, serial, _, body = frame
        if kind == 0xFF01:
            pings += 1
            peer.send(0xFF02, serial)
        elif kind == 0xFF03:
            cancelled.append(serial)
        elif 0xF100 <= kind <= 0xF1FF:
            pushed.append(body)
        elif serial >= 0x80000000:
            # The answer to the question below goes back to who made this ask.
            asked = held.pop()
            peer.send(0x503 + 0x4000, asked, b"they say: " + body)
        elif kind == 0x500:
            peer.send(kind + 0x4000, serial, body)
        elif kind == 0x501:
            peer.send(kind + 0x4000, serial, b"", code=2)
        elif kind == 0x502:
            # Held until there are three; the last one is answered first.
            held.append((serial, body))
            if len(held) == 3:
                for serial, body in reversed(held):
                    peer.send(kind + 0x4000, serial, body)
                held = []
        elif kind == 0x503:
            held.append(serial)
            peer.send(0x600, 0x80000000, body)
        elif kind == 0x504:
            peer.send(0xF001, 0, body)
            peer.send(kind + 0x4000, serial)
        elif kind == 0x505:
            pass  # Never answered.
        elif kind == 0x506:
            report = f"{len(cancelled)} cancelled, {pings} pings, {b''.join(pushed).decode()}"
            peer.send(kind + 0x4000, serial, report.encode())
        elif kind == 0x507:
            peer.send(kind + 0x4000, serial, b"damaged", flip=True)
        else:
            peer.send(kind + 0x4000, serial, b"", code=1)


def call(port):
    stream = socket.create_connection(("127.0.0.1", port))
    peer = Peer(stream, False)
    for serial in range(1, 51):
        peer.send(0x500, serial, b"x" * serial)
    for serial in range(1, 51):
        assert peer.receive() == (0x4500, serial, 0, b"x" * serial)
    peer.send(0x501, 51)
    kind, serial, code, body = peer.receive()
    assert (kind, serial, code) == (0x4501, 51, 1), (kind, serial, code)
    peer.send(0xFF01, 7)
    assert peer.receive() == (0xFF02, 7, 0, b"")
    peer.send(0xF100, 0, b"hello")
    # The server pushes it back.
    assert peer.receive() == (0xF000, 0, 0, b"hello")
    # A wrong checksum ends the connection, without a word.
    peer.send(0x500, 52, b"y", flip=True)
    assert peer.receive() is None
    print("all is well")


if sys.argv[1] == "serve":
    serve()
else:
    call(int(sys.argv[2]))
