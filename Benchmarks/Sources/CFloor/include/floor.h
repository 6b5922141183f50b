// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// What the load generator is to do.
typedef struct {
  uint16_t port;
  int connections;
  int in_flight;
  int body;
  /// In seconds; requests before the end of the warm-up are not counted.
  double warm_up;
  double seconds;
  int stride;
  /// Whether it asks the kernel again and again instead of sleeping.
  bool spins;
} floor_load;

/// What came of it.
typedef struct {
  uint64_t requests;
  /// All that were ever answered.
  uint64_t all_requests;
} floor_outcome;

/// Hears of the load while it runs.
typedef struct {
  void *context;
  /// `count` requests took `nanoseconds` each; also during the warm-up.
  void (*took)(void *context, uint64_t nanoseconds, uint64_t count);
  /// The counted time begins, and ends.
  void (*began)(void *context);
  void (*ended)(void *context);
} floor_listener;

/// Listens on a free port of the loopback address and returns the listening socket.
int floor_listen(uint16_t *port);

/// Echoes frames until the process ends.
void floor_serve(int listener, bool spins);

/// The requests that `floor_serve` was given so far.
uint64_t floor_requests(void);

/// Keeps requests in flight and waits for their answers, each of which has to be what was sent: the
/// number of the caller in its first 8 bytes, then a pattern. One in `stride` is looked at to the
/// last byte.
floor_outcome floor_generate(floor_load load, floor_listener listener);

/// What a stream carries.
typedef enum {
  /// Items from the server.
  floor_down,
  /// Items to the server.
  floor_up,
  /// Items from the server, and beside them one request of 64 bytes after the other.
  floor_beside,
} floor_direction;

/// What the client of a stream is to do.
typedef struct {
  uint16_t port;
  floor_direction direction;
  /// The bytes of each item.
  int body;
  /// The most bytes that may be under way, headers included. Room for two items at least.
  uint32_t window;
  /// In seconds; items before the end of the warm-up are not counted.
  double warm_up;
  double seconds;
  int stride;
} floor_stream_load;

/// Carries items over one connection, each with its number in the first 8 bytes, then a pattern. One
/// in `stride` is looked at to the last byte. Counts items; what it reports by `took` are the
/// requests beside them.
floor_outcome floor_stream(floor_stream_load load, floor_listener listener);

/// The checksum of a frame, by the same code as the floor's.
uint32_t floor_checksum(const uint8_t *frame, size_t length);
