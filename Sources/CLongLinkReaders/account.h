// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_READERS_ACCOUNT_H
#define LONGLINK_READERS_ACCOUNT_H

#include <expat.h>
#include <stddef.h>

/// The bytes that one reader holds.
typedef struct {
  /// Those of expat, and their limit.
  size_t parser;
  size_t limit;
  /// Those of the reader itself, which have limits of their own.
  size_t own;
  /// The most of both at any time.
  size_t most;
} cll_account;

/// The functions through which expat allocates. Expat gives them no context, so a thread enters an
/// account before it calls expat.
extern const XML_Memory_Handling_Suite cll_account_suite;

/// Makes an account the one that this thread allocates for, and returns the one before.
cll_account *cll_account_enter(cll_account *account);

/// Changes the size of memory of the reader itself. Ends the process if there is no memory.
void *cll_account_resize(cll_account *account, void *memory, size_t old_size, size_t size);

#endif
