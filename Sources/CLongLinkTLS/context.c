// SPDX-License-Identifier: Apache-2.0
#include "internal.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// RFC 9325 for TLS 1.2; all suites of TLS 1.3 that are in common use.
static const char *const old_ciphers =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char *const ciphers =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
static const char *const groups = "X25519:P-256:P-384";
// The most intermediate authorities of a chain.
#define MOST_AUTHORITIES 8
// The most bytes of a client's chain. A server's may have 100 KiB, as OpenSSL has it.
#define LARGEST_CLIENT_CHAIN 16384
// SSL_OP_NO_TX_CERTIFICATE_COMPRESSION and SSL_OP_NO_RX_CERTIFICATE_COMPRESSION, which the headers
// have from OpenSSL 3.2 on; before, these bits mean nothing. Certificates that are compressed would
// escape what `cll_judge_message` looks for.
#define NO_COMPRESSED_CERTIFICATES ((uint64_t)1 << 32 | (uint64_t)1 << 33)
static const unsigned char protocol[] = "\x0a" CLL_PROTOCOL;

void cll_explain(struct cll_tls_problem *problem, const char *what) {
  unsigned long error = ERR_peek_error();
  const char *reason = error != 0 ? ERR_reason_error_string(error) : NULL;
  snprintf(problem->text, sizeof problem->text, "%s%s%s", what, reason != NULL ? ": " : "",
           reason != NULL ? reason : "");
  ERR_clear_error();
}

bool cll_tls_random(uint8_t *bytes, size_t count) { return RAND_bytes(bytes, (int)count) == 1; }

// Chooses the certificate for the name that the client asks for.
static int name_came(SSL *ssl, int *alert, void *unused) {
  (void)alert;
  (void)unused;
  const cll_tls_context *context = cll_engine_of(ssl)->context;
  const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == NULL) return SSL_TLSEXT_ERR_NOACK;
  unsigned int flags = X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  // Exact names come first, then wildcards of one label.
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < context->identity_count; i++) {
      X509 *certificate = context->identities[i].certificate;
      if (X509_check_host(certificate, name, strlen(name), flags, NULL) != 1) continue;
      SSL_set_SSL_CTX(ssl, context->identities[i].ssl);
      return SSL_TLSEXT_ERR_OK;
    }
    flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

// Whether a client's hello has an extension that OpenSSL should not decode.
static bool is_crowded(SSL *ssl) {
  static const unsigned int types[] = {TLSEXT_TYPE_supported_groups, TLSEXT_TYPE_status_request,
                                       TLSEXT_TYPE_certificate_authorities, TLSEXT_TYPE_key_share};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    const unsigned char *bytes;
    size_t length;
    if (SSL_client_hello_get0_ext(ssl, types[i], &bytes, &length) == 1 &&
        cll_is_crowded(types[i], bytes, length)) {
      return true;
    }
  }
  return false;
}

// A client that offers no protocol is refused like one that offers others.
static int hello_came(SSL *ssl, int *alert, void *unused) {
  (void)unused;
  const unsigned char *bytes;
  size_t length;
  if (is_crowded(ssl)) {
    cll_engine_of(ssl)->failure.kind = CLL_FAILURE_CROWDED_HELLO;
    *alert = SSL_AD_ILLEGAL_PARAMETER;
    return SSL_CLIENT_HELLO_ERROR;
  }
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes,
                                &length) == 1) {
    return SSL_CLIENT_HELLO_SUCCESS;
  }
  cll_engine_of(ssl)->failure.kind = CLL_FAILURE_PROTOCOL_NAME;
  *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
  return SSL_CLIENT_HELLO_ERROR;
}

