#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests under a sanitizer, with a separate build for each sanitizer.
#
#   Scripts/sanitize.sh thread    tests with several threads: sockets, event loops, client, server, uploads
#   Scripts/sanitize.sh address   tests of manual memory management: the core, sockets, libprotobuf-c, expat,
#                                libcrypto, OpenSSL and the files of uploads
#
# SUITES names other test targets; SUITES=all means all of them and the command's, which takes more than an
# hour under the thread sanitizer. FILTER selects tests.
set -euo pipefail
cd "$(dirname "$0")/.."

swift=${SWIFT:-swift}
case ${1:-} in
thread)
  suites='LongLinkTransportTests LongLinkTests LongLinkCallsTests LongLinkTLSTests LongLinkUploadsTests'
  options=(--scratch-path .build-tsan -Xcc -DCLL_THREAD_SANITIZER)
  export TSAN_OPTIONS="suppressions=$PWD/Scripts/thread-sanitizer.supp"
  ;;
address)
  suites='LongLinkCoreTests LongLinkTransportTests LongLinkProtobufCTests LongLinkReadersTests LongLinkTLSTests LongLinkUploadsTests'
  options=(--scratch-path .build-asan)
  ;;
*)
  echo "usage: $0 thread|address" >&2
  exit 64
  ;;
esac
suites=${SUITES:-$suites}
if [ "$suites" != all ]; then export LONGLINK_TESTS=$suites; fi

# Tests with simulations: what crashes there leaves its tasks behind, so that nobody looks for leaks.
simulated='LongLinkTLSTests LongLinkUploadsTests'
# What measures the memory of a process, which a sanitizer multiplies.
unfit='makes the server hold the documented number|5000 handshakes'
# What takes minutes, and shows a sanitizer little more than what is left: simulations run on one thread, so that
# nothing races in them, and long random walks repeat what short tests reach. FILTER runs them too.
if [ -z "${FILTER:-}" ]; then
  case $1 in
  thread) unfit+='|[.]SecuredScenarioTests/|credentials that expire every two seconds|may be made again from its completion|is set after the start traps' ;;
  address) unfit+='|[.]SecuredScenarioTests/`(a seed replays|every promise is kept over TLS`)|[.](TidyTests|IndexedHeapTests|TimingWheelTests|PhaseTests|StreamFlowTests)/|1,024 items that never end' ;;
  esac
fi

# run PRODUCT OPTION...: builds only the tests and their dependencies, and runs the tests one after another:
# in parallel they would slow each other down too much under a sanitizer.
run() {
  local product=$1
  shift
  "$swift" build "$@" --product "$product"
  local tests=("$swift" test "$@" --skip-build --disable-xctest --no-parallel)
  local pattern="^(${simulated// /|})[.]" some= others=
  for suite in $suites; do
    if [[ " $simulated " == *" $suite "* ]]; then some=1; else others=1; fi
  done
  if [ -z "$some" ]; then
    "${tests[@]}" ${FILTER:+--filter "$FILTER"} --skip "$unfit"
    return
  fi
  if [ -n "$others" ]; then
    "${tests[@]}" ${FILTER:+--filter "$FILTER"} --skip "$pattern" --skip "$unfit"
  fi
  ASAN_OPTIONS=detect_leaks=0 "${tests[@]}" --filter "${FILTER:-$pattern}" --skip "$unfit"
}

options+=(--sanitize="$1")
run LongLinkPackageTests "${options[@]}"
if [ "$suites" = all ]; then
  # The tests run programs that are built beside them.
  options+=(--disable-build-manifest-caching)
  "$swift" build --package-path Command "${options[@]}"
  run longlink-commandPackageTests --package-path Command "${options[@]}"
fi
