// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include "internal.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

void cll_certificate_free(cll_certificate *certificate) { X509_free(certificate); }

size_t cll_certificate_subject(const cll_certificate *certificate, bool issuer, char *text,
                               size_t capacity) {
  const X509_NAME *name =
      issuer ? X509_get_issuer_name(certificate) : X509_get_subject_name(certificate);
  BIO *memory = BIO_new(BIO_s_mem());
  if (memory == NULL) return 0;
  // Bytes above 127 are UTF-8; who shows the text escapes it.
  unsigned long flags = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
  X509_NAME_print_ex(memory, name, 0, flags);
  int count = BIO_read(memory, text, (int)capacity);
  BIO_free(memory);
  return count < 0 ? 0 : (size_t)count;
}

int64_t cll_seconds(const ASN1_TIME *time) {
  struct tm parts;
  if (time == NULL || ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return (int64_t)timegm(&parts);
}

int64_t cll_certificate_not_before(const cll_certificate *certificate) {
  return cll_seconds(X509_get0_notBefore(certificate));
}

int64_t cll_certificate_not_after(const cll_certificate *certificate) {
  return cll_seconds(X509_get0_notAfter(certificate));
}

bool cll_certificate_hash(const cll_certificate *certificate, uint8_t hash[32]) {
  return X509_digest(certificate, EVP_sha256(), hash, NULL) == 1;
}

bool cll_certificate_key_hash(const cll_certificate *certificate, uint8_t hash[32]) {
  unsigned char *encoded = NULL;
  int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded);
  if (length <= 0) return false;
  bool is_done = EVP_Digest(encoded, (size_t)length, hash, NULL, EVP_sha256(), NULL) == 1;
  OPENSSL_free(encoded);
  return is_done;
}

struct cll_names {
  GENERAL_NAMES *list;
};

cll_names *cll_certificate_names(const cll_certificate *certificate) {
  GENERAL_NAMES *list = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
  if (list == NULL) return NULL;
  cll_names *names = OPENSSL_malloc(sizeof *names);
  if (names == NULL) {
    GENERAL_NAMES_free(list);
    return NULL;
  }
  names->list = list;
  return names;
}

void cll_names_free(cll_names *names) {
  GENERAL_NAMES_free(names->list);
  OPENSSL_free(names);
}

int cll_names_count(const cll_names *names) { return sk_GENERAL_NAME_num(names->list); }

static int string_of(const ASN1_STRING *string, const uint8_t **text, size_t *length, int kind) {
  *text = ASN1_STRING_get0_data(string);
  *length = (size_t)ASN1_STRING_length(string);
  return kind;
}

int cll_names_at(const cll_names *names, int index, const uint8_t **text, size_t *length,
                 char address[48]) {
  const GENERAL_NAME *name = sk_GENERAL_NAME_value(names->list, index);
  switch (name->type) {
  case GEN_DNS: return string_of(name->d.dNSName, text, length, CLL_NAME_DNS);
  case GEN_URI: return string_of(name->d.uniformResourceIdentifier, text, length, CLL_NAME_URI);
  case GEN_EMAIL: return string_of(name->d.rfc822Name, text, length, CLL_NAME_EMAIL);
  case GEN_IPADD: {
    const uint8_t *bytes;
    size_t count;
    string_of(name->d.iPAddress, &bytes, &count, 0);
    if (count != 4 && count != 16) return 0;
    if (inet_ntop(count == 4 ? AF_INET : AF_INET6, bytes, address, 48) == NULL) return 0;
    *text = (const uint8_t *)address;
    *length = strlen(address);
    return CLL_NAME_ADDRESS;
  }
  default: return 0;
  }
}
