// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINKADLER32_H
#define CLONGLINKADLER32_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The Adler-32 checksum (RFC 1950) of `count` bytes, continued from `seed`: 1 to begin with, or the
/// checksum of the preceding bytes. Uses the fastest implementation that the CPU supports. `bytes`
/// can be NULL if `count` is 0.
uint32_t cll_adler32(uint32_t seed, const uint8_t *bytes, size_t count);

/// The checksum of a frame: of the 12 bytes at `frame` and, after skipping 4, of the `count` bytes of
/// its body.
uint32_t cll_adler32_frame(const uint8_t *frame, size_t count);

/// The number of implementations that this CPU supports. The fastest, which `cll_adler32` uses, is 0.
size_t cll_adler32_implementations(void);

/// The name of an implementation: "avx2", "ssse3", "neon" or "portable".
const char *cll_adler32_implementation_name(size_t implementation);

/// The same checksum from a given implementation, so that each can be tested.
uint32_t cll_adler32_using(
    size_t implementation, uint32_t seed, const uint8_t *bytes, size_t count);

/// The checksum of a frame from a given implementation.
uint32_t cll_adler32_frame_using(
    size_t implementation, const uint8_t *frame, size_t count);

#ifdef __cplusplus
}
#endif

#endif
