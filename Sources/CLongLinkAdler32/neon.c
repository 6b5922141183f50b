// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#if LONGLINK_ADLER32_NEON

#include <arm_neon.h>

// The most bytes that the columns' 16-bit lanes can sum, 32 at a time: 173 * 255 < 2^16. The other
// sums have 32-bit lanes, which can hold more.
static const size_t longest_run = 173 * 32;

// The first of 32 bytes has the weight 32, the last one 1.
static const uint16_t weights[32] = {
    32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17,
    16, 15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1};

/// Adds a multiple of 32 bytes, at most `longest_run`, to the sums a and b.
static void add(uint32_t *a, uint32_t *b, const uint8_t *bytes, size_t count) {
  uint32x4_t plain = vdupq_n_u32(0);
  uint32x4_t carried = vdupq_n_u32(0);
  uint16x8_t columns[4] = {
      vdupq_n_u16(0), vdupq_n_u16(0), vdupq_n_u16(0), vdupq_n_u16(0)};
  for (const uint8_t *end = bytes + count; bytes < end; bytes += 32) {
    uint8x16_t low = vld1q_u8(bytes);
    uint8x16_t high = vld1q_u8(bytes + 16);
    carried = vaddq_u32(carried, plain);
    plain = vpadalq_u16(plain, vpadalq_u8(vpaddlq_u8(low), high));
    columns[0] = vaddw_u8(columns[0], vget_low_u8(low));
    columns[1] = vaddw_u8(columns[1], vget_high_u8(low));
    columns[2] = vaddw_u8(columns[2], vget_low_u8(high));
    columns[3] = vaddw_u8(columns[3], vget_high_u8(high));
  }
  uint32x4_t weighted = vshlq_n_u32(carried, 5);
  for (int i = 0; i < 4; i++) {
    uint16x8_t weight = vld1q_u16(weights + 8 * i);
    weighted = vmlal_u16(weighted, vget_low_u16(columns[i]), vget_low_u16(weight));
    weighted = vmlal_u16(weighted, vget_high_u16(columns[i]), vget_high_u16(weight));
  }
  uint64_t sum = *b + (uint64_t)count * *a + vaddlvq_u32(weighted);
  *b = (uint32_t)(sum % LONGLINK_ADLER32_MODULUS);
  *a = (*a + vaddvq_u32(plain)) % LONGLINK_ADLER32_MODULUS;
}

uint32_t cll_adler32_neon(uint32_t seed, const uint8_t *bytes, size_t count) {
  // For fewer than 32 bytes, vectors are not worth their setup.
  size_t few = count % 32;
  if (few > 0) {
    seed = cll_adler32_portable(seed, bytes, few);
    bytes += few;
    count -= few;
  }
  uint32_t a = seed & 0xffff;
  uint32_t b = seed >> 16;
  while (count > 0) {
    size_t run = count < longest_run ? count : longest_run;
    add(&a, &b, bytes, run);
    bytes += run;
    count -= run;
  }
  return b << 16 | a;
}

uint32_t cll_adler32_frame_neon(const uint8_t *frame, size_t count) {
  uint32_t header = cll_adler32_neon(1, frame, LONGLINK_ADLER32_FRAME_SUMMED);
  return cll_adler32_neon(header, frame + LONGLINK_ADLER32_FRAME_BODY, count);
}

#endif
