// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkPOSIX.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

void cll_return_free_memory(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}
