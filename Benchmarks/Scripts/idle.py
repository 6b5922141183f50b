#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what an idle connection costs servers in memory: LongLink, nats-server, mosquitto and redis-server.

    Benchmarks/Scripts/idle.py [--rounds N] [--rest SECONDS] [COUNT...]

Each server is started anew for each COUNT (default: 2000 10000) in each round, in turns. COUNT clients connect over
loopback, say what the protocol demands of a client, and are silent. After the rest the growth of the server's
resident memory is divided by COUNT. The kernel's memory is that of the slab caches of sockets, both ends of each
connection, divided by two. The table has medians, and the ratio to LongLink.

It needs the release build of LongLinkPeer (`make bench-idle` makes it; LONGLINK_PEER names another), and skips
servers that are not installed. A process needs COUNT descriptors and some more (`ulimit -n`).
"""
import argparse
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = os.environ.get("LONGLINK_PEER", str(ROOT / "Benchmarks/.build/release/LongLinkPeer"))
# What the kernel keeps for a connection: the socket, its file, its name, and its place in epoll.
CACHES = ("TCP", "TCPv6", "sock_inode_cache", "filp", "eventpoll_epi", "eventpoll_pwq")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def resident(process):
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kernel():
    """The bytes of objects that are in use in the caches of sockets; None if they cannot be read."""
    try:
        with open("/proc/slabinfo") as file:
            rows = [line.split() for line in file.read().splitlines()[2:]]
    except OSError:
        return None
    return sum(int(row[1]) * int(row[3]) for row in rows if row[0] in CACHES)


def lines_until(client, end):
    text = b""
    while end not in text:
        part = client.recv(4_096)
        if not part:
            sys.exit(f"a server closed the connection after {text!r}")
        text += part
    return text


def greet_nats(client, number):
    lines_until(client, b"\r\n")
    client.sendall(b'CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1"}\r\nPING\r\n')
    lines_until(client, b"PONG\r\n")


def greet_mqtt(client, number):
    name = f"idle-{number}".encode()
    # MQTT 3.1.1, a clean session, no keep-alive.
    body = b"\x00\x04MQTT\x04\x02\x00\x00" + len(name).to_bytes(2, "big") + name
    client.sendall(b"\x10" + bytes([len(body)]) + body)
    answer = client.recv(4, socket.MSG_WAITALL)
    if answer != b"\x20\x02\x00\x00":
        sys.exit(f"mosquitto answered {answer!r}")


def greet_redis(client, number):
    client.sendall(b"PING\r\n")
    lines_until(client, b"+PONG\r\n")


class Subject:
    """A server, and how its clients greet it."""

    def __init__(self, name, program, options, greet):
        self.name, self.options, self.greet = name, options, greet
        self.program = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin")

    def measure(self, count, rest, folder):
        port = free_port()
        server = subprocess.Popen(
            [self.program] + self.options(port, folder), cwd=folder, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.wait_for(port, server)
            time.sleep(2)
            before, kernel_before = resident(server.pid), kernel()
            clients = []
            for number in range(count):
                client = socket.create_connection(("127.0.0.1", port), timeout=30)
                self.greet(client, number)
                clients.append(client)
            time.sleep(rest)
            grown, kernel_after = resident(server.pid) - before, kernel()
            for client in clients:
                client.setblocking(False)
                try:
                    if client.recv(1) == b"":
                        sys.exit(f"{self.name} has closed a connection")
                except BlockingIOError:
                    pass
                client.close()
            return grown, kernel_after and kernel_after - kernel_before
        finally:
            server.kill()
            server.wait()

    @staticmethod
    def wait_for(port, server):
        while True:
            if server.poll() is not None:
                sys.exit(f"{server.args} ended with {server.returncode}")
            try:
                return socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                time.sleep(0.02)


class LongLink:
    """A server with one loop, and as many whole clients, with the default heartbeat, in another process."""

    program = shutil.which(PEER)

    def __init__(self, name, *options):
        self.name, self.options = name, options

    def measure(self, count, rest, folder):
        server = subprocess.Popen(
            [PEER, "serve", *self.options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        client = None
        try:
            port = server.stdout.readline().split()[-1]
            time.sleep(2)
            before, kernel_before = resident(server.pid), kernel()
            client = subprocess.Popen(
                [PEER, "idle", f"--port={port}", f"--connections={count}", f"--seconds={rest + 60}", *self.options],
                stdout=subprocess.PIPE, text=True)
            # The first line tells that all are open.
            if not client.stdout.readline():
                sys.exit("the clients did not connect")
            time.sleep(rest)
            after = kernel()
            return resident(server.pid) - before, after and after - kernel_before
        finally:
            for process in filter(None, (client, server)):
                process.kill()
                process.wait()


def mosquitto_options(port, folder):
    file = pathlib.Path(folder) / "mosquitto.conf"
    file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_type none\n")
    return ["-c", str(file)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=int, default=[2_000, 10_000], metavar="COUNT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rest", type=float, default=20)
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    subjects = [
        LongLink("LongLink"),
        LongLink("LongLink with TLS", "--tls"),
        Subject("nats-server", "nats-server", lambda port, _: ["-a", "127.0.0.1", "-p", str(port)], greet_nats),
        Subject("mosquitto", "mosquitto", mosquitto_options, greet_mqtt),
        Subject("redis-server", "redis-server", lambda port, _: [
            "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--maxclients", str(max(options.counts) + 100)], greet_redis),
    ]
    for subject in subjects:
        if subject.program is None:
            print(f"not installed: {subject.name}", file=sys.stderr)
    subjects = [subject for subject in subjects if subject.program]
    results = {(subject.name, count): [] for subject in subjects for count in options.counts}
    for number in range(options.rounds):
        for count in options.counts:
            for subject in subjects:
                with tempfile.TemporaryDirectory() as folder:
                    os.chmod(folder, 0o755)
                    result = subject.measure(count, options.rest, folder)
                print(f"round {number + 1}: {subject.name}, {count}: {result}", file=sys.stderr)
                results[subject.name, count].append(result)
    print("| server | connections | bytes each | spread | of LongLink | kernel's bytes each |")
    print("| --- | --- | --- | --- | --- | --- |")
    for count in options.counts:
        base = None
        for subject in subjects:
            each = [grown / count for grown, _ in results[subject.name, count]]
            slabs = [slab / count / 2 for _, slab in results[subject.name, count] if slab is not None]
            middle = statistics.median(each)
            base = base or middle
            slab = f"{statistics.median(slabs):,.0f}" if slabs else ""
            print(f"| {subject.name} | {count:,} | {middle:,.0f} | {min(each):,.0f}–{max(each):,.0f} "
                  f"| {middle / base:.1f} | {slab} |")


if __name__ == "__main__":
    main()
