// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void fail(const char *call) {
  perror(call);
  exit(1);
}

void *allocate(size_t count, size_t size) {
  void *bytes = calloc(count, size);
  if (!bytes) fail("calloc");
  return bytes;
}

void prepare(int socket) {
  int on = 1;
  if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)) fail("setsockopt");
  // Of large bodies the kernel would hold megabytes, which leave the cache before they are read.
  int most = 3 << 16;
  if (setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &most, sizeof most)) fail("setsockopt");
}

int floor_connect(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons(port)};
  if (connect(fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
  return fd;
}

void watch(int socket, uint32_t index, int poller) {
  struct epoll_event event = {
      .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u32 = index};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event)) fail("epoll_ctl");
}

ssize_t buffer_read(buffer *buffer, int socket, int flags) {
  ssize_t count = recv(socket, buffer->bytes + buffer->end, most_read, flags);
  if (count > 0) buffer->end += (size_t)count;
  // A connection that was reset has ended too.
  return count < 0 && errno != EAGAIN ? 0 : count;
}

bool buffer_write(buffer *buffer, int socket, int flags) {
  while (buffer->begin < buffer->ready) {
    ssize_t count = send(socket, buffer->bytes + buffer->begin, buffer->ready - buffer->begin,
                         flags | MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) return false;
    if (count < 0) fail("send");
    buffer->begin += (size_t)count;
  }
  return true;
}

void buffer_keep_rest(buffer *buffer) {
  size_t rest = buffer->end - buffer->ready;
  if (rest > 0) memmove(buffer->bytes, buffer->bytes + buffer->ready, rest);
  buffer->begin = buffer->ready = 0;
  buffer->end = rest;
}

size_t most_at_once(int socket) {
  static _Thread_local unsigned turns;
  static _Thread_local size_t most;
  if (turns++ % 16 > 0) return most;
  // Over loopback, bytes come in on the CPU that sends them.
  int cpu;
  socklen_t length = sizeof cpu;
  bool is_known = getsockopt(socket, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &length) == 0;
  most = is_known && cpu != sched_getcpu() ? 32 : SIZE_MAX;
  return most;
}
