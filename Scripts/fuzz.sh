#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes each target for FUZZ_SECONDS (default 60), two at a time, with AddressSanitizer. Arguments name
# the targets to fuzz, if not all. The corpus is kept in .build-fuzz/corpus, and inputs that cause
# failures in .build-fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/.."

swift=${SWIFT:-swift}
seconds=${FUZZ_SECONDS:-60}
build=${FUZZ_BUILD:-.build-fuzz}
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  targets=(native dialect delimiter layout bodies client server shortClient shortServer
    dialectClient dialectServer xml json proxy tlsClient tlsServer handshake recording)
fi

# Otherwise objects of deleted files would stay in the archive.
if [ -d "$build" ]; then find "$build" -name libLongLinkFuzz.a -delete; fi
LONGLINK_FUZZING=1 "$swift" build --scratch-path "$build" --configuration release \
  --product LongLinkFuzz --sanitize address -Xswiftc -sanitize=fuzzer -Xswiftc -parse-as-library \
  -Xcc -fsanitize=fuzzer-no-link
bin=$(LONGLINK_FUZZING=1 "$swift" build --scratch-path "$build" --configuration release \
  --show-bin-path)
# The compiler runs the linker, because it knows where the runtime libraries are.
read -r -a libraries <<<"$(pkg-config --libs libprotobuf-c expat openssl)"
"${swift}c" -sanitize=fuzzer,address -o "$build/fuzz" "$bin/libLongLinkFuzz.a" "${libraries[@]}" \
  2> >(grep -v 'Cannot export local symbol' >&2)
mkdir -p "$build/found" "$build/logs"

fuzz() {
  target=$1
  mkdir -p "$build/corpus/$target"
  options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=3072 -print_final_stats=1)
  case $target in layout | xml | json) options+=(-dict="$build/seeds/$target.words") ;; esac
  status=0
  LONGLINK_FUZZ=$target LONGLINK_FUZZ_SEEDS="$build/seeds/$target" \
    LONGLINK_FUZZ_VECTORS=Protocols/Vectors \
    "$build/fuzz" "${options[@]}" -artifact_prefix="$build/found/$target-" \
    "$build/corpus/$target" "$build/seeds/$target" >"$build/logs/$target" 2>&1 || status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$build/logs/$target")
  if [ "$status" -eq 0 ]; then
    echo "fuzz: $target: ${runs// /} inputs in $seconds s, nothing found"
  else
    echo "fuzz: $target: failed; the end of $build/logs/$target:"
    tail -n 40 "$build/logs/$target"
  fi
  return "$status"
}

failures=0
for ((index = 0; index < ${#targets[@]}; index += 2)); do
  pids=()
  for target in "${targets[@]:index:2}"; do
    fuzz "$target" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failures=$((failures + 1)); done
done
[ "$failures" -eq 0 ]
