#ifndef CLONGLINK_TASK_H
#define CLONGLINK_TASK_H

/// Has `longlink_task_cancelled` called, once and on any thread, when the current task is
/// cancelled: at once where it has been.
///
/// The same task ends it by `cll_task_unwatch`, in reverse order of the calls.
const void *_Nonnull cll_task_watch(void *_Nonnull context);

/// Ends what `cll_task_watch` began. A call that was under way has returned then.
void cll_task_unwatch(const void *_Nonnull record);

/// Defined by the module that watches.
void longlink_task_cancelled(void *_Nonnull context);

#endif
