// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_READERS_FIND_H
#define LONGLINK_READERS_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Returns the place of the first `<`, `>` or `&`, or `to`. Most texts between them are short, so that calls
/// of `memchr` would take longer.
static inline size_t cll_find_markup(const uint8_t *bytes, size_t from, size_t to) {
#if defined(__SSE2__)
  const __m128i angle = _mm_set1_epi8('>');
  const __m128i bit = _mm_set1_epi8(2);
  const __m128i ampersand = _mm_set1_epi8('&');
  for (; to - from >= 16; from += 16) {
    __m128i vector = _mm_loadu_si128((const __m128i *)(const void *)(bytes + from));
    // With this bit, `<` is `>`, and nothing else becomes it.
    __m128i found = _mm_cmpeq_epi8(_mm_or_si128(vector, bit), angle);
    found = _mm_or_si128(found, _mm_cmpeq_epi8(vector, ampersand));
    int bits = _mm_movemask_epi8(found);
    if (bits) return from + (size_t)__builtin_ctz((unsigned)bits);
  }
#endif
  for (; from < to; from++) {
    uint8_t byte = bytes[from];
    if (byte == '<' || byte == '>' || byte == '&') break;
  }
  return from;
}

/// Goes through the bytes of a tag behind its `<`. If the tag ends, sets `is_whole`, and returns the place
/// behind it. Otherwise returns the place of the next `<`, which no tag contains, or `to`. `quote` is the
/// quote that is open, or 0.
static inline size_t cll_pass_tag(
    const uint8_t *bytes, size_t from, size_t to, uint8_t *quote, bool *is_whole) {
  uint8_t open = *quote;
#if defined(__SSE2__)
  const __m128i angle = _mm_set1_epi8('>');
  const __m128i bit = _mm_set1_epi8(2);
  const __m128i double_quote = _mm_set1_epi8('"');
  const __m128i single_quote = _mm_set1_epi8('\'');
  for (; to - from >= 16; from += 16) {
    __m128i vector = _mm_loadu_si128((const __m128i *)(const void *)(bytes + from));
    // With this bit, `<` is `>`, and nothing else becomes it.
    __m128i found = _mm_cmpeq_epi8(_mm_or_si128(vector, bit), angle);
    found = _mm_or_si128(found, _mm_cmpeq_epi8(vector, double_quote));
    found = _mm_or_si128(found, _mm_cmpeq_epi8(vector, single_quote));
    unsigned bits = (unsigned)_mm_movemask_epi8(found);
    for (; bits; bits &= bits - 1) {
      size_t place = from + (size_t)__builtin_ctz(bits);
      uint8_t byte = bytes[place];
      if (byte == '<') return place;
      if (byte == open) {
        open = 0;
      } else if (open == 0) {
        if (byte == '>') {
          *is_whole = true;
          return place + 1;
        }
        open = byte;
      }
    }
  }
#endif
  for (; from < to; from++) {
    uint8_t byte = bytes[from];
    if (byte == '<') break;
    if (byte == open) {
      open = 0;
    } else if (open == 0) {
      if (byte == '>') {
        *is_whole = true;
        return from + 1;
      }
      if (byte == '"' || byte == '\'') open = byte;
    }
  }
  *quote = open;
  return from;
}

#endif
