#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compares the time in which Swift's runtime suspends and resumes a task with the floor's time for a
# whole request at b with 64 bytes, on both sides and in the kernel. No asynchronous call is faster
# than the suspension alone.
#
#   Benchmarks/Scripts/suspension.sh [ROUNDS]    after make bench-build
#
# All on CPU 0, in turns.
set -euo pipefail
cd "$(dirname "$0")"
rounds=${1:-9}
floor=../.build/release/FloorPeer
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$scratch"' EXIT

swiftc -O -static-stdlib -swift-version 6 \
  -enable-upcoming-feature NonisolatedNonsendingByDefault suspension.swift -o "$scratch/suspension"
mkfifo "$scratch/input"
taskset -c 0 "$floor" serve <"$scratch/input" >"$scratch/server" &
server=$!
exec 3>"$scratch/input"
until port=$(grep -oE '[0-9]{4,5}' "$scratch/server"); do kill -0 "$server"; done

for ((round = 0; round < rounds; round++)); do
  taskset -c 0 "$floor" load --port "$port" --in-flight 128 --seconds 0.3 >"$scratch/load"
  echo "$(cat "$scratch/load" | tr -d '\n')|$(taskset -c 0 "$scratch/suspension")"
done >"$scratch/results"
python3 - "$scratch/results" <<'PYTHON'
import json, statistics, sys

plain, watched = [], []
for line in open(sys.argv[1]):
    load, times = line.split("|")
    load = json.loads(load[load.index("{"):])
    request = load["seconds"] / load["requests"] * 1e6
    first, second = map(float, times.split())
    plain.append(first / request)
    watched.append(second / request)
for name, ratios in ("suspended and resumed", plain), ("the same with a watch on cancellation", watched):
    print(f"{name}: {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) of the floor's request")
PYTHON
