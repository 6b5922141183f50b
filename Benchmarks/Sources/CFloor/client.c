// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "connection.h"
#include "floor.h"

static const uint32_t first_serial = 50, last_serial = 0x7fffffff;

enum { most_events = 256 };

/// One of those that keep a request in flight each.
typedef struct {
  /// The serial of its request in flight.
  uint32_t serial;
  /// The checksum that its request would have with the serial 0.
  uint32_t checksum;
  /// When its request was sent.
  uint64_t sent;
} caller;

typedef struct {
  int socket;
  /// The number of its first caller among those of all lanes.
  uint64_t first;
  caller *callers;
  /// The callers whose requests are to be written: a ring, with `count` of them from `next` on.
  uint32_t *waiting;
  uint32_t next, count;
  /// NULL while they would be empty.
  buffer *in, *out;
} lane;

/// What all lanes have in common.
typedef struct {
  floor_load load;
  floor_listener listener;
  int poller;
  /// From one serial of a caller to its next: a power of two, and not less than the requests in
  /// flight on a lane.
  uint32_t stride;
  size_t frame_size, number_size;
  /// The request that all others are copies of, but for serial, checksum and number.
  uint8_t *request;
  /// Pools of empty buffers. Those to write from hold such copies.
  buffer *in, *out;
  /// How many requests fit into one to write from.
  size_t window;
  bool is_ending;
  /// When something was last read.
  uint64_t time;
  uint64_t in_flight, answered;
} generator;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static buffer *make_out(const generator *generator) {
  size_t size = generator->frame_size;
  buffer *out = allocate(1, sizeof *out + generator->window * size);
  for (size_t index = 0; index < generator->window; index++)
    memcpy(out->bytes + index * size, generator->request, size);
  return out;
}

/// Makes a copy of the request a caller's. The checksum grows by what the serial adds to it.
static void address(const generator *generator, const lane *lane, uint32_t index, uint8_t *bytes) {
  const caller *caller = &lane->callers[index];
  uint64_t number = lane->first + index;
  uint32_t serial = caller->serial;
  uint32_t first = serial >> 24, second = serial >> 16 & 0xff, third = serial >> 8 & 0xff;
  uint32_t plain = first + second + third + (serial & 0xff);
  // The bytes from the last one of the serial to the end.
  uint32_t summed = (header_summed - 7 + (uint32_t)generator->load.body) % MODULUS;
  uint32_t a = (caller->checksum & 0xffff) + plain;
  uint32_t b = (caller->checksum >> 16) + plain * summed + 3 * first + 2 * second + third;
  store(bytes + 4, serial);
  store(bytes + 12, b % MODULUS << 16 | a % MODULUS);
  if (generator->number_size == 8) {
    memcpy(bytes + header_length, &number, 8);
  } else {
    memcpy(bytes + header_length, &number, generator->number_size);
  }
}

/// Writes the requests of those that wait, as far as the kernel takes them.
static void send_waiting(generator *generator, lane *lane) {
  for (;;) {
    if (!lane->out) {
      if (lane->count == 0) return;
      lane->out = generator->out ? generator->out : make_out(generator);
      generator->out = lane->out->next;
    }
    buffer *out = lane->out;
    if (!buffer_write(out, lane->socket, MSG_DONTWAIT)) return;
    out->begin = out->ready = 0;
    if (lane->count == 0) {
      out->next = generator->out;
      generator->out = out;
      lane->out = NULL;
      return;
    }
    size_t most = generator->window * generator->frame_size;
    for (; lane->count > 0 && out->ready < most; out->ready += generator->frame_size) {
      address(generator, lane, lane->waiting[lane->next], out->bytes + out->ready);
      if (++lane->next == (uint32_t)generator->load.in_flight) lane->next = 0;
      lane->count--;
    }
  }
}

static void submit(const generator *generator, lane *lane, uint32_t index) {
  uint32_t place = lane->next + lane->count++;
  uint32_t size = (uint32_t)generator->load.in_flight;
  lane->waiting[place < size ? place : place - size] = index;
}

