// SPDX-License-Identifier: Apache-2.0
// An executable's definitions replace the C library's for all code linked into it. The C library's
// internal calls, such as the futex of a lock, are not counted.

#if defined(__linux__)

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "slots.h"

#define COUNTED(...) (one_more(&own_slot()->system_calls), syscall(__VA_ARGS__))

// The kernel's type for a set of its 64 signals.
static const size_t signals_size = 8;

ssize_t read(int fd, void *bytes, size_t count) { return COUNTED(SYS_read, fd, bytes, count); }

ssize_t readv(int fd, const struct iovec *parts, int count) {
  return COUNTED(SYS_readv, fd, parts, count);
}

ssize_t recv(int fd, void *bytes, size_t count, int flags) {
  return COUNTED(SYS_recvfrom, fd, bytes, count, flags, NULL, NULL);
}

ssize_t recvfrom(int fd, void *restrict bytes, size_t count, int flags,
                 struct sockaddr *restrict from, socklen_t *restrict length) {
  return COUNTED(SYS_recvfrom, fd, bytes, count, flags, from, length);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
  return COUNTED(SYS_recvmsg, fd, message, flags);
}

ssize_t write(int fd, const void *bytes, size_t count) {
  return COUNTED(SYS_write, fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  return COUNTED(SYS_writev, fd, parts, count);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
  return COUNTED(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}

ssize_t sendto(int fd, const void *bytes, size_t count, int flags, const struct sockaddr *to,
               socklen_t length) {
  return COUNTED(SYS_sendto, fd, bytes, count, flags, to, length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  return COUNTED(SYS_sendmsg, fd, message, flags);
}

int epoll_wait(int poller, struct epoll_event *events, int most, int milliseconds) {
  return (int)COUNTED(SYS_epoll_pwait, poller, events, most, milliseconds, NULL, signals_size);
}

int epoll_pwait2(int poller, struct epoll_event *events, int most, const struct timespec *timeout,
                 const sigset_t *signals) {
  return (int)COUNTED(SYS_epoll_pwait2, poller, events, most, timeout, signals, signals_size);
}

int epoll_ctl(int poller, int operation, int fd, struct epoll_event *event) {
  return (int)COUNTED(SYS_epoll_ctl, poller, operation, fd, event);
}

int poll(struct pollfd *polled, nfds_t count, int milliseconds) {
  struct timespec timeout = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  return (int)COUNTED(SYS_ppoll, polled, count, milliseconds < 0 ? NULL : &timeout, NULL,
                      signals_size);
}

int eventfd_read(int fd, eventfd_t *value) {
  return read(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}

int eventfd_write(int fd, eventfd_t value) {
  return write(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *former) {
  return (int)COUNTED(SYS_timerfd_settime, fd, flags, time, former);
}

#endif
