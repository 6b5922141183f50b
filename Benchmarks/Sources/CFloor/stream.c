// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "floor.h"
#include "stream.h"

static const uint32_t item_type = 0x02u << 24, end_type = 0x03u << 24;
/// The serials of a stream, of the requests beside it, and of the one that ends it.
static const uint32_t stream_serial = 50, beside_serial = 51, stop_serial = 52;

enum { most_small = 1 << 16, most_items = 1 << 16 };

/// Frames that one side writes in a row: at most `most_items` bytes of them, but one at least.
typedef struct {
  /// Copies of an item, but for the number in its first 8 bytes and the checksum.
  uint8_t *frames;
  size_t frame_size, copies;
  /// Those from `begin` to `ready` are to be written.
  size_t begin, ready;
  /// The checksum that an item would have with the number 0.
  uint32_t checksum;
  uint64_t next;
  int64_t credit;
  bool ends;
} source;

/// Items that arrive.
typedef struct {
  /// One of them, to compare with.
  uint8_t *item;
  size_t frame_size, window, taken;
  uint64_t next;
} sink;

/// One side of a connection that carries a stream.
typedef struct {
  int socket;
  buffer *in;
  /// Requests, answers, credit and ends, which go out before further items.
  uint8_t small[most_small];
  size_t small_begin, small_end;
  /// Whether they go before the items that are to be written, of which no byte has gone out.
  bool is_small_first;
  source source;
  sink sink;
  int stride;
  /// Whether the response has come, or been sent.
  bool is_over;
  /// When the request beside the stream was sent; 0 if there is none.
  uint64_t asked;
  uint64_t time, besides;
  /// Where the server counts.
  _Atomic uint64_t *total;
  const floor_listener *listener;
} stream;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void wrong(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static uint8_t *make_item(size_t body) {
  uint8_t *item = allocate(1, header_length + body);
  store(item, item_type);
  store(item + 4, stream_serial);
  store(item + 8, (uint32_t)body);
  for (size_t index = 8; index < body; index++) item[header_length + index] = (uint8_t)(index * 31);
  return item;
}

static void open_source(source *source, size_t body, uint32_t credit) {
  uint8_t *item = make_item(body);
  source->frame_size = header_length + body;
  source->copies = most_items / source->frame_size;
  if (source->copies == 0) source->copies = 1;
  source->frames = allocate(source->copies, source->frame_size);
  for (size_t copy = 0; copy < source->copies; copy++)
    memcpy(source->frames + copy * source->frame_size, item, source->frame_size);
  source->checksum = floor_checksum(item, body);
  source->credit = credit;
  free(item);
}

static void open_sink(sink *sink, size_t body, size_t window) {
  sink->item = make_item(body);
  sink->frame_size = header_length + body;
  sink->window = window;
}

/// Appends a frame that is not an item.
static void append(stream *stream, uint32_t type, uint32_t serial, const void *body, size_t size) {
  if (stream->small_end + header_length + size > most_small) wrong("too many small frames");
  uint8_t *frame = stream->small + stream->small_end;
  store(frame, type);
  store(frame + 4, serial);
  store(frame + 8, (uint32_t)size);
  if (size > 0) memcpy(frame + header_length, body, size);
  store(frame + 12, floor_checksum(frame, size));
  stream->small_end += header_length + size;
}

static void append_number(stream *stream, uint32_t type, uint32_t number) {
  uint8_t body[4];
  store(body, number);
  append(stream, type, stream_serial, body, sizeof body);
}

/// Gives a copy of the item its number. The checksum grows by what the number adds to it.
static void number_item(const source *source, uint8_t *frame) {
  uint64_t number = source->next;
  uint32_t after = (uint32_t)((source->frame_size - header_length) % MODULUS);
  uint32_t a = source->checksum & 0xffff, b = source->checksum >> 16;
  for (uint32_t index = 0; index < 8; index++) {
    uint32_t byte = number >> (index * 8) & 0xff;
    a += byte;
    b += byte * (after + MODULUS - index);
  }
  memcpy(frame + header_length, &number, 8);
  store(frame + 12, b % MODULUS << 16 | a % MODULUS);
}

static void fill(source *source) {
  source->begin = source->ready = 0;
  if (source->ends || !source->frames) return;
  for (size_t copy = 0; copy < source->copies; copy++) {
    if (source->credit < (int64_t)source->frame_size) return;
    number_item(source, source->frames + source->ready);
    source->ready += source->frame_size;
    source->credit -= (int64_t)source->frame_size;
    source->next++;
  }
}

/// Writes what there is, small frames between items first. False when the kernel takes no more.
static bool write_all(stream *stream) {
  source *source = &stream->source;
  for (;;) {
    if (source->begin == source->ready) {
      fill(source);
      stream->is_small_first = true;
    }
    struct iovec parts[2];
    int count = 0;
    size_t small = stream->is_small_first ? stream->small_end - stream->small_begin : 0;
    if (small > 0)
      parts[count++] = (struct iovec){stream->small + stream->small_begin, small};
    if (source->ready > source->begin)
      parts[count++] =
          (struct iovec){source->frames + source->begin, source->ready - source->begin};
    if (count == 0) return true;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    ssize_t written = sendmsg(stream->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written < 0 && errno == EAGAIN) return false;
    if (written < 0) fail("sendmsg");
    size_t of_small = (size_t)written < small ? (size_t)written : small;
    stream->small_begin += of_small;
    if (stream->small_begin == stream->small_end) stream->small_begin = stream->small_end = 0;
    source->begin += (size_t)written - of_small;
    if (source->begin > 0) stream->is_small_first = false;
  }
}

/// Ends the stream on the server.
static void respond(stream *stream) {
  uint64_t count = stream->source.next + stream->sink.next + stream->besides;
  atomic_fetch_add_explicit(stream->total, count, memory_order_relaxed);
  append(stream, answer_type, stream_serial, NULL, 0);
  stream->is_over = true;
}

static void take_item(stream *stream, const uint8_t *frame, size_t size) {
  sink *sink = &stream->sink;
  bool whole = sink->next % (uint64_t)stream->stride == 0;
  size_t compared = whole && size > header_length + 8 ? size - header_length - 8 : 0;
  if (size != sink->frame_size || memcmp(frame + header_length, &sink->next, 8) != 0 ||
      memcmp(frame + header_length + 8, sink->item + header_length + 8, compared) != 0)
    wrong("an item is not what was sent");
  sink->next++;
  sink->taken += size;
  if (sink->taken < sink->window / 2) return;
  append_number(stream, items_credit, (uint32_t)sink->taken);
  sink->taken = 0;
}

/// Sends the next request beside the stream.
static void ask(stream *stream) {
  uint8_t body[64];
  for (size_t index = 0; index < sizeof body; index++) body[index] = (uint8_t)(index * 31);
  memcpy(body, &stream->besides, sizeof stream->besides);
  append(stream, request_type, beside_serial, body, sizeof body);
  stream->asked = now();
}

static void take_answer(stream *stream, uint32_t serial, const uint8_t *body, size_t size) {
  if (serial == stream_serial) stream->is_over = true;
  if (serial != beside_serial) return;
  if (size != 64 || memcmp(body, &stream->besides, 8) != 0) wrong("an answer is not what was sent");
  stream->besides++;
  stream->listener->took(stream->listener->context, stream->time - stream->asked, 1);
  stream->asked = 0;
}

static void take(stream *stream, const uint8_t *frame, size_t size) {
  uint32_t type = load(frame), serial = load(frame + 4);
  const uint8_t *body = frame + header_length;
  if (type == item_type) {
    take_item(stream, frame, size);
  } else if (type == items_credit) {
    stream->source.credit += load(body);
  } else if (type == answer_type) {
    take_answer(stream, serial, body, size - header_length);
  } else if (type == request_type) {
    append(stream, answer_type, serial, body, size - header_length);
    stream->besides++;
  } else if (type == items_stop) {
    append(stream, answer_type, serial, NULL, 0);
    stream->source.ends = true;
  } else if (type == end_type) {
    respond(stream);
  } else {
    wrong("this is no frame of a stream");
  }
}

static void take_frames(stream *stream) {
  buffer *in = stream->in;
  size_t whole;
  while ((whole = verified_frames(in->bytes + in->ready, in->end - in->ready, 32))) {
    for (size_t end = in->ready + whole; in->ready < end;) {
      uint8_t *frame = in->bytes + in->ready;
      size_t size = header_length + load(frame + 8);
      take(stream, frame, size);
      in->ready += size;
    }
    write_all(stream);
  }
  buffer_keep_rest(in);
}

/// Waits, reads once, and writes.
static void turn(stream *stream) {
  if (write_all(stream)) {
    // Nothing more can be written before something has come.
    ssize_t count = buffer_read(stream->in, stream->socket, 0);
    if (count == 0) fail("recv");
  } else {
    struct pollfd both = {.fd = stream->socket, .events = POLLIN | POLLOUT};
    if (poll(&both, 1, -1) < 0) fail("poll");
    if (both.revents & ~POLLOUT && buffer_read(stream->in, stream->socket, MSG_DONTWAIT) == 0)
      fail("recv");
  }
  stream->time = now();
  take_frames(stream);
}

/// Writes all that is prepared, without reading.
static void flush(stream *stream) {
  while (!write_all(stream)) {
    struct pollfd out = {.fd = stream->socket, .events = POLLOUT};
    if (poll(&out, 1, -1) < 0) fail("poll");
  }
}

static void close_stream(stream *stream) {
  free(stream->source.frames);
  free(stream->sink.item);
  free(stream);
}

void stream_serve(int socket, buffer *in, _Atomic uint64_t *total) {
  stream *stream = allocate(1, sizeof *stream);
  stream->socket = socket;
  stream->in = in;
  stream->stride = 8;
  stream->total = total;
  const uint8_t *frame = in->bytes + in->ready;
  uint32_t type = load(frame);
  uint32_t credit = load(frame + header_length), body = load(frame + header_length + 4);
  in->ready += header_length + load(frame + 8);
  if (type == items_wanted) {
    open_source(&stream->source, body, credit);
  } else {
    open_sink(&stream->sink, body, credit);
  }
  take_frames(stream);
  while (!stream->is_over && !stream->source.ends) turn(stream);
  flush(stream);
  if (!stream->is_over) {
    respond(stream);
    flush(stream);
  }
  close_stream(stream);
}

/// The items that were sent or received.
static uint64_t counted(const stream *stream) { return stream->source.next + stream->sink.next; }

static void turn_and_ask(stream *stream, bool asks) {
  if (asks && stream->asked == 0) ask(stream);
  turn(stream);
}

floor_outcome floor_stream(floor_stream_load load, floor_listener listener) {
  stream *stream = allocate(1, sizeof *stream);
  stream->socket = floor_connect(load.port);
  prepare(stream->socket);
  stream->in = allocate(1, sizeof *stream->in + header_length + most_items + most_read);
  stream->stride = load.stride;
  stream->listener = &listener;
  bool is_up = load.direction == floor_up, asks = load.direction == floor_beside;
  uint8_t request[8];
  store(request, load.window);
  store(request + 4, (uint32_t)load.body);
  append(stream, is_up ? items_follow : items_wanted, stream_serial, request, sizeof request);
  if (is_up) {
    open_source(&stream->source, (size_t)load.body, load.window);
  } else {
    open_sink(&stream->sink, (size_t)load.body, load.window);
  }
  uint64_t counted_from = now() + (uint64_t)(load.warm_up * 1e9);
  while (stream->time < counted_from || counted(stream) == 0) turn_and_ask(stream, asks);
  listener.began(listener.context);
  uint64_t first = counted(stream), besides = stream->besides;
  uint64_t end = now() + (uint64_t)(load.seconds * 1e9);
  while (stream->time < end || counted(stream) == first || (asks && stream->besides == besides))
    turn_and_ask(stream, asks);
  listener.ended(listener.context);
  floor_outcome outcome = {.requests = counted(stream) - first};

  while (stream->asked > 0 || stream->source.begin < stream->source.ready) turn(stream);
  if (is_up) {
    stream->source.ends = true;
    append(stream, end_type, stream_serial, NULL, 0);
  } else {
    append(stream, items_stop, stop_serial, NULL, 0);
  }
  while (!stream->is_over) turn(stream);
  outcome.all_requests = counted(stream) + stream->besides;
  close(stream->socket);
  free(stream->in);
  close_stream(stream);
  return outcome;
}
