// SPDX-License-Identifier: Apache-2.0
#ifndef CREADERSFLOOR_H
#define CREADERSFLOOR_H

#include <stddef.h>
#include <stdint.h>

/// What bare expat has found.
typedef struct {
  uint64_t elements;
  uint64_t ends;
  uint64_t text;
} floor_counts;

/// Parses a document in parts of `part` bytes with handlers that only count. Ends the process if the
/// document is broken.
floor_counts floor_parse(const uint8_t *bytes, size_t count, size_t part);

/// Looks for a byte that is not there, in parts of `part` bytes; returns the number of parts.
uint64_t floor_search(const uint8_t *bytes, size_t count, size_t part);

/// The bytes that the process has allocated now, and the most since the last `floor_reset_most`.
uint64_t floor_allocated(void);
uint64_t floor_most_allocated(void);
void floor_reset_most(void);

/// Ends the counting, which takes time. The figures mean nothing from then on.
void floor_stop_counting(void);

#endif
