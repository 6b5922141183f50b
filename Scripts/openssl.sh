#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of TLS with a newer OpenSSL than that of the headers: bounds must not depend on it.
#
#   Scripts/openssl.sh [FILTER]    FILTER selects tests; all of LongLinkTLSTests by default
#
# The library comes from a Python wheel that contains one, of psycopg2-binary; WHEEL names another. It fails
# if there is none of OpenSSL 3.2 or later: from that version on, certificates can be compressed.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
options=(--scratch-path .build --disable-build-manifest-caching --traits SQLite,HTTP,Operations)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$folder" "${WHEEL:-psycopg2-binary==2.9.13}"
python3 -m zipfile -e "$folder"/*.whl "$folder/wheel"
mkdir "$folder/lib"
for name in ssl crypto; do
  # The name of the file has a part of its own.
  file=$(find "$folder/wheel" -name "lib$name*.so.3" -print -quit)
  if [ -z "$file" ]; then echo "the wheel has no lib$name of OpenSSL 3" >&2; exit 1; fi
  ln -s "$file" "$folder/lib/lib$name.so.3"
done
version=$(grep -aoE -m1 'OpenSSL 3\.[0-9]+\.[0-9]+ [0-9]' "$folder/lib/libcrypto.so.3" | head -n 1)
minor=${version#OpenSSL 3.}
if [ "${minor%%.*}" -lt 2 ]; then echo "the wheel has ${version% *}; 3.2 or later is needed" >&2; exit 1; fi
echo "The tests of TLS, with ${version% *}"

# Traits in the same order as in the Makefile's builds.
SWIFT_DETERMINISTIC_HASHING=1 "$swift" build "${options[@]}" --build-tests
# The wheel's library looks for its configuration elsewhere than the system's program `openssl`.
directory=$(openssl version -d | cut -d '"' -f 2)
export OPENSSL_CONF=$directory/openssl.cnf
export LD_LIBRARY_PATH=$folder/lib
tests=$("$swift" build "${options[@]}" --show-bin-path)/LongLinkPackageTests.xctest
if [[ $(ldd "$tests") != *"libssl.so.3 => $folder"* ]]; then echo "$tests does not load it" >&2; exit 1; fi
# What an idle connection takes differs: with OpenSSL 3.5 it is 6 KiB more than with 3.0.
"$swift" test "${options[@]}" --skip-build --disable-xctest --filter "${1:-LongLinkTLSTests}" \
  --skip IdleMemoryTests
