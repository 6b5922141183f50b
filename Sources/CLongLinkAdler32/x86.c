// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#if LONGLINK_ADLER32_X86

#include <immintrin.h>
#include <string.h>

// Zero bytes before the input do not change sums that start at zero. So the input is read as whole
// vectors, the first of which is padded with zeros at its front, and the seed is added at the end:
// over n bytes from (a, b) the checksum is a + sum(byte), b + n * a + sum(weight * byte), where the
// last byte has the weight 1, the one before it 2, and so on.

#define SSSE3 __attribute__((target("ssse3")))
#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

/// Sums over vectors of 16 bytes; `carried` sums the values of `plain` before each vector.
typedef struct {
  __m128i plain;     // two lanes of 64 bits
  __m128i carried;   // two lanes of 64 bits
  __m128i weighted;  // four lanes of 32 bits
} sums;

// The weighted sums of this many bytes fit into 32-bit lanes.
static const size_t longest_run = 1 << 17;

// Loaded at offset n, the shuffle indices that move the first n bytes of a vector to its end.
static const uint8_t to_the_end[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15};

INLINE uint64_t load64(const uint8_t *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

INLINE uint32_t load32(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

/// Loads 1 to 15 bytes into the end of a vector, without reading past them.
INLINE SSSE3 __m128i load_few(const uint8_t *bytes, size_t count) {
  if (count >= 8) {
    uint64_t low = count == 8 ? 0 : load64(bytes) << (8 * (16 - count));
    return _mm_set_epi64x((long long)load64(bytes + count - 8), (long long)low);
  }
  uint64_t high;
  if (count >= 4) {
    uint32_t low = (uint32_t)((uint64_t)load32(bytes) << (8 * (8 - count)));
    high = (uint64_t)load32(bytes + count - 4) << 32 | low;
  } else {
    high = (uint64_t)bytes[count - 1] << 56;
    if (count >= 2) high |= (uint64_t)bytes[count - 2] << 48;
    if (count == 3) high |= (uint64_t)bytes[0] << 40;
  }
  return _mm_set_epi64x((long long)high, 0);
}

INLINE SSSE3 void add(sums *to, __m128i bytes) {
  const __m128i weights = _mm_setr_epi8(16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
  to->carried = _mm_add_epi64(to->carried, to->plain);
  to->plain = _mm_add_epi64(to->plain, _mm_sad_epu8(bytes, _mm_setzero_si128()));
  to->weighted = _mm_add_epi32(
      to->weighted, _mm_madd_epi16(_mm_maddubs_epi16(bytes, weights), _mm_set1_epi16(1)));
}

/// The sums over `count` bytes. The first `count % 16` of them form a separate vector.
INLINE SSSE3 sums sums_of(const uint8_t *bytes, size_t count) {
  sums result = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
  if (count < 16) {
    if (count > 0) add(&result, load_few(bytes, count));
    return result;
  }
  size_t first = count % 16;
  const uint8_t *end = bytes + count;
  if (first > 0) {
    __m128i order = _mm_loadu_si128((const __m128i *)(to_the_end + first));
    add(&result, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes), order));
    bytes += first;
  }
  for (; bytes < end; bytes += 16) {
    add(&result, _mm_loadu_si128((const __m128i *)bytes));
  }
  return result;
}

/// The low half plus the high half of each 64-bit lane.
INLINE SSSE3 __m128i widened(__m128i lanes) {
  return _mm_add_epi64(
      _mm_srli_epi64(lanes, 32), _mm_srli_epi64(_mm_slli_epi64(lanes, 32), 32));
}

INLINE SSSE3 uint64_t total(__m128i lanes) {
  return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(lanes, _mm_unpackhi_epi64(lanes, lanes)));
}

INLINE uint32_t joined(uint32_t seed, size_t count, uint64_t plain, uint64_t weighted) {
  uint32_t a = seed & 0xffff;
  uint64_t b = (seed >> 16) + (uint64_t)count * a + weighted;
  a += (uint32_t)plain;
  return (uint32_t)(b % LONGLINK_ADLER32_MODULUS) << 16 | a % LONGLINK_ADLER32_MODULUS;
}

INLINE SSSE3 uint32_t joined_to(uint32_t seed, size_t count, sums sums) {
  __m128i weighted = _mm_add_epi64(widened(sums.weighted), _mm_slli_epi64(sums.carried, 4));
  return joined(seed, count, total(sums.plain), total(weighted));
}

SSSE3 uint32_t cll_adler32_ssse3(uint32_t seed, const uint8_t *bytes, size_t count) {
  while (count > longest_run) {
    seed = joined_to(seed, longest_run, sums_of(bytes, longest_run));
    bytes += longest_run;
    count -= longest_run;
  }
  return joined_to(seed, count, sums_of(bytes, count));
}

// The largest body for which a frame is summed in one pass.
static const size_t short_body = 255;

// Loaded at offset n, the shuffle indices that move all but the first n bytes of a vector to its
// front.
static const uint8_t to_the_front[32] = {
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

// Loaded at offset n, the mask that keeps the last n bytes of a vector and clears the others.
static const uint8_t the_end[32] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/// The sum of four lanes.
INLINE SSSE3 uint32_t total_of_four(__m128i lanes) {
  lanes = _mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, _MM_SHUFFLE(1, 0, 3, 2)));
  lanes = _mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, _MM_SHUFFLE(2, 3, 0, 1)));
  return (uint32_t)_mm_cvtsi128_si32(lanes);
}

