// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINK_SYSTEM_H
#define CLONGLINK_SYSTEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "CLongLinkSystemRuntime.h"

#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
// Loads from a fixed offset to the thread register, instead of calling a function.
#define CLL_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define CLL_FAST_TLS
#endif

/// The event loop that the calling thread currently runs, or NULL.
extern _Thread_local void *_Nullable cll_current_loop_storage CLL_FAST_TLS;

static inline void *_Nullable cll_current_loop(void) {
  return cll_current_loop_storage;
}

static inline void cll_set_current_loop(void *_Nullable loop) {
  cll_current_loop_storage = loop;
}

/// Notifies the thread sanitizer, if the program is built with it, that a lock was acquired.
void cll_sanitizer_locked(void *_Nonnull lock);

/// Notifies the thread sanitizer, if the program is built with it, that a lock will be released.
void cll_sanitizer_unlocks(void *_Nonnull lock);

/// A started thread that can be joined.
typedef struct {
  pthread_t id;
} cll_thread;

/// Starts a thread that does not handle signals of the process. Returns 0 or an errno.
///
/// `thread` is NULL for a detached thread. `name` is truncated to the system's limit.
int cll_thread_start(
  cll_thread *_Nullable thread,
  const char *_Nonnull name,
  size_t stack_size,
  void (*_Nonnull body)(void *_Nonnull),
  void *_Nonnull argument
);

/// Waits until a thread has ended.
void cll_thread_join(cll_thread thread);

/// Puts the name of the calling thread into `buffer`, or an empty string if it has none.
void cll_thread_name(char *_Nonnull buffer, size_t size);

/// Makes the pipe that carries caught signals, once in a process. Returns the end to read from, or -1.
int cll_signals_open(void);

/// Waits for the next caught signal, and returns its number; -1 if the pipe fails.
int cll_signal_next(int descriptor);

/// Catches the next signal of this number, which comes out of the pipe. The one after it has its former
/// effect again. A signal that the process ignores stays ignored: what has started the process, such as
/// `nohup`, wants that. Returns 0 or an errno. Catch no number that is caught already.
int cll_signal_catch(int number);

/// Gives a signal its former effect, unless it has another handler by now.
void cll_signal_restore(int number);

/// The symbol of an errno, such as "ECONNREFUSED", or NULL for one that sockets do not return.
const char *_Nullable cll_errno_name(int code);

/// Puts the system's text for an errno into `buffer`.
void cll_errno_text(int code, char *_Nonnull buffer, size_t size);

/// The number of bytes that were received on a socket and not read, or -1 (FIONREAD).
int cll_unread(int descriptor);

/// The number of involuntary context switches of the calling thread (`ru_nivcsw`), or -1 if the
/// system does not count them.
long cll_preemptions(void);

#if defined(__linux__)
// Constants that Swift imports differently for each C library, or not at all.
enum {
  cll_epoll_cloexec = EPOLL_CLOEXEC,
  cll_eventfd_flags = EFD_CLOEXEC | EFD_NONBLOCK,
};

/// accept4(2), for a close-on-exec, non-blocking descriptor.
int cll_accept(
  int descriptor, struct sockaddr *_Nullable address, socklen_t *_Nullable length
);

/// The number of bytes that were written to a TCP socket and not acknowledged, or -1.
int cll_unacknowledged(int descriptor);

/// The round-trip time of a TCP socket, as the kernel estimates it, in microseconds; or -1.
long cll_round_trip(int descriptor);

/// Makes a close-on-exec, non-blocking timer of the monotonic clock (timerfd_create(2)), or returns -1.
int cll_timer(void);

/// Makes a timer expire once, at an instant of its clock in nanoseconds, which is not 0.
int cll_timer_set(int descriptor, long long nanoseconds);

/// epoll_event is packed on some processors, and its key is in a union: these functions hide both.
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

/// Returns freed memory that the C library keeps to the system: glibc keeps up to 64 MiB after large
/// blocks were freed. Takes milliseconds. Has no effect if the library has no such call.
void cll_return_free_memory(void);

/// Lets the C library reuse blocks of up to 1 MiB instead of mapping each, and keep up to 2 MiB of free
/// memory at the end of each heap instead of 128 KiB. glibc adjusts both when such a block is freed for the
/// first time, unless the process has set them (mallopt(3), M_MMAP_THRESHOLD). Once per process is enough.
void cll_reuse_free_memory(void);

#endif
