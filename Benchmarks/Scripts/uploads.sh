#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures `longlink upload` and `longlink serve --uploads` over loopback.
#
#   Benchmarks/Scripts/uploads.sh rate [ROUNDS]    beside a C program that does the same (upload-floor.c)
#   Benchmarks/Scripts/uploads.sh memory           resident memory above that of idle processes
#
# MIB is the size of the file (1024), and LONGLINK the program (.build/longlink, as `make command` builds
# it). What is uploaded is written to a folder in TMPDIR, which must not be in memory if flushes are to
# count.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
longlink=${LONGLINK:-$root/.build/longlink}
mib=${MIB:-1024}
scratch=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT

# start NAME COMMAND...: starts a server, and sets `port` to the last number of its first line.
start() {
  local name=$1
  shift
  "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
  servers+=($!)
  until [ -s "$scratch/$name.out" ]; do kill -0 "${servers[-1]}"; done
  port=$(head -1 "$scratch/$name.out" | grep -oE '[0-9]+$')
}

make_file() {
  echo "$mib MiB in $scratch"
  openssl rand -out "$scratch/file" $((mib << 20))
  mkdir "$scratch/floor"
}

# seconds COMMAND...: runs it, and prints how long that took.
seconds() {
  local begin=$EPOCHREALTIME
  "$@" >/dev/null 2>&1
  awk "BEGIN { printf \"%.3f\", $EPOCHREALTIME - $begin }"
}

rate() {
  local rounds=${1:-5} round floor ours
  cc -O3 -Wall -Wextra -D_GNU_SOURCE -I "$root/Sources/CLongLinkAdler32/include" \
    -o "$scratch/upload-floor" "$root/Benchmarks/Scripts/upload-floor.c" \
    "$root"/Sources/CLongLinkAdler32/*.c -lcrypto
  make_file
  start floor "$scratch/upload-floor" serve "$scratch/floor"
  local floor_port=$port
  start longlink "$longlink" serve --port 0 --uploads "$scratch/longlink"
  # One of each that does not count.
  "$scratch/upload-floor" send "$floor_port" "$scratch/file"
  "$longlink" upload "$scratch/file" --port "$port" >/dev/null 2>&1
  for ((round = 1; round <= rounds; round++)); do
    rm -rf "$scratch"/floor/upload-* "$scratch"/longlink/[0-9a-f]*
    sync -f "$scratch"
    floor=$(seconds "$scratch/upload-floor" send "$floor_port" "$scratch/file")
    ours=$(seconds "$longlink" upload "$scratch/file" --port "$port")
    awk -v floor="$floor" -v ours="$ours" -v mib="$mib" 'BEGIN {
      printf "C %.0f MiB/s, longlink %.0f MiB/s, ratio %.2f\n", mib / floor, mib / ours, floor / ours }'
  done | tee "$scratch/rates"
  sort -t ' ' -k 8 -n "$scratch/rates" | awk '{ ratio[NR] = $NF } END {
    print "median ratio " ratio[int((NR + 1) / 2)] }'
}

# kibibytes PROCESS FIELD: a line of its status; empty once it has ended.
kibibytes() { awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1/status" 2>/dev/null || true; }

# peak PROCESS: the most resident memory until it ends, in KiB.
peak() {
  local seen=0 now
  while now=$(kibibytes "$1" VmHWM) && [ -n "$now" ]; do
    seen=$now
    sleep 0.02
  done
  echo "$seen"
}

memory() {
  make_file
  start longlink "$longlink" serve --port 0 --uploads "$scratch/longlink"
  local server=${servers[-1]} client idle_client idle_server peak_client field fields=()
  # 100 parts that are in the memory of both, as values of fields are.
  for ((field = 0; field < 100; field++)); do
    fields+=(--field "field$field=$(head -c 7500 /dev/urandom | base64 -w 0)")
  done
  # Idle: both have a connection, and an append that waits for its throttle.
  head -c 1000 "$scratch/file" >"$scratch/small"
  "$longlink" upload "$scratch/small" --rate 100 --port "$port" >/dev/null 2>&1 &
  client=$!
  sleep 3
  idle_client=$(kibibytes "$client" VmHWM)
  idle_server=$(kibibytes "$server" VmHWM)
  kill -INT "$client"
  wait "$client" || true
  for what in file parts; do
    local arguments=("$scratch/file")
    if [ "$what" = parts ]; then arguments=("$scratch/small" "${fields[@]}"); fi
    # Begins to count the server's peak anew.
    echo 5 >"/proc/$server/clear_refs"
    "$longlink" upload "${arguments[@]}" --port "$port" >/dev/null 2>&1 &
    client=$!
    peak_client=$(peak "$client")
    wait "$client"
    printf '%-6s client %5d KiB, idle %5d, %+6d; server %5d KiB, idle %5d, %+6d\n' "$what" \
      "$peak_client" "$idle_client" $((peak_client - idle_client)) \
      "$(kibibytes "$server" VmHWM)" "$idle_server" \
      $(($(kibibytes "$server" VmHWM) - idle_server))
  done
}

case ${1:-} in
rate) rate "${2:-5}" ;;
memory) memory ;;
*)
  echo "usage: $0 rate [ROUNDS] | memory" >&2
  exit 64
  ;;
esac
