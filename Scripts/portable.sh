#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of a copy without the optimizations that use more than Swift's documented features: only
# documented functions handle cancellation (LONGLINK_PORTABLE), and every access to a property is checked
# for exclusivity, even if the sources have @exclusivity(unchecked).
#
# SUITES names the test targets, SCRATCH is where the copy is built, FILTER selects tests.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=${SCRATCH:-$PWD/.build-portable}
swift=${SWIFT:-swift}
export LONGLINK_PORTABLE=1
export LONGLINK_TESTS=${SUITES:-LongLinkTransportTests LongLinkTests LongLinkSimulationTests}

Scripts/copy.sh "$scratch/tree"
stripped=$(cd "$scratch/tree" && grep -rlF --include='*.swift' '@exclusivity(unchecked)' Sources)
(cd "$scratch/tree" && sed -i.bak -E 's/@exclusivity\(unchecked\) ?//' $stripped &&
  find Sources -name '*.bak' -delete)
options=(--package-path "$scratch/tree" --scratch-path "$scratch/build" -Xswiftc
  -enforce-exclusivity=checked)
"$swift" build "${options[@]}" --product LongLinkPackageTests
"$swift" test "${options[@]}" --skip-build --disable-xctest ${FILTER:+--filter "$FILTER"}
