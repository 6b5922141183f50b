// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINKADLER32_H
#define CLONGLINKADLER32_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The Adler-32 checksum (RFC 1950) of `count` bytes, going on from `seed`: 1 to begin with, or the
/// checksum of what came before. Uses the fastest implementation that the CPU can run. `bytes` may
/// be NULL where `count` is 0.
uint32_t cll_adler32(uint32_t seed, const uint8_t *bytes, size_t count);

/// The checksum of a frame: of the 12 bytes at `frame` and, after 4 that are left out, of the
/// `count` bytes of its body.
uint32_t cll_adler32_frame(const uint8_t *frame, size_t count);

/// How many implementations this CPU can run. The fastest, which `cll_adler32` uses, is 0.
size_t cll_adler32_implementations(void);

/// The name of an implementation: "avx2", "ssse3", "neon" or "portable".
const char *cll_adler32_implementation_name(size_t implementation);

/// The same checksum from the implementation of that number, so that each can be tested.
uint32_t cll_adler32_using(
    size_t implementation, uint32_t seed, const uint8_t *bytes, size_t count);

/// The checksum of a frame from the implementation of that number.
uint32_t cll_adler32_frame_using(
    size_t implementation, const uint8_t *frame, size_t count);

#ifdef __cplusplus
}
#endif

#endif
