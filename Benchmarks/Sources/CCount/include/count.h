// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

/// Calls of malloc and the like so far, by all threads of this process; 0 if they are not counted.
uint64_t count_allocations(void);

/// Bytes that are allocated, with what the allocator keeps beside them; 0 if it does not say.
uint64_t allocated_bytes(void);

/// Calls that move bytes, wait for them or wake a waiting thread so far, by all threads of this
/// process; 0 if they are not counted.
uint64_t count_system_calls(void);
