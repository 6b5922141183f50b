// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkSystem.h"

// The Swift runtime's hook for replacing its global executor, from `ConcurrencyHooks.h`.
typedef __attribute__((swiftcall)) void (*original_type)(void *job);
typedef __attribute__((swiftcall)) void (*hook_type)(void *job, original_type original);
extern hook_type swift_task_enqueueGlobal_hook;

static bool (*capture_job)(void *job);
static hook_type former_hook;

static __attribute__((swiftcall)) void hook(void *job, original_type original) {
  if (capture_job(job)) return;
  if (former_hook) {
    former_hook(job, original);
  } else {
    original(job);
  }
}

void cll_capture_global_jobs(bool (*capture)(void *job)) {
  capture_job = capture;
  former_hook = swift_task_enqueueGlobal_hook;
  __atomic_store_n(&swift_task_enqueueGlobal_hook, hook, __ATOMIC_RELEASE);
}
