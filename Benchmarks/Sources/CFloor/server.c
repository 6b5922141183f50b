// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checksum.h"
#include "connection.h"
#include "floor.h"
#include "stream.h"

enum { most_connections = 4096, most_events = 256 };

typedef struct {
  /// -1 where there is none.
  int socket;
  /// Those of recv(2) and send(2).
  int flags;
  /// Whether the client writes no more.
  bool is_half_closed;
  /// NULL while it would be empty.
  buffer *buffer;
} connection;

int floor_listen(uint16_t *port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("socket");
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = 0};
  if (bind(listener, (struct sockaddr *)&address, sizeof address)) fail("bind");
  if (listen(listener, most_connections)) fail("listen");
  socklen_t length = sizeof address;
  if (getsockname(listener, (struct sockaddr *)&address, &length)) fail("getsockname");
  *port = ntohs(address.sin_port);
  return listener;
}

static _Atomic uint64_t requests;

uint64_t floor_requests(void) { return atomic_load_explicit(&requests, memory_order_relaxed); }

/// Turns whole requests into answers, in place. Two bytes of the type change: the first, from 0 to
/// 1, and the fourth, from 1 to 200. The first sum of the checksum grows by these differences, the
/// second by each of them times the bytes from there to the end.
static void answer(uint8_t *bytes, size_t count) {
  uint64_t answered = 0;
  for (uint8_t *end = bytes + count; bytes < end; answered++) {
    if (load(bytes) != request_type) {
      fputs("this is not a request\n", stderr);
      exit(1);
    }
    uint32_t length = load(bytes + 8), checksum = load(bytes + 12);
    uint32_t summed = (header_summed + length) % MODULUS;
    uint32_t a = (checksum & 0xffff) + 1 + 199;
    uint32_t b = (checksum >> 16) + summed + 199 * (summed + MODULUS - 3);
    store(bytes, answer_type);
    store(bytes + 12, b % MODULUS << 16 | a % MODULUS);
    bytes += header_length + length;
  }
  atomic_fetch_add_explicit(&requests, answered, memory_order_relaxed);
}

/// Answers what has come, until there is nothing more to read or the kernel takes no more. An empty
/// buffer comes from the pool and goes back to it.
static void serve(connection *connection, buffer **pool) {
  buffer *buffer = connection->buffer;
  if (!buffer && *pool) {
    buffer = *pool;
    *pool = buffer->next;
  }
  if (!buffer) buffer = allocate(1, sizeof *buffer + header_length + most_body + most_read);
  connection->buffer = buffer;
  size_t most = SIZE_MAX;
  for (bool is_last = false;;) {
    if (!buffer_write(buffer, connection->socket, connection->flags)) return;
    uint8_t *bytes = buffer->bytes + buffer->ready;
    size_t whole = verified_frames(bytes, buffer->end - buffer->ready, most);
    if (whole > 0 && (load(bytes) == items_wanted || load(bytes) == items_follow)) {
      stream_serve(connection->socket, buffer, &requests);
      continue;
    }
    if (whole > 0 && load(bytes) == items_credit) {
      // The last credit of a stream that has ended.
      buffer->begin = buffer->ready += header_length + load(bytes + 8);
      continue;
    }
    if (whole > 0) {
      answer(bytes, whole);
      buffer->ready += whole;
      continue;
    }
    buffer_keep_rest(buffer);
    if (is_last) break;
    ssize_t count = buffer_read(buffer, connection->socket, connection->flags);
    if (count < 0) break;
    if (count == 0) {
      close(connection->socket);
      connection->socket = -1;
      buffer->end = 0;
      break;
    }
    is_last = count < most_read && !connection->is_half_closed;
    most = most_at_once(connection->socket);
  }
  if (buffer->end > 0) return;
  buffer->next = *pool;
  *pool = buffer;
  connection->buffer = NULL;
}

/// Serves all connections that it accepts.
static void *serve_many(void *context) {
  static connection connections[most_connections];
  for (int index = 0; index < most_connections; index++) connections[index].socket = -1;
  int listener = *(int *)context;
  int poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) fail("epoll_create1");
  const uint32_t is_listener = UINT32_MAX;
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = is_listener};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event)) fail("epoll_ctl");
  buffer *pool = NULL;
  uint32_t next = 0;
  for (;;) {
    struct epoll_event events[most_events];
    int count = epoll_wait(poller, events, most_events, -1);
    for (int index = 0; index < count; index++) {
      if (events[index].data.u32 == is_listener) {
        int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) continue;
        while (connections[next].socket >= 0) next = (next + 1) % most_connections;
        connections[next] = (connection){.socket = socket, .flags = MSG_DONTWAIT};
        prepare(socket);
        watch(socket, next, poller);
        continue;
      }
      connection *connection = &connections[events[index].data.u32];
      if (connection->socket < 0) continue;
      connection->is_half_closed = events[index].events & EPOLLRDHUP;
      serve(connection, &pool);
    }
  }
}

void floor_serve(int listener, bool spins) {
  // The first connection has this thread to itself, which waits in recv(2): that is a call less
  // than to wait in epoll_wait(2) and then to read.
  connection first = {.flags = spins ? MSG_DONTWAIT : 0};
  first.socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (first.socket < 0) fail("accept4");
  prepare(first.socket);
  pthread_t others;
  if (pthread_create(&others, NULL, serve_many, &listener)) fail("pthread_create");
  buffer *pool = NULL;
  while (first.socket >= 0) serve(&first, &pool);
  pthread_join(others, NULL);
}
