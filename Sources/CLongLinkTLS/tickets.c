// SPDX-License-Identifier: Apache-2.0
#include "internal.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

struct key {
  uint8_t name[16];
  uint8_t mac[32];
  uint8_t cipher[32];
};

struct cll_tls_keys {
  pthread_mutex_t lock;
  struct key keys[CLL_TLS_MOST_KEYS];
  size_t count;
};

cll_tls_keys *cll_tls_keys_new(void) {
  cll_tls_keys *keys = OPENSSL_zalloc(sizeof *keys);
  if (keys != NULL) pthread_mutex_init(&keys->lock, NULL);
  return keys;
}

void cll_tls_keys_free(cll_tls_keys *keys) {
  pthread_mutex_destroy(&keys->lock);
  OPENSSL_clear_free(keys, sizeof *keys);
}

bool cll_tls_keys_set(cll_tls_keys *keys, const uint8_t *bytes, size_t count) {
  _Static_assert(sizeof(struct key) == CLL_TLS_KEY_SIZE, "a key has no padding");
  if (count == 0 || count > CLL_TLS_MOST_KEYS) return false;
  pthread_mutex_lock(&keys->lock);
  OPENSSL_cleanse(keys->keys, sizeof keys->keys);
  memcpy(keys->keys, bytes, count * sizeof(struct key));
  keys->count = count;
  pthread_mutex_unlock(&keys->lock);
  return true;
}

// Copies a key by its name, or the first one. Returns its index, or -1.
static int find(cll_tls_keys *keys, const unsigned char *name, struct key *found) {
  int result = -1;
  pthread_mutex_lock(&keys->lock);
  for (size_t i = 0; i < keys->count && result < 0; i++) {
    if (name == NULL || memcmp(keys->keys[i].name, name, sizeof keys->keys[i].name) == 0) {
      *found = keys->keys[i];
      result = (int)i;
    }
  }
  pthread_mutex_unlock(&keys->lock);
  return result;
}

static bool set_up(const struct key *key, const unsigned char *vector, EVP_CIPHER_CTX *cipher,
                   EVP_MAC_CTX *mac, int encrypts) {
  // The parameters are only read.
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, "SHA256", 0),
      OSSL_PARAM_construct_end(),
  };
  return EVP_MAC_init(mac, key->mac, sizeof key->mac, parameters) == 1 &&
         EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, vector, encrypts) == 1;
}

static int ticket_key(SSL *ssl, unsigned char *name, unsigned char *vector, EVP_CIPHER_CTX *cipher,
                      EVP_MAC_CTX *mac, int encrypts) {
  cll_tls_keys *keys = cll_engine_of(ssl)->context->keys;
  struct key key;
  int index = keys == NULL ? -1 : find(keys, encrypts ? NULL : name, &key);
  if (index < 0) return encrypts ? -1 : 0;
  if (encrypts) {
    memcpy(name, key.name, sizeof key.name);
    if (RAND_bytes(vector, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) index = -1;
  }
  bool is_set = index >= 0 && set_up(&key, vector, cipher, mac, encrypts);
  OPENSSL_cleanse(&key, sizeof key);
  if (!is_set) return -1;
  // An older key is good, and its ticket is to be replaced.
  return !encrypts && index > 0 ? 2 : 1;
}

// A padding goes with the facts of a ticket. It makes the sizes of all tickets of a kind equal,
// which OpenSSL's random numbers would change.
#define TICKET_STEP 64

static int ticket_made(SSL *ssl, void *unused) {
  (void)unused;
  SSL_SESSION *session = SSL_get_session(ssl);
  const cll_tls_engine *engine = cll_engine_of(ssl);
  uint8_t data[CLL_TICKET_FACTS + 3 * TICKET_STEP] = {0};
  cll_write_ticket_facts(data, engine->expiry,
                         SSL_session_reused(ssl) ? engine->beginning : engine->now);
  for (size_t padding = 0; padding < 2 * TICKET_STEP; padding++) {
    if (SSL_SESSION_set1_ticket_appdata(session, data, CLL_TICKET_FACTS + padding) != 1) return 0;
    if (i2d_SSL_SESSION(session, NULL) % TICKET_STEP == 0) return 1;
  }
  return 1;
}

static SSL_TICKET_RETURN ticket_came(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                     size_t name_length, SSL_TICKET_STATUS status, void *unused) {
  (void)name;
  (void)name_length;
  (void)unused;
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  cll_tls_engine *engine = cll_engine_of(ssl);
  void *data = NULL;
  size_t length = 0;
  if (SSL_SESSION_get0_ticket_appdata(session, &data, &length) != 1 ||
      !cll_read_ticket_facts(data, length, engine->now, engine->context->options.session_lifetime,
                             &engine->expiry, &engine->beginning)) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

bool cll_set_ticket_callbacks(cll_tls_context *context, SSL_CTX *ssl) {
  (void)context;
  return SSL_CTX_set_tlsext_ticket_key_evp_cb(ssl, ticket_key) == 1 &&
         SSL_CTX_set_session_ticket_cb(ssl, ticket_made, ticket_came, NULL) == 1;
}

// --- The client's side -------------------------------------------------------------------------

int cll_session_came(SSL *ssl, SSL_SESSION *session) {
  cll_tls_engine *engine = cll_engine_of(ssl);
  int length = i2d_SSL_SESSION(session, NULL);
  if (engine->session_count == CLL_MOST_SESSIONS || length <= 0 || length > CLL_LARGEST_SESSION ||
      SSL_SESSION_is_resumable(session) != 1) {
    return 0;
  }
  uint8_t *bytes = OPENSSL_malloc((size_t)length);
  if (bytes == NULL) return 0;
  uint8_t *end = bytes;
  i2d_SSL_SESSION(session, &end);
  engine->sessions[engine->session_count].bytes = bytes;
  engine->sessions[engine->session_count].length = (size_t)length;
  engine->session_count++;
  return 0;
}

uint8_t *cll_tls_engine_take_session(cll_tls_engine *engine, size_t *length) {
  if (engine->session_count == 0) return NULL;
  engine->session_count--;
  *length = engine->sessions[engine->session_count].length;
  return engine->sessions[engine->session_count].bytes;
}

bool cll_tls_engine_set_session(cll_tls_engine *engine, const uint8_t *bytes, size_t length) {
  SSL_SESSION *session = d2i_SSL_SESSION(NULL, &bytes, (long)length);
  if (session == NULL) return false;
  bool is_set = SSL_set_session(engine->ssl, session) == 1;
  SSL_SESSION_free(session);
  return is_set;
}

void cll_tls_engine_send_tickets(cll_tls_engine *engine, int count) {
  if (engine->context->keys == NULL || SSL_version(engine->ssl) != TLS1_3_VERSION) return;
  for (int i = 0; i < count; i++) SSL_new_session_ticket(engine->ssl);
}

void cll_tls_wipe(uint8_t *bytes, size_t count) {
  if (count > 0) OPENSSL_cleanse(bytes, count);
}

void cll_tls_free_bytes(uint8_t *bytes) { OPENSSL_free(bytes); }
