// SPDX-License-Identifier: Apache-2.0
#include "internal.h"

#include <pthread.h>
#include <string.h>

// A BIO that reads the input of the call that runs, and writes to its output or, where that is
// full, to the bytes that wait.

static int bio_read(BIO *bio, char *bytes, int length) {
  cll_tls_engine *engine = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (engine->input_left == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  size_t count = (size_t)length < engine->input_left ? (size_t)length : engine->input_left;
  memcpy(bytes, engine->input, count);
  engine->input += count;
  engine->input_left -= count;
  return (int)count;
}

static bool make_room(cll_tls_engine *engine, size_t count) {
  if (engine->late_capacity - engine->late_count >= count) return true;
  size_t capacity = engine->late_count + count;
  if (capacity < 2 * engine->late_capacity) capacity = 2 * engine->late_capacity;
  uint8_t *bytes = OPENSSL_realloc(engine->late, capacity);
  if (bytes == NULL) return false;
  engine->late = bytes;
  engine->late_capacity = capacity;
  return true;
}

static int bio_write(BIO *bio, const char *bytes, int length) {
  cll_tls_engine *engine = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  size_t count = (size_t)length;
  // What waits comes behind what was written, so nothing may pass it.
  if (engine->late_count == 0 && engine->output_capacity - engine->output_count >= count) {
    memcpy(engine->output + engine->output_count, bytes, count);
    engine->output_count += count;
    return length;
  }
  if (!make_room(engine, count)) return -1;
  memcpy(engine->late + engine->late_count, bytes, count);
  engine->late_count += count;
  return length;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static int bio_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method;

static void make_method(void) {
  method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "LongLink");
  if (method == NULL) return;
  BIO_meth_set_read(method, bio_read);
  BIO_meth_set_write(method, bio_write);
  BIO_meth_set_ctrl(method, bio_control);
  BIO_meth_set_create(method, bio_create);
}

const BIO_METHOD *cll_bio_method(void) {
  pthread_once(&once, make_method);
  return method;
}

size_t cll_tls_late_count(const cll_tls_engine *engine) { return engine->late_count; }

void cll_tls_take_late(cll_tls_engine *engine, uint8_t *bytes) {
  if (engine->late_count > 0) memcpy(bytes, engine->late, engine->late_count);
  OPENSSL_clear_free(engine->late, engine->late_capacity);
  engine->late = NULL;
  engine->late_count = 0;
  engine->late_capacity = 0;
}
