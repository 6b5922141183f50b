#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes server-key.pem and server.pem, a certificate for `localhost` that nobody else has signed. It is
# valid for 30 days, and for trials only.
set -eu
umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost -keyout server-key.pem -out server.pem
