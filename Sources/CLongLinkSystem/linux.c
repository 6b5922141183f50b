// SPDX-License-Identifier: Apache-2.0
#if defined(__linux__)
#define _GNU_SOURCE

#include "CLongLinkSystem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>

int cll_accept(int descriptor, struct sockaddr *address, socklen_t *length) {
  return accept4(descriptor, address, length, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

int cll_timer(void) {
  return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

int cll_timer_set(int descriptor, long long nanoseconds) {
  struct itimerspec time = {
    .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000},
  };
  return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &time, NULL);
}

// SIOCOUTQ by its older name, which needs no kernel header. According to tcp(7) it counts unsent bytes,
// but the kernel's tcp_ioctl() counts from the first unacknowledged byte.
int cll_unacknowledged(int descriptor) {
  int count = 0;
  return ioctl(descriptor, TIOCOUTQ, &count) == 0 ? count : -1;
}

long cll_round_trip(int descriptor) {
  struct tcp_info info = {0};
  socklen_t length = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return -1;
  return info.tcpi_rtt;
}
#endif
