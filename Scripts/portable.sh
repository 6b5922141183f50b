#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests without what the library does for speed below Swift's documented rules: in a copy, tasks
# are watched by documented functions alone (LONGLINK_PORTABLE), and every access to a property is
# checked for exclusivity, also where the sources say @exclusivity(unchecked).
#
# SUITES names the targets of tests, SCRATCH is where the copy is built, FILTER chooses among the tests.
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
