// SPDX-License-Identifier: Apache-2.0
#include "slots.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "count.h"

enum { most_threads = 4096 };

static slot slots[most_threads];
static _Atomic unsigned taken;
// Finding it must not call malloc.
static _Thread_local slot *mine __attribute__((tls_model("initial-exec")));

slot *own_slot(void) {
  if (mine) return mine;
  unsigned index = atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
  if (index >= most_threads) abort();
  return mine = &slots[index];
}

static unsigned threads(void) { return atomic_load_explicit(&taken, memory_order_relaxed); }

uint64_t allocated_bytes(void) {
#ifdef __GLIBC__
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

uint64_t count_allocations(void) {
  uint64_t sum = 0;
  for (unsigned index = 0; index < threads(); index++)
    sum += atomic_load_explicit(&slots[index].allocations, memory_order_relaxed);
  return sum;
}

uint64_t count_system_calls(void) {
  uint64_t sum = 0;
  for (unsigned index = 0; index < threads(); index++)
    sum += atomic_load_explicit(&slots[index].system_calls, memory_order_relaxed);
  return sum;
}
