// SPDX-License-Identifier: Apache-2.0
#include "xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The most bytes, approximately, that expat gets at a time: it copies what is left when an element is ready.
static const size_t step_size = 8192;

// The number of bytes of a section that does not end in which an error element is looked for.
static const size_t kept_size = 16384;

// The most bytes of a character in the input.
static const size_t character_size = 4;

cll_xml *cll_xml_create(
    const char *names, size_t count, const char *error, const cll_xml_limits *limits) {
  cll_xml *reader = calloc(1, sizeof *reader);
  if (!reader) abort();
  reader->account.own = sizeof *reader;
  reader->account.limit = limits->memory;
  reader->limits = *limits;
  size_t error_size = error ? strlen(error) + 1 : 0;
  reader->names_size = count + 1 + error_size;
  reader->names = cll_account_resize(&reader->account, NULL, 0, reader->names_size);
  if (count > 0) memcpy(reader->names, names, count);
  reader->names[count] = 0;
  if (error) {
    memcpy(reader->names + count + 1, error, error_size);
    reader->error_name = reader->names + count + 1;
  }
  reader->kept = SIZE_MAX;
  reader->final_step = cll_xml_needs_bytes;
  return reader;
}

void cll_xml_destroy(cll_xml *reader) {
  cll_account *before = cll_account_enter(&reader->account);
  XML_ParserFree(reader->parser);
  cll_account_enter(before);
  cll_capture_free(&reader->capture, &reader->account);
  cll_input_free(&reader->input, &reader->account);
  free(reader->names);
  free(reader);
}

static bool is_over(const cll_xml *reader) { return reader->final_step != cll_xml_needs_bytes; }

void cll_xml_feed(cll_xml *reader, const uint8_t *bytes, size_t count) {
  if (is_over(reader) || reader->is_finished) return;
  size_t used = reader->is_suspended ? reader->passing : reader->given;
  if (reader->kept < used) used = reader->kept;
  // Expat may hold a part of a character, in which it finds a mistake later.
  used = used < character_size ? 0 : used - character_size;
  size_t dropped = cll_input_feed(&reader->input, &reader->account, used, bytes, count);
  if (dropped == 0) return;
  if (reader->kept != SIZE_MAX) reader->kept -= dropped;
  reader->passing = reader->passing < dropped ? 0 : reader->passing - dropped;
  reader->given -= dropped;
  reader->safe -= dropped;
  cll_lexer_moved(&reader->lexer, dropped);
}

void cll_xml_finish(cll_xml *reader) {
  if (is_over(reader) || reader->is_finished) return;
  reader->is_finished = true;
  cll_input_finish(&reader->input, &reader->account);
}

void cll_xml_set_failure(
    cll_xml *reader, cll_xml_failure_kind kind, uint64_t offset, const char *detail) {
  if (reader->has_failed) return;
  reader->has_failed = true;
  reader->failure.kind = kind;
  reader->failure.offset = offset;
  reader->failure.detail = detail;
}

static cll_xml_failure_kind kind_of(const cll_xml *reader, enum XML_Error error) {
  switch (error) {
  case XML_ERROR_NO_MEMORY: return cll_xml_out_of_memory;
  case XML_ERROR_UNDEFINED_ENTITY: return cll_xml_entity;
  case XML_ERROR_UNKNOWN_ENCODING:
  case XML_ERROR_INCORRECT_ENCODING: return cll_xml_encoding;
  case XML_ERROR_NO_ELEMENTS:
  case XML_ERROR_UNCLOSED_TOKEN:
  case XML_ERROR_PARTIAL_CHAR:
  case XML_ERROR_UNCLOSED_CDATA_SECTION:
    return reader->has_final ? cll_xml_truncated : cll_xml_malformed;
  default: return cll_xml_malformed;
  }
}

static size_t search_place(const cll_xml *reader, cll_xml_failure_kind kind, uint64_t offset) {
  if (kind == cll_xml_truncated) {
    if (reader->kept != SIZE_MAX) return reader->kept;
    // What the token that does not end has swallowed.
    bool is_open = reader->lexer.token >= reader->passing && reader->lexer.state != cll_in_text;
    return is_open ? reader->lexer.token + 1 : reader->input.end;
  }
  if (offset < reader->input.offset) return 0;
  uint64_t place = offset - reader->input.offset;
  return place < reader->input.end ? (size_t)place : reader->input.end;
}

