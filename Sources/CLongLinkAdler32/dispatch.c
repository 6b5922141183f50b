// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkAdler32.h"

#include <stdatomic.h>

#include "kernels.h"

typedef uint32_t kernel_function(uint32_t seed, const uint8_t *bytes, size_t count);
typedef uint32_t frame_function(const uint8_t *frame, size_t count);

typedef struct {
  kernel_function *function;
  frame_function *frame;
  const char *name;
} kernel;

#if LONGLINK_ADLER32_X86
static const kernel avx2 = {cll_adler32_avx2, cll_adler32_frame_avx2, "avx2"};
static const kernel ssse3 = {cll_adler32_ssse3, cll_adler32_frame_ssse3, "ssse3"};
#elif LONGLINK_ADLER32_NEON
static const kernel neon = {cll_adler32_neon, cll_adler32_frame_neon, "neon"};
#endif
static const kernel portable = {
    cll_adler32_portable, cll_adler32_frame_portable, "portable"};

// Returns the implementation at `index`, or the portable one past the end, and stores the number of
// implementations.
static const kernel *kernel_at(size_t index, size_t *count) {
  const kernel *kernels[3];
  size_t found = 0;
#if LONGLINK_ADLER32_X86
  if (__builtin_cpu_supports("avx2")) kernels[found++] = &avx2;
  if (__builtin_cpu_supports("ssse3")) kernels[found++] = &ssse3;
#elif LONGLINK_ADLER32_NEON
  kernels[found++] = &neon;
#endif
  kernels[found++] = &portable;
  *count = found;
  return kernels[index < found ? index : found - 1];
}

static kernel_function choose;
static frame_function choose_for_frame;
static const kernel chooser = {choose, choose_for_frame, "chooser"};

// All threads that find `chooser` here store the same choice, so relaxed order is sufficient.
static const kernel *_Atomic chosen = &chooser;

static const kernel *best_kernel(void) {
  size_t ignored;
  const kernel *best = kernel_at(0, &ignored);
  atomic_store_explicit(&chosen, best, memory_order_relaxed);
  return best;
}

static uint32_t choose(uint32_t seed, const uint8_t *bytes, size_t count) {
  return best_kernel()->function(seed, bytes, count);
}

static uint32_t choose_for_frame(const uint8_t *frame, size_t count) {
  return best_kernel()->frame(frame, count);
}

uint32_t cll_adler32(uint32_t seed, const uint8_t *bytes, size_t count) {
  return atomic_load_explicit(&chosen, memory_order_relaxed)->function(seed, bytes, count);
}

uint32_t cll_adler32_frame(const uint8_t *frame, size_t count) {
  return atomic_load_explicit(&chosen, memory_order_relaxed)->frame(frame, count);
}

size_t cll_adler32_implementations(void) {
  size_t count;
  kernel_at(0, &count);
  return count;
}

const char *cll_adler32_implementation_name(size_t implementation) {
  size_t ignored;
  return kernel_at(implementation, &ignored)->name;
}

uint32_t cll_adler32_using(
    size_t implementation, uint32_t seed, const uint8_t *bytes, size_t count) {
  size_t ignored;
  return kernel_at(implementation, &ignored)->function(seed, bytes, count);
}

uint32_t cll_adler32_frame_using(
    size_t implementation, const uint8_t *frame, size_t count) {
  size_t ignored;
  return kernel_at(implementation, &ignored)->frame(frame, count);
}
