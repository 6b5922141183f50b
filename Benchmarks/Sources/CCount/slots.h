// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/// The counts of one thread. Only that thread writes them, so that no locked instruction is needed.
typedef struct {
  _Alignas(64) _Atomic uint64_t allocations;
  _Atomic uint64_t system_calls;
} slot;

/// The calling thread's counts.
slot *own_slot(void);

static inline void one_more(_Atomic uint64_t *count) {
  uint64_t before = atomic_load_explicit(count, memory_order_relaxed);
  atomic_store_explicit(count, before + 1, memory_order_relaxed);
}
