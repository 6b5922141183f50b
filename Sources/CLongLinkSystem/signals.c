// SPDX-License-Identifier: Apache-2.0
#if defined(__linux__)
#define _GNU_SOURCE
#endif

#include "CLongLinkSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

// The handler touches nothing but these: the end of a pipe, and what a signal did before.
static atomic_int pipe_end = -1;
static struct sigaction former[NSIG];
static pid_t owner;

static void caught(int number) {
  int saved = errno;
  // Here and not by a thread, so that the next one has its former effect however soon it comes.
  sigaction(number, &former[number], NULL);
  if (getpid() != owner) {
    // A forked child shares the pipe. The signal has its former effect when this returns.
    raise(number);
    errno = saved;
    return;
  }
  unsigned char byte = (unsigned char)number;
  ssize_t count = write(atomic_load(&pipe_end), &byte, 1);
  (void)count;
  errno = saved;
}

int cll_signals_open(void) {
  int ends[2];
  int earlier = atomic_exchange(&pipe_end, -1);
  if (earlier >= 0) {
    close(earlier);
  }
  if (pipe(ends) != 0) {
    return -1;
  }
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  atomic_store(&pipe_end, ends[1]);
  return ends[0];
}

int cll_signal_next(int descriptor) {
  unsigned char byte;
  ssize_t count;
  do {
    count = read(descriptor, &byte, 1);
  } while (count < 0 && errno == EINTR);
  return count == 1 ? byte : -1;
}

int cll_signal_catch(int number) {
  struct sigaction action = {.sa_handler = caught, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  owner = getpid();
  if (number <= 0 || number >= NSIG) {
    return EINVAL;
  }
  if (sigaction(number, NULL, &former[number]) != 0) {
    return errno;
  }
  if (former[number].sa_handler == SIG_IGN) {
    return 0;
  }
  return sigaction(number, &action, NULL) == 0 ? 0 : errno;
}

void cll_signal_restore(int number) {
  struct sigaction now;
  // Where something else handles it by now, that stays.
  if (sigaction(number, NULL, &now) == 0 && now.sa_handler == caught) {
    sigaction(number, &former[number], NULL);
  }
}
