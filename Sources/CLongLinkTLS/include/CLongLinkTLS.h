// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_CLONGLINKTLS_H
#define LONGLINK_CLONGLINKTLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// TLS over OpenSSL, from bytes to bytes: nothing here knows a socket, a file or a clock.

// --- Certificates ------------------------------------------------------------------------------

// A certificate. It is never changed, and may be used from several threads.
typedef struct x509_st cll_certificate;

enum cll_name_kind { CLL_NAME_DNS = 1, CLL_NAME_ADDRESS, CLL_NAME_URI, CLL_NAME_EMAIL };

void cll_certificate_free(cll_certificate *certificate);
// Writes the distinguished name of the subject or the issuer (RFC 4514). Returns its length, at
// most `capacity`.
size_t cll_certificate_subject(const cll_certificate *certificate, bool issuer, char *text,
                               size_t capacity);
// In seconds since 1970.
int64_t cll_certificate_not_before(const cll_certificate *certificate);
int64_t cll_certificate_not_after(const cll_certificate *certificate);
// The SHA-256 of the certificate, and of its SubjectPublicKeyInfo: 32 bytes.
bool cll_certificate_hash(const cll_certificate *certificate, uint8_t hash[32]);
bool cll_certificate_key_hash(const cll_certificate *certificate, uint8_t hash[32]);

// The subject alternative names of a certificate; null if it has none.
typedef struct cll_names cll_names;
cll_names *cll_certificate_names(const cll_certificate *certificate);
void cll_names_free(cll_names *names);
int cll_names_count(const cll_names *names);
// Returns the kind of a name, 0 for one that is not supported. The text is valid as long as `names`
// or, of an address, is written to `address`.
int cll_names_at(const cll_names *names, int index, const uint8_t **text, size_t *length,
                 char address[48]);

// --- Contexts ----------------------------------------------------------------------------------

// What many connections share. It is built by one thread, and then not changed.
typedef struct cll_tls_context cll_tls_context;
// Keys of session tickets. They may be replaced while contexts use them.
typedef struct cll_tls_keys cll_tls_keys;

#define CLL_TLS_KEY_SIZE 80
#define CLL_TLS_MOST_KEYS 16

cll_tls_keys *cll_tls_keys_new(void);
void cll_tls_keys_free(cll_tls_keys *keys);
// The first key encrypts, all of them decrypt. Each has 80 bytes: a name of 16, a key of HMAC of
// 32, a key of AES of 32.
bool cll_tls_keys_set(cll_tls_keys *keys, const uint8_t *bytes, size_t count);
// Fills bytes with random ones.
bool cll_tls_random(uint8_t *bytes, size_t count);
// Overwrites bytes, which may be secret. May be null if the count is 0.
void cll_tls_wipe(uint8_t *bytes, size_t count);

enum cll_client_certificates { CLL_CLIENTS_NONE, CLL_CLIENTS_REQUESTED, CLL_CLIENTS_REQUIRED };

struct cll_tls_options {
  bool is_server;
  bool allows_tls12;
  // Of a client: whether it verifies the server.
  bool verifies;
  // Of a server: enum cll_client_certificates.
  int clients;
  // In seconds.
  int64_t ticket_lifetime;
  // Of a server: how long after a full handshake the tickets that follow from it count, in seconds.
  int64_t session_lifetime;
};

// A text that says why something failed.
struct cll_tls_problem {
  char text[200];
};

cll_tls_context *cll_tls_context_new(const struct cll_tls_options *options,
                                     struct cll_tls_problem *problem);
void cll_tls_context_free(cll_tls_context *context);
// Reads the file that the system has for them, once. Where there is none, or the environment names a
// folder instead (SSL_CERT_DIR), the folder's files are read when they are needed.
bool cll_tls_context_add_system_roots(cll_tls_context *context, struct cll_tls_problem *problem);
// Adds the certificates of PEM bytes; returns their number, or -1.
int cll_tls_context_add_roots(cll_tls_context *context, const uint8_t *pem, size_t length,
                              struct cll_tls_problem *problem);
// Adds revocation lists, and demands one for each certificate of a peer.
int cll_tls_context_add_lists(cll_tls_context *context, const uint8_t *pem, size_t length,
                              struct cll_tls_problem *problem);
