#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what LongLink needs in addition to Swift. If it cannot use apt-get, it prints the commands to run,
# and fails.
#
#   Scripts/setup.sh          what is needed to build, and to generate code
#   Scripts/setup.sh --tests  also what `make test` and most other checks need
#   Scripts/setup.sh --check  also what `make check` needs
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

# need PACKAGE ELSEWHERE COMMAND...: Debian's package, the command that installs it on other systems, and a
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

# Whether nginx passes streams on: in Debian by a module of its own, elsewhere it has it built in.
has_stream_module() {
  [ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || nginx -V 2>&1 | grep -q -- '--with-stream '
}

# All packages, with their purposes.
look() {
  packages='' commands=''
  # To find the next one.
  need pkg-config 'brew install pkgconf' pkg-config --version
  # Linked into programs with typed bodies over it.
  need libprotobuf-c-dev 'brew install protobuf-c' pkg-config --exists libprotobuf-c
  # Linked into programs that read documents.
  need libexpat1-dev 'brew install expat' pkg-config --exists expat
  # Linked into programs with uploads, for hashes, and into those with TLS.
  need libssl-dev 'brew install openssl@3' pkg-config --exists openssl
  # Linked into clients of HTTP.
  need zlib1g-dev 'brew install zlib' pkg-config --exists zlib
  # Linked into servers that keep records in an SQLite file.
  need libsqlite3-dev 'brew install sqlite' pkg-config --exists sqlite3
  # To generate code, with the files that every .proto may import.
  need protobuf-c-compiler 'brew install protobuf-c' protoc-c --version
  need protobuf-compiler 'brew install protobuf' protoc --version
  need libprotobuf-dev 'brew install protobuf' \
    protoc --descriptor_set_out=/dev/null google/protobuf/empty.proto
  [ "$1" = --tests ] || [ "$1" = --check ] || return 0
  # For the test vectors, a peer in another language, and a third implementation of messages.
  need python3 'brew install python3' python3 --version
  need python3-protobuf 'pip install protobuf' Scripts/python.sh --version
  # It fetches a newer OpenSSL.
  need python3-pip 'brew install python3' python3 -m pip --version
  # A client and a server of TLS that nobody here wrote.
  need openssl 'brew install openssl@3' openssl version
  # To test the dissector.
  need tshark 'brew install wireshark' tshark --version
  # Servers of HTTP that nobody here wrote.
  need nginx 'brew install nginx' nginx -v
  # It ends TLS in front of a server.
  need libnginx-mod-stream 'brew install nginx' has_stream_module
  need caddy 'brew install caddy' caddy version
  need apache2-bin 'brew install httpd' apache2 -v
  # To check that the mutants apply.
  need patch 'brew install gpatch' patch --version
  # The proxy in front of a gateway.
  need nginx-light 'brew install nginx' nginx -v
  if [ "$1" = --check ]; then
    # They look at the port for operators.
    need prometheus 'brew install prometheus' promtool --version
    need chromium 'brew install chromium' chromium --version
  fi
  [ "$(uname)" = Linux ] || return 0
  # It checks the unit of the examples.
  if [ "$1" = --check ]; then need systemd 'systemd' systemd-analyze --version; fi
  # For network namespaces in which packets are lost.
  need iproute2 'iproute2' ip -V
  need iptables 'iptables' iptables --version
}

look "${1:-}"
[ -n "$packages" ] || exit 0
if ! command -v apt-get >/dev/null; then
  echo 'Programs or libraries are missing. Commands that install them, or their names:' >&2
  echo "$commands" | sort -u | sed '/^ *$/d' >&2
  exit 69
fi
if [ "$(id -u)" -ne 0 ]; then
  echo 'Programs or libraries are missing. To install them:' >&2
  echo "  sudo apt-get install --no-install-recommends$packages" >&2
  exit 69
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update || echo 'The lists of packages could not be updated; the old ones are used.'
# The list of packages is split into words on purpose. The timeout is for another apt-get that runs now.
apt-get -o DPkg::Lock::Timeout=600 install --yes --no-install-recommends $packages
look "${1:-}"
if [ -n "$packages" ]; then
  echo "$0: these packages are installed, but do not work:$packages" >&2
  exit 69
fi
