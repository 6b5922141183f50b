// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkSystem.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#endif
#endif

void cll_sanitizer_locked(void *lock) {
#if defined(IS_SANITIZED)
  __tsan_acquire(lock);
#else
  (void)lock;
#endif
}

void cll_sanitizer_unlocks(void *lock) {
#if defined(IS_SANITIZED)
  __tsan_release(lock);
#else
  (void)lock;
#endif
}
