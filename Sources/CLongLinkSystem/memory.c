// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkSystem.h"

#if defined(__GLIBC__)
#include <malloc.h>
#include <stdlib.h>
#endif

void cll_return_free_memory(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void cll_reuse_free_memory(void) {
#if defined(__GLIBC__)
  // The compiler must not see that the block is unused.
  void *volatile block = malloc(1 << 20);
  free(block);
#endif
}
