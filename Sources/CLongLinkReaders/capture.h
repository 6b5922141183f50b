// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_READERS_CAPTURE_H
#define LONGLINK_READERS_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account.h"

typedef struct cll_piece {
  struct cll_piece *next;
  size_t capacity;
  size_t count;
  uint8_t bytes[];
} cll_piece;

/// The bytes of an element that is not complete yet. They stay where they are while more are added, so
/// that an element is never in memory three times.
typedef struct {
  cll_piece *first;
  cll_piece *last;
  size_t size;
} cll_capture;

/// Appends bytes.
void cll_capture_add(
    cll_capture *capture, cll_account *account, const void *bytes, size_t count);

/// Copies all bytes, and drops them. With `memory` NULL, only drops them.
void cll_capture_take(cll_capture *capture, cll_account *account, uint8_t *memory);

/// Appends a byte and a text that ends with 0, if there is room for both where the last bytes are, and the
/// capture has at most `most` bytes then. Otherwise appends nothing, and returns false.
static inline bool cll_capture_put_short(
    cll_capture *capture, uint8_t mark, const char *text, size_t most) {
  cll_piece *piece = capture->last;
  if (!piece) return false;
  size_t room = piece->capacity - piece->count;
  if (most - capture->size < room) room = most - capture->size;
  if (room == 0) return false;
  uint8_t *to = piece->bytes + piece->count;
  *to = mark;
  // Names and values are mostly so short that `strlen` and `memcpy` would take longer.
  for (size_t count = 1; count < room; count++, text++) {
    to[count] = (uint8_t)*text;
    if (*text) continue;
    piece->count += count;
    capture->size += count;
    return true;
  }
  return false;
}

/// Appends bytes if there is room for them where the last bytes are; else returns false.
static inline bool cll_capture_put(cll_capture *capture, const void *bytes, size_t count) {
  cll_piece *piece = capture->last;
  if (!piece || piece->capacity - piece->count < count) return false;
  uint8_t *to = piece->bytes + piece->count;
  if (count == 1) {
    // What a reference stands for.
    *to = *(const uint8_t *)bytes;
  } else {
    memcpy(to, bytes, count);
  }
  piece->count += count;
  capture->size += count;
  return true;
}

/// Frees all memory.
void cll_capture_free(cll_capture *capture, cll_account *account);

#endif
