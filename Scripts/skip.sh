#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reports that a check is skipped, and why. In CI, where the variable CI is set, this fails, because there
# a skipped check would go unnoticed.
#
#   Scripts/skip.sh CHECK REASON
#   Scripts/skip.sh --report       what has been skipped
set -eu

if [ "$1" = --report ]; then
  if [ -s "${LONGLINK_SKIPPED:-}" ]; then
    echo 'Skipped:'
    sed 's/^/  /' "$LONGLINK_SKIPPED"
  else
    echo 'All tests have run; none was skipped.'
  fi
  exit
fi
if [ -n "${CI:-}" ]; then
  echo "$1 must not be skipped in CI: $2" >&2
  exit 1
fi
echo "Skipped: $1: $2"
if [ -n "${LONGLINK_SKIPPED:-}" ]; then echo "$1: $2" >>"$LONGLINK_SKIPPED"; fi
