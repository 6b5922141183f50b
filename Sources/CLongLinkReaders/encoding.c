// SPDX-License-Identifier: Apache-2.0
#include "CLongLinkReadersEncoding.h"

#include <iconv.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  /// In small letters, without `-` and `_`.
  const char *label;
  const char *name;
} encoding;

// The encodings that expat reads itself, under names that it does not know.
static const encoding aliases[] = {
    {"utf8", "UTF-8"},           {"ascii", "US-ASCII"},       {"usascii", "US-ASCII"},
    {"ansix3.41968", "US-ASCII"}, {"iso646us", "US-ASCII"},    {"iso88591", "ISO-8859-1"},
    {"latin1", "ISO-8859-1"},    {"l1", "ISO-8859-1"},        {"ibm819", "ISO-8859-1"},
    {"cp819", "ISO-8859-1"},
};

// All encodings for which iconv is asked. A document chooses among these names and no others: iconv loads
// code by name, and reads `/` in a name as options or a path.
static const encoding tables[] = {
    {"iso88592", "ISO-8859-2"},    {"latin2", "ISO-8859-2"},     {"iso88593", "ISO-8859-3"},
    {"latin3", "ISO-8859-3"},      {"iso88594", "ISO-8859-4"},   {"latin4", "ISO-8859-4"},
    {"iso88595", "ISO-8859-5"},    {"iso88596", "ISO-8859-6"},   {"iso88597", "ISO-8859-7"},
    {"iso88598", "ISO-8859-8"},    {"iso88599", "ISO-8859-9"},   {"latin5", "ISO-8859-9"},
    {"iso885910", "ISO-8859-10"},  {"latin6", "ISO-8859-10"},    {"iso885911", "ISO-8859-11"},
    {"tis620", "ISO-8859-11"},     {"iso885913", "ISO-8859-13"}, {"latin7", "ISO-8859-13"},
    {"iso885914", "ISO-8859-14"},  {"latin8", "ISO-8859-14"},    {"iso885915", "ISO-8859-15"},
    {"latin9", "ISO-8859-15"},     {"iso885916", "ISO-8859-16"}, {"latin10", "ISO-8859-16"},
    {"windows874", "CP874"},       {"cp874", "CP874"},           {"windows1250", "CP1250"},
    {"cp1250", "CP1250"},          {"windows1251", "CP1251"},    {"cp1251", "CP1251"},
    {"windows1252", "CP1252"},     {"cp1252", "CP1252"},         {"windows1253", "CP1253"},
    {"cp1253", "CP1253"},          {"windows1254", "CP1254"},    {"cp1254", "CP1254"},
    {"windows1255", "CP1255"},     {"cp1255", "CP1255"},         {"windows1256", "CP1256"},
    {"cp1256", "CP1256"},          {"windows1257", "CP1257"},    {"cp1257", "CP1257"},
    {"windows1258", "CP1258"},     {"cp1258", "CP1258"},         {"koi8r", "KOI8-R"},
    {"koi8u", "KOI8-U"},           {"ibm866", "CP866"},          {"cp866", "CP866"},
    {"macintosh", "MACINTOSH"},    {"macroman", "MACINTOSH"},    {"xmacroman", "MACINTOSH"},
};

// Returns false for a name that is too long to be one of the labels.
static bool make_label(const char *name, char label[16]) {
  size_t count = 0;
  for (; *name; name++) {
    if (*name == '-' || *name == '_') continue;
    if (count == 15) return false;
    bool is_capital = *name >= 'A' && *name <= 'Z';
    label[count++] = is_capital ? (char)(*name - 'A' + 'a') : *name;
  }
  label[count] = 0;
  return true;
}

static const char *find(const encoding *list, size_t count, const char *name) {
  char label[16];
  if (!make_label(name, label)) return NULL;
  for (size_t index = 0; index < count; index++) {
    if (strcmp(list[index].label, label) == 0) return list[index].name;
  }
  return NULL;
}

const char *cll_encoding_alias(const char *name) {
  return find(aliases, sizeof aliases / sizeof *aliases, name);
}

static int character_of(iconv_t converter, uint8_t byte) {
  char from = (char)byte;
  uint8_t to[16];
  char *input = &from;
  char *output = (char *)to;
  size_t input_left = 1;
  size_t output_left = sizeof to;
  iconv(converter, NULL, NULL, NULL, NULL);
  if (iconv(converter, &input, &input_left, &output, &output_left) != 0) return -1;
  // Some converters hold a letter back, because an accent may follow that becomes part of it.
  iconv(converter, NULL, NULL, &output, &output_left);
  if (output_left != sizeof to - 4) return -1;
  return to[0] << 24 | to[1] << 16 | to[2] << 8 | to[3];
}

bool cll_encoding_table(const char *name, int table[256]) {
  const char *known = find(tables, sizeof tables / sizeof *tables, name);
  if (!known) return false;
  iconv_t converter = iconv_open("UTF-32BE", known);
  if (converter == (iconv_t)-1) return false;
  for (int byte = 0; byte < 256; byte++) table[byte] = character_of(converter, (uint8_t)byte);
  iconv_close(converter);
  return true;
}
