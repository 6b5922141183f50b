// SPDX-License-Identifier: Apache-2.0
// Uploads a file as LongLink does, and as little else as possible: the same frames with their checksums,
// SHA-256 on both sides, appends of 8 MiB that are flushed with a state before they are answered, and the
// same flushes at the beginning and the end.
//
//   upload-floor serve DIRECTORY    prints its port, and takes uploads until it is killed
//   upload-floor send PORT FILE
//
// Each side has one thread and reads or writes 64 KiB at a time. There is no credit: the socket holds the
// client back. Nothing goes on after an error.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "CLongLinkAdler32.h"

enum { piece_size = 1 << 16, append_size = 8 << 20, header_size = 16, state_size = 512 };
enum { request = 0x00, response = 0x01, item = 0x02, end = 0x03, append = 14, finish = 15 };

typedef struct {
  uint8_t header[header_size];
  uint8_t body[piece_size];
} frame;

static void check(int is_right, const char *what) {
  if (is_right) return;
  perror(what);
  exit(1);
}

static void store(uint8_t *bytes, uint32_t value) {
  value = htonl(value);
  memcpy(bytes, &value, sizeof value);
}

static uint32_t load(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return ntohl(value);
}

static void send_frame(int socket, frame *frame, uint8_t kind, uint32_t tag, size_t count) {
  store(frame->header, (uint32_t)kind << 24 | tag);
  store(frame->header + 4, 50);
  store(frame->header + 8, (uint32_t)count);
  store(frame->header + 12, cll_adler32_frame(frame->header, count));
  const uint8_t *bytes = (const uint8_t *)frame;
  for (size_t sent = 0; sent < header_size + count;) {
    ssize_t result = send(socket, bytes + sent, header_size + count - sent, MSG_NOSIGNAL);
    check(result > 0, "send");
    sent += (size_t)result;
  }
}

/// Where bytes arrive, so that one read may bring several frames.
typedef struct {
  int socket;
  size_t begin, end;
  uint8_t bytes[4 * (header_size + piece_size)];
} inbox;

/// Returns the next frame, which stays where it is until the next call; NULL at the end.
static const uint8_t *receive(inbox *in, size_t *count) {
  size_t wanted = header_size;
  for (;;) {
    if (in->end - in->begin >= header_size) {
      *count = load(in->bytes + in->begin + 8);
      check(*count <= piece_size, "a length");
      wanted = header_size + *count;
      if (in->end - in->begin >= wanted) break;
    }
    if (in->begin + wanted > sizeof in->bytes || in->begin == in->end) {
      memmove(in->bytes, in->bytes + in->begin, in->end - in->begin);
      in->end -= in->begin;
      in->begin = 0;
    }
    ssize_t result = recv(in->socket, in->bytes + in->end, sizeof in->bytes - in->end, 0);
    check(result >= 0, "recv");
    if (result == 0) return NULL;
    in->end += (size_t)result;
  }
  const uint8_t *found = in->bytes + in->begin;
  in->begin += wanted;
  check(cll_adler32_frame(found, *count) == load(found + 12), "a checksum");
  return found;
}

// MARK: The server

static char directory[4096];

static int open_in(int flags, const char *format, ...) {
  char name[256], path[sizeof directory + sizeof name + 1];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(name, sizeof name, format, arguments);
  va_end(arguments);
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int file = open(path, flags, 0600);
  check(file >= 0, path);
  return file;
}

static void flush_folder(const char *name) {
  int folder = open_in(O_RDONLY | O_DIRECTORY, "%s", name);
  check(fsync(folder) == 0, "fsync");
  close(folder);
}

static void write_small(size_t size, const char *format, const char *id) {
  static const uint8_t zeros[2 * state_size];
  int file = open_in(O_WRONLY | O_CREAT | O_TRUNC, format, id);
  check(write(file, zeros, size) == (ssize_t)size && fdatasync(file) == 0, "write");
  close(file);
}

static void write_state(int state, uint64_t offset) {
  uint8_t slot[state_size] = {0};
  memcpy(slot, &offset, sizeof offset);
  off_t place = (off_t)(offset / append_size % 2) * state_size;
  check(pwrite(state, slot, sizeof slot, place) == sizeof slot && fdatasync(state) == 0, "state");
}

