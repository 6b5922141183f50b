// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "xml.h"

// How a place of the input relates to the tag of the error element.
typedef enum { differs, matches, is_cut } similarity;

static similarity compare(const cll_xml *reader, size_t place) {
  const uint8_t *bytes = reader->input.bytes + place;
  size_t count = reader->input.end - place;
  size_t length = strlen(reader->error_name);
  size_t common = count < length + 1 ? count : length + 1;
  if (memcmp(bytes + 1, reader->error_name, common - 1) != 0) return differs;
  if (count < length + 2) return is_cut;
  return memchr(" \t\r\n/>", bytes[length + 1], 6) ? matches : differs;
}

// The error element is parsed as if it were a document.
static void begin_element(cll_xml *reader, size_t place) {
  cll_xml_restart(reader, place);
  reader->lexer = (cll_lexer){.state = cll_in_text, .token = place, .place = place};
  reader->safe = place;
  reader->depth = reader->captured_depth = 0;
  reader->captures_error = false;
  reader->is_halted = reader->has_final = reader->is_searching = false;
}

void cll_xml_begin_search(cll_xml *reader, size_t place) {
  if (!reader->error_name) {
    reader->final_step = cll_xml_failed;
    return;
  }
  reader->is_searching = true;
  reader->is_suspended = false;
  reader->kept = SIZE_MAX;
  reader->passing = reader->given = reader->safe = place;
  reader->lexer.has_failed = false;
  reader->lexer.detail = NULL;
}

// Each of them may be parsed to the end of the document again. This number is enough for any honest document.
static const size_t most_tries = 64;

bool cll_xml_search(cll_xml *reader) {
  const cll_input *input = &reader->input;
  uint64_t most = reader->failure.offset + reader->limits.rubbish;
  size_t place = reader->given;
  while (place < input->end) {
    const uint8_t *less = memchr(input->bytes + place, '<', input->end - place);
    place = less ? (size_t)(less - input->bytes) : input->end;
    if (!less || input->offset + place > most) break;
    similarity found = compare(reader, place);
    if (found == matches) {
      if (reader->tries == most_tries) {
        reader->final_step = cll_xml_failed;
        return false;
      }
      reader->tries++;
      begin_element(reader, place);
      return true;
    }
    if (found == is_cut) break;
    place++;
  }
  reader->passing = reader->given = reader->safe = place;
  reader->lexer.place = reader->lexer.token = place;
  if (reader->is_finished || input->offset + place > most) {
    reader->final_step = cll_xml_failed;
  }
  return false;
}
