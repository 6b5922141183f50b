// SPDX-License-Identifier: Apache-2.0
#include "internal.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/objects.h>
#include <string.h>

// OpenSSL decodes all certificates of a message, their names and keys included, before it asks
// whether they can be verified. So a peer that has proved nothing could make it work for seconds,
// for instance to find points on curves of the peer's own, or hold many small parts of names. What
// a message may have is decided here, before OpenSSL sees it.

// The parts (ASN.1 elements) of all certificates of a message. One has about 100.
#define MOST_PARTS_OF_CLIENT 512
#define MOST_PARTS_OF_SERVER 4096
// How deep parts lie within others.
#define MOST_DEPTH 16
// The largest key: RSA with 8,192 bits.
#define LARGEST_KEY 1152

// The type of a message with certificates that are compressed (RFC 8879). OpenSSL has it from 3.2 on,
// and reads it only if it was offered, which `set_common` prevents.
#define COMPRESSED_CERTIFICATE 25

// The rest of some bytes that are read from their front.
struct rest {
  const uint8_t *bytes;
  size_t length;
};

struct part {
  int tag;
  bool is_universal;
  bool is_constructed;
  struct rest content;
};

// Takes a number of so many bytes; the rest is too short if it returns false.
static bool take_number(struct rest *rest, size_t size, size_t *number) {
  if (rest->length < size) return false;
  *number = 0;
  for (size_t i = 0; i < size; i++) *number = *number << 8 | rest->bytes[i];
  rest->bytes += size;
  rest->length -= size;
  return true;
}

static bool take(struct rest *rest, size_t count, struct rest *taken) {
  if (rest->length < count) return false;
  *taken = (struct rest){rest->bytes, count};
  rest->bytes += count;
  rest->length -= count;
  return true;
}

// Takes a vector with its length, which has so many bytes, in front.
static bool take_vector(struct rest *rest, size_t size, struct rest *taken) {
  size_t count;
  return take_number(rest, size, &count) && take(rest, count, taken);
}

static bool take_part(struct rest *rest, struct part *part) {
  const unsigned char *next = rest->bytes;
  long length;
  int class;
  if (rest->length == 0) return false;
  int form = ASN1_get_object(&next, &length, &part->tag, &class, (long)rest->length);
  // An error, or a length that is not stated, which certificates do not have.
  if (form & 0x80 || form & 1) return false;
  part->is_universal = class == V_ASN1_UNIVERSAL;
  part->is_constructed = form & V_ASN1_CONSTRUCTED;
  part->content = (struct rest){next, (size_t)length};
  rest->length -= (size_t)(next - rest->bytes) + (size_t)length;
  rest->bytes = next + length;
  return true;
}

static bool take_sequence(struct rest *rest, struct rest *content) {
  struct part part;
  if (!take_part(rest, &part) || !part.is_universal || part.tag != V_ASN1_SEQUENCE) return false;
  *content = part.content;
  return true;
}

// Counts the parts of some bytes, also those in the values of extensions, down from `left`.
static bool count_parts(struct rest rest, int depth, size_t *left) {
  while (rest.length > 0) {
    struct part part;
    if (depth > MOST_DEPTH || *left == 0 || !take_part(&rest, &part)) return false;
    *left -= 1;
    if (part.is_constructed) {
      if (!count_parts(part.content, depth + 1, left)) return false;
    } else if (part.is_universal && part.tag == V_ASN1_OCTET_STRING) {
      // The value of an extension is in one. Other bytes in one count as far as they look like it.
      if (!count_parts(part.content, depth + 1, left) && *left == 0) return false;
    }
  }
  return true;
}

static int take_identifier(struct rest *rest) {
  struct part part;
  struct rest whole = *rest;
  if (!take_part(rest, &part) || !part.is_universal || part.tag != V_ASN1_OBJECT) return NID_undef;
  const unsigned char *next = whole.bytes;
  ASN1_OBJECT *object = d2i_ASN1_OBJECT(NULL, &next, (long)(rest->bytes - whole.bytes));
  int number = object == NULL ? NID_undef : OBJ_obj2nid(object);
  ASN1_OBJECT_free(object);
  return number;
}

