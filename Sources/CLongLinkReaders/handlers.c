// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "xml.h"

static uint64_t current_offset(const cll_xml *reader) {
  return reader->parser_offset + (uint64_t)XML_GetCurrentByteIndex(reader->parser);
}

static void fail(cll_xml *reader, cll_xml_failure_kind kind, uint64_t offset) {
  cll_xml_set_failure(reader, kind, offset, NULL);
  reader->is_halted = true;
  XML_StopParser(reader->parser, XML_FALSE);
}

static bool has_room(cll_xml *reader, size_t count) {
  if (reader->is_halted) return false;
  if (count <= reader->limits.element - reader->capture.size) return true;
  fail(reader, cll_xml_element_too_large, reader->captured_offset);
  return false;
}

static void put(cll_xml *reader, const void *bytes, size_t count) {
  if (!has_room(reader, count)) return;
  if (cll_capture_put(&reader->capture, bytes, count)) return;
  cll_capture_add(&reader->capture, &reader->account, bytes, count);
}

// A mark and a text.
static void put_text(cll_xml *reader, uint8_t mark, const char *text) {
  if (reader->is_halted) return;
  if (cll_capture_put_short(&reader->capture, mark, text, reader->limits.element)) return;
  put(reader, &mark, 1);
  put(reader, text, strlen(text));
}

static void put_mark(cll_xml *reader, uint8_t mark) { put_text(reader, mark, ""); }

static bool is_chosen(const cll_xml *reader, const char *name) {
  const char *chosen = reader->names;
  while (*chosen) {
    if (strcmp(chosen, name) == 0) return true;
    chosen += strlen(chosen) + 1;
  }
  return false;
}

static void capture(cll_xml *reader, bool is_error) {
  cll_capture_take(&reader->capture, &reader->account, NULL);
  reader->captured_depth = reader->depth;
  reader->captured_offset = current_offset(reader);
  reader->captures_error = is_error;
}

static void on_start(void *context, const XML_Char *name, const XML_Char **attributes) {
  cll_xml *reader = context;
  if (reader->is_halted) return;
  reader->depth++;
  if (reader->depth > reader->limits.depth) {
    return fail(reader, cll_xml_too_deep, current_offset(reader));
  }
  const char *error = reader->error_name;
  if (error && *name == *error && !reader->captures_error && strcmp(name, error) == 0) {
    // What was captured so far is incomplete, and nothing follows an error.
    capture(reader, true);
  } else if (reader->captured_depth == 0) {
    if (!is_chosen(reader, name)) return;
    capture(reader, false);
  } else if (!reader->limits.children && !reader->captures_error) {
    return;
  }
  put_text(reader, CLL_XML_MARK_ELEMENT, name);
  for (; *attributes; attributes += 2) {
    put_text(reader, CLL_XML_MARK_ATTRIBUTE, attributes[0]);
    put_text(reader, CLL_XML_MARK_VALUE, attributes[1]);
  }
  put_mark(reader, CLL_XML_MARK_CONTENT);
}

static void on_end(void *context, const XML_Char *name) {
  (void)name;
  cll_xml *reader = context;
  if (reader->is_halted) return;
  size_t depth = reader->depth--;
  if (reader->captured_depth == 0) return;
  if (depth == reader->captured_depth) {
    put_mark(reader, CLL_XML_MARK_END);
    reader->captured_depth = 0;
    // Nothing is parsed ahead of what the application takes.
    XML_StopParser(reader->parser, XML_TRUE);
  } else if (reader->limits.children || reader->captures_error) {
    put_mark(reader, CLL_XML_MARK_END);
  }
}

static void on_text(void *context, const XML_Char *text, int count) {
  cll_xml *reader = context;
  if (reader->captured_depth > 0) put(reader, text, (size_t)count);
}

static void note_encoding(cll_xml *reader, const char *name) {
  strncpy(reader->encoding, name, sizeof reader->encoding - 1);
}

static void on_declaration(
    void *context, const XML_Char *version, const XML_Char *encoding, int standalone) {
  (void)version;
  (void)standalone;
  if (encoding) note_encoding(context, encoding);
}

int cll_xml_unknown_encoding(void *context, const XML_Char *name, XML_Encoding *info) {
  note_encoding(context, name);
  info->data = NULL;
  info->convert = NULL;
  info->release = NULL;
  return cll_encoding_table(name, info->map) ? XML_STATUS_OK : XML_STATUS_ERROR;
}

// Expat has it since 2.6, and some systems in earlier versions. The library at run time may be newer than
// the header.
#if defined(__ELF__)
XML_Bool XML_SetReparseDeferralEnabled(XML_Parser parser, XML_Bool enabled) __attribute__((weak));
#define CAN_DEFER (XML_SetReparseDeferralEnabled != NULL)
#elif XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 6
#define CAN_DEFER 1
#else
#define CAN_DEFER 0
#define XML_SetReparseDeferralEnabled(parser, enabled) ((void)0)
#endif

void cll_xml_set_handlers(cll_xml *reader) {
  XML_Parser parser = reader->parser;
  // The lexer sees to it that no token is looked at again and again, and nothing is to wait for more.
  if (CAN_DEFER) XML_SetReparseDeferralEnabled(parser, XML_FALSE);
  XML_SetUserData(parser, reader);
  XML_SetElementHandler(parser, on_start, on_end);
  XML_SetCharacterDataHandler(parser, on_text);
  XML_SetXmlDeclHandler(parser, on_declaration);
  XML_SetUnknownEncodingHandler(parser, cll_xml_unknown_encoding, reader);
}
