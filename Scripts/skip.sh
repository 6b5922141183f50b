#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says that a check is skipped, and why. In CI, where the variable CI is set, this fails: a check
# that is skipped there shows nothing.
#
#   Scripts/skip.sh CHECK REASON
set -eu

if [ -n "${CI:-}" ]; then
  echo "$1 must not be skipped in CI: $2" >&2
  exit 1
fi
echo "Skipped: $1: $2"
# What `make test` sums up at its end.
if [ -n "${LONGLINK_SKIPPED:-}" ]; then echo "$1: $2" >>"$LONGLINK_SKIPPED"; fi
