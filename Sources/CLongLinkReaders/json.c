// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkReadersJSON.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#define HAS_BLOCKS 1
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define HAS_BLOCKS 1
#endif

// Returns whether the value goes on.
static bool open_one(cll_json_place *place, size_t most_depth) {
  if (place->depth == most_depth) {
    place->is_too_deep = true;
    return false;
  }
  place->depth++;
  return true;
}

static bool close_one(cll_json_place *place) {
  if (place->depth > 0) place->depth--;
  place->has_ended = place->depth == 0;
  return !place->has_ended;
}

// Returns whether the value goes on behind the byte.
static bool step(cll_json_place *place, uint8_t byte, size_t most_depth) {
  if (place->is_in_string) {
    if (place->is_escaped) {
      place->is_escaped = false;
    } else if (byte == '\\') {
      place->is_escaped = true;
    } else if (byte == '"') {
      place->is_in_string = false;
      place->has_ended = place->depth == 0;
    }
    return !place->has_ended;
  }
  switch (byte) {
  case '"':
    place->is_in_string = true;
    return true;
  case '{':
  case '[':
    return open_one(place, most_depth);
  case '}':
  case ']':
    return close_one(place);
  default:
    return true;
  }
}

size_t cll_json_skip_portable(
    cll_json_place *place, const uint8_t *bytes, size_t count, size_t most_depth) {
  for (size_t index = 0; index < count; index++) {
    if (!step(place, bytes[index], most_depth)) return index + 1;
  }
  return count;
}

#if HAS_BLOCKS

// A bit for each of 64 bytes.
typedef struct {
  uint64_t quotes;
  uint64_t backslashes;
  uint64_t opening;
  uint64_t closing;
} block;

#if defined(__SSE2__)

static inline block classify(const uint8_t *bytes) {
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i brace = _mm_set1_epi8('{');
  const __m128i end = _mm_set1_epi8('}');
  const __m128i bit = _mm_set1_epi8(0x20);
  block result = {0, 0, 0, 0};
  for (int part = 0; part < 4; part++) {
    __m128i vector = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 16 * part));
    // With this bit, brackets are braces, and nothing else becomes one.
    __m128i raised = _mm_or_si128(vector, bit);
    int shift = 16 * part;
    result.quotes |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(vector, quote)) << shift;
    result.backslashes |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(vector, backslash)) << shift;
    result.opening |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(raised, brace)) << shift;
    result.closing |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(raised, end)) << shift;
  }
  return result;
}

#else

static inline uint64_t bits(const uint8x16_t found[4]) {
  const uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t low = vpaddq_u8(vandq_u8(found[0], weights), vandq_u8(found[1], weights));
  uint8x16_t high = vpaddq_u8(vandq_u8(found[2], weights), vandq_u8(found[3], weights));
  uint8x16_t sum = vpaddq_u8(low, high);
  sum = vpaddq_u8(sum, sum);
  return vgetq_lane_u64(vreinterpretq_u64_u8(sum), 0);
}

static inline block classify(const uint8_t *bytes) {
  uint8x16_t quotes[4], backslashes[4], opening[4], closing[4];
  for (int part = 0; part < 4; part++) {
    uint8x16_t vector = vld1q_u8(bytes + 16 * part);
    // With this bit, brackets are braces, and nothing else becomes one.
    uint8x16_t raised = vorrq_u8(vector, vdupq_n_u8(0x20));
    quotes[part] = vceqq_u8(vector, vdupq_n_u8('"'));
    backslashes[part] = vceqq_u8(vector, vdupq_n_u8('\\'));
    opening[part] = vceqq_u8(raised, vdupq_n_u8('{'));
    closing[part] = vceqq_u8(raised, vdupq_n_u8('}'));
  }
  return (block){bits(quotes), bits(backslashes), bits(opening), bits(closing)};
}

#endif

// The bytes behind a backslash that is not escaped itself.
static inline uint64_t escaped_bits(uint64_t backslashes, bool *is_escaped) {
  if (backslashes == 0) {
    uint64_t first = *is_escaped;
    *is_escaped = false;
    return first;
  }
  uint64_t escaped = 0;
  uint64_t carried = *is_escaped;
  backslashes &= ~carried;
  escaped |= carried;
  *is_escaped = false;
  while (backslashes != 0) {
    int place = __builtin_ctzll(backslashes);
    if (place == 63) {
      *is_escaped = true;
      break;
    }
    uint64_t next = 1ull << (place + 1);
    escaped |= next;
    // That byte, and all before it, are done.
    backslashes &= ~(next | (next - 1));
  }
  return escaped;
}

// Each bit becomes the parity of itself and those below.
static inline uint64_t parities(uint64_t bits) {
  bits ^= bits << 1;
  bits ^= bits << 2;
  bits ^= bits << 4;
  bits ^= bits << 8;
  bits ^= bits << 16;
  bits ^= bits << 32;
  return bits;
}

// Goes through the brackets of a block one by one. Returns where the value ends, or 64.
static size_t walk(
    cll_json_place *place, uint64_t opening, uint64_t closing, size_t most_depth) {
  uint64_t brackets = opening | closing;
  while (brackets != 0) {
    int index = __builtin_ctzll(brackets);
    brackets &= brackets - 1;
    bool goes_on = opening >> index & 1 ? open_one(place, most_depth) : close_one(place);
    if (!goes_on) return (size_t)index + 1;
  }
  return 64;
}

size_t cll_json_skip(
    cll_json_place *place, const uint8_t *bytes, size_t count, size_t most_depth) {
  size_t done = 0;
  // The first byte tells what ends the value.
  if (count > 0 && place->depth == 0 && !place->is_in_string) {
    if (!step(place, bytes[0], most_depth)) return 1;
    done = 1;
  }
  for (; place->depth > 0 && count - done >= 64; done += 64) {
    block found = classify(bytes + done);
    bool is_escaped = place->is_escaped;
    uint64_t quotes = found.quotes & ~escaped_bits(found.backslashes, &is_escaped);
    uint64_t strings = parities(quotes) ^ (place->is_in_string ? ~0ull : 0);
    if (found.backslashes & ~strings) {
      // Outside of strings JSON has no backslashes, and they escape nothing.
      size_t end = cll_json_skip_portable(place, bytes + done, 64, most_depth);
      if (place->has_ended || place->is_too_deep) return done + end;
      continue;
    }
    uint64_t opening = found.opening & ~strings;
    uint64_t closing = found.closing & ~strings;
    size_t opened = (size_t)__builtin_popcountll(opening);
    size_t closed = (size_t)__builtin_popcountll(closing);
    if (closed < place->depth && opened <= most_depth - place->depth) {
      place->depth += opened - closed;
    } else {
      size_t end = walk(place, opening, closing, most_depth);
      if (place->has_ended || place->is_too_deep) {
        place->is_in_string = place->is_escaped = false;
        return done + end;
      }
    }
    place->is_in_string = strings >> 63;
    place->is_escaped = is_escaped;
  }
  return done + cll_json_skip_portable(place, bytes + done, count - done, most_depth);
}

#else

size_t cll_json_skip(
    cll_json_place *place, const uint8_t *bytes, size_t count, size_t most_depth) {
  return cll_json_skip_portable(place, bytes, count, most_depth);
}

#endif
