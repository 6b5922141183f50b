// SPDX-License-Identifier: Apache-2.0
#include "internal.h"

#include <openssl/err.h>
#include <string.h>

// Records without bytes of the application that a peer may send at first, and have left at most.
// Each 16 records with such bytes allow one more.
#define MOST_EMPTY 32
#define EMPTY_COST 16
// The records of a handshake: a chain of 100 KB in the smallest sensible pieces.
#define MOST_HANDSHAKE 512
// After this number of records a connection counts as used, and keeps its buffers until it is released.
// Heartbeats between two releases are fewer.
#define MOST_IDLE_RECORDS 16

cll_tls_engine *cll_engine_of(const SSL *ssl) { return SSL_get_app_data(ssl); }

// Lets a peer's message be looked at before OpenSSL decodes it. A callback cannot refuse one; but
// OpenSSL reads it from these bytes next.
static void message_came(int is_written, int version, int type, const void *bytes, size_t length,
                         SSL *ssl, void *unused) {
  (void)version;
  (void)unused;
  if (is_written || type != SSL3_RT_HANDSHAKE) return;
  cll_tls_engine *engine = cll_engine_of(ssl);
  int problem = cll_judge_message((uint8_t *)bytes, length, engine->context->options.is_server,
                                  SSL_version(ssl) >= TLS1_3_VERSION);
  if (problem == 0) return;
  engine->failure.kind = CLL_FAILURE_CHAIN;
  engine->failure.code = problem;
}

static bool set_up(cll_tls_engine *engine) {
  engine->ssl = SSL_new(engine->context->ssl);
  if (engine->ssl == NULL) return false;
  SSL_set_app_data(engine->ssl, engine);
  BIO *bio = BIO_new(cll_bio_method());
  if (bio == NULL) return false;
  BIO_set_data(bio, engine);
  // The one BIO for both directions.
  SSL_set_bio(engine->ssl, bio, bio);
  SSL_set_msg_callback(engine->ssl, message_came);
  X509_VERIFY_PARAM_set_time(SSL_get0_param(engine->ssl), (time_t)engine->now);
  if (engine->context->options.is_server) SSL_set_accept_state(engine->ssl);
  else SSL_set_connect_state(engine->ssl);
  return true;
}

cll_tls_engine *cll_tls_engine_new(cll_tls_context *context, int64_t now) {
  ERR_clear_error();
  cll_tls_engine *engine = OPENSSL_zalloc(sizeof *engine);
  if (engine == NULL) return NULL;
  engine->context = context;
  engine->now = now;
  engine->expiry = INT64_MAX;
  engine->credit = MOST_HANDSHAKE * EMPTY_COST;
  if (set_up(engine)) return engine;
  cll_tls_engine_free(engine);
  return NULL;
}

void cll_tls_engine_free(cll_tls_engine *engine) {
  SSL_free(engine->ssl);
  X509_free(engine->offender);
  for (int i = 0; i < engine->session_count; i++) OPENSSL_free(engine->sessions[i].bytes);
  OPENSSL_clear_free(engine->late, engine->late_capacity);
  OPENSSL_free(engine);
}

