// SPDX-License-Identifier: Apache-2.0
#include "lexer.h"

#include <string.h>

#include "find.h"

static size_t find(const uint8_t *bytes, size_t from, size_t to, int wanted) {
  const uint8_t *found = to > from ? memchr(bytes + from, wanted, to - from) : NULL;
  return found ? (size_t)(found - bytes) : to;
}

static void fail(cll_lexer *lexer, cll_xml_failure_kind kind, size_t place) {
  lexer->has_failed = true;
  lexer->kind = kind;
  lexer->failed_at = place;
}

static void begin(cll_lexer *lexer, cll_lexer_state state) {
  lexer->state = state;
  lexer->token = lexer->place++;
}

static void go(cll_lexer *lexer, cll_lexer_state state) {
  lexer->state = state;
  lexer->place++;
}

// Only white space is outside of the root element. Expat's places of such mistakes depend on where it was
// given parts.
static void run_outside(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  for (; lexer->place < end; lexer->place++) {
    uint8_t byte = bytes[lexer->place];
    if (byte == '<') return begin(lexer, cll_behind_less);
    if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n') {
      lexer->detail = "text outside of the root element";
      return fail(lexer, cll_xml_malformed, lexer->place);
    }
  }
}

// Whether a `>` in text makes it end with `]]>`, which no text contains. Expat would not report the text in
// front of it, if that comes with it.
static bool ends_section(const uint8_t *bytes, size_t place) {
  return place >= 2 && bytes[place - 1] == ']' && bytes[place - 2] == ']';
}

static void run_text(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  if (lexer->depth == 0) return run_outside(lexer, bytes, end);
  lexer->place = cll_find_markup(bytes, lexer->place, end);
  if (lexer->place == end) return;
  if (bytes[lexer->place] == '>') {
    if (ends_section(bytes, lexer->place)) {
      return fail(lexer, cll_xml_malformed, lexer->place - 2);
    }
    lexer->place++;
    return;
  }
  begin(lexer, bytes[lexer->place] == '&' ? cll_in_reference : cll_behind_less);
}

static void run_reference(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  while (lexer->place < end) {
    uint8_t byte = bytes[lexer->place];
    if (byte == ';') return go(lexer, cll_in_text);
    // No name contains these: expat finds the mistake.
    if (byte <= ' ' || byte == '<' || byte == '&' || byte == '>') {
      lexer->state = cll_in_text;
      return;
    }
    lexer->place++;
  }
}

static void count_tag(cll_lexer *lexer, const uint8_t *bytes, size_t first, size_t end) {
  if (bytes[first + 1] == '/') {
    if (lexer->depth > 0) lexer->depth--;
  } else if (bytes[end - 2] != '/') {
    lexer->depth++;
  }
}

// A tag contains no `<`, not even in quotes: where one is, something else has begun.
static void run_tag(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  bool is_whole = false;
  lexer->place = cll_pass_tag(bytes, lexer->place, end, &lexer->quote, &is_whole);
  if (is_whole) {
    count_tag(lexer, bytes, lexer->token, lexer->place);
    lexer->state = cll_in_text;
  } else if (lexer->place < end) {
    fail(lexer, cll_xml_malformed, lexer->place);
  }
}

static void run_bang(cll_lexer *lexer, uint8_t byte) {
  if (byte == '-') return go(lexer, cll_behind_bang_dash);
  lexer->matched = 1;
  if (byte == '[' && lexer->depth > 0) return go(lexer, cll_in_section_open);
  if (byte == 'D' && !lexer->has_tag && !lexer->has_doctype) return go(lexer, cll_in_doctype_open);
  fail(lexer, cll_xml_malformed, lexer->token);
}

static void run_opening(
    cll_lexer *lexer, uint8_t byte, const char *opening, cll_lexer_state opened) {
  if (byte != (uint8_t)opening[lexer->matched]) {
    return fail(lexer, cll_xml_malformed, lexer->token);
  }
  lexer->matched++;
  if (opening[lexer->matched]) {
    lexer->place++;
  } else {
    lexer->matched = 0;
    lexer->quote = 0;
    go(lexer, opened);
  }
}

// Only finds the end: expat judges the rest.
static void run_doctype(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  for (; lexer->place < end; lexer->place++) {
    uint8_t byte = bytes[lexer->place];
    if (lexer->quote) {
      if (byte == lexer->quote) lexer->quote = 0;
    } else if (byte == '"' || byte == '\'') {
      lexer->quote = byte;
    } else if (byte == '[') {
      return fail(lexer, cll_xml_doctype, lexer->token);
    } else if (byte == '<') {
      return fail(lexer, cll_xml_malformed, lexer->place);
    } else if (byte == '>') {
      lexer->has_doctype = true;
      return go(lexer, cll_behind_doctype);
    }
  }
}

static void run_section(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  while (lexer->place < end) {
    if (lexer->matched == 0) {
      lexer->place = find(bytes, lexer->place, end, ']');
      if (lexer->place == end) return;
    }
    uint8_t byte = bytes[lexer->place];
    if (byte == '>' && lexer->matched == 2) return go(lexer, cll_in_text);
    if (byte != ']') lexer->matched = 0;
    if (byte == ']' && lexer->matched < 2) lexer->matched++;
    lexer->place++;
  }
}

