// SPDX-License-Identifier: Apache-2.0
// Selects the strerror_r of POSIX, which fills the buffer; GNU's may return another string instead.
#if defined(__linux__)
#define _POSIX_C_SOURCE 200809L
#endif

#include "CLongLinkSystem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME(code) \
  case code: \
    return #code;

const char *cll_errno_name(int code) {
  switch (code) {
    NAME(EACCES)
    NAME(EADDRINUSE)
    NAME(EADDRNOTAVAIL)
    NAME(EAFNOSUPPORT)
    NAME(EAGAIN)
    NAME(EALREADY)
    NAME(EBADF)
    NAME(ECANCELED)
    NAME(ECONNABORTED)
    NAME(ECONNREFUSED)
    NAME(ECONNRESET)
    NAME(EEXIST)
    NAME(EFAULT)
    NAME(EHOSTUNREACH)
    NAME(EINPROGRESS)
    NAME(EINTR)
    NAME(EINVAL)
    NAME(EIO)
    NAME(EISCONN)
    NAME(EISDIR)
    NAME(ELOOP)
    NAME(EMFILE)
    NAME(EMSGSIZE)
    NAME(ENAMETOOLONG)
    NAME(ENETDOWN)
    NAME(ENETRESET)
    NAME(ENETUNREACH)
    NAME(ENFILE)
    NAME(ENOBUFS)
    NAME(ENOENT)
    NAME(ENOMEM)
    NAME(ENOPROTOOPT)
    NAME(ENOSPC)
    NAME(ENOSYS)
    NAME(ENOTCONN)
    NAME(ENOTDIR)
    NAME(ENOTSOCK)
    NAME(EOPNOTSUPP)
    NAME(EPERM)
    NAME(EPIPE)
    NAME(EPROTO)
    NAME(EPROTONOSUPPORT)
    NAME(EPROTOTYPE)
    NAME(EROFS)
    NAME(ESHUTDOWN)
    NAME(ETIMEDOUT)
    default:
      return NULL;
  }
}

void cll_errno_text(int code, char *buffer, size_t size) {
  if (strerror_r(code, buffer, size) != 0) {
    snprintf(buffer, size, "error %d", code);
  }
}
