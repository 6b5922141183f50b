// SPDX-License-Identifier: Apache-2.0
#include "input.h"

#include <string.h>

// A buffer up to this size is kept when it is empty.
static const size_t kept_capacity = 65536 + 4096;

static void reserve(cll_input *input, cll_account *account, size_t count) {
  if (input->capacity - input->end >= count) return;
  size_t capacity = input->end + count;
  size_t grown = input->capacity + input->capacity / 2;
  if (input->end > 0 && grown > capacity) capacity = grown;
  input->bytes = cll_account_resize(account, input->bytes, input->capacity, capacity);
  input->capacity = capacity;
}

static void append(
    cll_input *input, cll_account *account, const uint8_t *bytes, size_t count) {
  if (count == 0) return;
  reserve(input, account, count);
  memcpy(input->bytes + input->end, bytes, count);
  input->end += count;
}

// Drops used bytes, unless too many others would have to be moved for that.
static size_t drop(cll_input *input, cll_account *account, size_t used, size_t count) {
  size_t left = input->end - used;
  if (used == 0 || (left > used && left > 4096)) return 0;
  if (left > 0) memmove(input->bytes, input->bytes + used, left);
  input->end = left;
  input->offset += used;
  // The memory of what was large is not kept.
  if (left <= 64 && input->capacity > kept_capacity && input->capacity / 2 > count) {
    input->bytes = cll_account_resize(account, input->bytes, input->capacity, 64);
    input->capacity = 64;
  }
  return used;
}

// What no UTF-8 contains, for what is no character.
static const uint8_t not_a_character = 0xFF;

static size_t write_utf8(uint32_t scalar, uint8_t *to) {
  if (scalar < 0x80) {
    to[0] = (uint8_t)scalar;
    return 1;
  }
  if (scalar < 0x800) {
    to[0] = (uint8_t)(0xC0 | scalar >> 6);
    to[1] = (uint8_t)(0x80 | (scalar & 0x3F));
    return 2;
  }
  if (scalar < 0x10000) {
    to[0] = (uint8_t)(0xE0 | scalar >> 12);
    to[1] = (uint8_t)(0x80 | (scalar >> 6 & 0x3F));
    to[2] = (uint8_t)(0x80 | (scalar & 0x3F));
    return 3;
  }
  to[0] = (uint8_t)(0xF0 | scalar >> 18);
  to[1] = (uint8_t)(0x80 | (scalar >> 12 & 0x3F));
  to[2] = (uint8_t)(0x80 | (scalar >> 6 & 0x3F));
  to[3] = (uint8_t)(0x80 | (scalar & 0x3F));
  return 4;
}

static uint32_t unit_at(const cll_input *input, size_t place) {
  uint32_t first = input->part[place];
  uint32_t second = input->part[place + 1];
  return input->form == cll_form_utf16be ? first << 8 | second : second << 8 | first;
}

// Converts `part` as far as it is complete.
static size_t convert_part(cll_input *input, uint8_t *to) {
  if (input->part_count < 2) return 0;
  uint32_t unit = unit_at(input, 0);
  if (unit < 0xD800 || unit > 0xDFFF) {
    input->part_count = 0;
    return write_utf8(unit, to);
  }
  if (unit <= 0xDBFF && input->part_count < 4) return 0;
  uint32_t low = unit <= 0xDBFF ? unit_at(input, 2) : 0;
  if (low >= 0xDC00 && low <= 0xDFFF) {
    input->part_count = 0;
    return write_utf8(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), to);
  }
  // A surrogate alone. Reading fails there, so it does not matter that the next unit is lost.
  input->part_count = 0;
  to[0] = not_a_character;
  return 1;
}

static void append_utf16(
    cll_input *input, cll_account *account, const uint8_t *bytes, size_t count) {
  uint8_t converted[512];
  size_t length = 0;
  for (size_t place = 0; place < count; place++) {
    input->part[input->part_count++] = bytes[place];
    if (input->part_count % 2 == 0) length += convert_part(input, converted + length);
    if (length > sizeof converted - 4) {
      append(input, account, converted, length);
      length = 0;
    }
  }
  append(input, account, converted, length);
}

static void append_in_form(
    cll_input *input, cll_account *account, const uint8_t *bytes, size_t count) {
  if (input->form == cll_form_bytes) {
    append(input, account, bytes, count);
  } else {
    append_utf16(input, account, bytes, count);
  }
}

// XML 1.0, appendix F. Sets the form, and returns the length of the byte order mark.
static size_t recognize(cll_input *input) {
  const uint8_t *part = input->part;
  bool has_four = input->part_count == 4;
  input->form = cll_form_bytes;
  if (has_four && (memcmp(part, "\0\0\xFE\xFF", 4) == 0 || memcmp(part, "\xFF\xFE\0\0", 4) == 0 ||
                   memcmp(part, "\0\0\0<", 4) == 0 || memcmp(part, "<\0\0\0", 4) == 0)) {
    input->unreadable = "UTF-32";
  } else if (has_four && memcmp(part, "\x4C\x6F\xA7\x94", 4) == 0) {
    input->unreadable = "EBCDIC";
  } else if (input->part_count >= 2) {
    bool has_mark = part[0] >= 0xFE && part[0] + part[1] == 0xFE + 0xFF;
    if (has_mark || (part[0] == 0) != (part[1] == 0)) {
      bool is_big = has_mark ? part[0] == 0xFE : part[0] == 0;
      input->form = is_big ? cll_form_utf16be : cll_form_utf16le;
      return has_mark ? 2 : 0;
    }
  }
  return input->part_count >= 3 && memcmp(part, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

static void settle_form(cll_input *input, cll_account *account) {
  size_t count = input->part_count;
  uint8_t first[4];
  memcpy(first, input->part, count);
  size_t mark = recognize(input);
  input->part_count = 0;
  if (input->form == cll_form_bytes) input->offset = mark;
  append_in_form(input, account, first + mark, count - mark);
}

size_t cll_input_feed(
    cll_input *input, cll_account *account, size_t used, const uint8_t *bytes, size_t count) {
  size_t dropped = drop(input, account, used, count);
  if (input->form == cll_form_unknown) {
    while (count > 0 && input->part_count < 4) {
      input->part[input->part_count++] = *bytes++;
      count--;
    }
    // The shortest document has four bytes, so nothing waits here that could be read.
    if (input->part_count < 4) return dropped;
    settle_form(input, account);
  }
  append_in_form(input, account, bytes, count);
  return dropped;
}

void cll_input_finish(cll_input *input, cll_account *account) {
  if (input->form == cll_form_unknown) settle_form(input, account);
  if (input->form != cll_form_bytes && input->part_count > 0) {
    // The first byte of a character that does not end.
    append(input, account, (const uint8_t *)"\xE2", 1);
    input->part_count = 0;
  }
}

void cll_input_free(cll_input *input, cll_account *account) {
  cll_account_resize(account, input->bytes, input->capacity, 0);
}
