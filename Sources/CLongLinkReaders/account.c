// SPDX-License-Identifier: Apache-2.0
#include "account.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The account that this thread allocates for: expat's functions have no argument for it.
static _Thread_local cll_account *current;

// In front of each block of expat's.
typedef struct {
  alignas(max_align_t) size_t size;
} head;

static void note(cll_account *account) {
  size_t sum = account->parser + account->own;
  if (sum > account->most) account->most = sum;
}

static bool has_room(size_t added) {
  return current->parser <= current->limit && added <= current->limit - current->parser;
}

static void *allocate(size_t size) {
  if (size > SIZE_MAX / 2 || !has_room(size + sizeof(head))) return NULL;
  head *block = malloc(sizeof(head) + size);
  if (!block) return NULL;
  block->size = size;
  current->parser += sizeof(head) + size;
  note(current);
  return block + 1;
}

static void release(void *memory) {
  if (!memory) return;
  head *block = (head *)memory - 1;
  current->parser -= sizeof(head) + block->size;
  free(block);
}

static void *resize(void *memory, size_t size) {
  if (!memory) return allocate(size);
  head *block = (head *)memory - 1;
  size_t old_size = block->size;
  if (size > SIZE_MAX / 2 || (size > old_size && !has_room(size - old_size))) return NULL;
  head *moved = realloc(block, sizeof(head) + size);
  if (!moved) return NULL;
  moved->size = size;
  current->parser = current->parser - old_size + size;
  note(current);
  return moved + 1;
}

const XML_Memory_Handling_Suite cll_account_suite = {allocate, resize, release};

cll_account *cll_account_enter(cll_account *account) {
  cll_account *before = current;
  current = account;
  return before;
}

void *cll_account_resize(cll_account *account, void *memory, size_t old_size, size_t size) {
  void *moved = NULL;
  if (size == 0) {
    free(memory);
  } else {
    moved = realloc(memory, size);
    if (!moved) abort();
  }
  account->own = account->own - old_size + size;
  note(account);
  return moved;
}
