// SPDX-License-Identifier: Apache-2.0
#include "checksum.h"

#include <stdio.h>
#include <stdlib.h>

#include "floor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

typedef uint32_t checksum_function(const uint8_t *frame, size_t length);

// As many bytes as 32 bits can sum up before a remainder must be taken (RFC 1950, section 9).
static const size_t longest_run = 5552;

INLINE uint32_t add_plain(uint32_t sum, const uint8_t *bytes, size_t count) {
  uint32_t a = sum & 0xffff, b = sum >> 16;
  while (count > 0) {
    size_t run = count < longest_run ? count : longest_run;
    for (const uint8_t *end = bytes + run; bytes < end; bytes++) b += a += *bytes;
    a %= MODULUS;
    b %= MODULUS;
    count -= run;
  }
  return b << 16 | a;
}

static uint32_t checksum_plain(const uint8_t *frame, size_t length) {
  return add_plain(add_plain(1, frame, header_summed), frame + header_length, length);
}

INLINE size_t verified(
    const uint8_t *bytes, size_t count, size_t most, checksum_function *checksum) {
  size_t done = 0;
  while (most-- > 0 && count - done >= header_length) {
    const uint8_t *frame = bytes + done;
    size_t length = load(frame + 8);
    if (length > most_body) {
      fputs("a frame is too long\n", stderr);
      exit(1);
    }
    if (count - done - header_length < length) break;
    if (checksum(frame, length) != load(frame + 12)) {
      fputs("a checksum does not hold\n", stderr);
      exit(1);
    }
    done += header_length + length;
  }
  return done;
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

// The last byte of 64 weighs 1, the first one 64.
static const int8_t weights[64] = {
    64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43,
    42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21,
    20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1};

INLINE AVX2 uint32_t total(__m256i lanes) {
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

/// The header is the first vector, and its sums go on into those of the body, 64 bytes at a time:
/// `carried` sums up what `plain` was before each of them. What is left is summed up plainly.
static AVX2 uint32_t checksum_avx2(const uint8_t *frame, size_t length) {
  const __m256i ones = _mm256_set1_epi16(1), zero = _mm256_setzero_si256();
  const __m256i upper = _mm256_loadu_si256((const __m256i *)weights);
  const __m256i lower = _mm256_loadu_si256((const __m256i *)(weights + 32));
  const size_t longest = longest_run / 64 * 64 - 64;
  // What is left out of the header is shifted away.
  __m128i header = _mm_slli_si128(_mm_loadu_si128((const __m128i *)frame), 4);
  __m256i plain = _mm256_zextsi128_si256(_mm_sad_epu8(header, _mm_setzero_si128()));
  __m256i weighted = _mm256_zextsi128_si256(_mm_madd_epi16(
      _mm_maddubs_epi16(header, _mm256_extracti128_si256(lower, 1)), _mm_set1_epi16(1)));
  __m256i carried = zero;

  uint32_t a = 1, b = 0, summed = header_summed;
  const uint8_t *bytes = frame + header_length, *end = bytes + length / 64 * 64;
  for (;;) {
    size_t run = (size_t)(end - bytes) < longest ? (size_t)(end - bytes) : longest;
    for (const uint8_t *stop = bytes + run; bytes < stop; bytes += 64) {
      __m256i first = _mm256_loadu_si256((const __m256i *)bytes);
      __m256i second = _mm256_loadu_si256((const __m256i *)(bytes + 32));
      carried = _mm256_add_epi32(carried, plain);
      plain = _mm256_add_epi32(
          plain, _mm256_add_epi32(_mm256_sad_epu8(first, zero), _mm256_sad_epu8(second, zero)));
      weighted = _mm256_add_epi32(
          weighted, _mm256_add_epi32(_mm256_madd_epi16(_mm256_maddubs_epi16(first, upper), ones),
                                     _mm256_madd_epi16(_mm256_maddubs_epi16(second, lower), ones)));
    }
    summed += (uint32_t)run;
    weighted = _mm256_add_epi32(weighted, _mm256_slli_epi32(carried, 6));
    b = (b + summed * a + total(weighted)) % MODULUS;
    a = (a + total(plain)) % MODULUS;
    if (bytes == end) break;
    plain = weighted = carried = zero;
    summed = 0;
  }
  uint32_t sum = b << 16 | a;
  return length % 64 ? add_plain(sum, end, length % 64) : sum;
}

static AVX2 size_t verified_avx2(const uint8_t *bytes, size_t count, size_t most) {
  return verified(bytes, count, most, checksum_avx2);
}

size_t verified_frames(const uint8_t *bytes, size_t count, size_t most) {
  if (__builtin_cpu_supports("avx2")) return verified_avx2(bytes, count, most);
  return verified(bytes, count, most, checksum_plain);
}

uint32_t floor_checksum(const uint8_t *frame, size_t length) {
  if (__builtin_cpu_supports("avx2")) return checksum_avx2(frame, length);
  return checksum_plain(frame, length);
}

#else

size_t verified_frames(const uint8_t *bytes, size_t count, size_t most) {
  return verified(bytes, count, most, checksum_plain);
}

uint32_t floor_checksum(const uint8_t *frame, size_t length) {
  return checksum_plain(frame, length);
}

#endif
