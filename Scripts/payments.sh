#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the example Payments. It is built in a copy that takes the library with the traits of the tests, and uses
# their scratch path and flags, so that the library is not built again.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$PWD/.build
swift=${SWIFT:-swift}

copy=$scratch/payments
rm -rf "$copy"
cp -R Examples/Payments "$copy"
sed 's/traits: \["SQLite"\]/traits: ["HTTP", "Operations", "SQLite"]/' Examples/Payments/Package.swift >"$copy/Package.swift"
package=(--package-path "$copy" --scratch-path "$scratch" --disable-build-manifest-caching)
"$swift" build "${package[@]}" --build-tests
"$swift" test "${package[@]}" --skip-build --disable-xctest
