# SPDX-License-Identifier: Apache-2.0
"""Prints the ratios of Benchmarks/Scripts/tls.sh: tls.py CIPHER RESULTS"""
import json
import statistics
import sys

cipher, path = sys.argv[1:]
small, large, bounded, rate, cpu = [], [], [], [], []
plain_large = tls_large = None
ours = None


def per_second(text):
    load = json.loads(text[text.index("{"):])
    return load["requests"] / load["seconds"]


for line in open(path):
    kind, *parts = line.rstrip("\n").split("|")
    if kind == "load 64":
        small.append(per_second(parts[1]) / per_second(parts[0]))
    elif kind == "load 65536":
        plain_large, tls_large = per_second(parts[0]), per_second(parts[1])
        large.append(tls_large / plain_large)
    elif kind == "speed":
        # A request is encrypted and decrypted once in each direction. On two CPUs, or on one, each
        # process does two of these four; the bound is what one process could do at best.
        best = 1 / (1 / plain_large + 2 * 65_536 / float(parts[0]))
        bounded.append(tls_large / best)
    elif kind.startswith("handshakes"):
        count, speed = map(float, parts[0].split())
        ticks = max(1, int(parts[1])) / count
        if kind.endswith("ours"):
            ours = (speed, ticks)
        else:
            rate.append(ours[0] / speed)
            cpu.append(ticks / ours[1])


def show(name, ratios, goal):
    middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
    print(f"{name}: {middle:.2f} ({low:.2f}–{high:.2f}), the goal is {goal}")


print(f"{cipher}; medians of {len(small)} rounds, and the least and the greatest")
show("64 B × 128, TLS of plain", small, "0.6")
show("64 KiB × 128, TLS of plain", large, "the next line")
show("64 KiB × 128, TLS of what the cipher allows", bounded, "0.7")
show("full handshakes, of openssl s_server's", rate, "0.9")
show("full handshakes for the server's CPU time, of openssl s_server's", cpu, "0.9")
