#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation of each library into .build/docs. A warning or a broken link fails.
#
# Clients use types of LongLinkCore, LongLinkDriver and LongLinkTransport, which are not products. These
# types have their pages in the documentation of the product that exports them. The pages' links to each other
# are for Git hosts: Scripts/pages.py writes DocC's.
set -eu
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
# docc comes with Swift, but is perhaps not in PATH.
docc=$(command -v docc || echo "$(dirname "$(readlink -f "$(command -v "$swift")")")/docc")
scratch=.build
out=$scratch/docs
rm -rf "$out"
mkdir -p "$out/graphs" "$out/pages"

# use BIN: takes the modules from this folder of build products.
use() {
  bin=$1
  maps=
  for map in "$bin"/*.build/module.modulemap "$PWD"/Sources/C*/module.modulemap \
    "$PWD/$scratch"/checkouts/*/Sources/*/include/module.modulemap \
    "$PWD/$scratch"/checkouts/*/Sources/*/module.modulemap; do
    if [ -e "$map" ]; then maps="$maps -Xcc -fmodule-map-file=$map"; fi
  done
}

triple=$("$swift" -print-target-info | python3 -c 'import json, sys; print(json.load(sys.stdin)["target"]["triple"])')

# graph MODULE: writes the symbol graph of its public declarations.
graph() {
  # shellcheck disable=SC2086
  "$swift" symbolgraph-extract -module-name "$1" -I "$bin/Modules" -target "$triple" \
    -minimum-access-level public -skip-synthesized-members -output-dir "$out/graphs" $maps \
    -Xcc -I"$PWD/Sources/CLongLinkWellKnown/include"
}

# page PRODUCT MODULE...: builds the documentation of a product, with the types of these modules.
page() {
  product=$1
  shift
  mkdir -p "$out/merged/$product"
  (cd "$out/graphs" && python3 "$OLDPWD/Scripts/symbols.py" "$product" "$@") \
    >"$out/merged/$product/$product.symbols.json"
  python3 Scripts/pages.py "Sources/$product/$product.docc" "$out/pages/$product.docc"
  "$docc" convert "$out/pages/$product.docc" --additional-symbol-graph-dir "$out/merged/$product" \
    --fallback-display-name "$product" --fallback-bundle-identifier "longlink.$product" \
    --warnings-as-errors --output-dir "$out/$product.doccarchive"
}

shared='LongLinkDriver LongLinkCore LongLinkTransport'
products='LongLink LongLinkServer LongLinkCalls LongLinkTesting LongLinkDialects LongLinkProtobufC
  LongLinkReaders LongLinkJSON LongLinkUploads LongLinkUploadsServer LongLinkTLS LongLinkHTTP
  LongLinkHTTPServer LongLinkOnce LongLinkOnceStore LongLinkOnceSQLite'
# With HTTP and SQLite, as the tests are built.
# Traits in the same order as in the Makefile's builds.
SWIFT_DETERMINISTIC_HASHING=1 "$swift" build --scratch-path "$scratch" --disable-build-manifest-caching --traits SQLite,HTTP,Operations
use "$("$swift" build --scratch-path "$scratch" --show-bin-path)"
for module in $products $shared; do graph "$module"; done
page LongLink $shared
page LongLinkServer $shared
page LongLinkCalls
page LongLinkTesting
page LongLinkDialects
page LongLinkProtobufC
page LongLinkReaders
page LongLinkJSON
page LongLinkUploads
page LongLinkUploadsServer
page LongLinkTLS
page LongLinkHTTP
page LongLinkHTTPServer
page LongLinkOnce LongLinkOnceStore
page LongLinkOnceSQLite

# These are empty without their trait, with which their tests are built too.
build='--scratch-path .build-operations --disable-build-manifest-caching --traits Operations'
for product in LongLinkLifecycle LongLinkConfiguration LongLinkObservability LongLinkOps; do
  # shellcheck disable=SC2086
  SWIFT_DETERMINISTIC_HASHING=1 "$swift" build $build --target $product
  # shellcheck disable=SC2086
  use "$("$swift" build $build --show-bin-path)"
  graph $product
  page $product
done

# LongLinkProtobuf is empty without its trait, with which the generator is built too.
build='--package-path Tests/Generator --scratch-path .build-generator-tests'
# shellcheck disable=SC2086
"$swift" build $build --target LongLinkProtobuf
# shellcheck disable=SC2086
use "$("$swift" build $build --show-bin-path)"
graph LongLinkProtobuf
page LongLinkProtobuf
echo "docs: written to $out, without a warning"
