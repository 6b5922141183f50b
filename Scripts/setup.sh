#!/bin/sh
# Makes sure that what the build needs beyond Swift is there. Where something is missing, apt-get
# installs it when it may; else the command that does is printed, and this fails.
#
# With --for-tests it looks for what some tests need besides, and fails for none of it: those tests
# are skipped then, and say so.
set -eu

if [ "${1:-}" = --for-tests ]; then
  if ! command -v tshark >/dev/null; then
    if command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ] && apt-get update >/dev/null \
      && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends tshark; then
      exit 0
    fi
    echo 'The dissector is not shown to Wireshark: tshark is missing (apt-get install tshark).'
  fi
  exit 0
fi

packages='libprotobuf-c-dev protobuf-c-compiler protobuf-compiler pkg-config'

if command -v protoc-c >/dev/null && command -v protoc >/dev/null && command -v pkg-config >/dev/null \
  && pkg-config --exists libprotobuf-c; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "LongLink needs libprotobuf-c, protoc-c, protoc and pkg-config." >&2
  echo "Without apt-get they have to be installed by hand; with Homebrew:" >&2
  echo "  brew install protobuf-c protobuf pkgconf" >&2
  exit 69
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "LongLink needs libraries that are missing, and only root can install them:" >&2
  echo "  sudo apt-get install $packages" >&2
  exit 69
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
# The list of packages is split on purpose.
apt-get install --yes --no-install-recommends $packages
