#if defined(__linux__)
#define _GNU_SOURCE

#include "CLongLinkPOSIX.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

int cll_accept(int descriptor, struct sockaddr *address, socklen_t *length) {
  return accept4(descriptor, address, length, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

int cll_unacknowledged(int descriptor) {
  int count = 0;
  return ioctl(descriptor, SIOCOUTQ, &count) == 0 ? count : -1;
}
#endif