static void take_upload(int socket, int number) {
  static inbox in;
  in = (inbox){.socket = socket};
  static frame answer;
  char id[32];
  snprintf(id, sizeof id, "upload-%d", number);
  char path[sizeof directory + 64];
  snprintf(path, sizeof path, "%s/%s", directory, id);
  check(mkdir(path, 0700) == 0, path);
  write_small(2 * state_size, "%s/state", id);
  write_small(64, "%s/upload", id);
  flush_folder(id);
  flush_folder(".");
  int file = open_in(O_WRONLY | O_CREAT | O_EXCL, "%s/file", id);
  int state = open_in(O_WRONLY, "%s/state", id);
  int is_new = 1;
  EVP_MD_CTX *digest = EVP_MD_CTX_new();
  check(EVP_DigestInit_ex(digest, EVP_sha256(), NULL), "SHA-256");
  uint64_t offset = 0;
  size_t count;
  for (const uint8_t *found; (found = receive(&in, &count)) != NULL;) {
    const uint8_t *body = found + header_size;
    if (found[0] == item) {
      check(pwrite(file, body, count, (off_t)offset) == (ssize_t)count, "pwrite");
      EVP_DigestUpdate(digest, body, count);
      offset += count;
    } else if (found[0] == end) {
      check(fdatasync(file) == 0, "fdatasync");
      if (is_new) flush_folder(id);
      is_new = 0;
      write_state(state, offset);
      memcpy(answer.body, &offset, sizeof offset);
      send_frame(socket, &answer, response, 200, sizeof offset);
    } else if (load(found) == finish) {
      uint8_t hash[32];
      EVP_DigestFinal_ex(digest, hash, NULL);
      check(memcmp(hash, body, sizeof hash) == 0, "the hash");
      write_small(3, "%s/fields.json", id);
      flush_folder(id);
      write_state(state, offset);
      flush_folder(".");
      write_small(100, "%s/record", id);
      flush_folder(id);
      send_frame(socket, &answer, response, 200, 0);
    }
  }
  EVP_MD_CTX_free(digest);
  close(file);
  close(state);
  close(socket);
}

static _Noreturn void serve(const char *path) {
  snprintf(directory, sizeof directory, "%s", path);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  check(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 4) == 0, "bind");
  getsockname(listener, (struct sockaddr *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (int number = 0;; number++) {
    int connection = accept(listener, NULL, NULL);
    check(connection >= 0, "accept");
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    take_upload(connection, number);
  }
}

// MARK: The client

static int send_file(int port, const char *path) {
  int file = open(path, O_RDONLY);
  struct stat status;
  check(file >= 0 && fstat(file, &status) == 0, path);
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {
      .sin_family = AF_INET,
      .sin_port = htons((uint16_t)port),
      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  check(connect(connection, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  static frame out;
  static inbox in;
  in.socket = connection;
  EVP_MD_CTX *digest = EVP_MD_CTX_new();
  check(EVP_DigestInit_ex(digest, EVP_sha256(), NULL), "SHA-256");
  size_t count;
  for (off_t offset = 0; offset < status.st_size;) {
    memcpy(out.body, &offset, sizeof offset);
    send_frame(connection, &out, request, append, 40);
    off_t last = offset + append_size < status.st_size ? offset + append_size : status.st_size;
    while (offset < last) {
      size_t wanted = last - offset < piece_size ? (size_t)(last - offset) : piece_size;
      check(pread(file, out.body, wanted, offset) == (ssize_t)wanted, "pread");
      EVP_DigestUpdate(digest, out.body, wanted);
      send_frame(connection, &out, item, 0, wanted);
      offset += (off_t)wanted;
    }
    send_frame(connection, &out, end, 0, 0);
    const uint8_t *answer = receive(&in, &count);
    check(answer != NULL && memcmp(answer + header_size, &offset, sizeof offset) == 0, "offset");
  }
  EVP_DigestFinal_ex(digest, out.body, NULL);
  send_frame(connection, &out, request, finish, 32);
  check(receive(&in, &count) != NULL, "finish");
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "serve") == 0) serve(argv[2]);
  if (argc == 4 && strcmp(argv[1], "send") == 0) return send_file(atoi(argv[2]), argv[3]);
  fprintf(stderr, "usage: upload-floor serve DIRECTORY | send PORT FILE\n");
  return 64;
}
