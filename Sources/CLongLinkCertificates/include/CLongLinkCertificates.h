// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_CLONGLINKCERTIFICATES_H
#define LONGLINK_CLONGLINKCERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes keys, certificates and revocation lists for tests, all of them as PEM.

// Bytes that OpenSSL has allocated. Free them with cll_pem_free.
struct cll_pem {
  char *bytes;
  size_t length;
};

void cll_pem_free(struct cll_pem pem);

enum cll_key_kind { CLL_KEY_ED25519, CLL_KEY_P256, CLL_KEY_RSA };

// Makes a private key. Returns null bytes if OpenSSL cannot.
struct cll_pem cll_make_key(int kind);
// Encrypts a key.
struct cll_pem cll_encrypt_key(struct cll_pem key, const char *password);

struct cll_certificate_request {
  // The common name.
  const char *name;
  // As OpenSSL's configuration has it, such as "DNS:localhost,IP:127.0.0.1"; null for none.
  const char *names;
  // Such as "serverAuth"; null for none.
  const char *usage;
  bool is_authority;
  uint64_t serial;
  // In seconds since 1970.
  int64_t not_before;
  int64_t not_after;
};

// Signs a certificate for a key. Without an issuer it is signed by itself.
struct cll_pem cll_make_certificate(const struct cll_certificate_request *request,
                                    struct cll_pem key, struct cll_pem issuer,
                                    struct cll_pem issuer_key);

// Makes a list of the serials that an issuer has revoked.
struct cll_pem cll_make_list(struct cll_pem issuer, struct cll_pem issuer_key,
                             const uint64_t *serials, size_t count, int64_t updated,
                             int64_t next_update);

#endif
