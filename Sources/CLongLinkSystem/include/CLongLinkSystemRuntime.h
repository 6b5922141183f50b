// SPDX-License-Identifier: Apache-2.0
// Undocumented functions of Swift's concurrency runtime: check them with each release of Swift.
#ifndef CLONGLINK_SYSTEM_RUNTIME_H
#define CLONGLINK_SYSTEM_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#ifndef LONGLINK_PORTABLE
// The two halves of withTaskCancellationHandler, which are part of the binary interface of Swift's
// concurrency library. The function itself costs four executor switches, each of which looks up the
// task's preferred executor under a lock: about a quarter of a request's time.
__attribute__((swiftcall)) const void *_Nonnull swift_task_addCancellationHandler(
  __attribute__((swiftcall)) void (*_Nonnull handler)(
    __attribute__((swift_context)) void *_Nonnull context),
  void *_Nonnull context);
__attribute__((swiftcall)) void swift_task_removeCancellationHandler(const void *_Nonnull record);

/// Defined by the module that watches.
void cll_task_cancelled(void *_Nonnull context);

static inline __attribute__((swiftcall)) void cll_pass_on_cancellation(
  __attribute__((swift_context)) void *_Nonnull context) {
  cll_task_cancelled(context);
}

/// Makes the runtime call `cll_task_cancelled`, once and on any thread, when the current task is
/// cancelled, or at once if it is cancelled already.
///
/// The same task must call `cll_task_unwatch`, in reverse order of these calls.
static inline const void *_Nonnull cll_task_watch(void *_Nonnull context) {
  return swift_task_addCancellationHandler(cll_pass_on_cancellation, context);
}

/// Ends a watch of `cll_task_watch`. When it returns, no call of `cll_task_cancelled` is running.
static inline void cll_task_unwatch(const void *_Nonnull record) {
  swift_task_removeCancellationHandler(record);
}
#endif

// Only for the thread sanitizer: everything before `cll_hand_over` in one thread happens before
// everything after `cll_take_over` in another. Swift's runtime, which is built without the sanitizer,
// reports tasks that are queued, but not a task that is resumed before it has suspended.
#ifdef CLL_THREAD_SANITIZER
void __tsan_release(void *_Nonnull address);
void __tsan_acquire(void *_Nonnull address);

static inline void cll_hand_over(void *_Nonnull address) { __tsan_release(address); }
static inline void cll_take_over(void *_Nonnull address) { __tsan_acquire(address); }
#else
static inline void cll_hand_over(void *_Nonnull address) { (void)address; }
static inline void cll_take_over(void *_Nonnull address) { (void)address; }
#endif

/// Only for simulations. Makes the runtime call `capture` for each job that it would put on its global
/// pool, on the enqueuing thread. `capture` returns whether it has taken the job. Call this only once
/// in a process.
void cll_capture_global_jobs(bool (*_Nonnull capture)(void *_Nonnull job));

#endif
