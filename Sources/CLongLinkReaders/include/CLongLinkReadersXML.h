// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINKREADERSXML_H
#define CLONGLINKREADERSXML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Takes chosen elements out of an XML document that arrives in parts. Parsing is expat's. The reader
/// is used by one thread at a time. Running out of the machine's memory ends the process.
typedef struct cll_xml cll_xml;

typedef struct {
  /// The most elements inside each other, the outermost included.
  size_t depth;
  /// The most bytes that an element may have in the form described at `cll_xml_take`.
  size_t element;
  /// The most bytes of a tag, comment, processing instruction, reference or document type declaration.
  size_t token;
  /// The most bytes that expat may hold.
  size_t memory;
  /// The most bytes, from the first mistake on, in which the error element is looked for.
  size_t rubbish;
  /// Whether elements inside chosen ones are kept as elements, and not as their text alone.
  bool children;
} cll_xml_limits;

/// What `cll_xml_next` has found. The last three are final.
typedef enum {
  cll_xml_needs_bytes,
  cll_xml_element,
  cll_xml_error_element,
  cll_xml_end,
  cll_xml_failed,
} cll_xml_step;

typedef enum {
  cll_xml_malformed,
  cll_xml_truncated,
  /// A document type declaration with an internal subset.
  cll_xml_doctype,
  cll_xml_entity,
  cll_xml_encoding,
  cll_xml_too_deep,
  cll_xml_element_too_large,
  cll_xml_token_too_large,
  cll_xml_out_of_memory,
} cll_xml_failure_kind;

/// Why reading has failed.
typedef struct {
  cll_xml_failure_kind kind;
  /// The byte of the document where it was found. UTF-16 is counted as its UTF-8.
  uint64_t offset;
  /// A constant text, or NULL.
  const char *detail;
  /// The encoding that cannot be read, or an empty text.
  char encoding[64];
} cll_xml_failure;

/// The first bytes of the parts of an element, as `cll_xml_take` writes them. XML does not allow these
/// characters in a document.
#define CLL_XML_MARK_ELEMENT 1
#define CLL_XML_MARK_END 2
#define CLL_XML_MARK_ATTRIBUTE 3
#define CLL_XML_MARK_VALUE 4
#define CLL_XML_MARK_CONTENT 5

/// Makes a reader of the elements with certain names. Each of the `count` bytes of `names` that is 0 ends
/// a name. `error` is the name of the error element, or NULL.
cll_xml *cll_xml_create(
    const char *names, size_t count, const char *error, const cll_xml_limits *limits);
void cll_xml_destroy(cll_xml *reader);

/// Copies the next bytes of the document.
void cll_xml_feed(cll_xml *reader, const uint8_t *bytes, size_t count);

/// Says that the document has no more bytes.
void cll_xml_finish(cll_xml *reader);

/// Parses up to the end of the next chosen element, and not further.
cll_xml_step cll_xml_next(cll_xml *reader);

/// The bytes of the element that was found.
size_t cll_xml_size(const cll_xml *reader);

/// Moves the element that was found to memory of `cll_xml_size` bytes, in UTF-8: 1 name (3 name 4 value)*
/// 5 content 2, where content is text and elements.
void cll_xml_take(cll_xml *reader, uint8_t *memory);

/// Why reading has failed; valid after `cll_xml_failed`.
const cll_xml_failure *cll_xml_failure_of(const cll_xml *reader);

/// The bytes that the reader and expat have allocated now, or the most at any time.
size_t cll_xml_allocated(const cll_xml *reader);
size_t cll_xml_most_allocated(const cll_xml *reader);

#ifdef __cplusplus
}
#endif

#endif
