// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_READERS_INPUT_H
#define LONGLINK_READERS_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "account.h"

/// How the document is written, as its first bytes tell. `cll_form_bytes` are all encodings with ASCII in
/// single bytes.
typedef enum {
  cll_form_unknown,
  cll_form_bytes,
  cll_form_utf16le,
  cll_form_utf16be,
} cll_form;

/// The bytes of the document that are still needed. UTF-16 is converted to UTF-8.
typedef struct {
  uint8_t *bytes;
  size_t capacity;
  size_t end;
  /// The place in the document of `bytes[0]`.
  uint64_t offset;
  cll_form form;
  /// The first bytes, until they tell the form; later a part of a UTF-16 character.
  uint8_t part[4];
  size_t part_count;
  /// The encoding that the first bytes tell, if it cannot be read.
  const char *unreadable;
} cll_input;

/// Appends bytes. `used` is the number of bytes at the front that are not needed any more; returns how
/// many of them were dropped.
size_t cll_input_feed(
    cll_input *input, cll_account *account, size_t used, const uint8_t *bytes, size_t count);

/// Appends what was held back at the end of the document.
void cll_input_finish(cll_input *input, cll_account *account);

void cll_input_free(cll_input *input, cll_account *account);

#endif
