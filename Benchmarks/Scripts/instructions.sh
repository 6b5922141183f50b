#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions that LongLink runs for a request, by function. Unlike times, these counts
# repeat even on a busy machine.
#
#   Benchmarks/Scripts/instructions.sh client|server [COUNT [OPTION...]]    after make bench-build
#
# It single-steps the event loop's thread of one of two processes, with 32 requests in flight, for
# COUNT instructions (400000 by default, about 15 seconds), all on CPU 0. Options are those of
# `LongLinkPeer load`, such as `--style callbacks` or `--typed`. It needs x86-64, a C
# compiler, Python, binutils and the permission to trace (ptrace).
set -euo pipefail
cd "$(dirname "$0")"
side=$1
count=${2:-400000}
options=("${@:3}")
peer=../.build/release/LongLinkPeer
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$scratch"' EXIT

cc -O2 -o "$scratch/instructions" instructions.c
mkfifo "$scratch/input"
taskset -c 0 "$peer" serve <"$scratch/input" >"$scratch/server" &
server=$!
exec 3>"$scratch/input"
until port=$(grep -oE '[0-9]{4,5}' "$scratch/server"); do kill -0 "$server"; done
taskset -c 0 "$peer" load --port "$port" --in-flight 32 --seconds 600 \
  "${options[@]}" >/dev/null &
client=$!
case $side in
client) process=$client entry="Requests.answered" ;;
server) process=$server entry="Responder.handle" ;;
*) exit 2 ;;
esac
# The loop's thread is the one with the most CPU time after the warm-up.
busiest() {
  local task
  for task in "/proc/$process/task/"*; do
    echo "$(awk '{print $14 + $15}' "$task/stat") $(basename "$task")"
  done | sort -n | tail -1
}
until read -r ticks thread < <(busiest) && [ "$ticks" -gt 100 ]; do kill -0 "$client"; done
cp "/proc/$process/maps" "$scratch/maps"
taskset -c 0 "$scratch/instructions" "$thread" "$count" >"$scratch/trace"
python3 instructions.py "$scratch/trace" "$scratch/maps" "$entry"
