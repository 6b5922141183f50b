#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests under a sanitizer, each in a build of its own.
#
#   Scripts/sanitize.sh thread    what runs on several threads: sockets, event loops, client, server
#   Scripts/sanitize.sh address   what handles memory itself: the core, sockets, libprotobuf-c
#
# SUITES names other targets of tests, and SUITES=all means every one, the command's too, which takes
# more than an hour under the thread sanitizer. FILTER chooses among their tests.
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
  suites='LongLinkCoreTests LongLinkTransportTests LongLinkProtobufCTests'
  options=(--scratch-path .build-asan)
  ;;
*)
  echo "usage: $0 thread|address" >&2
  exit 64
  ;;
esac
suites=${SUITES:-$suites}
if [ "$suites" != all ]; then export LONGLINK_TESTS=$suites; fi

# run PRODUCT OPTION...: builds the tests alone, with what they link, and runs them one after the
# other: all at once they would take each other's time, of which there is little here.
run() {
  local product=$1
  shift
  "$swift" build "$@" --product "$product"
  "$swift" test "$@" --skip-build --disable-xctest --no-parallel ${FILTER:+--filter "$FILTER"}
}

options+=(--sanitize="$1")
run LongLinkPackageTests "${options[@]}"
if [ "$suites" = all ]; then
  # Beside the tests stand the programs that they run.
  options+=(--disable-build-manifest-caching)
  "$swift" build --package-path Command "${options[@]}"
  run longlink-commandPackageTests --package-path Command "${options[@]}"
fi
