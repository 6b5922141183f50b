#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests under a sanitizer, with a separate build for each sanitizer.
#
#   Scripts/sanitize.sh thread    tests with several threads: sockets, event loops, client, server
#   Scripts/sanitize.sh address   tests of manual memory management: the core, sockets, libprotobuf-c, expat
#
# SUITES names other test targets; SUITES=all means all of them and the command's, which takes more than an
# hour under the thread sanitizer. FILTER selects tests.
set -euo pipefail
cd "$(dirname "$0")/.."

swift=${SWIFT:-swift}
case ${1:-} in
thread)
  suites='LongLinkTransportTests LongLinkTests LongLinkCallsTests'
  options=(--scratch-path .build-tsan -Xcc -DCLL_THREAD_SANITIZER)
  export TSAN_OPTIONS="suppressions=$PWD/Scripts/thread-sanitizer.supp"
  ;;
address)
  suites='LongLinkCoreTests LongLinkTransportTests LongLinkProtobufCTests LongLinkReadersTests'
  options=(--scratch-path .build-asan)
  ;;
*)
  echo "usage: $0 thread|address" >&2
  exit 64
  ;;
esac
suites=${SUITES:-$suites}
if [ "$suites" != all ]; then export LONGLINK_TESTS=$suites; fi

# run PRODUCT OPTION...: builds only the tests and their dependencies, and runs the tests one after another:
# in parallel they would slow each other down too much under a sanitizer.
run() {
  local product=$1
  shift
  "$swift" build "$@" --product "$product"
  "$swift" test "$@" --skip-build --disable-xctest --no-parallel ${FILTER:+--filter "$FILTER"}
}

options+=(--sanitize="$1")
run LongLinkPackageTests "${options[@]}"
if [ "$suites" = all ]; then
  # The tests run programs that are built beside them.
  options+=(--disable-build-manifest-caching)
  "$swift" build --package-path Command "${options[@]}"
  run longlink-commandPackageTests --package-path Command "${options[@]}"
fi
