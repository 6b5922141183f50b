// SPDX-License-Identifier: Apache-2.0
// Makes full TLS 1.3 handshakes with a server on 127.0.0.1, in two threads, one connection after the
// other, and prints how many there were in a second.
//
//   handshakes PORT SECONDS
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in address = {.sin_family = AF_INET};
static double deadline;
static atomic_long count;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fail(const char *what) {
  perror(what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

static void handshake(SSL_CTX *context) {
  int file = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(file, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
  SSL *ssl = SSL_new(context);
  SSL_set_fd(ssl, file);
  if (SSL_connect(ssl) != 1) fail("SSL_connect");
  if (SSL_session_reused(ssl)) fail("the handshake was not a full one");
  // The server reads the last flight before the end.
  SSL_shutdown(ssl);
  SSL_free(ssl);
  shutdown(file, SHUT_WR);
  // Its end says that it has.
  char rest[4096];
  while (read(file, rest, sizeof rest) > 0) {
  }
  close(file);
}

static void *run(void *unused) {
  (void)unused;
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x0alonglink/1", 11);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
  while (now() < deadline) {
    handshake(context);
    count++;
  }
  SSL_CTX_free(context);
  return NULL;
}

int main(int arguments, char **argument) {
  if (arguments != 3) return 2;
  address.sin_port = htons((unsigned short)atoi(argument[1]));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  double start = now();
  deadline = start + atof(argument[2]);
  pthread_t threads[2];
  for (int index = 0; index < 2; index++) pthread_create(&threads[index], NULL, run, NULL);
  for (int index = 0; index < 2; index++) pthread_join(threads[index], NULL);
  printf("%ld %.6f\n", (long)count, (double)count / (now() - start));
  return 0;
}