static uint64_t load64(const uint8_t *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

/// The caller that the frame answers, whose body has to be the one that was sent.
static uint32_t check(generator *generator, const lane *lane, const uint8_t *bytes) {
  uint32_t serial = load(bytes + 4), index = (serial - first_serial) & (generator->stride - 1);
  bool whole = generator->answered % (uint64_t)generator->load.stride == 0;
  const uint8_t *body = bytes + header_length;
  size_t size = (size_t)generator->load.body;
  uint64_t number = lane->first + index;
  if (load(bytes) == answer_type && load(bytes + 8) == size &&
      index < (uint32_t)generator->load.in_flight && lane->callers[index].serial == serial &&
      (size >= 8 ? load64(body) == number : memcmp(body, &number, size) == 0) &&
      (!whole || size <= 8 ||
       memcmp(body + 8, generator->request + header_length + 8, size - 8) == 0))
    return index;
  fputs("an answer is not what was sent\n", stderr);
  exit(1);
}

/// Takes whole answers and replaces each by a new request. They came together, at `time`.
static void take(generator *generator, lane *lane, const uint8_t *bytes, size_t count) {
  const floor_listener *listener = &generator->listener;
  uint64_t same = 0, same_since = 0;
  for (const uint8_t *end = bytes + count; bytes < end; bytes += generator->frame_size) {
    uint32_t index = check(generator, lane, bytes);
    caller *caller = &lane->callers[index];
    if (same > 0 && caller->sent != same_since) {
      listener->took(listener->context, generator->time - same_since, same);
      same = 0;
    }
    same_since = caller->sent;
    same++;
    generator->answered++;
    if (generator->is_ending) {
      generator->in_flight--;
      continue;
    }
    caller->sent = generator->time;
    bool is_last = caller->serial > last_serial - generator->stride;
    caller->serial = is_last ? first_serial + index : caller->serial + generator->stride;
    submit(generator, lane, index);
  }
  if (same > 0) listener->took(listener->context, generator->time - same_since, same);
}

/// Reads, takes answers and writes requests, until there is no more to read. Where it waits for
/// something to read, it does so once.
static void turn(generator *generator, lane *lane, bool waits) {
  send_waiting(generator, lane);
  buffer *in = lane->in ? lane->in : generator->in;
  if (!in) {
    in = allocate(1, sizeof *in + generator->frame_size + most_read);
  } else if (in == generator->in) {
    generator->in = in->next;
  }
  for (bool is_last = false; !is_last;) {
    ssize_t count = buffer_read(in, lane->socket, waits ? 0 : MSG_DONTWAIT);
    generator->time = now();
    if (count < 0) break;
    if (count == 0) fail("recv");
    is_last = count < most_read || waits;
    size_t whole, most = most_at_once(lane->socket);
    while ((whole = verified_frames(in->bytes + in->ready, in->end - in->ready, most))) {
      take(generator, lane, in->bytes + in->ready, whole);
      in->ready += whole;
      send_waiting(generator, lane);
    }
    buffer_keep_rest(in);
  }
  lane->in = in;
  if (in->end > 0) return;
  in->next = generator->in;
  generator->in = in;
  lane->in = NULL;
}

static void wait_and_turn(generator *generator, lane *lanes) {
  bool spins = generator->load.spins;
  // One connection is waited for in recv(2), which is a call less, unless there is more to write.
  if (generator->load.connections == 1 && !lanes->out) {
    turn(generator, lanes, !spins);
    return;
  }
  struct epoll_event events[most_events];
  int count = epoll_wait(generator->poller, events, most_events, spins ? 0 : -1);
  for (int index = 0; index < count; index++)
    turn(generator, &lanes[events[index].data.u32], false);
}

static lane *open_lanes(generator *generator) {
  const floor_load *load = &generator->load;
  size_t in_flight = (size_t)load->in_flight;
  lane *lanes = allocate((size_t)load->connections, sizeof *lanes);
  for (int index = 0; index < load->connections; index++) {
    lane *lane = &lanes[index];
    lane->first = (uint64_t)index * in_flight;
    lane->socket = floor_connect(load->port);
    prepare(lane->socket);
    watch(lane->socket, (uint32_t)index, generator->poller);
    lane->callers = allocate(in_flight, sizeof *lane->callers);
    lane->waiting = allocate(in_flight, sizeof *lane->waiting);
    for (uint32_t caller = 0; caller < in_flight; caller++) {
      uint64_t number = lane->first + caller;
      memcpy(generator->request + header_length, &number, generator->number_size);
      lane->callers[caller].checksum = floor_checksum(generator->request, (size_t)load->body);
      lane->callers[caller].serial = first_serial + caller;
      lane->callers[caller].sent = now();
      submit(generator, lane, caller);
    }
    generator->in_flight += in_flight;
    send_waiting(generator, lane);
  }
  return lanes;
}

static void close_lanes(generator *generator, lane *lanes) {
  for (int index = 0; index < generator->load.connections; index++) {
    close(lanes[index].socket);
    free(lanes[index].callers);
    free(lanes[index].waiting);
  }
  free(lanes);
}

floor_outcome floor_generate(floor_load load, floor_listener listener) {
  generator generator = {.load = load, .listener = listener, .stride = 1};
  generator.poller = epoll_create1(EPOLL_CLOEXEC);
  if (generator.poller < 0) fail("epoll_create1");
  while (generator.stride < (uint32_t)load.in_flight) generator.stride *= 2;
  generator.frame_size = header_length + (size_t)load.body;
  size_t window = (most_read + generator.frame_size - 1) / generator.frame_size;
  generator.window = window < (size_t)load.in_flight ? window : (size_t)load.in_flight;
  generator.number_size = load.body < 8 ? (size_t)load.body : 8;
  generator.request = allocate(1, generator.frame_size);
  store(generator.request, request_type);
  store(generator.request + 8, (uint32_t)load.body);
  for (int index = 0; index < load.body; index++)
    generator.request[header_length + index] = (uint8_t)(index * 31);
  uint64_t counted_from = now() + (uint64_t)(load.warm_up * 1e9);
  lane *lanes = open_lanes(&generator);

  while (generator.time < counted_from || generator.answered < generator.in_flight)
    wait_and_turn(&generator, lanes);
  listener.began(listener.context);
  floor_outcome outcome = {0};
  uint64_t answered = generator.answered;
  uint64_t end = now() + (uint64_t)(load.seconds * 1e9);
  while (generator.time < end || generator.answered == answered) wait_and_turn(&generator, lanes);
  listener.ended(listener.context);
  outcome.requests = generator.answered - answered;

  generator.is_ending = true;
  while (generator.in_flight > 0) wait_and_turn(&generator, lanes);
  outcome.all_requests = generator.answered;
  close_lanes(&generator, lanes);
  return outcome;
}