bool cll_tls_engine_set_name(cll_tls_engine *engine, const char *name, bool is_address) {
  X509_VERIFY_PARAM *parameters = SSL_get0_param(engine->ssl);
  // No address may be sent as a name (RFC 6066, 3).
  if (is_address) return X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1;
  X509_VERIFY_PARAM_set_hostflags(
      parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return SSL_set_tlsext_host_name(engine->ssl, name) == 1 &&
         X509_VERIFY_PARAM_set1_host(parameters, name, strlen(name)) == 1;
}

// --- Records -----------------------------------------------------------------------------------

static void fail(cll_tls_engine *engine, int kind) {
  engine->failure.kind = kind;
  engine->failure.code = 0;
  engine->failure.text = NULL;
}

// Gives the next record to the BIO. Returns false, with the status, if there is none.
static bool take_record(cll_tls_engine *engine, const uint8_t *input, size_t length,
                        struct cll_tls_step *step) {
  const uint8_t *next = input + step->consumed;
  size_t left = length - step->consumed;
  bool is_server = engine->context->options.is_server;
  if (!engine->has_records && cll_is_plain(next, left, is_server)) {
    fail(engine, CLL_FAILURE_PLAIN);
    step->status = CLL_TLS_FAILED;
    return false;
  }
  size_t count = cll_record_length(next, left);
  if (count == 0) {
    step->status = CLL_TLS_WANTS_INPUT;
    return false;
  }
  if (engine->credit < EMPTY_COST) {
    fail(engine, CLL_FAILURE_FLOOD);
    step->status = CLL_TLS_FAILED;
    return false;
  }
  if (is_server && !SSL_is_init_finished(engine->ssl) &&
      cll_announces_large_hello(&engine->hello, next, count,
                                SSL_version(engine->ssl) == TLS1_2_VERSION)) {
    fail(engine, CLL_FAILURE_LARGE_HELLO);
    step->status = CLL_TLS_FAILED;
    return false;
  }
  engine->credit -= EMPTY_COST;
  engine->has_records = true;
  engine->input = next;
  engine->input_left = count;
  step->consumed += count;
  return true;
}

// Whether OpenSSL's first error is that a server chose a protocol that was not offered.
static bool is_of_protocol(unsigned long error) {
  const char *function = NULL;
  if (ERR_GET_LIB(error) != ERR_LIB_SSL || ERR_GET_REASON(error) != SSL_R_BAD_EXTENSION) {
    return false;
  }
  ERR_peek_error_all(NULL, NULL, &function, NULL, NULL);
  return function != NULL && strstr(function, "stoc_alpn") != NULL;
}

// Notes why OpenSSL has failed.
static void capture(cll_tls_engine *engine) {
  unsigned long error = ERR_peek_error();
  if (engine->failure.kind == CLL_FAILURE_NONE && is_of_protocol(error)) {
    fail(engine, CLL_FAILURE_PROTOCOL_NAME);
  } else if (engine->failure.kind == CLL_FAILURE_NONE) {
    int reason = ERR_GET_REASON(error);
    bool is_alert = ERR_GET_LIB(error) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET;
    engine->failure.kind = is_alert ? CLL_FAILURE_ALERT : CLL_FAILURE_LOCAL;
    engine->failure.code = is_alert ? reason - SSL_AD_REASON_OFFSET : reason;
    engine->failure.text = ERR_reason_error_string(error);
  }
  ERR_clear_error();
}

// Counts a record with bytes of the application.
static void count_record(cll_tls_engine *engine) {
  if (engine->keeps_buffers || ++engine->records <= MOST_IDLE_RECORDS) return;
  engine->keeps_buffers = true;
  SSL_clear_mode(engine->ssl, SSL_MODE_RELEASE_BUFFERS);
}

void cll_tls_release_buffers(cll_tls_engine *engine) {
  engine->records = 0;
  if (!engine->keeps_buffers) return;
  // Where bytes wait in them they stay; the next record releases them then.
  SSL_set_mode(engine->ssl, SSL_MODE_RELEASE_BUFFERS);
  SSL_free_buffers(engine->ssl);
  engine->keeps_buffers = false;
}

bool cll_tls_keeps_buffers(const cll_tls_engine *engine) { return engine->keeps_buffers; }

// Frees the buffers of a connection that does not keep them, unless bytes wait in them. For each
// message of a handshake, also for tickets and new keys after it, OpenSSL makes both buffers, but
// frees only the one through which bytes have gone. The other one would stay while it idles.
static void settle(cll_tls_engine *engine) {
  if (!engine->keeps_buffers) SSL_free_buffers(engine->ssl);
}

// --- Calls -------------------------------------------------------------------------------------

static bool has_protocol(const cll_tls_engine *engine) {
  const unsigned char *name;
  unsigned int length;
  SSL_get0_alpn_selected(engine->ssl, &name, &length);
  return length == strlen(CLL_PROTOCOL) && memcmp(name, CLL_PROTOCOL, length) == 0;
}

// Frees the peer's chain, which was verified and is needed no more. OpenSSL would keep several KiB
// for each certificate as long as the connection. The peer's own certificate is held separately.
static void forget_chain(cll_tls_engine *engine) {
  // The list belongs to the session, which only this connection has: it may become empty, not null.
  STACK_OF(X509) *chain = SSL_get_peer_cert_chain(engine->ssl);
  while (sk_X509_num(chain) > 0) X509_free(sk_X509_pop(chain));
}

struct cll_tls_step cll_tls_handshake(cll_tls_engine *engine, const uint8_t *input, size_t length) {
  struct cll_tls_step step = {CLL_TLS_FAILED, 0, 0, 0};
  if (engine->failure.kind != CLL_FAILURE_NONE) return step;
  for (;;) {
    ERR_clear_error();
    int result = SSL_do_handshake(engine->ssl);
    if (result == 1) {
      forget_chain(engine);
      settle(engine);
      engine->credit = MOST_EMPTY * EMPTY_COST;
      step.status = CLL_TLS_DONE;
      if (!has_protocol(engine)) {
        fail(engine, CLL_FAILURE_PROTOCOL_NAME);
        step.status = CLL_TLS_FAILED;
      }
      return step;
    }
    if (SSL_get_error(engine->ssl, result) != SSL_ERROR_WANT_READ) {
      capture(engine);
      return step;
    }
    if (!take_record(engine, input, length, &step)) return step;
  }
}

static struct cll_tls_step read_records(cll_tls_engine *engine, const uint8_t *input,
                                        size_t length, uint8_t *bytes, size_t capacity) {
  struct cll_tls_step step = {CLL_TLS_DONE, 0, 0, 0};
  while (step.count < capacity) {
    if (engine->failure.kind != CLL_FAILURE_NONE || engine->has_ended) {
      step.status = engine->has_ended ? CLL_TLS_ENDED : CLL_TLS_FAILED;
      return step;
    }
    bool is_fresh = SSL_pending(engine->ssl) == 0;
    if (is_fresh && !take_record(engine, input, length, &step)) return step;
    ERR_clear_error();
    size_t count = 0;
    int result = SSL_read_ex(engine->ssl, bytes + step.count, capacity - step.count, &count);
    if (result == 1) {
      step.count += count;
      // The record's cost comes back, and a little of that of empty ones.
      if (is_fresh) {
        engine->credit += EMPTY_COST + 1;
        count_record(engine);
      }
      if (engine->credit > MOST_EMPTY * EMPTY_COST) engine->credit = MOST_EMPTY * EMPTY_COST;
      continue;
    }
    switch (SSL_get_error(engine->ssl, result)) {
    case SSL_ERROR_WANT_READ: break;
    case SSL_ERROR_ZERO_RETURN: engine->has_ended = true; break;
    default: capture(engine);
    }
  }
  return step;
}

struct cll_tls_step cll_tls_read(cll_tls_engine *engine, const uint8_t *input, size_t length,
                                 uint8_t *bytes, size_t capacity) {
  struct cll_tls_step step = read_records(engine, input, length, bytes, capacity);
  settle(engine);
  return step;
}

struct cll_tls_step cll_tls_write(cll_tls_engine *engine, const uint8_t *bytes, size_t length,
                                  uint8_t *output, size_t capacity) {
  struct cll_tls_step step = {CLL_TLS_DONE, 0, 0, 0};
  engine->output = output;
  engine->output_capacity = capacity;
  engine->output_count = 0;
  while (step.count < length && engine->failure.kind == CLL_FAILURE_NONE) {
    ERR_clear_error();
    size_t count = 0;
    if (SSL_write_ex(engine->ssl, bytes + step.count, length - step.count, &count) == 1) {
      step.count += count;
      count_record(engine);
    } else {
      capture(engine);
    }
  }
  settle(engine);
  if (step.count < length) step.status = CLL_TLS_FAILED;
  step.produced = engine->output_count;
  engine->output = NULL;
  engine->output_capacity = 0;
  engine->output_count = 0;
  return step;
}

void cll_tls_close(cll_tls_engine *engine) {
  ERR_clear_error();
  // Not after a failure, of which the peer was told by an alert.
  if (engine->failure.kind == CLL_FAILURE_NONE && SSL_is_init_finished(engine->ssl)) {
    SSL_shutdown(engine->ssl);
  }
  ERR_clear_error();
}

// --- Facts -------------------------------------------------------------------------------------

bool cll_tls_has_pending(const cll_tls_engine *engine) { return SSL_pending(engine->ssl) > 0; }

bool cll_tls_has_ended(const cll_tls_engine *engine) { return engine->has_ended; }

bool cll_tls_has_failed(const cll_tls_engine *engine) {
  return engine->failure.kind != CLL_FAILURE_NONE;
}

struct cll_tls_failure cll_tls_engine_failure(const cll_tls_engine *engine) {
  return engine->failure;
}

cll_certificate *cll_tls_engine_offender(const cll_tls_engine *engine) {
  if (engine->offender != NULL) X509_up_ref(engine->offender);
  return engine->offender;
}

cll_certificate *cll_tls_engine_peer(const cll_tls_engine *engine) {
  return SSL_get1_peer_certificate(engine->ssl);
}

bool cll_tls_engine_is_resumed(const cll_tls_engine *engine) {
  return SSL_session_reused(engine->ssl) == 1;
}

bool cll_tls_engine_missed_pin(const cll_tls_engine *engine) { return engine->missed_pin; }

int64_t cll_tls_engine_expiry(const cll_tls_engine *engine) { return engine->expiry; }

const char *cll_tls_engine_version(const cll_tls_engine *engine) {
  return SSL_get_version(engine->ssl);
}

const char *cll_tls_engine_cipher(const cll_tls_engine *engine) {
  return SSL_get_cipher_name(engine->ssl);
}

const char *cll_tls_engine_server_name(const cll_tls_engine *engine) {
  return SSL_get_servername(engine->ssl, TLSEXT_NAMETYPE_host_name);
}