/// The checksum of so few bytes that each sum fits into 32 bits, from the seed 1.
INLINE SSSE3 uint32_t joined_few(size_t count, sums sums) {
  uint32_t a = 1 + (uint32_t)total(sums.plain);
  uint32_t b = (uint32_t)count
      + total_of_four(_mm_add_epi32(sums.weighted, _mm_slli_epi64(sums.carried, 4)));
  return b % LONGLINK_ADLER32_MODULUS << 16 | a % LONGLINK_ADLER32_MODULUS;
}

/// The checksum of a frame with at most `short_body` bytes of body. The header and the first bytes of
/// the body, up to a multiple of 16, are joined at the end of two vectors.
INLINE SSSE3 uint32_t short_frame(const uint8_t *frame, size_t count) {
  sums result = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
  const uint8_t *end = frame + LONGLINK_ADLER32_FRAME_BODY + count;
  size_t first = count % 16;
  const uint8_t *bytes = frame + LONGLINK_ADLER32_FRAME_BODY + first;
  // The shift removes the last 4 bytes of the header, which are not summed.
  __m128i header = _mm_slli_si128(_mm_loadu_si128((const __m128i *)frame), 4);
  // The header precedes the body, so that a whole vector can be read up to the body's first bytes.
  __m128i body = _mm_and_si128(
      _mm_loadu_si128((const __m128i *)(bytes - 16)),
      _mm_loadu_si128((const __m128i *)(the_end + first)));
  __m128i before = _mm_loadu_si128((const __m128i *)(to_the_end + first));
  __m128i beside = _mm_loadu_si128((const __m128i *)(to_the_front + first));
  add(&result, _mm_shuffle_epi8(header, before));
  add(&result, _mm_or_si128(_mm_shuffle_epi8(header, beside), body));
  for (; bytes < end; bytes += 16) {
    add(&result, _mm_loadu_si128((const __m128i *)bytes));
  }
  return joined_few(LONGLINK_ADLER32_FRAME_SUMMED + count, result);
}

SSSE3 uint32_t cll_adler32_frame_ssse3(const uint8_t *frame, size_t count) {
  if (count <= short_body) return short_frame(frame, count);
  uint32_t header = short_frame(frame, 0);
  return cll_adler32_ssse3(header, frame + LONGLINK_ADLER32_FRAME_BODY, count);
}

/// The checksum of at least 64 and at most `longest_run` bytes.
INLINE AVX2 uint32_t long_run(uint32_t seed, const uint8_t *bytes, size_t count) {
  const __m256i weights = _mm256_setr_epi8(
      32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17,
      16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i zero = _mm256_setzero_si256();
  const uint8_t *end = bytes + count;

  // The first bytes use narrow vectors, so that whole pairs of wide ones remain.
  size_t narrow = count % 64;
  sums first = sums_of(bytes, narrow);
  bytes += narrow;
  __m256i plain = _mm256_inserti128_si256(zero, first.plain, 0);
  __m256i weighted = _mm256_inserti128_si256(zero, first.weighted, 0);
  __m256i carried = zero;
  for (; bytes < end; bytes += 64) {
    __m256i low = _mm256_loadu_si256((const __m256i *)bytes);
    __m256i high = _mm256_loadu_si256((const __m256i *)(bytes + 32));
    carried = _mm256_add_epi64(carried, plain);
    plain = _mm256_add_epi64(plain, _mm256_sad_epu8(low, zero));
    carried = _mm256_add_epi64(carried, plain);
    plain = _mm256_add_epi64(plain, _mm256_sad_epu8(high, zero));
    // The sum of two products of at most 255 * (32 + 31) fits into a signed 16-bit lane.
    __m256i products = _mm256_add_epi16(
        _mm256_maddubs_epi16(low, weights), _mm256_maddubs_epi16(high, weights));
    weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(products, ones));
  }

  __m128i plain_sum = _mm_add_epi64(
      _mm256_castsi256_si128(plain), _mm256_extracti128_si256(plain, 1));
  __m128i carried_sum = _mm_add_epi64(
      _mm256_castsi256_si128(carried), _mm256_extracti128_si256(carried, 1));
  __m128i weighted_sum = _mm_add_epi64(
      widened(_mm256_castsi256_si128(weighted)), widened(_mm256_extracti128_si256(weighted, 1)));
  weighted_sum = _mm_add_epi64(weighted_sum, _mm_slli_epi64(carried_sum, 5));
  weighted_sum = _mm_add_epi64(weighted_sum, _mm_slli_epi64(first.carried, 4));
  return joined(seed, count, total(plain_sum), total(weighted_sum));
}

AVX2 uint32_t cll_adler32_avx2(uint32_t seed, const uint8_t *bytes, size_t count) {
  if (count < 64) return joined_to(seed, count, sums_of(bytes, count));
  while (count > longest_run) {
    seed = long_run(seed, bytes, longest_run);
    bytes += longest_run;
    count -= longest_run;
  }
  if (count < 64) return joined_to(seed, count, sums_of(bytes, count));
  return long_run(seed, bytes, count);
}

AVX2 uint32_t cll_adler32_frame_avx2(const uint8_t *frame, size_t count) {
  if (count <= short_body) return short_frame(frame, count);
  uint32_t header = short_frame(frame, 0);
  return cll_adler32_avx2(header, frame + LONGLINK_ADLER32_FRAME_BODY, count);
}

#endif