// Whether a key is of a kind that is used in TLS, and decoded at once.
static bool is_usable_key(struct rest key) {
  struct rest algorithm;
  if (key.length > LARGEST_KEY || !take_sequence(&key, &algorithm)) return false;
  switch (take_identifier(&algorithm)) {
  case NID_rsaEncryption:
  case NID_rsassaPss:
  case NID_ED25519:
  case NID_ED448: return true;
  case NID_X9_62_id_ecPublicKey: break;
  default: return false;
  }
  switch (take_identifier(&algorithm)) {
  case NID_X9_62_prime256v1:
  case NID_secp384r1:
  case NID_secp521r1: return true;
  default: return false;
  }
}

// Finds the key of a certificate (RFC 5280, 4.1).
static bool has_usable_key(struct rest bytes) {
  struct rest certificate, signed_part, skipped;
  struct part part;
  if (!take_sequence(&bytes, &certificate) || !take_sequence(&certificate, &signed_part)) {
    return false;
  }
  // The version may be missing.
  struct rest ahead = signed_part;
  if (!take_part(&ahead, &part)) return false;
  if (!part.is_universal && part.tag == 0) signed_part = ahead;
  // The serial number; then algorithm, issuer, validity and subject.
  if (!take_part(&signed_part, &part)) return false;
  for (int i = 0; i < 4; i++) {
    if (!take_sequence(&signed_part, &skipped)) return false;
  }
  struct rest key;
  return take_sequence(&signed_part, &key) && is_usable_key(key);
}

bool cll_has_few_names(const uint8_t *bytes, size_t length) {
  struct rest message = {bytes, length}, list, name;
  size_t left = MOST_PARTS_OF_CLIENT;
  // Let OpenSSL say what is wrong with the frame of the list.
  if (!take_vector(&message, 2, &list)) return true;
  while (list.length > 0) {
    if (!take_vector(&list, 2, &name)) return true;
    if (!count_parts(name, 0, &left)) return false;
  }
  return true;
}

static enum cll_chain_problem judge(const cll_tls_engine *engine, struct rest message) {
  bool is_server = engine->context->options.is_server;
  bool is_new = SSL_version(engine->ssl) >= TLS1_3_VERSION;
  size_t left = is_server ? MOST_PARTS_OF_CLIENT : MOST_PARTS_OF_SERVER;
  struct rest list, certificate, skipped;
  // Let OpenSSL say what is wrong with the frame of the message.
  if (is_new && !take_vector(&message, 1, &skipped)) return CLL_CHAIN_FINE;
  if (!take_vector(&message, 3, &list)) return CLL_CHAIN_FINE;
  for (int count = 0; list.length > 0; count++) {
    if (count == CLL_MOST_CERTIFICATES) return CLL_CHAIN_LONG;
    if (!take_vector(&list, 3, &certificate)) return CLL_CHAIN_FINE;
    if (is_new && !take_vector(&list, 2, &skipped)) return CLL_CHAIN_FINE;
    if (!count_parts(certificate, 0, &left)) return CLL_CHAIN_CROWDED;
    if (!has_usable_key(certificate)) return CLL_CHAIN_KEY;
  }
  return CLL_CHAIN_FINE;
}

void cll_message_came(int is_written, int version, int type, const void *bytes, size_t length,
                      SSL *ssl, void *unused) {
  (void)version;
  (void)unused;
  const uint8_t *message = bytes;
  if (is_written || type != SSL3_RT_HANDSHAKE || length < SSL3_HM_HEADER_LENGTH + 4) return;
  cll_tls_engine *engine = cll_engine_of(ssl);
  if (message[0] == COMPRESSED_CERTIFICATE) {
    engine->failure.kind = CLL_FAILURE_CHAIN;
    engine->failure.code = CLL_CHAIN_COMPRESSED;
    // As below: an algorithm that does not exist.
    memset((uint8_t *)bytes + SSL3_HM_HEADER_LENGTH, 0xFF, 2);
    return;
  }
  if (message[0] != SSL3_MT_CERTIFICATE) return;
  enum cll_chain_problem problem = judge(
      engine, (struct rest){message + SSL3_HM_HEADER_LENGTH, length - SSL3_HM_HEADER_LENGTH});
  ERR_clear_error();
  if (problem == CLL_CHAIN_FINE) return;
  engine->failure.kind = CLL_FAILURE_CHAIN;
  engine->failure.code = (int)problem;
  // A callback cannot refuse a message. OpenSSL reads it from these bytes next: let its list of
  // certificates claim to be longer than it is, for which OpenSSL ends the handshake.
  uint8_t *start = (uint8_t *)bytes + SSL3_HM_HEADER_LENGTH;
  if (SSL_version(ssl) >= TLS1_3_VERSION) *start++ = 0;
  memset(start, 0xFF, 3);
}
