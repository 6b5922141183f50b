#if defined(__linux__)
#define _GNU_SOURCE

#include "CLongLinkPOSIX.h"

int cll_accept(int descriptor, struct sockaddr *address, socklen_t *length) {
  return accept4(descriptor, address, length, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
#endif
