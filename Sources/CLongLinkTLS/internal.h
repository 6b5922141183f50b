// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_CLONGLINKTLS_INTERNAL_H
#define LONGLINK_CLONGLINKTLS_INTERNAL_H

#include "CLongLinkTLS.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// The application protocol (ALPN).
#define CLL_PROTOCOL "longlink/1"
// The sessions that a client keeps until they are taken.
#define CLL_MOST_SESSIONS 4

struct cll_identity {
  X509 *certificate;
  // What its handshakes begin with; the first identity's is the context's own.
  SSL_CTX *ssl;
  int64_t expiry;
};

struct cll_tls_context {
  struct cll_tls_options options;
  // For all connections of a client, and for a server's default certificate.
  SSL_CTX *ssl;
  struct cll_identity *identities;
  size_t identity_count;
  cll_tls_keys *keys;
  uint8_t (*pins)[32];
  size_t pin_count;
  bool audits;
  int64_t pins_end;
  // When the first of the revocation lists expires.
  int64_t lists_end;
};

struct cll_session {
  uint8_t *bytes;
  size_t length;
};

struct cll_tls_engine {
  SSL *ssl;
  cll_tls_context *context;
  // The input of the call that runs.
  const uint8_t *input;
  size_t input_left;
  // The output of the call that runs.
  uint8_t *output;
  size_t output_capacity;
  size_t output_count;
  uint8_t *late;
  size_t late_count;
  size_t late_capacity;
  struct cll_session sessions[CLL_MOST_SESSIONS];
  int session_count;
  // Records without bytes of the application that the peer may still send, times 64.
  int credit;
  // Of a server.
  struct cll_hello_progress hello;
  // The records with bytes of the application, both ways, since buffers were released last.
  int records;
  // Whether OpenSSL keeps its buffers.
  bool keeps_buffers;
  int64_t now;
  // Of a server that resumes: when the full handshake was that the session goes back to.
  int64_t beginning;
  int64_t expiry;
  struct cll_tls_failure failure;
  X509 *offender;
  bool has_ended;
  bool has_records;
  bool missed_pin;
};

cll_tls_engine *cll_engine_of(const SSL *ssl);
// The method of the BIO through which a connection reads its input and writes its output.
const BIO_METHOD *cll_bio_method(void);
// Verifies a peer's chain.
int cll_verify(X509_STORE_CTX *store, void *unused);
// Sets the callbacks of session tickets.
bool cll_set_ticket_callbacks(cll_tls_context *context, SSL_CTX *ssl);
// Keeps a session that a server gave.
int cll_session_came(SSL *ssl, SSL_SESSION *session);
int64_t cll_seconds(const ASN1_TIME *time);
// Writes the reason of OpenSSL's latest failure, and clears its queue.
void cll_explain(struct cll_tls_problem *problem, const char *what);

#endif
