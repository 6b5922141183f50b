#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the examples Hub and Secure, and runs the client of each with its server: those that should work
# have to print the reply and end with 0, those that should fail have to say why and end with 1. Runs Hub's
# tests, too. The examples use the scratch path and the flags of the tests, so that the library is not built
# again.
set -euo pipefail
cd "$(dirname "$0")/.."
examples=$PWD/Examples
scratch=$PWD/.build
swift=${SWIFT:-swift}

# The port is an argument in a copy of Hub, because port 9000 may be in use here.
hub=$scratch/hub
rm -rf "$hub"
cp -R "$examples/Hub" "$hub"
for program in "$hub"/Sources/Hub*/main.swift; do
  sed 's/port: 9000)/port: UInt16(CommandLine.arguments[1])!)/' "$program" >"$hub/main"
  mv "$hub/main" "$program"
done
shared=(--scratch-path "$scratch" --disable-build-manifest-caching)
"$swift" build --package-path "$hub" "${shared[@]}" --build-tests
"$swift" test --package-path "$hub" "${shared[@]}" --skip-build --disable-xctest
build=(--package-path "$examples/Secure" "${shared[@]}")
"$swift" build "${build[@]}"
programs=$("$swift" build "${build[@]}" --show-bin-path)

work=$(mktemp -d)
server=
trap 'kill ${server:+"$server"} 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
fail() {
  printf '%s\n' "$@" 'The output of the server:' >&2
  cat "$work/server.log" >&2
  exit 1
}

# start NAME: starts a server on a free port, and sets `port`, which it logs.
start() {
  : >"$work/server.log"  # So that the line of the server before is gone.
  "$programs/$1" 0 >"$work/server.log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    port=$(sed -n 's/.*address=127[.]0[.]0[.]1:\([0-9]*\).*Listening.*/\1/p' "$work/server.log")
    if [ -n "$port" ]; then return; fi
    kill -0 "$server" 2>/dev/null || fail "$1 has ended."
    sleep 0.1
  done
  fail "$1 did not begin to listen."
}

# stop: ends the server with SIGTERM, at which it has to end with 0.
stop() {
  local code=0
  kill "$server"
  wait "$server" 2>/dev/null || code=$?
  server=
  [ "$code" -eq 0 ] || fail "The server ended with $code at SIGTERM."
}

# expect STATUS PATTERN PROGRAM ARGUMENT...: runs a client, which has to end with STATUS within a minute, and
# to print text that matches PATTERN as a whole.
expect() {
  local status=$1 pattern=$2 said code=0
  shift 2
  said=$(timeout 60 "$programs/$1" "${@:2}" 2>"$work/client.log") || code=$?
  [ "$code" -eq "$status" ] && [[ $said =~ ^($pattern)$ ]] \
    || fail "\`$*\` ended with status $code instead of $status and printed:" "$said" "$(cat "$work/client.log")"
}

start HubServer
expect 0 $'seconds between readings: 10\noven 180[.]0' HubClient "$port"
stop

"$examples/Secure/certificate.sh" 2>certificate.log
start SecureServer
expect 0 'Hello, world!' SecureClient token-of-ann "$port"
expect 1 '.*rejected 403.*delivery: refused' SecureClient token-of-bob "$port"
expect 1 '.*did not accept the credential \(401\): unknown token' SecureClient guessed "$port"
# A client that trusts another certificate than the one that the server shows.
mkdir other && cd other
"$examples/Secure/certificate.sh" 2>certificate.log
expect 1 '.*certificate is signed by itself and not trusted.*' SecureClient token-of-ann "$port"
stop
echo "The clients of Hub and Secure work with their servers, and fail where they should."
