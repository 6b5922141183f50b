#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs python3 with these arguments: the one that PYTHON names, or the first that has the package protobuf,
# because the python3 in PATH may be another one than the system's, which has it.
set -eu

for python in ${PYTHON:-python3 /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3}; do
  if "$python" -c 'import google.protobuf' 2>/dev/null; then exec "$python" "$@"; fi
done
echo "python3: none that has the package protobuf was found" \
  "(Debian: apt-get install python3-protobuf, elsewhere: pip install protobuf)" >&2
exit 69
