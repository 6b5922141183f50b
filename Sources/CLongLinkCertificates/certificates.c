// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkCertificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

void cll_pem_free(struct cll_pem pem) { OPENSSL_clear_free(pem.bytes, pem.length); }

// Takes what was written to a BIO, and frees it.
static struct cll_pem take(BIO *memory, bool is_written) {
  struct cll_pem pem = {NULL, 0};
  char *bytes;
  long length = BIO_get_mem_data(memory, &bytes);
  if (is_written && length > 0) pem.bytes = OPENSSL_memdup(bytes, (size_t)length);
  if (pem.bytes != NULL) pem.length = (size_t)length;
  BIO_free(memory);
  return pem;
}

static EVP_PKEY *read_key(struct cll_pem pem) {
  BIO *memory = BIO_new_mem_buf(pem.bytes, (int)pem.length);
  EVP_PKEY *key = PEM_read_bio_PrivateKey(memory, NULL, NULL, "");
  BIO_free(memory);
  return key;
}

static X509 *read_certificate(struct cll_pem pem) {
  BIO *memory = BIO_new_mem_buf(pem.bytes, (int)pem.length);
  X509 *certificate = PEM_read_bio_X509(memory, NULL, NULL, NULL);
  BIO_free(memory);
  return certificate;
}

// Writes a key, encrypted if there is a password, and frees it.
static struct cll_pem write_key(EVP_PKEY *key, const char *password) {
  BIO *memory = BIO_new(BIO_s_mem());
  const EVP_CIPHER *cipher = password != NULL ? EVP_aes_256_cbc() : NULL;
  int length = password != NULL ? (int)strlen(password) : 0;
  int status = key == NULL ? 0
                           : PEM_write_bio_PKCS8PrivateKey(memory, key, cipher, password, length,
                                                           NULL, NULL);
  EVP_PKEY_free(key);
  return take(memory, status == 1);
}

struct cll_pem cll_make_key(int kind) {
  EVP_PKEY *key = kind == CLL_KEY_ED25519 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")
                  : kind == CLL_KEY_P256  ? EVP_EC_gen("P-256")
                                          : EVP_RSA_gen(2048);
  return write_key(key, NULL);
}

struct cll_pem cll_encrypt_key(struct cll_pem key, const char *password) {
  return write_key(read_key(key), password);
}

static const EVP_MD *digest_for(const EVP_PKEY *key) {
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
}

static bool add(X509 *certificate, X509V3_CTX *context, int kind, const char *value) {
  if (value == NULL) return true;
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, context, kind, value);
  if (extension == NULL) return false;
  int status = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  return status == 1;
}

static bool add_extensions(X509 *certificate, X509 *issuer,
                           const struct cll_certificate_request *request) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  const char *constraints = request->is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE";
  const char *usage =
      request->is_authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature";
  return add(certificate, &context, NID_basic_constraints, constraints) &&
         add(certificate, &context, NID_key_usage, usage) &&
         add(certificate, &context, NID_ext_key_usage, request->usage) &&
         add(certificate, &context, NID_subject_alt_name, request->names) &&
         add(certificate, &context, NID_subject_key_identifier, "hash") &&
         add(certificate, &context, NID_authority_key_identifier,
             issuer == certificate ? NULL : "keyid:always");
}

// The version is the third.
static bool fill(X509 *certificate, X509 *issuer, EVP_PKEY *key,
                 const struct cll_certificate_request *request) {
  X509_NAME *name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, 2) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), request->serial) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)request->name,
                                    -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
         ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t)request->not_before) != NULL &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t)request->not_after) != NULL &&
         X509_set_pubkey(certificate, key) == 1 && add_extensions(certificate, issuer, request);
}

struct cll_pem cll_make_certificate(const struct cll_certificate_request *request,
                                    struct cll_pem key_pem, struct cll_pem issuer_pem,
                                    struct cll_pem issuer_key_pem) {
  bool is_own = issuer_pem.bytes == NULL;
  X509 *certificate = X509_new();
  EVP_PKEY *key = read_key(key_pem);
  X509 *issuer = is_own ? certificate : read_certificate(issuer_pem);
  EVP_PKEY *issuer_key = is_own ? key : read_key(issuer_key_pem);
  BIO *memory = BIO_new(BIO_s_mem());
  bool is_made = key != NULL && issuer != NULL && issuer_key != NULL &&
                 fill(certificate, issuer, key, request) &&
                 X509_sign(certificate, issuer_key, digest_for(issuer_key)) > 0 &&
                 PEM_write_bio_X509(memory, certificate) == 1;
  if (!is_own) {
    X509_free(issuer);
    EVP_PKEY_free(issuer_key);
  }
  EVP_PKEY_free(key);
  X509_free(certificate);
  return take(memory, is_made);
}

static bool revoke(X509_CRL *list, uint64_t serial, const ASN1_TIME *time) {
  X509_REVOKED *entry = X509_REVOKED_new();
  ASN1_INTEGER *number = ASN1_INTEGER_new();
  bool is_added = ASN1_INTEGER_set_uint64(number, serial) == 1 &&
                  X509_REVOKED_set_serialNumber(entry, number) == 1 &&
                  X509_REVOKED_set_revocationDate(entry, (ASN1_TIME *)(uintptr_t)time) == 1 &&
                  X509_CRL_add0_revoked(list, entry) == 1;
  ASN1_INTEGER_free(number);
  if (!is_added) X509_REVOKED_free(entry);
  return is_added;
}

struct cll_pem cll_make_list(struct cll_pem issuer_pem, struct cll_pem issuer_key_pem,
                             const uint64_t *serials, size_t count, int64_t updated,
                             int64_t next_update) {
  X509 *issuer = read_certificate(issuer_pem);
  EVP_PKEY *key = read_key(issuer_key_pem);
  X509_CRL *list = X509_CRL_new();
  ASN1_TIME *time = ASN1_TIME_set(NULL, (time_t)updated);
  ASN1_TIME *next = ASN1_TIME_set(NULL, (time_t)next_update);
  BIO *memory = BIO_new(BIO_s_mem());
  bool is_made = issuer != NULL && key != NULL && time != NULL && next != NULL &&
                 X509_CRL_set_version(list, 1) == 1 &&
                 X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer)) == 1 &&
                 X509_CRL_set1_lastUpdate(list, time) == 1 &&
                 X509_CRL_set1_nextUpdate(list, next) == 1;
  for (size_t i = 0; is_made && i < count; i++) is_made = revoke(list, serials[i], time);
  is_made = is_made && X509_CRL_sort(list) == 1 && X509_CRL_sign(list, key, digest_for(key)) > 0 &&
            PEM_write_bio_X509_CRL(memory, list) == 1;
  ASN1_TIME_free(time);
  ASN1_TIME_free(next);
  X509_CRL_free(list);
  EVP_PKEY_free(key);
  X509_free(issuer);
  return take(memory, is_made);
}