// Notes when the lists expire: a chain counts no longer than they do. Add them before.
void cll_tls_context_judge_lists(cll_tls_context *context);
// Whose fault a failed identity is.
enum cll_tls_part { CLL_PART_NONE, CLL_PART_CHAIN, CLL_PART_KEY };
// Adds a certificate with its chain, and its key. A server may have several. Add the roots before.
int cll_tls_context_add_identity(cll_tls_context *context, const uint8_t *chain,
                                 size_t chain_length, const uint8_t *key, size_t key_length,
                                 const char *password, struct cll_tls_problem *problem);
size_t cll_tls_context_identities(const cll_tls_context *context);
// Borrowed from the context.
const cll_certificate *cll_tls_context_identity(const cll_tls_context *context, size_t index);
// The end of the certificate, or of the one of its chain that expires first.
int64_t cll_tls_context_expiry(const cll_tls_context *context, size_t index);
// The keys must live as long as the context. Null: no tickets.
void cll_tls_context_set_keys(cll_tls_context *context, cll_tls_keys *keys);
// Tickets are of use only where these bytes are the same. At most 32. Add the identities before.
bool cll_tls_context_set_scope(cll_tls_context *context, const uint8_t *scope, size_t length);
// Adds a hash of a key of which one must be in a verified chain.
bool cll_tls_context_add_pin(cll_tls_context *context, const uint8_t hash[32]);
// `audits`: a chain without a pin is reported and taken. From `end` on pins count for nothing.
void cll_tls_context_set_pins(cll_tls_context *context, bool audits, int64_t end);

// --- Connections -------------------------------------------------------------------------------

// One side of one connection, of one thread at a time. It keeps its context's memory, not its keys.
typedef struct cll_tls_engine cll_tls_engine;

// The most bytes of a session that a client keeps.
#define CLL_LARGEST_SESSION 16384

enum cll_tls_status {
  // The call has done what it could; the handshake is over, or there are bytes.
  CLL_TLS_DONE,
  CLL_TLS_WANTS_INPUT,
  // The peer has ended its side in good order.
  CLL_TLS_ENDED,
  CLL_TLS_FAILED,
};

struct cll_tls_step {
  int status;
  // The bytes of the input that are not needed any more.
  size_t consumed;
  // The bytes of the application that were read or taken.
  size_t count;
  // The bytes that were written to the given output.
  size_t produced;
};

enum cll_tls_failure_kind {
  CLL_FAILURE_NONE,
  // `code`: an X509_V_ERR of the peer's certificate.
  CLL_FAILURE_CERTIFICATE,
  CLL_FAILURE_PIN,
  // `code`: the number of the peer's alert.
  CLL_FAILURE_ALERT,
  // `code`: an SSL_R of what this side found.
  CLL_FAILURE_LOCAL,
  // The peer's first bytes are no record.
  CLL_FAILURE_PLAIN,
  // Too many records without bytes of the application.
  CLL_FAILURE_FLOOD,
  CLL_FAILURE_PROTOCOL_NAME,
  // The client's hello is larger than any client's has to be.
  CLL_FAILURE_LARGE_HELLO,
  // The client's hello has more groups, keys for them, or names than any client's has to.
  CLL_FAILURE_CROWDED_HELLO,
  // `code`: why the peer's certificates were not decoded, as `cll_judge_message` says.
  CLL_FAILURE_CHAIN,
};

struct cll_tls_failure {
  int kind;
  int code;
  // A constant of OpenSSL; may be null.
  const char *text;
};

cll_tls_engine *cll_tls_engine_new(cll_tls_context *context, int64_t now);
void cll_tls_engine_free(cll_tls_engine *engine);
// Of a client, before the handshake: the name or address to verify.
bool cll_tls_engine_set_name(cll_tls_engine *engine, const char *name, bool is_address);
// Of a client, before the handshake: a session to resume.
bool cll_tls_engine_set_session(cll_tls_engine *engine, const uint8_t *bytes, size_t length);
// Of a server, after the handshake: sends this number of tickets with the next bytes.
void cll_tls_engine_send_tickets(cll_tls_engine *engine, int count);

struct cll_tls_step cll_tls_handshake(cll_tls_engine *engine, const uint8_t *input, size_t length);
struct cll_tls_step cll_tls_read(cll_tls_engine *engine, const uint8_t *input, size_t length,
                                 uint8_t *bytes, size_t capacity);
