// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// What one read takes at most. Client and server stay within the nearer caches with it.
enum { most_read = 1 << 18 };

/// The types of the frames.
static const uint32_t request_type = 1, answer_type = 0x01u << 24 | 200;

/// Bytes that were read, or that wait to be written. A connection has one only while it holds any:
/// connections use the same one in turn, which stays in the cache.
typedef struct buffer {
  struct buffer *next;
  /// Bytes before `begin` are written, those before `ready` may be, those before `end` were read.
  size_t begin, ready, end;
  uint8_t bytes[];
} buffer;

/// Sets the options of a connected socket.
void prepare(int socket);
/// A socket that is connected to a port of the loopback address.
int floor_connect(uint16_t port);
/// Has the poller tell of each change of a socket.
void watch(int socket, uint32_t index, int poller);
/// Reads once, behind what is there: how many bytes, 0 at the stream's end, -1 when none are there.
/// The flags are those of recv(2).
ssize_t buffer_read(buffer *buffer, int socket, int flags);
/// Writes what is ready; false when the kernel takes no more now. The flags are those of send(2).
bool buffer_write(buffer *buffer, int socket, int flags);
/// Moves what was read and is not ready to the front, over the rest.
void buffer_keep_rest(buffer *buffer);
/// How many frames are best written at once: all, or few where the peer runs on another CPU and
/// works on them meanwhile. Asks the kernel now and then.
size_t most_at_once(int socket);
/// `calloc`, which has to succeed.
void *allocate(size_t count, size_t size);
/// Ends the process and names the call that failed.
void fail(const char *call);
