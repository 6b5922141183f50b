// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_READERS_LEXER_H
#define LONGLINK_READERS_LEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "CLongLinkReadersXML.h"

typedef enum {
  cll_in_text,
  cll_in_reference,
  cll_behind_less,
  cll_in_tag,
  cll_in_instruction,
  cll_behind_question,
  cll_behind_bang,
  cll_in_doctype_open,
  cll_in_doctype,
  /// It stops here until the declaration has been removed.
  cll_behind_doctype,
  cll_behind_bang_dash,
  cll_in_comment,
  cll_in_comment_dash,
  cll_in_comment_dashes,
  cll_in_section_open,
  cll_in_section,
} cll_lexer_state;

/// Finds where tokens end, so that expat only gets whole ones. Otherwise expat would begin anew with each
/// part of a long tag, or wait for more bytes behind its end, as versions since 2.6 do.
typedef struct {
  cll_lexer_state state;
  /// Where the token begins that is not complete.
  size_t token;
  /// All before is known.
  size_t place;
  /// How many of "[CDATA[" or "DOCTYPE" were seen, or of "]]".
  size_t matched;
  /// The elements that are open.
  size_t depth;
  /// Whether the root element has begun, or the declaration in front of it.
  bool has_tag;
  bool has_doctype;
  /// The quote that is open in a tag or declaration, or 0.
  uint8_t quote;
  /// Whether the next token has a mistake that ends parsing, which one, and where. `detail` is a constant,
  /// or NULL.
  bool has_failed;
  cll_xml_failure_kind kind;
  size_t failed_at;
  const char *detail;
} cll_lexer;

/// Goes on until `enough` is passed, to `end`, or behind a document type declaration. All before the returned place is complete.
size_t cll_lexer_run(
    cll_lexer *lexer, const uint8_t *bytes, size_t end, size_t enough, size_t longest);

/// The bytes have moved to the front by `count` places.
void cll_lexer_moved(cll_lexer *lexer, size_t count);

#endif
