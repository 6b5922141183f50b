#!/bin/bash
# Compiles the programs of the README as they stand, runs its test, and lets its client talk to its
# server. Everything is made in .build-readme.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/.build-readme
package=$work/package

# The lines of the block that is marked "```swift NAME".
block() {
  awk -v mark="\`\`\`swift $1" '$0 == mark {inside = 1; next} /^```$/ {inside = 0} inside' README.md
}

mkdir -p "$package"/Sources/{ReadmeClient,ReadmeServer} "$package/Tests/ReadmeTests"
block client >"$package/Sources/ReadmeClient/main.swift"
block server >"$package/Sources/ReadmeServer/main.swift"
block test >"$package/Tests/ReadmeTests/ReadmeTests.swift"
for file in "$package"/Sources/*/main.swift "$package"/Tests/*/*.swift; do
  [ -s "$file" ] || { echo "The README has no block for $file."; exit 1; }
done
cat >"$package/Package.swift" <<END
// swift-tools-version: 6.2
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
    .testTarget(
      name: "ReadmeTests",
      dependencies: [
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
      ]),
  ]
)
END

build=(--package-path "$package" --scratch-path "$work/build")
swift build "${build[@]}" --build-tests
swift test "${build[@]}" --skip-build --disable-xctest
programs=$(swift build "${build[@]}" --show-bin-path)

output=$(mktemp)
"$programs/ReadmeServer" >"$output" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -f "$output"' EXIT
# The server says what it listens on, or ends because the port is taken.
for _ in $(seq 300); do
  if grep -q 'Listening' "$output" || ! kill -0 "$server" 2>/dev/null; then break; fi
  sleep 0.1
done
if ! kill -0 "$server" 2>/dev/null; then
  echo 'Not run: the server could not listen, since port 9000 is taken.'
  cat "$output"
  exit 0
fi
said=$("$programs/ReadmeClient" 2>/dev/null)
expected=$'hello\nrejected refused'
if [ "$said" != "$expected" ]; then
  printf 'The README'\''s client said:\n%s\ninstead of:\n%s\n' "$said" "$expected"
  exit 1
fi
echo "The README's programs compile, and its client talks to its server."
