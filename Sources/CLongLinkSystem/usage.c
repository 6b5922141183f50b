// SPDX-License-Identifier: Apache-2.0
#if defined(__linux__)
#define _GNU_SOURCE
#endif

#include "CLongLinkSystem.h"

#include <sys/ioctl.h>
#include <sys/resource.h>

int cll_unread(int descriptor) {
  int count = 0;
  return ioctl(descriptor, FIONREAD, &count) == 0 ? count : -1;
}

long cll_preemptions(void) {
#if defined(RUSAGE_THREAD)
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : -1;
#else
  return -1;
#endif
}
