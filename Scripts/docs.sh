#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation of each library into .build/docs. A warning fails, and so does a link that leads
# nowhere.
#
# A client meets types of LongLinkCore, LongLinkDriver and LongLinkTransport, which are no products. They
# are shown with the product through which they are imported, so that each has a page there.
set -eu
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
# The documentation's compiler comes with Swift, and may not be in PATH.
docc=$(command -v docc || echo "$(dirname "$(readlink -f "$(command -v "$swift")")")/docc")
scratch=.build
out=$scratch/docs
rm -rf "$out"
mkdir -p "$out/graphs"

"$swift" build --scratch-path "$scratch" --disable-build-manifest-caching
bin=$("$swift" build --scratch-path "$scratch" --show-bin-path)
maps=
for map in "$bin"/CLongLink*.build/module.modulemap "$PWD"/Sources/C*/module.modulemap; do
  maps="$maps -Xcc -fmodule-map-file=$map"
done
triple=$("$swift" -print-target-info | python3 -c 'import json, sys; print(json.load(sys.stdin)["target"]["triple"])')

# graph MODULE: writes what is public in it.
graph() {
  # shellcheck disable=SC2086
  "$swift" symbolgraph-extract -module-name "$1" -I "$bin/Modules" -target "$triple" \
    -minimum-access-level public -skip-synthesized-members -output-dir "$out/graphs" $maps \
    -Xcc -I"$PWD/Sources/CLongLinkWellKnown/include"
}

# page PRODUCT MODULE...: the documentation of a product, with the types of these modules.
page() {
  product=$1
  shift
  mkdir -p "$out/merged/$product"
  (cd "$out/graphs" && python3 "$OLDPWD/Scripts/symbols.py" "$product" "$@") \
    >"$out/merged/$product/$product.symbols.json"
  catalog=Sources/$product/$product.docc
  "$docc" convert "$catalog" --additional-symbol-graph-dir "$out/merged/$product" \
    --fallback-display-name "$product" --fallback-bundle-identifier "longlink.$product" \
    --warnings-as-errors --output-dir "$out/$product.doccarchive"
}

shared='LongLinkDriver LongLinkCore LongLinkTransport'
products='LongLink LongLinkServer LongLinkCalls LongLinkTesting LongLinkDialects LongLinkProtobufC'
for module in $products $shared; do graph "$module"; done
page LongLink $shared
page LongLinkServer $shared
page LongLinkCalls
page LongLinkTesting
page LongLinkDialects
page LongLinkProtobufC
echo "docs: written to $out, without a warning"
