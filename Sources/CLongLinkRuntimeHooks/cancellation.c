// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkRuntimeHooks.h"

#ifndef LONGLINK_PORTABLE

#define SWIFT_CC __attribute__((swiftcall))
#define SWIFT_CONTEXT __attribute__((swift_context))

// The two halves of withTaskCancellationHandler, which are part of the binary interface of Swift's
// concurrency library. The function itself costs four executor switches, each of which looks up the
// task's preferred executor under a lock: about a quarter of a request's time.
SWIFT_CC const void *swift_task_addCancellationHandler(
  SWIFT_CC void (*handler)(SWIFT_CONTEXT void *), void *context);
SWIFT_CC void swift_task_removeCancellationHandler(const void *record);

static SWIFT_CC void cancelled(SWIFT_CONTEXT void *context) {
  cll_task_cancelled(context);
}

const void *cll_task_watch(void *context) {
  return swift_task_addCancellationHandler(cancelled, context);
}

void cll_task_unwatch(const void *record) {
  swift_task_removeCancellationHandler(record);
}
#endif
