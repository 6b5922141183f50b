// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CLongLinkAdler32.h"

// What one read takes at most.
static const size_t read_size = 1 << 18;

void fail(const char *call) {
  perror(call);
  exit(1);
}

/// Makes room for `count` bytes behind the others and returns where they go.
static uint8_t *reserve(queue *queue, size_t count) {
  if (queue->capacity - queue->end >= count) return queue->bytes + queue->end;
  size_t held = queue->end - queue->begin;
  if (queue->capacity - held >= count && queue->begin >= queue->capacity / 2) {
    memmove(queue->bytes, queue->bytes + queue->begin, held);
  } else {
    size_t capacity = queue->capacity ? queue->capacity : 4096;
    while (capacity - held < count) capacity *= 2;
    uint8_t *bytes = malloc(capacity);
    if (!bytes) fail("malloc");
    if (held) memcpy(bytes, queue->bytes + queue->begin, held);
    free(queue->bytes);
    queue->bytes = bytes;
    queue->capacity = capacity;
  }
  queue->begin = 0;
  queue->end = held;
  return queue->bytes + held;
}

static void take(queue *queue, size_t count) {
  queue->begin += count;
  if (queue->begin == queue->end) queue->begin = queue->end = 0;
}

void connection_open(connection *connection, int socket, int index, int poller) {
  memset(connection, 0, sizeof *connection);
  connection->socket = socket;
  connection->index = index;
  int on = 1;
  if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)) fail("setsockopt");
  if (fcntl(socket, F_SETFL, O_NONBLOCK)) fail("fcntl");
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)index};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event)) fail("epoll_ctl");
}

void connection_close(connection *connection) {
  close(connection->socket);
  free(connection->in.bytes);
  free(connection->out.bytes);
  memset(connection, 0, sizeof *connection);
  connection->socket = -1;
}

bool connection_read(connection *connection, bool may_end) {
  uint8_t *room = reserve(&connection->in, read_size);
  ssize_t count = read(connection->socket, room, read_size);
  if (count > 0) {
    connection->in.end += (size_t)count;
    return true;
  }
  if (count < 0 && errno == EAGAIN) return false;
  if (!may_end) fail("read");
  connection_close(connection);
  return false;
}

void connection_write(connection *connection, int poller) {
  queue *out = &connection->out;
  while (out->end > out->begin) {
    ssize_t count =
        send(connection->socket, out->bytes + out->begin, out->end - out->begin, MSG_NOSIGNAL);
      if (count < 0 && errno == EAGAIN) break;
    if (count < 0) fail("send");
    take(out, (size_t)count);
  }
  bool waits = out->end > out->begin;
  if (waits == connection->waits_to_write) return;
  connection->waits_to_write = waits;
  struct epoll_event event = {
      .events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.u32 = (uint32_t)connection->index};
  if (epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event)) fail("epoll_ctl");
}

static uint32_t load(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return ntohl(value);
}

static void store(uint8_t *bytes, uint32_t value) {
  value = htonl(value);
  memcpy(bytes, &value, sizeof value);
}

static uint32_t checksum(const uint8_t *bytes, uint32_t length) {
  return cll_adler32(cll_adler32(1, bytes, 12), bytes + header_length, length);
}

bool connection_next(connection *connection, frame *frame) {
  queue *in = &connection->in;
  size_t held = in->end - in->begin;
  if (held < header_length) return false;
  const uint8_t *bytes = in->bytes + in->begin;
  frame->type = load(bytes);
  frame->serial = load(bytes + 4);
  frame->length = load(bytes + 8);
  frame->body = bytes + header_length;
  if (held - header_length < frame->length) return false;
  if (checksum(bytes, frame->length) != load(bytes + 12)) {
    fputs("a checksum does not hold\n", stderr);
    exit(1);
  }
  // The bytes stay where they are until the next read.
  take(in, header_length + frame->length);
  return true;
}

void connection_append(connection *connection, uint32_t type, uint32_t serial,
                       const uint8_t *body, uint32_t length) {
  uint8_t *bytes = reserve(&connection->out, header_length + length);
  store(bytes, type);
  store(bytes + 4, serial);
  store(bytes + 8, length);
  memcpy(bytes + header_length, body, length);
  store(bytes + 12, checksum(bytes, length));
  connection->out.end += header_length + length;
}
