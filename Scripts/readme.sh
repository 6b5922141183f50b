#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the programs in the README, runs its test, runs its client with its server, and runs its secured
# program with a certificate that openssl makes. The programs are compiled unchanged, except that the port is
# an argument, because port 9000 may be in use here. They use the scratch path and the flags of the tests, so
# that the library is not built again.
#
# README (README.md) names the file.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
readme=${README:-README.md}
scratch=$root/.build
package=$scratch/readme
swift=${SWIFT:-swift}

# The lines of the block that is marked "```swift NAME".
block() {
  awk -v mark="\`\`\`swift $1" '$0 == mark {inside = 1; next} /^```$/ {inside = 0} inside' "$readme"
}

mkdir -p "$package"/Sources/Readme{Client,Server,Secure} "$package/Tests/ReadmeTests"
for role in client:Client server:Server secure:Secure; do
  block "${role%:*}" | sed 's/port: 9000)/port: UInt16(CommandLine.arguments[1])!)/' \
    >"$package/Sources/Readme${role#*:}/main.swift"
done
block test >"$package/Tests/ReadmeTests/ReadmeTests.swift"
for file in "$package"/Sources/*/main.swift "$package"/Tests/*/*.swift; do
  [ -s "$file" ] || { echo "The README has no block for $file."; exit 1; }
done
cat >"$package/Package.swift" <<END
// swift-tools-version: 6.3
import PackageDescription

let package = Package(
  name: "Readme",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "longlink", path: "$root")],
  targets: [
    .executableTarget(
      name: "ReadmeClient", dependencies: [.product(name: "LongLink", package: "longlink")]),
    .executableTarget(
      name: "ReadmeServer", dependencies: [.product(name: "LongLinkServer", package: "longlink")]),
    .executableTarget(
      name: "ReadmeSecure",
      dependencies: [
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTLS", package: "longlink"),
      ]),
    .testTarget(
      name: "ReadmeTests",
      dependencies: [
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
      ]),
  ]
)
END

build=(--package-path "$package" --scratch-path "$scratch")
"$swift" build "${build[@]}" --build-tests
"$swift" test "${build[@]}" --skip-build --disable-xctest
programs=$("$swift" build "${build[@]}" --show-bin-path)

output=$(mktemp)
answers=$(mktemp)
"$programs/ReadmeServer" 0 >"$output" 2>&1 &
server=$!
client=
trap 'kill "$server" ${client:+"$client"} 2>/dev/null || true; rm -f "$output" "$answers"' EXIT
fail() {
  printf '%s\n' "$@" 'The output of the server:' >&2
  cat "$output" >&2
  exit 1
}
# The server logs the port that it was given.
port=
for _ in $(seq 300); do
  port=$(sed -n 's/.*address=127[.]0[.]0[.]1:\([0-9]*\).*Listening.*/\1/p' "$output")
  if [ -n "$port" ]; then break; fi
  kill -0 "$server" 2>/dev/null || fail "The README's server has ended."
  sleep 0.1
done
[ -n "$port" ] || fail "The README's server did not begin to listen."
"$programs/ReadmeClient" "$port" >"$answers" 2>/dev/null &
client=$!
for _ in $(seq 600); do
  kill -0 "$client" 2>/dev/null || break
  sleep 0.1
done
# A client that has not ended within a minute is stopped: its status is 143 then.
kill "$client" 2>/dev/null || true
status=0
wait "$client" || status=$?
client=
said=$(cat "$answers")
expected=$'hello\nrejected refused'
[ "$said" = "$expected" ] \
  || fail "The README's client ended with status $status and printed:" "$said" 'instead of:' "$expected"
kill -0 "$server" 2>/dev/null || fail "The README's server has ended."

# The secured program is both sides. Its certificate is its own authority.
certificates=$package/certs
mkdir -p "$certificates"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
  -addext subjectAltName=IP:127.0.0.1 -keyout "$certificates/server-key.pem" \
  -out "$certificates/server.pem" 2>/dev/null
cp "$certificates/server.pem" "$certificates/ca.pem"
status=0
said=$(cd "$package" && timeout 60 "$programs/ReadmeSecure" 0 2>"$output") || status=$?
[ "$said" = hello ] || fail "The README's secured program ended with status $status and printed: $said"
echo "The README's programs compile, its client talks to its server, and its secured program to itself."
