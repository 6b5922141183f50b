#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the checks that `make test` leaves out, three at a time, each to its end even if another fails. Prints
# a line for each with its time, and for each that fails what failed and where its whole output is.
#
#   Scripts/check.sh              all steps
#   Scripts/check.sh STEP...      these steps, one after the other
#   Scripts/check.sh --list       the names of the steps
#
# JOBS (3) is how many run at once.
set -uo pipefail
cd "$(dirname "$0")/.."

# Steps on one line run one after the other, because they share a build. The longest line comes first. Those that
# need no traits come first in it: they use what `make test` has built.
jobs() {
  cat <<'JOBS'
style readme chat hub http sqlite openssl command processes operations docs feed payments
sanitize-thread
sanitize-address
bench simulate
generator
fuzz
portable
linkage
JOBS
}

# command STEP: sets `command` to what runs this step.
command() {
  case $1 in
  test) command=(make test) ;;
  docs | portable | sanitize-thread | sanitize-address) command=(make "$1") ;;
  bench) command=(make bench-check SCRATCH=.build-release) ;;
  # `make simulate` alone runs 12,000 seeds, `make fuzz` a minute for each fuzzer. The release build is that of
  # `bench`.
  simulate) command=(make simulate TRAITS= SCRATCH=.build-release 'SIMULATE=--seeds 0..499' \
    'SIMULATE_ONCE=--seeds 0..99 --profile once') ;;
  fuzz) command=(make fuzz FUZZ_SECONDS=5) ;;
  linkage) command=(Scripts/linkage.sh) ;;
  # With another trait everything is compiled anew, so not in the folder of the others.
  operations) command=(make check-operations SCRATCH=.build-operations) ;;
  *) command=(make "check-$1") ;;
  esac
}

logs=.build/check
# run STEP: a step that hangs fails within 45 minutes.
run() {
  local command start=$SECONDS status=0 log=$logs/$1.log took
  rm -f "$logs/$1.passed"
  command "$1"
  export LONGLINK_SKIPPED=$PWD/$logs/$1.skipped
  rm -f "$LONGLINK_SKIPPED"
  # A step takes longer beside others; its CPU time hardly changes.
  took=$(
    TIMEFORMAT='%U %S'
    { time timeout --kill-after=10 45m "${command[@]}" >"$log" 2>&1 </dev/null; } 2>&1
  ) || status=$?
  took="$((SECONDS - start)) s (CPU $(awk '{ printf "%d", $1 + $2 }' <<<"$took") s)"
  local said
  said=$(grep -aoE 'Test run with .* (passed|failed) after [0-9.]+ seconds' "$log" | tr '\n' ';')
  # A filter that selects no test passes, and shows nothing.
  if grep -aq 'Test run with 0 tests' "$log"; then status=1; fi
  if [ "$status" -eq 0 ]; then
    touch "$logs/$1.passed"
    echo "passed in $took: $1${said:+ ($said)}"
  else
    echo "FAILED in $took: $1 (exit code $status); the whole output is in $log"
    {
      grep -aE '✘ .* recorded an issue|error: |ERROR: |SUMMARY: |failed; the end of' "$log" | head -n 40
      # Tests that began and did not end: one of them hangs, or has ended its process.
      awk -F'"' '/^◇ Test "/ { open[$2] } /^(✔|✘) Test "/ { delete open[$2] }
        END { for (name in open) print "did not end: " name }' "$log" | head -n 20
      tail -n 5 "$log"
    } | cut -c1-400 | sed 's/^/    /'
  fi
  if [ -s "$LONGLINK_SKIPPED" ]; then sed 's/^/    skipped: /' "$LONGLINK_SKIPPED"; fi
}

case ${1:-} in
--list)
  jobs | tr ' ' '\n'
  exit
  ;;
--job)
  shift
  for step in "$@"; do run "$step"; done
  exit
  ;;
esac

mkdir -p "$logs"
# Once, so that steps that run side by side find everything installed.
make --no-print-directory setup-check >"$logs/setup.log" 2>&1 || {
  cat "$logs/setup.log"
  exit 1
}
if [ $# -gt 0 ]; then
  for step in "$@"; do run "$step"; done
else
  # shellcheck disable=SC2046
  set -- $(jobs)
  for step in "$@"; do rm -f "$logs/$step.log" "$logs/$step.passed"; done
  # Each line is one job.
  jobs | xargs -P "${JOBS:-3}" -I{} sh -c 'exec Scripts/check.sh --job {}'
fi
# Each step has to say that it has passed, or one that never ran would be taken for one.
for step in "$@"; do [ -e "$logs/$step.passed" ] || exit 1; done
