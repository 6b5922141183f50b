#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what LongLink needs beyond Swift. Where apt-get may not do so, this prints the command
# that does, and fails.
#
#   Scripts/setup.sh          what building and generating code need
#   Scripts/setup.sh --tests  what `make test` and the other checks need besides
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

# need PACKAGE ELSEWHERE COMMAND...: Debian's package, what installs it on other systems, and a
# command that fails without it.
need() {
  package=$1
  elsewhere=$2
  shift 2
  if "$@" >/dev/null 2>&1; then return; fi
  packages="$packages $package"
  commands="$commands  $elsewhere
"
}

# Everything that is ever installed, with what it is for.
look() {
  packages='' commands=''
  # How the next one is found.
  need pkg-config 'brew install pkgconf' pkg-config --version
  # The messages that both ends link.
  need libprotobuf-c-dev 'brew install protobuf-c' pkg-config --exists libprotobuf-c
  # Generating code, with the files that every .proto may import.
  need protobuf-c-compiler 'brew install protobuf-c' protoc-c --version
  need protobuf-compiler 'brew install protobuf' protoc --version
  need libprotobuf-dev 'brew install protobuf' \
    protoc --descriptor_set_out=/dev/null google/protobuf/empty.proto
  [ "$1" = --tests ] || return 0
  # The golden frames, a peer in another language, and a third opinion on messages.
  need python3 'brew install python3' python3 --version
  need python3-protobuf 'pip install protobuf' Scripts/python.sh --version
  # The dissector is run by Wireshark.
  need tshark 'brew install wireshark' tshark --version
  # Whether the mutants apply.
  need patch 'brew install gpatch' patch --version
  [ "$(uname)" = Linux ] || return 0
  # Networks of their own, in which packets are lost.
  need iproute2 'iproute2' ip -V
  need iptables 'iptables' iptables --version
}

look "${1:-}"
[ -n "$packages" ] || exit 0
if ! command -v apt-get >/dev/null; then
  echo 'Programs or libraries are missing. What installs them, or names them:' >&2
  echo "$commands" | sort -u | sed '/^ *$/d' >&2
  exit 69
fi
if [ "$(id -u)" -ne 0 ]; then
  echo 'Programs or libraries are missing. To install them:' >&2
  echo "  sudo apt-get install --no-install-recommends$packages" >&2
  exit 69
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update || echo 'The lists of packages could not be renewed; those that are there are used.'
# The list of packages is split on purpose. The time is how long another apt-get is waited for.
apt-get -o DPkg::Lock::Timeout=600 install --yes --no-install-recommends $packages
look "${1:-}"
if [ -n "$packages" ]; then
  echo "$0: installed, but they do not work:$packages" >&2
  exit 69
fi
