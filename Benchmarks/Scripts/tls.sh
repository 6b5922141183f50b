#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures TLS beside plain connections, in turns, and full handshakes beside OpenSSL's own server.
#
#   Benchmarks/Scripts/tls.sh [ROUNDS]
#
# Ratios alone: each run is divided by the run beside it.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
rounds=${1:-9}
peer=$root/Benchmarks/.build/release/LongLinkPeer
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$scratch"' EXIT

cc -std=gnu17 -O2 -Wall -Wextra "$root/Benchmarks/Scripts/handshakes.c" -o "$scratch/handshakes" \
  -lssl -lcrypto -lpthread
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench \
  -addext subjectAltName=IP:127.0.0.1 -keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>/dev/null

# serve NAME OPTION… starts a server and sets `port` and `server`.
serve() {
  mkfifo "$scratch/$1.input"
  "$peer" serve "${@:2}" <"$scratch/$1.input" >"$scratch/$1.output" &
  server=$!
  exec {hold}>"$scratch/$1.input"
  until port=$(grep -oE '[0-9]{4,5}' "$scratch/$1.output"); do kill -0 "$server"; done
}
serve plain
plain=$port
serve tls --tls --tls-certificate "$scratch/cert.pem" --tls-key "$scratch/key.pem"
tls=$port
ours=$server

other=$((20000 + RANDOM % 10000))
# It sends no tickets, as our server does to a client that sends nothing.
openssl s_server -accept "127.0.0.1:$other" -cert "$scratch/cert.pem" -key "$scratch/key.pem" \
  -alpn longlink/1 -num_tickets 0 -tls1_3 -quiet -naccept 1000000000 >/dev/null 2>&1 </dev/null &
theirs=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$other") 2>/dev/null; do kill -0 "$theirs"; done

cipher=$(openssl s_client -connect "127.0.0.1:$tls" -alpn longlink/1 -brief </dev/null 2>&1 |
  sed -n 's/^Ciphersuite: //p')
case $cipher in
  TLS_AES_128_GCM_SHA256) evp=aes-128-gcm ;;
  TLS_AES_256_GCM_SHA384) evp=aes-256-gcm ;;
  TLS_CHACHA20_POLY1305_SHA256) evp=chacha20-poly1305 ;;
  *) echo "the cipher '$cipher' is not known here" >&2; exit 1 ;;
esac

load() { "$peer" load "$@" --seconds 0.3 | tr -d '\n'; }
# The time in which a process has used a CPU, in ticks.
used() { awk '{print $14 + $15}' "/proc/$1/stat"; }
for ((round = 1; round <= rounds; round++)); do
  echo "round $round of $rounds" >&2
  for body in 64 65536; do
    echo "load $body|$(load --port "$plain" --in-flight 128 --body "$body")|$(
      load --port "$tls" --in-flight 128 --body "$body" --tls)"
  done
  echo "speed|$(openssl speed -mr -elapsed -seconds 1 -bytes 16384 -evp "$evp" 2>/dev/null |
    sed -n 's/^+F:.*://p')"
  for name in ours theirs; do
    if [ $name = ours ]; then at=$tls; else at=$other; fi
    before=$(used "${!name}")
    result=$("$scratch/handshakes" "$at" 1)
    echo "handshakes $name|$result|$(($(used "${!name}") - before))"
  done
done >"$scratch/results"
python3 "$root/Benchmarks/Scripts/tls.py" "$cipher" "$scratch/results"
