#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiles and runs the program in the README, and checks that the README and the page about several servers
# show what Examples/Hub has, which `make check-hub` compiles and runs, and the page about requests that run once
# what Examples/Payments has, which `make check-sqlite` tests, and the pages about operations what
# Examples/Service has, which `make check-operations` tests. The program is compiled unchanged,
# except that its port is 0, because port 9000 may be in use here. It uses the scratch path and the flags of
# the tests, so that the library is not built again.
#
# README (README.md) names the file.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
readme=${README:-README.md}
scratch=$root/.build
package=$scratch/readme
swift=${SWIFT:-swift}

# block NAME FILE: the lines of the block that is marked "```NAME".
block() {
  awk -v mark="\`\`\`$1" '$0 == mark {inside = 1; next} /^```$/ {inside = 0} inside' "$2"
}

# same NAME FILE SOURCE: fails unless the block is SOURCE without its licence and the empty line after it.
same() {
  block "$1" "$2" | diff - <(sed -e 1d -e '2{/^$/d;}' "$3") >&2 && return
  echo "$0: the block $1 of $2 is not $3" >&2
  exit 1
}
hub=Examples/Hub
same 'proto hub' "$readme" $hub/Protos/telemetry.proto
same 'swift hub-server' "$readme" $hub/Sources/HubServer/main.swift
same 'swift hub-client' "$readme" $hub/Sources/HubClient/main.swift
same 'swift hub-test' "$readme" $hub/Tests/HubTests/HubTests.swift
same 'swift relay' Sources/LongLinkServer/LongLinkServer.docc/MoreThanOneServer.md \
  $hub/Tests/HubTests/Relay.swift
same 'swift ledger' Sources/LongLinkOnce/LongLinkOnce.docc/LongLinkOnce.md \
  Examples/Payments/Sources/PaymentServer/Ledger.swift
for product in LongLinkLifecycle LongLinkConfiguration; do
  same 'swift service' Sources/$product/$product.docc/$product.md \
    Examples/Service/Sources/EchoService/main.swift
done

# Links to files and folders, without the section.
for link in $(grep -oE '\]\([^)]+' "$readme" | sed -e 's/^](//' -e 's/#.*//' | grep -v '^https:'); do
  [ -e "$link" ] || { echo "$0: $readme links to $link, which does not exist" >&2; exit 1; }
done

mkdir -p "$package/Sources/ReadmeUntyped"
block 'swift untyped' "$readme" | sed 's/port: 9000)/port: 0)/' >"$package/Sources/ReadmeUntyped/main.swift"
[ -s "$package/Sources/ReadmeUntyped/main.swift" ] || { echo "$0: $readme has no block untyped" >&2; exit 1; }
cat >"$package/Package.swift" <<END
// swift-tools-version: 6.3
import PackageDescription

let package = Package(
  name: "Readme",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "longlink", path: "$root")],
  targets: [
    .executableTarget(
      name: "ReadmeUntyped",
      dependencies: [
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
      ])
  ]
)
END

build=(--package-path "$package" --scratch-path "$scratch")
"$swift" build "${build[@]}"
program=$("$swift" build "${build[@]}" --show-bin-path)/ReadmeUntyped
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# A program that has not ended within a minute is stopped: its status is 124 then.
said=$(timeout 60 "$program" 2>"$log") || status=$?
if [ "$status" -ne 0 ] || [ "$said" != $'hello\nrejected refused' ]; then
  printf '%s\n' "$0: the README's program ended with status $status and printed:" "$said" "$(cat "$log")" >&2
  exit 1
fi
echo "The README's program works, and the pages show what the examples have."
