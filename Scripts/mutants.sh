#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shows that the oracles find bugs: each patch of Tests/Mutants puts one bug into a copy of the sources,
# and a run of the simulation must catch it, or the test that the patch names.
#
#   Scripts/mutants.sh [NUMBER...]    runs all mutants, or those with these numbers
#   Scripts/mutants.sh --check        only checks that each patch applies, which takes a second
#
# SEEDS (0..1999) are the seeds to try for each, SCRATCH is where the copy is built, and PROFILE (default)
# is the profile of faults where the patch names none. It fails if a patch does not apply, a mutant does not compile or survives, or
# the broken promise, or the failed test, is not the one that the patch names.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${SEEDS:-0..1999}
profile=${PROFILE:-default}
scratch=${SCRATCH:-$PWD/.build-mutants}
tree=$scratch/tree
swift=${SWIFT:-swift}
jobs=${JOBS:-}

if [ "${1:-}" = --check ]; then
  status=0
  for patch in Tests/Mutants/*.patch; do
    if ! said=$(patch --dry-run --forward --strip 1 <"$patch" 2>&1); then
      printf '%s does not apply:\n%s\n' "$patch" "$said" >&2
      status=1
    fi
  done
  exit "$status"
fi

chosen() {
  local number=$1
  shift
  [ $# -eq 0 ] && return 0
  local wanted
  for wanted in "$@"; do [ "$wanted" = "$number" ] && return 0; done
  return 1
}

# run_tests NAME TESTS EXPECTED: builds only the target of these tests, in the copy, and runs them.
run_tests() {
  local name=$1 tests=$2 expected=$3 outcome=0 caught
  local options=(--package-path "$tree" --scratch-path "$scratch/build-tests")
  if ! LONGLINK_TESTS=${tests%%.*} $swift build "${options[@]}" --build-tests ${jobs:+-j "$jobs"} \
    >"$scratch/build.log" 2>&1; then
    printf '%-44s %s\n' "$name" "DOES NOT COMPILE, see $scratch/build.log"
    status=1
    return
  fi
  LONGLINK_TESTS=${tests%%.*} timeout "${LIMIT:-900}" $swift test "${options[@]}" --skip-build \
    --disable-xctest --filter "$tests" >"$scratch/run.log" 2>&1 || outcome=$?
  case $outcome in
    0) caught='SURVIVED' status=1 ;;
    124) caught='a run without end' ;;
    *)
      caught="$tests"
      if ! grep -F "Test \"$expected\"" "$scratch/run.log" | grep -q 'issue'; then
        caught="$tests, NOT by $expected"
        status=1
      fi
      ;;
  esac
  printf '%-44s %-24s %s\n' "$name" "$caught" -
}

printf '%-44s %-24s %s\n' mutant 'caught by' seed
status=0
for patch in Tests/Mutants/*.patch; do
  name=$(basename "$patch" .patch)
  chosen "${name%%-*}" "$@" || continue
  expected=$(sed -n 's/^Bites: //p' "$patch")
  faults=$(sed -n 's/^Profile: //p' "$patch")
  # What `swift test` takes as a filter: TARGET.SUITE.
  tests=$(sed -n 's/^Tests: //p' "$patch")
  Scripts/copy.sh "$tree"
  if ! patch --silent --forward --strip 1 --directory "$tree" <"$patch" >"$scratch/patch.log" 2>&1; then
    printf '%-44s %s\n' "$name" 'DOES NOT APPLY'
    status=1
    continue
  fi
  if [ -n "$tests" ]; then
    run_tests "$name" "$tests" "$expected"
    continue
  fi
  if ! $swift build --package-path "$tree/Command" --scratch-path "$scratch/build" -c release \
    --product longlink ${jobs:+-j "$jobs"} >"$scratch/build.log" 2>&1; then
    printf '%-44s %s\n' "$name" "DOES NOT COMPILE, see $scratch/build.log"
    status=1
    continue
  fi
  outcome=0
  # A mutant may trap, or never end: both count as caught.
  timeout "${LIMIT:-900}" "$scratch/build/release/longlink" simulate run --seeds "$seeds" \
    --profile "${faults:-$profile}" >"$scratch/run.log" 2>"$scratch/run.err" || outcome=$?
  seed=$(sed -n 's/.*replay --seed \([0-9]*\).*/\1/p' "$scratch/run.log" | head -1)
  promises=$(sed -n 's/^  \([a-z-]*\) at .*/\1/p' "$scratch/run.log" | sort -u | tr '\n' ' ')
  promises=${promises% }
  case $outcome in
    0) caught='SURVIVED' status=1 ;;
    1) caught=$promises ;;
    124) caught='a run without end' ;;
    *) caught="a trap, exit code $outcome" ;;
  esac
  if [ "$outcome" -eq 1 ] && ! grep -qw -- "$expected" <<<"$promises"; then
    caught="$promises, NOT $expected"
    status=1
  fi
  printf '%-44s %-24s %s\n' "$name" "$caught" "${seed:--}"
done
exit "$status"
