#!/bin/sh
# Generates the C for Protocols/*.proto, and for the messages of tests and benchmarks, with protoc-c
# and puts it where it is committed.
#
#   Scripts/protocols.sh          writes it
#   Scripts/protocols.sh --check  writes nothing; fails where the committed C is not current
set -eu
cd "$(dirname "$0")/.."

case "${1-}" in
'') check=no ;;
--check) check=yes ;;
*)
  echo "usage: $0 [--check]" >&2
  exit 64
  ;;
esac
if ! command -v protoc-c >/dev/null; then
  echo "$0: protoc-c is missing (Debian: protobuf-c-compiler, Homebrew: protobuf-c)" >&2
  exit 69
fi

# Another version of protoc-c generates other C, which says nothing about what is committed.
number=$(protoc-c --version | awk '$1 == "protobuf-c" {
  split($2, part, "."); print part[1] * 1000000 + part[2] * 1000 + part[3] }')
if [ "$check" = yes ] && ! grep -q "^#elif $number <" Sources/CLongLinkDemo/include/demo.pb-c.h; then
  echo "$0: not checked: the committed C comes from another version of protoc-c than $number"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# place GENERATED COMMITTED
place() {
  if [ "$check" = no ]; then
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2"
  elif ! cmp -s "$1" "$2"; then
    echo "$2 is not what protoc-c generates now: run 'make protocols'" >&2
    status=1
  fi
}

# generate NAME FOLDER TARGET
generate() {
  protoc-c --proto_path="$2" --c_out="$work" "$2/$1.proto"
  place "$work/$1.pb-c.c" "$3/$1.pb-c.c"
  place "$work/$1.pb-c.h" "$3/include/$1.pb-c.h"
}

generate control Protocols Sources/CLongLinkControl
generate demo Protocols Sources/CLongLinkDemo
generate quote Benchmarks/Protocols Benchmarks/Sources/CQuote
generate probe Tests/CLongLinkProbe Tests/CLongLinkProbe
exit "$status"
