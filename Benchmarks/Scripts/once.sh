#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures records of requests that run once in an SQLite file, beside a C program that writes the same rows
# (once-floor.c) with as many rows in a transaction, in turns. A request is a begin and a complete.
#
#   Benchmarks/Scripts/once.sh [ROUNDS]
#
# The files are in a folder in TMPDIR, which must not be in memory if the disk is to count. SECONDS_EACH (5) is
# how long each turn takes, CONCURRENCY (128) how many requests are in flight, and FULL=1 waits for the disk.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
swift=${SWIFT:-swift}
rounds=${1:-5}
seconds=${SECONDS_EACH:-5}
concurrency=${CONCURRENCY:-128}
full=${FULL:-0}
retention=2000
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
$swift build --package-path "$root/Benchmarks/SQLite" --configuration release --product OnceRate
rate=$root/Benchmarks/SQLite/.build/release/OnceRate
cc -O3 -Wall -Wextra -D_GNU_SOURCE -o "$scratch/once-floor" "$root/Benchmarks/Scripts/once-floor.c" -lsqlite3
options=(--seconds "$seconds" --concurrency "$concurrency" --retention "$retention")
if [ "$full" = 1 ]; then options+=(--full); fi
for ((round = 1; round <= rounds; round++)); do
  rm -f "$scratch"/store*
  read -r ours rows < <("$rate" "$scratch/store" "${options[@]}")
  rm -f "$scratch"/floor.db*
  floor=$("$scratch/once-floor" "$scratch/floor.db" "$seconds" "$rows" "$retention" "$full")
  awk -v floor="$floor" -v ours="$ours" -v rows="$rows" 'BEGIN {
    printf "rows in a transaction %d: C %d requests/s, LongLink %d requests/s, ratio %.2f\n",
      rows, floor, ours, ours / floor }'
done
