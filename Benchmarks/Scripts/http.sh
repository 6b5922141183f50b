#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures HTTPService beside async-http-client alone, in turns, against one nginx on loopback.
#
#   Benchmarks/Scripts/http.sh [OPTIONS]    options of HTTPRate, such as --concurrency 1
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
swift=${SWIFT:-swift}
scratch=$(mktemp -d)
trap 'kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
$swift build --package-path "$root/Benchmarks/HTTP" --configuration release --product HTTPRate
port=$((20000 + RANDOM % 10000))
mkdir "$scratch/www"
head -c 1024 /dev/zero | tr '\0' a >"$scratch/www/1k"
head -c 1048576 /dev/zero | tr '\0' a >"$scratch/www/1m"
chmod -R a+rX "$scratch"
cat >"$scratch/nginx.conf" <<CONF
daemon off; master_process off; pid $scratch/pid; error_log $scratch/errors;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000; sendfile on;
  client_body_temp_path $scratch/body; proxy_temp_path $scratch/proxy;
  fastcgi_temp_path $scratch/f; uwsgi_temp_path $scratch/u; scgi_temp_path $scratch/s;
  server { listen 127.0.0.1:$port; root $scratch/www; }
}
CONF
nginx -p "$scratch" -c "$scratch/nginx.conf" -e "$scratch/errors" &
server=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$server"; done
rate=$root/Benchmarks/HTTP/.build/release/HTTPRate
echo "1 KiB:"
"$rate" "http://127.0.0.1:$port/1k" "$@"
echo "1 MiB:"
"$rate" "http://127.0.0.1:$port/1m" --requests 200 "$@"
