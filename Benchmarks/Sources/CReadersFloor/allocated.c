// SPDX-License-Identifier: Apache-2.0
// An executable's definitions replace the C library's for the whole process.
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>

#include "CReadersFloor.h"

static _Atomic uint64_t allocated;
static _Atomic uint64_t most;
static int has_stopped;

uint64_t floor_allocated(void) { return allocated; }

uint64_t floor_most_allocated(void) { return most; }

void floor_reset_most(void) { most = allocated; }

void floor_stop_counting(void) { has_stopped = 1; }

#if defined(__GLIBC__)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void *add(void *memory) {
  if (has_stopped || !memory) return memory;
  uint64_t size = malloc_usable_size(memory);
  uint64_t now = atomic_fetch_add_explicit(&allocated, size, memory_order_relaxed) + size;
  uint64_t before = atomic_load_explicit(&most, memory_order_relaxed);
  while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {
  }
  return memory;
}

static void subtract(void *memory) {
  if (!has_stopped && memory) {
    atomic_fetch_sub_explicit(&allocated, malloc_usable_size(memory), memory_order_relaxed);
  }
}

void *malloc(size_t size) { return add(__libc_malloc(size)); }

void *calloc(size_t number, size_t size) { return add(__libc_calloc(number, size)); }

void *realloc(void *memory, size_t size) {
  // As if the new memory were always another: the old is given back behind it.
  uint64_t old = memory && !has_stopped ? malloc_usable_size(memory) : 0;
  void *moved = __libc_realloc(memory, size);
  if (moved || size == 0) {
    add(moved);
    atomic_fetch_sub_explicit(&allocated, old, memory_order_relaxed);
  }
  return moved;
}

void *memalign(size_t alignment, size_t size) { return add(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}

void free(void *memory) {
  subtract(memory);
  __libc_free(memory);
}

#endif
