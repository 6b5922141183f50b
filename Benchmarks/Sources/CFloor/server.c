// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "floor.h"

enum { most_connections = 4096, most_events = 256 };

/// From so many bytes on that a client does not take, nothing more is read from it.
static const size_t most_unwritten = 1 << 24;

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

// Written by the one thread that serves.
static _Atomic uint64_t requests;

uint64_t floor_requests(void) { return atomic_load_explicit(&requests, memory_order_relaxed); }

static void echo(connection *connection, int poller) {
  if (connection_read(connection, true)) {
    frame frame;
    uint64_t count = floor_requests();
    while (connection_next(connection, &frame)) {
      count++;
      const uint32_t answered = 0x01u << 24 | 200;
      connection_append(connection, answered, frame.serial, frame.body, frame.length);
    }
    atomic_store_explicit(&requests, count, memory_order_relaxed);
  }
  if (connection->socket >= 0) connection_write(connection, poller);
}

void floor_serve(int listener, bool spins) {
  static connection connections[most_connections];
  for (int index = 0; index < most_connections; index++) connections[index].socket = -1;
  int poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) fail("epoll_create1");
  const uint32_t is_listener = UINT32_MAX;
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = is_listener};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event)) fail("epoll_ctl");
  int next = 0;
  for (;;) {
    struct epoll_event events[most_events];
    int count = epoll_wait(poller, events, most_events, spins ? 0 : -1);
    for (int index = 0; index < count; index++) {
      if (events[index].data.u32 == is_listener) {
        int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) continue;
        while (connections[next].socket >= 0) next = (next + 1) % most_connections;
        connection_open(&connections[next], socket, next, poller);
        continue;
      }
      connection *connection = &connections[events[index].data.u32];
      if (connection->socket < 0) continue;
      if (connection->out.end - connection->out.begin > most_unwritten) {
        connection_write(connection, poller);
      } else {
        echo(connection, poller);
      }
    }
  }
}
