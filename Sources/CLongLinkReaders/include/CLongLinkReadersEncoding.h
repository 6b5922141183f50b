// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINKREADERSENCODING_H
#define CLONGLINKREADERSENCODING_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Returns expat's name of the encoding that a document names in another way, such as `utf8`; or NULL.
const char *cll_encoding_alias(const char *name);

/// Fills a table with the character of each byte, or with -1 for a byte that stands for none. Returns false
/// if the encoding is not known, has characters of several bytes, or is missing on this machine.
bool cll_encoding_table(const char *name, int table[256]);

#ifdef __cplusplus
}
#endif

#endif
