#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests under a sanitizer, with a separate build for each sanitizer.
#
#   Scripts/sanitize.sh thread    tests with several threads: sockets, event loops, client, server, requests that run
#                                once, uploads
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
  suites='LongLinkTransportTests LongLinkTests LongLinkOnceTests LongLinkCallsTests LongLinkTLSTests LongLinkUploadsTests'
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
# What takes long, and shows a sanitizer little more than what is left: simulations run on one thread, so that nothing
# races in them; long random walks repeat what short tests reach; and fuzzers read vectors and text with AddressSanitizer.
# FILTER runs them too.
long=()
case $1 in
thread)
  long=('[.](SecuredScenarioTests|ChaosTests|RetryChaosTests)/' 'credentials that (expire every two seconds|hardly last)'
    'may be made again from its completion' 'is set after the start traps' 'whatever moves, every request ends once'
    'a client that cancels without end' 'clients beyond a number share' 'where the network cuts long links'
    'reconnect incessantly' 'small requests that never end' 'goes on after lost connections'
    'survives lost connections' 'a byte now and then' 'however often it was resumed' 'unfinished uploads have a size'
    'comes to thousands of connections' 'connections that do not open keep' 'servers that drain again and again'
    'an expiry is announced daily' 'becomes more than 64 MiB'
    'no item is missing or comes twice' 'subscribers that come back get each item' 'many clients of a balanced list'
    'weights of entries are the chances' 'all clients of a list in order' 'a stream that has worked begins'
    'very many requests wait, time out' 'a hundred thousand identities' 'that take their answers are slowed down'
    'records may be cut anywhere' 'a link cut at any byte of the request' 'one that never stops is decided')
  ;;
address)
  long=('[.](SecuredScenarioTests|TidyTests|IndexedHeapTests|TimingWheelTests|PhaseTests|StreamFlowTests|StreamCreditTests)/'
    'a connection makes of the bytes what the vector says' 'are those that were sent, without the withdrawn'
    'clients beyond a number share' 'goes on after lost connections' 'survives lost connections' 'a byte now and then'
    'random operations end each request' 'however often it was resumed' 'that arrives byte by byte is looked at once'
    'unfinished uploads have a size' 'however often requests are cancelled' 'an exchange ends on both sides in good'
    'random bodies give a value' 'a block is checked as if' 'an expiry is announced daily' 'becomes more than 64 MiB')
  ;;
esac
if [ -z "${FILTER:-}" ]; then unfit+=$(printf '|%s' "${long[@]}"); fi

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
