// SPDX-License-Identifier: Apache-2.0
#if defined(__linux__)
#define _GNU_SOURCE
#endif

#include "CLongLinkSystem.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

_Thread_local void *cll_current_loop_storage CLL_FAST_TLS = NULL;

typedef struct {
  void (*body)(void *);
  void *argument;
  char name[16];
} start_info;

static void *run(void *raw) {
  start_info info = *(start_info *)raw;
  free(raw);
#if defined(__APPLE__)
  pthread_setname_np(info.name);
#elif defined(__linux__)
  pthread_setname_np(pthread_self(), info.name);
#endif
  info.body(info.argument);
  return NULL;
}

int cll_thread_start(
  cll_thread *thread, const char *name, size_t stack_size, void (*body)(void *), void *argument
) {
  start_info *info = malloc(sizeof *info);
  if (info == NULL) {
    return ENOMEM;
  }
  info->body = body;
  info->argument = argument;
  strncpy(info->name, name, sizeof info->name - 1);
  info->name[sizeof info->name - 1] = '\0';

  // The application's own threads handle the process's signals. Signals that a thread causes itself
  // (faults, abort) and those of a profiler stay unblocked.
  sigset_t blocked;
  sigset_t former;
  sigfillset(&blocked);
  const int open_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
  for (size_t index = 0; index < sizeof open_signals / sizeof open_signals[0]; index++) {
    sigdelset(&blocked, open_signals[index]);
  }

  pthread_attr_t attributes;
  int failure = pthread_attr_init(&attributes);
  if (failure != 0) {
    free(info);
    return failure;
  }
  pthread_attr_setstacksize(&attributes, stack_size);
  if (thread == NULL) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  }
  pthread_t id;
  pthread_sigmask(SIG_SETMASK, &blocked, &former);
  failure = pthread_create(&id, &attributes, run, info);
  pthread_sigmask(SIG_SETMASK, &former, NULL);
  pthread_attr_destroy(&attributes);
  if (failure != 0) {
    free(info);
    return failure;
  }
  if (thread != NULL) {
    thread->id = id;
  }
  return 0;
}

void cll_thread_join(cll_thread thread) {
  pthread_join(thread.id, NULL);
}

void cll_thread_name(char *buffer, size_t size) {
  if (pthread_getname_np(pthread_self(), buffer, size) != 0) {
    buffer[0] = '\0';
  }
}