// Encrypts all bytes, or fails. What does not fit into `output` waits behind it as `late` bytes.
struct cll_tls_step cll_tls_write(cll_tls_engine *engine, const uint8_t *bytes, size_t length,
                                  uint8_t *output, size_t capacity);
// Writes the end of this side.
void cll_tls_close(cll_tls_engine *engine);

// Bytes that wait for the peer: those of handshakes, alerts and answers.
size_t cll_tls_late_count(const cll_tls_engine *engine);
// Copies them, which must fit, and forgets them.
void cll_tls_take_late(cll_tls_engine *engine, uint8_t *bytes);
// OpenSSL has two buffers of about 17 KiB. A connection that is used keeps them; this frees them,
// and those of the next few records, at once. Bytes that wait in them stay.
void cll_tls_release_buffers(cll_tls_engine *engine);
bool cll_tls_keeps_buffers(const cll_tls_engine *engine);
// Whether decrypted bytes wait.
bool cll_tls_has_pending(const cll_tls_engine *engine);
// Whether the peer has ended its side in good order, and whether a call has failed. Both may have
// come behind bytes that a read has returned, and are what the next read returns.
bool cll_tls_has_ended(const cll_tls_engine *engine);
bool cll_tls_has_failed(const cll_tls_engine *engine);

struct cll_tls_failure cll_tls_engine_failure(const cll_tls_engine *engine);
// The certificate that a failure is about; null if there is none. The caller frees it.
cll_certificate *cll_tls_engine_offender(const cll_tls_engine *engine);
// The peer's certificate; null if there is none. The caller frees it.
cll_certificate *cll_tls_engine_peer(const cll_tls_engine *engine);
bool cll_tls_engine_is_resumed(const cll_tls_engine *engine);
// Whether the peer's chain had no pinned key, and was taken.
bool cll_tls_engine_missed_pin(const cll_tls_engine *engine);
// When the first certificate of the verified chain expires, or the first of this side's revocation
// lists, in seconds since 1970.
int64_t cll_tls_engine_expiry(const cll_tls_engine *engine);
const char *cll_tls_engine_version(const cll_tls_engine *engine);
const char *cll_tls_engine_cipher(const cll_tls_engine *engine);
// The name that the client has asked for; null if none.
const char *cll_tls_engine_server_name(const cll_tls_engine *engine);
// The next session that the server has given; null if there is none. The caller frees it.
uint8_t *cll_tls_engine_take_session(cll_tls_engine *engine, size_t *length);
void cll_tls_free_bytes(uint8_t *bytes);

// --- Bytes of peers ----------------------------------------------------------------------------

// Defined in Swift, which reads what strangers send, and called by OpenSSL's callbacks.

// The length of the first record if it is whole, 0 if it is not, and the length of everything if it
// can be none.
size_t cll_record_length(const uint8_t *input, size_t length);
// Whether the first bytes of a peer are no record that may come first.
bool cll_is_plain(const uint8_t *input, size_t length, bool from_client);

// How far a server is in a client's messages, before it encrypts; zeros at first.
struct cll_hello_progress {
  // What has come of the current message's header, and the bytes of its body that are to come.
  uint32_t header;
  int header_count;
  size_t body_left;
  // Whether a client of TLS 1.2 encrypts.
  bool has_old_cipher;
};

// Whether a record of a client, which is whole, announces a hello that is too large. `is_old`: of
// TLS 1.2.
bool cll_announces_large_hello(struct cll_hello_progress *progress, const uint8_t *record,
                               size_t length, bool is_old);
// Judges a message of a handshake, with its header, before OpenSSL decodes it: 0, or what is wrong
// with its certificates. Then it is changed, so that OpenSSL refuses it. `is_new`: of TLS 1.3.
int cll_judge_message(uint8_t *message, size_t length, bool from_client, bool is_new);
// Whether an extension of a client's hello has too much to be decoded.
bool cll_is_crowded(unsigned int type, const uint8_t *bytes, size_t length);

// What goes with a ticket: when the client's certificate, or a list for it, expires, and when the
// full handshake was that all of its tickets go back to.
#define CLL_TICKET_FACTS 16
void cll_write_ticket_facts(uint8_t bytes[CLL_TICKET_FACTS], int64_t expiry, int64_t beginning);
// Reads the facts of a ticket; false if it is not good, or not any more.
bool cll_read_ticket_facts(const uint8_t *bytes, size_t length, int64_t now,
                           int64_t session_lifetime, int64_t *expiry, int64_t *beginning);

#endif
