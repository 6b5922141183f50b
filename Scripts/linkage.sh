#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a clean release build of a program that links only the product LongLink. Fails if it fetches or
# links anything that a client must not need. Prints how long the build took. Then does the same for programs
# that link only LongLinkReaders, LongLinkUploads or LongLinkUploadsServer: what they need beside is named below.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/Sources/client" "$work/Sources/reader" "$work/Sources/uploader" "$work/Sources/receiver"
cat >"$work/Package.swift" <<MANIFEST
// swift-tools-version: 6.3
import PackageDescription

let package = Package(
  name: "client",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "longlink", path: "$root")],
  targets: [
    .executableTarget(
      name: "client", dependencies: [.product(name: "LongLink", package: "longlink")]),
    .executableTarget(
      name: "reader", dependencies: [.product(name: "LongLinkReaders", package: "longlink")]),
    .executableTarget(
      name: "uploader", dependencies: [.product(name: "LongLinkUploads", package: "longlink")]),
    .executableTarget(
      name: "receiver", dependencies: [.product(name: "LongLinkUploadsServer", package: "longlink")]),
  ]
)
MANIFEST
cat >"$work/Sources/client/main.swift" <<'PROGRAM'
import LongLink

let client = try LongLinkClient(to: .host("127.0.0.1", port: 9000))
print(client.state)
await client.close()
PROGRAM
cat >"$work/Sources/reader/main.swift" <<'PROGRAM'
import LongLinkReaders

var reader = XMLReader(elements: ["node"])
reader.feed("<a><node>read</node></a>".utf8)
print(try reader.next()?.text ?? "nothing")
PROGRAM

cat >"$work/Sources/uploader/main.swift" <<'PROGRAM'
import LongLinkUploads

let client = try LongLinkClient(to: .host("127.0.0.1", port: 9000))
print(Uploader(client))
await client.close()
PROGRAM
cat >"$work/Sources/receiver/main.swift" <<'PROGRAM'
import LongLinkUploadsServer

print(UploadLimits())
PROGRAM

cd "$work"
# Downloads are not part of the time.
swift package resolve
# LongLink itself is listed by the name of its folder.
fetched=$(swift package show-dependencies --format flatlist | grep -vix "$(basename "$root")")
echo "$fetched" | sed 's/^/linkage: fetches /'
if [ "$fetched" != swift-log ]; then
  echo "linkage: a client must fetch only swift-log" >&2
  exit 1
fi
start=$(date +%s)
swift build -c release --product client
echo "linkage: a clean build of a client took $(($(date +%s) - start)) seconds"
program=$(swift build -c release --product client --show-bin-path)/client
libraries=$(ldd "$program" | awk '{ print $1 }')
echo "$libraries" | sed 's/^/linkage: links /'
# Swift's runtime, and the C and C++ libraries that it needs.
allowed='^(linux-vdso|.*/ld-linux|libswift|libBlocksRuntime|libdispatch)|^lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s)\.so'
if echo "$libraries" | grep -vE "$allowed"; then
  echo "linkage: a client must not link these" >&2
  exit 1
fi
# These are separate products.
for other in LongLinkDialects LongLinkReaders LongLinkUpload LongLinkTLS EVP_ SSL_; do
  if nm "$program" | grep -q "$other"; then
    echo "linkage: a client must not link $other" >&2
    exit 1
  fi
done
"$program"

# check NAME LIBRARIES: the program links only these beside what a client links.
check() {
  swift build -c release --product "$1"
  program=$(swift build -c release --product "$1" --show-bin-path)/$1
  if ldd "$program" | awk '{ print $1 }' | grep -vE "$allowed|$2"; then
    echo "linkage: the $1 must not link these" >&2
    exit 1
  fi
  "$program"
}
check reader '^libexpat\.so'
check uploader '^libcrypto\.so'
check receiver '^libcrypto\.so|^lib_?Foundation'
