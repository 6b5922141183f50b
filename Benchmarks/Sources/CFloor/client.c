// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "floor.h"

enum { first_serial = 50, most_events = 256 };

static const uint32_t request_type = 1, answer_type = 0x01u << 24 | 200;

typedef struct {
  connection connection;
  /// The number of its first caller among those of all lanes.
  uint64_t first;
  /// When each request in flight was sent, by its serial.
  uint64_t *sent;
} lane;

/// What all lanes have in common.
typedef struct {
  floor_load load;
  floor_listener listener;
  int poller;
  /// The body of every request, but for the number that it begins with.
  uint8_t *body;
  size_t number_size;
  bool is_ending;
  uint64_t in_flight, answered;
} generator;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int connect_to(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons(port)};
  if (connect(fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
  return fd;
}

static void append(generator *generator, lane *lane, uint32_t index) {
  uint64_t number = lane->first + index;
  memcpy(generator->body, &number, generator->number_size);
  connection_append(&lane->connection, request_type, first_serial + index, generator->body,
                    (uint32_t)generator->load.body);
}

/// The answer has to be the body that was sent.
static void check(generator *generator, const lane *lane, const frame *frame, bool whole) {
  uint64_t number = lane->first + (frame->serial - first_serial);
  memcpy(generator->body, &number, generator->number_size);
  size_t count = whole ? (size_t)generator->load.body : generator->number_size;
  if (frame->type == answer_type && frame->serial >= first_serial &&
      frame->serial < first_serial + (uint32_t)generator->load.in_flight &&
      frame->length == (uint32_t)generator->load.body &&
      memcmp(frame->body, generator->body, count) == 0)
    return;
  fputs("an answer is not what was sent\n", stderr);
  exit(1);
}

/// Takes the answers that have come and replaces each by a new request. Time is read once for all
/// of them: they came together and leave together.
static void turn(generator *generator, lane *lane) {
  if (!connection_read(&lane->connection, false)) return;
  const floor_listener *listener = &generator->listener;
  uint64_t time = now(), same = 0, same_since = 0;
  frame frame;
  while (connection_next(&lane->connection, &frame)) {
    check(generator, lane, &frame, generator->answered % (uint64_t)generator->load.stride == 0);
    uint32_t index = frame.serial - first_serial;
    uint64_t *sent = &lane->sent[index];
    if (same > 0 && *sent != same_since) {
      listener->took(listener->context, time - same_since, same);
      same = 0;
    }
    same_since = *sent;
    same++;
    generator->answered++;
    *sent = time;
    if (generator->is_ending) {
      generator->in_flight--;
    } else {
      append(generator, lane, index);
    }
  }
  if (same > 0) listener->took(listener->context, time - same_since, same);
  connection_write(&lane->connection, generator->poller);
}

static void wait_and_turn(generator *generator, lane *lanes) {
  struct epoll_event events[most_events];
  int count = epoll_wait(generator->poller, events, most_events, generator->load.spins ? 0 : -1);
  for (int index = 0; index < count; index++) {
    lane *lane = &lanes[events[index].data.u32];
    if (events[index].events & EPOLLOUT) connection_write(&lane->connection, generator->poller);
    if (events[index].events & (EPOLLIN | EPOLLHUP)) turn(generator, lane);
  }
}

static lane *open_lanes(generator *generator) {
  const floor_load *load = &generator->load;
  lane *lanes = calloc((size_t)load->connections, sizeof *lanes);
  if (!lanes) fail("calloc");
  for (int index = 0; index < load->connections; index++) {
    lane *lane = &lanes[index];
    lane->first = (uint64_t)index * (uint64_t)load->in_flight;
    connection_open(&lane->connection, connect_to(load->port), index, generator->poller);
    lane->sent = calloc((size_t)load->in_flight, sizeof *lane->sent);
    if (!lane->sent) fail("calloc");
    for (int request = 0; request < load->in_flight; request++) {
      lane->sent[request] = now();
      append(generator, lane, (uint32_t)request);
      generator->in_flight++;
    }
    connection_write(&lane->connection, generator->poller);
  }
  return lanes;
}

floor_outcome floor_generate(floor_load load, floor_listener listener) {
  generator generator = {.load = load, .listener = listener};
  generator.poller = epoll_create1(EPOLL_CLOEXEC);
  if (generator.poller < 0) fail("epoll_create1");
  generator.number_size = load.body < 8 ? (size_t)load.body : 8;
  generator.body = malloc((size_t)load.body + 1);
  if (!generator.body) fail("malloc");
  for (int index = 0; index < load.body; index++) generator.body[index] = (uint8_t)(index * 31);
  uint64_t counted_from = now() + (uint64_t)(load.warm_up * 1e9);
  lane *lanes = open_lanes(&generator);

  while (now() < counted_from || generator.answered < generator.in_flight) wait_and_turn(&generator, lanes);
  listener.began(listener.context);
  floor_outcome outcome = {0};
  uint64_t answered = generator.answered;
  uint64_t end = now() + (uint64_t)(load.seconds * 1e9);
  while (now() < end || generator.answered == answered) wait_and_turn(&generator, lanes);
  listener.ended(listener.context);
  outcome.requests = generator.answered - answered;

  generator.is_ending = true;
  while (generator.in_flight > 0) wait_and_turn(&generator, lanes);
  outcome.all_requests = generator.answered;
  for (int index = 0; index < load.connections; index++) {
    connection_close(&lanes[index].connection);
    free(lanes[index].sent);
  }
  free(lanes);
  free(generator.body);
  close(generator.poller);
  return outcome;
}
