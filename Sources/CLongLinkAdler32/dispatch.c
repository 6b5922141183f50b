#include "CLongLinkAdler32.h"

#include <stdatomic.h>

#include "kernels.h"

typedef uint32_t kernel_function(uint32_t seed, const uint8_t *bytes, size_t count);

typedef struct {
  kernel_function *function;
  const char *name;
} kernel;

// Returns the implementation of that number, or that of the portable one past the end, and stores
// how many there are.
static kernel kernel_at(size_t index, size_t *count) {
  kernel kernels[3];
  size_t found = 0;
#if LONGLINK_ADLER32_X86
  if (__builtin_cpu_supports("avx2")) {
    kernels[found++] = (kernel){longlink_adler32_avx2, "avx2"};
  }
  if (__builtin_cpu_supports("ssse3")) {
    kernels[found++] = (kernel){longlink_adler32_ssse3, "ssse3"};
  }
#elif LONGLINK_ADLER32_NEON
  kernels[found++] = (kernel){longlink_adler32_neon, "neon"};
#endif
  kernels[found++] = (kernel){longlink_adler32_portable, "portable"};
  *count = found;
  return kernels[index < found ? index : found - 1];
}

static kernel_function choose;

// Every thread that finds `choose` here stores the same choice, so that relaxed order is enough.
static _Atomic(kernel_function *) chosen = choose;

static uint32_t choose(uint32_t seed, const uint8_t *bytes, size_t count) {
  size_t ignored;
  kernel_function *best = kernel_at(0, &ignored).function;
  atomic_store_explicit(&chosen, best, memory_order_relaxed);
  return best(seed, bytes, count);
}

uint32_t longlink_adler32(uint32_t seed, const uint8_t *bytes, size_t count) {
  return atomic_load_explicit(&chosen, memory_order_relaxed)(seed, bytes, count);
}

size_t longlink_adler32_implementations(void) {
  size_t count;
  kernel_at(0, &count);
  return count;
}

const char *longlink_adler32_implementation_name(size_t implementation) {
  size_t ignored;
  return kernel_at(implementation, &ignored).name;
}

uint32_t longlink_adler32_using(
    size_t implementation, uint32_t seed, const uint8_t *bytes, size_t count) {
  size_t ignored;
  return kernel_at(implementation, &ignored).function(seed, bytes, count);
}
