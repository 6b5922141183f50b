// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_ADLER32_KERNELS_H
#define LONGLINK_ADLER32_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/// The largest prime below 2^16: both halves of a checksum are remainders modulo it.
#define LONGLINK_ADLER32_MODULUS 65521u

/// The number of bytes at the front of a frame that are summed, and the offset of its body.
#define LONGLINK_ADLER32_FRAME_SUMMED 12
#define LONGLINK_ADLER32_FRAME_BODY 16

uint32_t cll_adler32_portable(uint32_t seed, const uint8_t *bytes, size_t count);
uint32_t cll_adler32_frame_portable(const uint8_t *frame, size_t count);

#if defined(__x86_64__)
#define LONGLINK_ADLER32_X86 1
uint32_t cll_adler32_ssse3(uint32_t seed, const uint8_t *bytes, size_t count);
uint32_t cll_adler32_frame_ssse3(const uint8_t *frame, size_t count);
uint32_t cll_adler32_avx2(uint32_t seed, const uint8_t *bytes, size_t count);
uint32_t cll_adler32_frame_avx2(const uint8_t *frame, size_t count);
#endif

#if defined(__aarch64__) && defined(__ARM_NEON)
#define LONGLINK_ADLER32_NEON 1
uint32_t cll_adler32_neon(uint32_t seed, const uint8_t *bytes, size_t count);
uint32_t cll_adler32_frame_neon(const uint8_t *frame, size_t count);
#endif

#endif
