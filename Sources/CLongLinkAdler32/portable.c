// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

// The most bytes that can be summed in 32 bits before a remainder must be taken (RFC 1950, section 9).
static const size_t longest_run = 5552;

uint32_t cll_adler32_portable(uint32_t seed, const uint8_t *bytes, size_t count) {
  uint32_t a = seed & 0xffff;
  uint32_t b = seed >> 16;
  while (count > 0) {
    size_t run = count < longest_run ? count : longest_run;
    count -= run;
    for (; run >= 8; run -= 8, bytes += 8) {
      // Eight steps of `a += byte, b += a` at once, without the chain of dependent additions.
      uint32_t weighted = 8u * bytes[0] + 7u * bytes[1] + 6u * bytes[2] + 5u * bytes[3]
          + 4u * bytes[4] + 3u * bytes[5] + 2u * bytes[6] + bytes[7];
      uint32_t plain = (uint32_t)bytes[0] + bytes[1] + bytes[2] + bytes[3]
          + bytes[4] + bytes[5] + bytes[6] + bytes[7];
      b += 8 * a + weighted;
      a += plain;
    }
    for (; run > 0; run--) {
      a += *bytes++;
      b += a;
    }
    a %= LONGLINK_ADLER32_MODULUS;
    b %= LONGLINK_ADLER32_MODULUS;
  }
  return b << 16 | a;
}

uint32_t cll_adler32_frame_portable(const uint8_t *frame, size_t count) {
  uint32_t header = cll_adler32_portable(1, frame, LONGLINK_ADLER32_FRAME_SUMMED);
  return cll_adler32_portable(header, frame + LONGLINK_ADLER32_FRAME_BODY, count);
}
