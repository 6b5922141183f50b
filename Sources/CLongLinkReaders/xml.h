// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_READERS_XML_H
#define LONGLINK_READERS_XML_H

#include <expat.h>

#include "CLongLinkReadersXML.h"
#include "account.h"
#include "capture.h"
#include "CLongLinkReadersEncoding.h"
#include "input.h"
#include "lexer.h"

struct cll_xml {
  cll_account account;
  XML_Parser parser;
  cll_xml_limits limits;
  /// Names that each end with 0, and all together with an empty one.
  char *names;
  size_t names_size;
  /// In `names`, or NULL.
  const char *error_name;

  cll_input input;
  cll_lexer lexer;
  /// Places in the input: what expat works on begins at `passing`, ends at `given`, and is followed by
  /// whole tokens up to `safe`.
  size_t passing;
  size_t given;
  size_t safe;
  /// Where the last part of a section begins that is not complete, because an error element may be found
  /// in it; else `SIZE_MAX`.
  size_t kept;
  /// The place in the document where this parser has begun.
  uint64_t parser_offset;

  size_t depth;
  /// The depth of the element that is captured, or 0.
  size_t captured_depth;
  bool captures_error;
  uint64_t captured_offset;
  cll_capture capture;
  /// The encoding that the document declares, and expat's name of it if expat knows it by another one.
  char encoding[64];
  const char *alias;

  /// Whether the application has fed all, and expat has got all.
  bool is_finished;
  bool has_final;
  /// Whether an element is ready, and expat waits behind it.
  bool is_suspended;
  /// Whether a handler has stopped this parser for good.
  bool is_halted;
  /// Whether the document is broken, and the error element is looked for from `given` on.
  bool is_searching;
  /// How often one was parsed on its own.
  size_t tries;
  /// Whether `failure` has been set.
  bool has_failed;
  cll_xml_failure failure;
  cll_xml_step final_step;
};

/// Tells expat about an encoding that it does not know; the context is a reader.
int cll_xml_unknown_encoding(void *context, const XML_Char *name, XML_Encoding *info);

/// Gives the parser its handlers, which capture elements.
void cll_xml_set_handlers(cll_xml *reader);

/// Passes over the document type declaration, in front of which the lexer has stopped.
void cll_xml_skip_doctype(cll_xml *reader);

/// Sets the failure, unless there is one. `detail` is a constant.
void cll_xml_set_failure(
    cll_xml *reader, cll_xml_failure_kind kind, uint64_t offset, const char *detail);

/// Starts expat anew at a place of the input.
void cll_xml_restart(cll_xml *reader, size_t place);

/// Begins to look for the error element at a place of the input, or fails if there is no such element.
void cll_xml_begin_search(cll_xml *reader, size_t place);

/// Looks further. Returns whether the error element has begun, and is to be parsed; otherwise more bytes
/// are needed, unless `final_step` is set.
bool cll_xml_search(cll_xml *reader);

#endif
