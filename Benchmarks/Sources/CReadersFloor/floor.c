// SPDX-License-Identifier: Apache-2.0
#include "CReadersFloor.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

static void on_start(void *context, const XML_Char *name, const XML_Char **attributes) {
  (void)name;
  (void)attributes;
  ((floor_counts *)context)->elements++;
}

static void on_end(void *context, const XML_Char *name) {
  (void)name;
  ((floor_counts *)context)->ends++;
}

static void on_text(void *context, const XML_Char *text, int count) {
  (void)text;
  ((floor_counts *)context)->text += (uint64_t)count;
}

floor_counts floor_parse(const uint8_t *bytes, size_t count, size_t part) {
  floor_counts counts = {0, 0, 0};
  XML_Parser parser = XML_ParserCreate(NULL);
  XML_SetUserData(parser, &counts);
  XML_SetElementHandler(parser, on_start, on_end);
  XML_SetCharacterDataHandler(parser, on_text);
  for (size_t place = 0; place < count; place += part) {
    size_t length = count - place < part ? count - place : part;
    int is_last = place + length == count;
    if (XML_Parse(parser, (const char *)bytes + place, (int)length, is_last) != XML_STATUS_OK) {
      abort();
    }
  }
  XML_ParserFree(parser);
  return counts;
}

uint64_t floor_search(const uint8_t *bytes, size_t count, size_t part) {
  uint64_t parts = 0;
  for (size_t place = 0; place < count; place += part) {
    size_t length = count - place < part ? count - place : part;
    if (memchr(bytes + place, 1, length)) abort();
    parts++;
  }
  return parts;
}
