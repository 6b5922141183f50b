// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// Both halves of a checksum are remainders of it.
#define MODULUS 65521u

enum { header_length = 16, header_summed = 12, most_body = 1 << 24 };

static inline uint32_t load(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return ntohl(value);
}

static inline void store(uint8_t *bytes, uint32_t value) {
  value = htonl(value);
  memcpy(bytes, &value, sizeof value);
}

/// How many of the bytes are whole frames, each of which has to match its checksum. Looks at `most`
/// frames.
size_t verified_frames(const uint8_t *bytes, size_t count, size_t most);
