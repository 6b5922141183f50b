#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <pthread.h>

#include "CLongLinkSimulation.h"

void cll_thread_name(char *buffer, size_t size) {
  if (pthread_getname_np(pthread_self(), buffer, size) != 0) buffer[0] = '\0';
}
