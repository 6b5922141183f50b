// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINK_POSIX_H
#define CLONGLINK_POSIX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
// A load of a fixed offset from the thread register, where the general model calls a function.
#define CLL_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define CLL_FAST_TLS
#endif

/// The event loop that the calling thread runs at the moment, or NULL.
extern _Thread_local void *_Nullable cll_current_loop_storage CLL_FAST_TLS;

static inline void *_Nullable cll_current_loop(void) {
  return cll_current_loop_storage;
}

static inline void cll_set_current_loop(void *_Nullable loop) {
  cll_current_loop_storage = loop;
}

/// Tells the thread sanitizer, where the program is built with it, that a lock was taken.
void cll_sanitizer_locked(void *_Nonnull lock);

/// Tells the thread sanitizer, where the program is built with it, that a lock is to be given back.
void cll_sanitizer_unlocks(void *_Nonnull lock);

/// A thread that was started and can be waited for.
typedef struct {
  pthread_t id;
} cll_thread;

/// Starts a thread that takes no signals meant for the process, and returns 0 or an errno.
///
/// `thread` is NULL for one that nobody waits for. `name` is cut to what the system takes.
int cll_thread_start(
  cll_thread *_Nullable thread,
  const char *_Nonnull name,
  size_t stack_size,
  void (*_Nonnull body)(void *_Nonnull),
  void *_Nonnull argument
);

/// Waits until a thread has ended.
void cll_thread_join(cll_thread thread);

/// Puts the name of the calling thread into `buffer`, which is empty where it has none.
void cll_thread_name(char *_Nonnull buffer, size_t size);

/// The symbol of an errno, such as "ECONNREFUSED", or NULL for one that sockets do not give.
const char *_Nullable cll_errno_name(int code);

/// Puts the system's text for an errno into `buffer`.
void cll_errno_text(int code, char *_Nonnull buffer, size_t size);

/// Bytes that were received on a socket and not read, or -1 (FIONREAD).
int cll_unread(int descriptor);

/// How often other threads have taken the processor from this one (`ru_nivcsw`), or -1 where the
/// system does not tell.
long cll_preemptions(void);

#if defined(__linux__)
// What the Swift overlay shows differently from one C library to another, or not at all.
enum {
  cll_epoll_cloexec = EPOLL_CLOEXEC,
  cll_eventfd_flags = EFD_CLOEXEC | EFD_NONBLOCK,
};

/// accept4(2), for a descriptor that closes on exec and does not block.
int cll_accept(
  int descriptor, struct sockaddr *_Nullable address, socklen_t *_Nullable length
);

/// Bytes that were written to a TCP socket and not acknowledged, or -1.
int cll_unacknowledged(int descriptor);

/// A timer of the monotonic clock that closes on exec and does not block (timerfd_create(2)), or -1.
int cll_timer(void);

/// Makes a timer expire once, at an instant of its clock in nanoseconds, which is not 0.
int cll_timer_set(int descriptor, long long nanoseconds);

/// epoll_event is packed on some processors and a union holds its key: these hide both.
static inline void cll_epoll_event_set(
  struct epoll_event *_Nonnull event, unsigned int events, unsigned long long key
) {
  event->events = events;
  event->data.u64 = key;
}

static inline unsigned long long cll_epoll_event_key(const struct epoll_event *_Nonnull event) {
  return event->data.u64;
}
#endif

/// Gives memory back to the system that was freed and that the C library keeps: glibc keeps up to
/// 64 MiB after large blocks were freed. Takes milliseconds. Does nothing where there is no such call.
void cll_return_free_memory(void);

#endif
