// SPDX-License-Identifier: Apache-2.0
// Swift's concurrency runtime, below its documented functions: check these with each release of Swift.
#ifndef CLONGLINK_RUNTIME_HOOKS_H
#define CLONGLINK_RUNTIME_HOOKS_H

#include <stdbool.h>

#ifndef LONGLINK_PORTABLE
/// Has `cll_task_cancelled` called, once and on any thread, when the current task is
/// cancelled: at once where it has been.
///
/// The same task ends it by `cll_task_unwatch`, in reverse order of the calls.
const void *_Nonnull cll_task_watch(void *_Nonnull context);

/// Ends what `cll_task_watch` began. A call that was under way has returned then.
void cll_task_unwatch(const void *_Nonnull record);

/// Defined by the module that watches.
void cll_task_cancelled(void *_Nonnull context);
#endif

// For the thread sanitizer alone: what a thread did before `cll_hand_over` comes before all that
// another does after `cll_take_over`. Swift's runtime, which is built without the sanitizer, tells
// it of tasks that are put in a queue, but not of one that is resumed before it has suspended.
#ifdef CLL_THREAD_SANITIZER
void __tsan_release(void *_Nonnull address);
void __tsan_acquire(void *_Nonnull address);

static inline void cll_hand_over(void *_Nonnull address) { __tsan_release(address); }
static inline void cll_take_over(void *_Nonnull address) { __tsan_acquire(address); }
#else
static inline void cll_hand_over(void *_Nonnull address) { (void)address; }
static inline void cll_take_over(void *_Nonnull address) { (void)address; }
#endif

/// For simulations alone. Asks `capture` for each job that the Swift runtime would put on its global
/// pool, on the thread that does so. `capture` returns whether it has taken the job. To be called once
/// in a process.
void cll_capture_global_jobs(bool (*_Nonnull capture)(void *_Nonnull job));

#endif