static void parser_failed(cll_xml *reader) {
  enum XML_Error error = XML_GetErrorCode(reader->parser);
  if (error == XML_ERROR_UNKNOWN_ENCODING && !reader->alias) {
    // The document is read again from its declaration on, which came first.
    reader->alias = cll_encoding_alias(reader->encoding);
    if (reader->alias) return cll_xml_restart(reader, reader->passing);
  }
  if (reader->is_halted) {
    // A limit; the handler has said which.
    reader->final_step = cll_xml_failed;
    return;
  }
  cll_xml_failure_kind kind = kind_of(reader, error);
  XML_Index index = XML_GetErrorByteIndex(reader->parser);
  uint64_t offset = reader->parser_offset + (uint64_t)(index < 0 ? 0 : index);
  if (kind == cll_xml_truncated) offset = reader->input.offset + reader->input.end;
  cll_xml_set_failure(reader, kind, offset, XML_ErrorString(error));
  if (kind == cll_xml_encoding) {
    memcpy(reader->failure.encoding, reader->encoding, sizeof reader->encoding);
  }
  if (kind == cll_xml_malformed || kind == cll_xml_truncated || kind == cll_xml_entity) {
    cll_xml_begin_search(reader, search_place(reader, kind, offset));
  } else {
    reader->final_step = cll_xml_failed;
  }
}

static void lexer_failed(cll_xml *reader) {
  size_t place = reader->lexer.failed_at;
  const char *detail = reader->lexer.detail;
  if (!detail && reader->lexer.kind == cll_xml_malformed) {
    detail = XML_ErrorString(XML_ERROR_INVALID_TOKEN);
  }
  cll_xml_set_failure(reader, reader->lexer.kind, reader->input.offset + place, detail);
  if (reader->lexer.kind == cll_xml_malformed) {
    cll_xml_begin_search(reader, place);
  } else {
    reader->final_step = cll_xml_failed;
  }
}

// The encoding in which expat gets the document, once its declaration has been read.
static const char *encoding_of(const cll_xml *reader) {
  if (reader->input.form != cll_form_bytes) return "UTF-8";
  if (reader->alias) return reader->alias;
  return reader->encoding[0] ? reader->encoding : "UTF-8";
}

void cll_xml_restart(cll_xml *reader, size_t place) {
  XML_ParserReset(reader->parser, encoding_of(reader));
  cll_xml_set_handlers(reader);
  reader->passing = reader->given = place;
  reader->parser_offset = reader->input.offset + place;
}

// Expat gets blanks in place of the declaration. After one that names an external subset, it would pass over
// entities that it does not know. Whether the declaration is well-formed, another parser finds out.
void cll_xml_skip_doctype(cll_xml *reader) {
  cll_lexer *lexer = &reader->lexer;
  uint8_t *declaration = reader->input.bytes + lexer->token;
  int count = (int)(lexer->place - lexer->token);
  XML_Parser parser = XML_ParserCreate_MM(encoding_of(reader), &cll_account_suite, NULL);
  enum XML_Error error = XML_ERROR_NO_MEMORY;
  XML_Index place = 0;
  if (parser) {
    XML_SetUnknownEncodingHandler(parser, cll_xml_unknown_encoding, reader);
    error = XML_ERROR_NONE;
    if (XML_Parse(parser, (const char *)declaration, count, false) != XML_STATUS_OK ||
        XML_Parse(parser, "<a/>", 4, true) != XML_STATUS_OK) {
      error = XML_GetErrorCode(parser);
      place = XML_GetErrorByteIndex(parser);
    }
    XML_ParserFree(parser);
  }
  if (error == XML_ERROR_NONE) {
    memset(declaration, ' ', (size_t)count);
    lexer->state = cll_in_text;
  } else {
    lexer->has_failed = true;
    lexer->kind = kind_of(reader, error);
    lexer->failed_at = lexer->token + (size_t)(place > 0 ? place : 0);
    lexer->detail = XML_ErrorString(error);
  }
}