static void run_comment(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  uint8_t byte = bytes[lexer->place];
  switch (lexer->state) {
  case cll_in_comment:
    lexer->place = find(bytes, lexer->place, end, '-');
    if (lexer->place < end) go(lexer, cll_in_comment_dash);
    return;
  case cll_in_comment_dash:
    return go(lexer, byte == '-' ? cll_in_comment_dashes : cll_in_comment);
  default:
    if (byte == '>') return go(lexer, cll_in_text);
    return fail(lexer, cll_xml_malformed, lexer->place);
  }
}

static void run_instruction(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  if (lexer->state == cll_in_instruction) {
    lexer->place = find(bytes, lexer->place, end, '?');
    if (lexer->place < end) go(lexer, cll_behind_question);
    return;
  }
  uint8_t byte = bytes[lexer->place];
  if (byte == '>') return go(lexer, cll_in_text);
  go(lexer, byte == '?' ? cll_behind_question : cll_in_instruction);
}

static void step(cll_lexer *lexer, const uint8_t *bytes, size_t end) {
  uint8_t byte = bytes[lexer->place];
  switch (lexer->state) {
  case cll_in_text: return run_text(lexer, bytes, end);
  case cll_in_reference: return run_reference(lexer, bytes, end);
  case cll_behind_less:
    if (byte == '!') return go(lexer, cll_behind_bang);
    if (byte == '?') return go(lexer, cll_in_instruction);
    lexer->quote = 0;
    lexer->has_tag = true;
    lexer->state = cll_in_tag;
    return;
  case cll_in_tag: return run_tag(lexer, bytes, end);
  case cll_in_instruction:
  case cll_behind_question: return run_instruction(lexer, bytes, end);
  case cll_behind_bang: return run_bang(lexer, byte);
  case cll_behind_bang_dash:
    if (byte == '-') return go(lexer, cll_in_comment);
    return fail(lexer, cll_xml_malformed, lexer->token);
  case cll_in_comment:
  case cll_in_comment_dash:
  case cll_in_comment_dashes: return run_comment(lexer, bytes, end);
  case cll_in_section_open: return run_opening(lexer, byte, "[CDATA[", cll_in_section);
  case cll_in_section: return run_section(lexer, bytes, end);
  case cll_in_doctype_open: return run_opening(lexer, byte, "DOCTYPE", cll_in_doctype);
  case cll_in_doctype: return run_doctype(lexer, bytes, end);
  case cll_behind_doctype: return;
  }
}

// Returns the place behind a reference, or 0 if there is none up to `end`.
static size_t behind_reference(const uint8_t *bytes, size_t place, size_t end) {
  while (++place < end) {
    uint8_t byte = bytes[place];
    if (byte == ';') return place + 1;
    if (byte <= ' ' || byte == '<' || byte == '&' || byte == '>') return 0;
  }
  return 0;
}

// Returns the place behind a tag, or 0 if there is none up to `end`.
static size_t behind_tag(const uint8_t *bytes, size_t place, size_t end) {
  if (++place == end || bytes[place] == '!' || bytes[place] == '?') return 0;
  uint8_t quote = 0;
  bool is_whole = false;
  place = cll_pass_tag(bytes, place, end, &quote, &is_whole);
  return is_whole ? place : 0;
}

// Passes text, references and tags, which are most of a document, without a state for each part. Stops in
// front of anything else, and of what is not whole.
static void skim(
    cll_lexer *lexer, const uint8_t *bytes, size_t end, size_t enough, size_t longest) {
  size_t place = lexer->place;
  while (place < enough && lexer->depth > 0) {
    place = cll_find_markup(bytes, place, enough);
    if (place == enough) break;
    if (bytes[place] == '>') {
      if (ends_section(bytes, place)) break;
      place++;
      continue;
    }
    size_t most = end - place < longest ? end : place + longest;
    bool is_tag = bytes[place] == '<';
    size_t next = is_tag ? behind_tag(bytes, place, most) : behind_reference(bytes, place, most);
    if (next == 0) break;
    if (is_tag) count_tag(lexer, bytes, place, next);
    place = next;
  }
  lexer->place = place;
}

// Text and sections are not held back: expat reports them in parts.
static bool is_open(const cll_lexer *lexer) {
  return lexer->state != cll_in_text && lexer->state != cll_in_section;
}

size_t cll_lexer_run(
    cll_lexer *lexer, const uint8_t *bytes, size_t end, size_t enough, size_t longest) {
  while (!lexer->has_failed && lexer->state != cll_behind_doctype) {
    if (lexer->state == cll_in_text) skim(lexer, bytes, end, enough, longest);
    bool open = is_open(lexer);
    // No byte beyond the longest token is looked at, however many there are.
    size_t limit = open ? lexer->token + longest : enough;
    size_t to = limit < end ? limit : end;
    if (lexer->place < to) {
      step(lexer, bytes, to);
    } else if (open && to == limit) {
      fail(lexer, cll_xml_token_too_large, lexer->token);
    } else {
      break;
    }
  }
  return is_open(lexer) ? lexer->token : lexer->place;
}

void cll_lexer_moved(cll_lexer *lexer, size_t count) {
  lexer->place -= count;
  lexer->token = lexer->token < count ? 0 : lexer->token - count;
}