static int protocols_came(SSL *ssl, const unsigned char **chosen, unsigned char *length,
                          const unsigned char *offered, unsigned int offered_length,
                          void *unused) {
  (void)unused;
  unsigned char *found;
  if (SSL_select_next_proto(&found, length, protocol, sizeof protocol - 1, offered,
                            offered_length) == OPENSSL_NPN_NEGOTIATED) {
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
  }
  cll_engine_of(ssl)->failure.kind = CLL_FAILURE_PROTOCOL_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool set_common(SSL_CTX *ssl, const struct cll_tls_options *options) {
  SSL_CTX_set_security_level(ssl, 2);
  SSL_CTX_set_options(ssl, NO_COMPRESSED_CERTIFICATES);
  int oldest = options->allows_tls12 ? TLS1_2_VERSION : TLS1_3_VERSION;
  if (SSL_CTX_set_min_proto_version(ssl, oldest) != 1) return false;
  if (SSL_CTX_set_max_proto_version(ssl, 0) != 1) return false;
  if (SSL_CTX_set_cipher_list(ssl, old_ciphers) != 1) return false;
  if (SSL_CTX_set_ciphersuites(ssl, ciphers) != 1) return false;
  if (SSL_CTX_set1_groups_list(ssl, groups) != 1) return false;
  SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_clear_options(ssl, SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_cert_verify_callback(ssl, cll_verify, NULL);
  SSL_CTX_set_verify_depth(ssl, MOST_AUTHORITIES);
  // A root that is no authority, or has an issuer itself, is trusted all the same.
  X509_STORE_set_flags(SSL_CTX_get_cert_store(ssl), X509_V_FLAG_PARTIAL_CHAIN);
  SSL_CTX_set_timeout(ssl, (long)options->ticket_lifetime);
  return true;
}

static bool set_role(SSL_CTX *ssl, const struct cll_tls_options *options) {
  int mode = SSL_VERIFY_NONE;
  if (options->is_server) {
    if (options->clients != CLL_CLIENTS_NONE) mode = SSL_VERIFY_PEER;
    if (options->clients == CLL_CLIENTS_REQUIRED) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(ssl, LARGEST_CLIENT_CHAIN);
    SSL_CTX_set_client_hello_cb(ssl, hello_came, NULL);
    SSL_CTX_set_alpn_select_cb(ssl, protocols_came, NULL);
    SSL_CTX_set_tlsext_servername_callback(ssl, name_came);
    // They are sent with the first bytes, so that they never wait for a peer that does not read.
    if (SSL_CTX_set_num_tickets(ssl, 0) != 1) return false;
  } else {
    if (options->verifies) mode = SSL_VERIFY_PEER;
    SSL_CTX_set_session_cache_mode(
        ssl, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL | SSL_SESS_CACHE_NO_AUTO_CLEAR);
    SSL_CTX_sess_set_new_cb(ssl, cll_session_came);
    if (SSL_CTX_set_alpn_protos(ssl, protocol, sizeof protocol - 1) != 0) return false;
  }
  SSL_CTX_set_verify(ssl, mode, NULL);
  return true;
}

static SSL_CTX *make(const struct cll_tls_options *options) {
  SSL_CTX *ssl = SSL_CTX_new(options->is_server ? TLS_server_method() : TLS_client_method());
  if (ssl == NULL) return NULL;
  if (set_common(ssl, options) && set_role(ssl, options)) return ssl;
  SSL_CTX_free(ssl);
  return NULL;
}

cll_tls_context *cll_tls_context_new(const struct cll_tls_options *options,
                                     struct cll_tls_problem *problem) {
  ERR_clear_error();
  cll_tls_context *context = OPENSSL_zalloc(sizeof *context);
  if (context != NULL) {
    context->options = *options;
    context->pins_end = INT64_MAX;
    context->lists_end = INT64_MAX;
    context->ssl = make(options);
    if (context->ssl != NULL) return context;
    OPENSSL_free(context);
  }
  cll_explain(problem, "OpenSSL could not be set up");
  return NULL;
}

void cll_tls_context_free(cll_tls_context *context) {
  for (size_t i = 0; i < context->identity_count; i++) {
    X509_free(context->identities[i].certificate);
    SSL_CTX_free(context->identities[i].ssl);
  }
  OPENSSL_free(context->identities);
  OPENSSL_free(context->pins);
  SSL_CTX_free(context->ssl);
  OPENSSL_free(context);
}

// Where systems keep all of their roots in one file.
static const char *const root_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL 7 and later
    "/etc/ssl/ca-bundle.pem",                            // SUSE
    "/etc/ssl/cert.pem",                                 // macOS, BSD
};

// The file of the system's roots; null if there is none, or OpenSSL has to look for it.
static const char *root_file(void) {
  // OpenSSL does not let these mislead a program with raised rights.
  if (getenv(X509_get_default_cert_file_env()) != NULL) return NULL;
  if (getenv(X509_get_default_cert_dir_env()) != NULL) return NULL;
  if (access(X509_get_default_cert_file(), R_OK) == 0) return X509_get_default_cert_file();
  for (size_t i = 0; i < sizeof root_files / sizeof root_files[0]; i++) {
    if (access(root_files[i], R_OK) == 0) return root_files[i];
  }
  return NULL;
}

bool cll_tls_context_add_system_roots(cll_tls_context *context, struct cll_tls_problem *problem) {
  ERR_clear_error();
  const char *file = root_file();
  if (file != NULL && SSL_CTX_load_verify_file(context->ssl, file) == 1) {
    ERR_clear_error();
    return true;
  }
  ERR_clear_error();
  if (getenv(X509_get_default_cert_file_env()) != NULL &&
      getenv(X509_get_default_cert_dir_env()) == NULL) {
    // The file alone: with it, nothing is read later.
    if (SSL_CTX_set_default_verify_file(context->ssl) == 1) {
      ERR_clear_error();
      return true;
    }
  } else if (SSL_CTX_set_default_verify_paths(context->ssl) == 1) {
    // A missing file is no failure to OpenSSL, but stays in its queue.
    ERR_clear_error();
    return true;
  }
  cll_explain(problem, "the system's certificates could not be loaded");
  return false;
}

// Whether the end of the file, and nothing else, has ended the reading of PEM.
static bool is_at_end(void) {
  unsigned long error = ERR_peek_last_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

// What one call has read of a file: something, nothing, or something that the store refuses.
enum read_result { READ_ONE, READ_NONE, READ_REFUSED };

static enum read_result read_root(cll_tls_context *context, X509_STORE *store, BIO *memory) {
  X509 *certificate = PEM_read_bio_X509(memory, NULL, NULL, NULL);
  if (certificate == NULL) return READ_NONE;
  int status = X509_STORE_add_cert(store, certificate);
  // The names are a hint for clients that have several certificates.
  if (status == 1 && context->options.is_server) SSL_CTX_add_client_CA(context->ssl, certificate);
  X509_free(certificate);
  return status == 1 ? READ_ONE : READ_REFUSED;
}

static enum read_result read_list(cll_tls_context *context, X509_STORE *store, BIO *memory) {
  (void)context;
  X509_CRL *list = PEM_read_bio_X509_CRL(memory, NULL, NULL, NULL);
  if (list == NULL) return READ_NONE;
  int status = X509_STORE_add_crl(store, list);
  X509_CRL_free(list);
  return status == 1 ? READ_ONE : READ_REFUSED;
}

// Reads a file to its end. Returns how many it has, or -1 with the problem.
static int read_all(cll_tls_context *context, const uint8_t *pem, size_t length,
                    enum read_result (*read_one)(cll_tls_context *, X509_STORE *, BIO *),
                    const char *absent, const char *damaged, struct cll_tls_problem *problem) {
  ERR_clear_error();
  BIO *memory = BIO_new_mem_buf(pem, (int)length);
  X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
  int count = 0;
  enum read_result result;
  while ((result = read_one(context, store, memory)) == READ_ONE) count++;
  bool is_whole = result == READ_NONE && is_at_end();
  BIO_free(memory);
  if (is_whole) ERR_clear_error();
  if (is_whole && count > 0) return count;
  cll_explain(problem, is_whole ? absent : damaged);
  return -1;
}

int cll_tls_context_add_roots(cll_tls_context *context, const uint8_t *pem, size_t length,
                              struct cll_tls_problem *problem) {
  return read_all(context, pem, length, read_root, "there is no certificate in it",
                  "a certificate is damaged", problem);
}

int cll_tls_context_add_lists(cll_tls_context *context, const uint8_t *pem, size_t length,
                              struct cll_tls_problem *problem) {
  int count = read_all(context, pem, length, read_list, "there is no revocation list in it",
                       "a revocation list is damaged", problem);
  if (count > 0) {
    X509_STORE_set_flags(SSL_CTX_get_cert_store(context->ssl),
                         X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  }
  return count;
}

void cll_tls_context_set_keys(cll_tls_context *context, cll_tls_keys *keys) {
  context->keys = keys;
  if (keys == NULL) SSL_CTX_set_options(context->ssl, SSL_OP_NO_TICKET);
  else cll_set_ticket_callbacks(context, context->ssl);
}

bool cll_tls_context_set_scope(cll_tls_context *context, const uint8_t *scope, size_t length) {
  unsigned int count = (unsigned int)length;
  for (size_t i = 0; i < context->identity_count; i++) {
    SSL_CTX *ssl = context->identities[i].ssl;
    if (SSL_CTX_set_session_id_context(ssl, scope, count) != 1) return false;
  }
  return SSL_CTX_set_session_id_context(context->ssl, scope, count) == 1;
}

bool cll_tls_context_add_pin(cll_tls_context *context, const uint8_t hash[32]) {
  uint8_t(*pins)[32] = OPENSSL_realloc(context->pins, (context->pin_count + 1) * sizeof *pins);
  if (pins == NULL) return false;
  context->pins = pins;
  memcpy(pins[context->pin_count], hash, 32);
  context->pin_count++;
  return true;
}

void cll_tls_context_set_pins(cll_tls_context *context, bool audits, int64_t end) {
  context->audits = audits;
  context->pins_end = end;
}

// --- Identities --------------------------------------------------------------------------------

struct password {
  // May be null.
  const char *text;
  bool was_asked_for;
};

// Never asks on a terminal.
static int give_password(char *buffer, int size, int writes, void *given) {
  (void)writes;
  struct password *password = given;
  if (password == NULL) return -1;
  password->was_asked_for = true;
  if (password->text == NULL) return -1;
  size_t length = strlen(password->text);
  if (length > (size_t)size) return -1;
  memcpy(buffer, password->text, length);
  return (int)length;
}

// Returns null, with the reason, if there is no key or it cannot be decrypted.
static EVP_PKEY *read_key(const uint8_t *pem, size_t length, const char *text, const char **what) {
  struct password password = {text, false};
  BIO *memory = BIO_new_mem_buf(pem, (int)length);
  EVP_PKEY *key = PEM_read_bio_PrivateKey(memory, NULL, give_password, &password);
  BIO_free(memory);
  if (key != NULL) return key;
  *what = "no private key could be read";
  if (!password.was_asked_for) return NULL;
  *what = text == NULL ? "the key has a password, and none is set"
                       : "the key has another password than the one that is set";
  // OpenSSL calls that an interrupted dialogue, or damage.
  ERR_clear_error();
  return NULL;
}

// Reads the certificate and its chain. Returns the certificate, or null.
static X509 *read_chain(const uint8_t *pem, size_t length, STACK_OF(X509) *rest) {
  BIO *memory = BIO_new_mem_buf(pem, (int)length);
  X509 *first = PEM_read_bio_X509(memory, NULL, give_password, NULL);
  bool is_whole = first != NULL;
  X509 *next;
  while (is_whole && (next = PEM_read_bio_X509(memory, NULL, give_password, NULL)) != NULL) {
    if (sk_X509_push(rest, next) == 0) {
      X509_free(next);
      is_whole = false;
    }
  }
  is_whole = is_whole && is_at_end();
  if (is_whole) ERR_clear_error();
  BIO_free(memory);
  if (is_whole) return first;
  X509_free(first);
  return NULL;
}

// The further identities of a server have a context each, which differs in its certificate alone.
static SSL_CTX *context_for_next(cll_tls_context *context) {
  if (context->identity_count == 0) {
    SSL_CTX_up_ref(context->ssl);
    return context->ssl;
  }
  SSL_CTX *ssl = make(&context->options);
  if (ssl == NULL) return NULL;
  SSL_CTX_set1_cert_store(ssl, SSL_CTX_get_cert_store(context->ssl));
  SSL_CTX_set_client_CA_list(ssl, SSL_dup_CA_list(SSL_CTX_get_client_CA_list(context->ssl)));
  return ssl;
}

static bool append(cll_tls_context *context, X509 *certificate, SSL_CTX *ssl, int64_t expiry) {
  size_t size = (context->identity_count + 1) * sizeof(struct cll_identity);
  struct cll_identity *identities = OPENSSL_realloc(context->identities, size);
  if (identities == NULL) return false;
  context->identities = identities;
  identities[context->identity_count].certificate = certificate;
  identities[context->identity_count].ssl = ssl;
  identities[context->identity_count].expiry = expiry;
  context->identity_count++;
  return true;
}

static int64_t first_expiry(const X509 *certificate, STACK_OF(X509) *chain) {
  int64_t expiry = cll_certificate_not_after(certificate);
  for (int i = 0; i < sk_X509_num(chain); i++) {
    int64_t end = cll_certificate_not_after(sk_X509_value(chain, i));
    if (end < expiry) expiry = end;
  }
  return expiry;
}

int cll_tls_context_add_identity(cll_tls_context *context, const uint8_t *chain,
                                 size_t chain_length, const uint8_t *key, size_t key_length,
                                 const char *password, struct cll_tls_problem *problem) {
  ERR_clear_error();
  int part = CLL_PART_CHAIN;
  const char *what = "no certificate could be read";
  STACK_OF(X509) *rest = sk_X509_new_null();
  EVP_PKEY *secret = NULL;
  SSL_CTX *ssl = NULL;
  X509 *certificate = read_chain(chain, chain_length, rest);
  if (certificate == NULL) goto failed;
  part = CLL_PART_KEY;
  secret = read_key(key, key_length, password, &what);
  if (secret == NULL) goto failed;
  what = "the private key does not belong to the certificate";
  if (X509_check_private_key(certificate, secret) != 1) goto failed;
  part = CLL_PART_CHAIN;
  what = "the certificate cannot be used";
  ssl = context_for_next(context);
  if (ssl == NULL || SSL_CTX_use_cert_and_key(ssl, certificate, secret, rest, 1) != 1) goto failed;
  if (!append(context, certificate, ssl, first_expiry(certificate, rest))) goto failed;
  EVP_PKEY_free(secret);
  sk_X509_pop_free(rest, X509_free);
  return CLL_PART_NONE;
failed:
  cll_explain(problem, what);
  SSL_CTX_free(ssl);
  EVP_PKEY_free(secret);
  X509_free(certificate);
  sk_X509_pop_free(rest, X509_free);
  return part;
}

size_t cll_tls_context_identities(const cll_tls_context *context) {
  return context->identity_count;
}

const cll_certificate *cll_tls_context_identity(const cll_tls_context *context, size_t index) {
  return context->identities[index].certificate;
}

int64_t cll_tls_context_expiry(const cll_tls_context *context, size_t index) {
  return context->identities[index].expiry;
}
