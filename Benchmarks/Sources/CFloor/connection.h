// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { header_length = 16 };

/// Bytes that were read and not yet taken, or that wait to be written.
typedef struct {
  uint8_t *bytes;
  size_t begin, end, capacity;
} queue;

typedef struct {
  int socket;
  int index;
  bool waits_to_write;
  queue in, out;
} connection;

/// A frame in the native layout.
typedef struct {
  uint32_t type, serial, length;
  const uint8_t *body;
} frame;

/// Makes an accepted or connected socket ready for use and has the poller watch it.
void connection_open(connection *connection, int socket, int index, int poller);
/// Reads once; false when there was nothing. Ends the process where the stream has ended, unless
/// `may_end`.
bool connection_read(connection *connection, bool may_end);
/// Writes what waits, as far as the kernel takes it.
void connection_write(connection *connection, int poller);
/// Takes the next whole frame, whose checksum must hold; false when there is none.
bool connection_next(connection *connection, frame *frame);
/// Appends a frame.
void connection_append(connection *connection, uint32_t type, uint32_t serial,
                       const uint8_t *body, uint32_t length);
/// Closes a connection and gives its memory back.
void connection_close(connection *connection);

/// Ends the process and names the call that failed.
void fail(const char *call);