static bool create_parser(cll_xml *reader) {
  if (reader->input.unreadable) {
    strncpy(reader->failure.encoding, reader->input.unreadable, sizeof reader->failure.encoding - 1);
    cll_xml_set_failure(reader, cll_xml_encoding, 0, NULL);
    return false;
  }
  const char *encoding = reader->input.form == cll_form_bytes ? NULL : "UTF-8";
  reader->parser = XML_ParserCreate_MM(encoding, &cll_account_suite, NULL);
  if (!reader->parser) {
    cll_xml_set_failure(reader, cll_xml_out_of_memory, 0, NULL);
    return false;
  }
  cll_xml_set_handlers(reader);
  reader->parser_offset = reader->input.offset;
  return true;
}

static void scan(cll_xml *reader) {
  size_t end = reader->input.end;
  size_t enough = reader->given + step_size < end ? reader->given + step_size : end;
  for (;;) {
    reader->safe = cll_lexer_run(
        &reader->lexer, reader->input.bytes, end, enough, reader->limits.token);
    // Expat reads first what stands in front of the declaration: it may name the encoding.
    bool is_behind = reader->lexer.state == cll_behind_doctype && reader->given == reader->safe;
    if (!is_behind || reader->lexer.has_failed) break;
    cll_xml_skip_doctype(reader);
  }
  reader->kept = SIZE_MAX;
  if (reader->lexer.state == cll_in_section && reader->error_name) {
    size_t token = reader->lexer.token;
    size_t place = reader->lexer.place;
    reader->kept = place - token > kept_size ? place - kept_size : token;
  }
}

// Parses the next part. Returns false if there is none.
static bool parse(cll_xml *reader, enum XML_Status *status) {
  if (reader->is_suspended) {
    reader->is_suspended = false;
    *status = XML_ResumeParser(reader->parser);
    return true;
  }
  if (reader->given == reader->safe && !reader->has_final) scan(reader);
  size_t end = reader->safe;
  if (reader->given == end) {
    if (reader->lexer.has_failed || !reader->is_finished || reader->has_final) return false;
    reader->has_final = true;
    // Expat would take the last word of a declaration that does not end for a wrong one.
    bool is_cut = reader->lexer.state == cll_in_doctype;
    end = reader->safe = is_cut ? reader->lexer.token : reader->input.end;
  }
  reader->passing = reader->given;
  reader->given = end;
  const char *first = (const char *)reader->input.bytes + reader->passing;
  int count = (int)(end - reader->passing);
  *status = XML_Parse(reader->parser, count > 0 ? first : "", count, reader->has_final);
  return true;
}

static void advance(cll_xml *reader) {
  enum XML_Status status;
  if (!reader->parser && !create_parser(reader)) {
    reader->final_step = cll_xml_failed;
  } else if (!parse(reader, &status)) {
    if (reader->lexer.has_failed) {
      lexer_failed(reader);
    } else if (reader->has_final) {
      reader->final_step = cll_xml_end;
    }
  } else if (status == XML_STATUS_SUSPENDED) {
    reader->is_suspended = true;
  } else if (status == XML_STATUS_ERROR) {
    parser_failed(reader);
  }
}

static bool has_work(const cll_xml *reader) {
  if (reader->input.form == cll_form_unknown) return false;
  return reader->is_suspended || reader->is_finished || reader->given < reader->safe ||
         reader->lexer.place < reader->input.end || reader->lexer.has_failed;
}

cll_xml_step cll_xml_next(cll_xml *reader) {
  cll_account *before = cll_account_enter(&reader->account);
  cll_xml_step found = cll_xml_needs_bytes;
  while (!is_over(reader)) {
    if (reader->is_searching) {
      if (!cll_xml_search(reader)) break;
    } else if (!has_work(reader)) {
      break;
    } else {
      advance(reader);
      if (reader->is_suspended) {
        found = reader->captures_error ? cll_xml_error_element : cll_xml_element;
        if (reader->captures_error) reader->final_step = cll_xml_error_element;
        break;
      }
    }
  }
  cll_account_enter(before);
  return is_over(reader) ? reader->final_step : found;
}

size_t cll_xml_size(const cll_xml *reader) { return reader->capture.size; }

void cll_xml_take(cll_xml *reader, uint8_t *memory) {
  cll_capture_take(&reader->capture, &reader->account, memory);
}

const cll_xml_failure *cll_xml_failure_of(const cll_xml *reader) { return &reader->failure; }

size_t cll_xml_allocated(const cll_xml *reader) {
  return reader->account.parser + reader->account.own;
}

size_t cll_xml_most_allocated(const cll_xml *reader) { return reader->account.most; }
