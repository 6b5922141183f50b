// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

static const size_t smallest = 4096 - sizeof(cll_piece);
static const size_t largest = 65536 - sizeof(cll_piece);

static void add_piece(cll_capture *capture, cll_account *account) {
  size_t capacity = smallest;
  if (capture->last) {
    capacity = 2 * capture->last->capacity;
    if (capacity > largest) capacity = largest;
  }
  cll_piece *piece = cll_account_resize(account, NULL, 0, sizeof(cll_piece) + capacity);
  piece->next = NULL;
  piece->capacity = capacity;
  piece->count = 0;
  if (capture->last) {
    capture->last->next = piece;
  } else {
    capture->first = piece;
  }
  capture->last = piece;
}

static void free_after(cll_piece *kept, cll_account *account) {
  cll_piece *piece = kept->next;
  kept->next = NULL;
  while (piece) {
    cll_piece *next = piece->next;
    cll_account_resize(account, piece, sizeof(cll_piece) + piece->capacity, 0);
    piece = next;
  }
}

void cll_capture_add(
    cll_capture *capture, cll_account *account, const void *bytes, size_t count) {
  const uint8_t *from = bytes;
  capture->size += count;
  while (count > 0) {
    if (!capture->last || capture->last->count == capture->last->capacity) {
      add_piece(capture, account);
    }
    cll_piece *piece = capture->last;
    size_t room = piece->capacity - piece->count;
    size_t part = count < room ? count : room;
    memcpy(piece->bytes + piece->count, from, part);
    piece->count += part;
    from += part;
    count -= part;
  }
}

void cll_capture_take(cll_capture *capture, cll_account *account, uint8_t *memory) {
  if (!capture->first) return;
  if (memory) {
    for (cll_piece *piece = capture->first; piece; piece = piece->next) {
      memcpy(memory, piece->bytes, piece->count);
      memory += piece->count;
    }
  }
  // The first piece is small, and the next element needs it.
  free_after(capture->first, account);
  capture->first->count = 0;
  capture->last = capture->first;
  capture->size = 0;
}

void cll_capture_free(cll_capture *capture, cll_account *account) {
  if (!capture->first) return;
  free_after(capture->first, account);
  cll_account_resize(account, capture->first, sizeof(cll_piece) + capture->first->capacity, 0);
  *capture = (cll_capture){0};
}
