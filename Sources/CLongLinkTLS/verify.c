// SPDX-License-Identifier: Apache-2.0
#include "internal.h"

#include <string.h>

void cll_tls_context_judge_lists(cll_tls_context *context) {
  STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context->ssl));
  for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
    const X509_CRL *list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(objects, i));
    const ASN1_TIME *next = list == NULL ? NULL : X509_CRL_get0_nextUpdate(list);
    // A list without one never expires.
    if (next != NULL && cll_seconds(next) < context->lists_end) {
      context->lists_end = cll_seconds(next);
    }
  }
}

// A revocation list is demanded for the peer's own certificate, and used for others if it is there.
static int judge(int is_fine, X509_STORE_CTX *store) {
  if (is_fine || X509_STORE_CTX_get_error_depth(store) == 0) return is_fine;
  if (X509_STORE_CTX_get_error(store) != X509_V_ERR_UNABLE_TO_GET_CRL) return is_fine;
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

static bool has_pin(const cll_tls_context *context, const X509 *certificate) {
  uint8_t hash[32];
  if (!cll_certificate_key_hash(certificate, hash)) return false;
  for (size_t i = 0; i < context->pin_count; i++) {
    if (memcmp(context->pins[i], hash, sizeof hash) == 0) return true;
  }
  return false;
}

// Whether the pins are for a chain.
static bool is_pinned(const cll_tls_context *context, STACK_OF(X509) *chain) {
  for (int i = 0; i < sk_X509_num(chain); i++) {
    if (has_pin(context, sk_X509_value(chain, i))) return true;
  }
  return false;
}

static void note(cll_tls_engine *engine, int kind, int code, X509 *certificate) {
  engine->failure.kind = kind;
  engine->failure.code = code;
  engine->failure.text = X509_verify_cert_error_string(code);
  X509_free(engine->offender);
  if (certificate != NULL) X509_up_ref(certificate);
  engine->offender = certificate;
}

static int verify(X509_STORE_CTX *store, cll_tls_engine *engine) {
  const cll_tls_context *context = engine->context;
  if (!context->options.is_server && !context->options.verifies) return 1;
  X509_STORE_CTX_set_verify_cb(store, judge);
  if (X509_verify_cert(store) != 1) {
    int code = X509_STORE_CTX_get_error(store);
    if (code == X509_V_OK) code = X509_V_ERR_UNSPECIFIED;
    X509_STORE_CTX_set_error(store, code);
    note(engine, CLL_FAILURE_CERTIFICATE, code, X509_STORE_CTX_get_current_cert(store));
    return 0;
  }
  if (context->lists_end < engine->expiry) engine->expiry = context->lists_end;
  STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(store);
  for (int i = 0; i < sk_X509_num(chain); i++) {
    int64_t end = cll_certificate_not_after(sk_X509_value(chain, i));
    if (end < engine->expiry) engine->expiry = end;
  }
  if (context->pin_count == 0 || engine->now >= context->pins_end) return 1;
  if (is_pinned(context, chain)) return 1;
  if (context->audits) {
    engine->missed_pin = true;
    return 1;
  }
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  note(engine, CLL_FAILURE_PIN, X509_V_ERR_APPLICATION_VERIFICATION,
       X509_STORE_CTX_get0_cert(store));
  return 0;
}

int cll_verify(X509_STORE_CTX *store, void *unused) {
  (void)unused;
  SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
  int is_verified = verify(store, cll_engine_of(ssl));
  // The connection would keep it.
  X509_STORE_CTX_set0_verified_chain(store, NULL);
  return is_verified;
}
