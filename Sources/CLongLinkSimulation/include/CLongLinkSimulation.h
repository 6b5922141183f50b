#ifndef CLONGLINK_SIMULATION_H
#define CLONGLINK_SIMULATION_H

#include <stdbool.h>
#include <stddef.h>

/// Asks `capture` for each job that the Swift runtime would put on its global pool, on the thread
/// that does so. `capture` returns whether it has taken the job. To be called once in a process.
void cll_capture_global_jobs(bool (*_Nonnull capture)(void *_Nonnull job));

/// Puts the name of the calling thread into `buffer`, which is empty where it has none.
void cll_thread_name(char *_Nonnull buffer, size_t size);

#endif
