// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINKREADERSJSON_H
#define CLONGLINKREADERSJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Where in a JSON value the next byte is. All zeros in front of a value.
typedef struct {
  /// The arrays and objects that are open.
  size_t depth;
  bool is_in_string;
  /// Whether a backslash is in front of the next byte, in a string.
  bool is_escaped;
  /// Whether the value has ended, or was nested deeper than allowed.
  bool has_ended;
  bool is_too_deep;
} cll_json_place;

/// Goes to the end of an array, object or string, whose first byte is the first one given for it. Returns
/// the number of bytes that belong to it; the place says whether it has ended. Looks at brackets, quotes
/// and backslashes alone, and takes any bracket that closes for the one that is expected.
size_t cll_json_skip(
    cll_json_place *place, const uint8_t *bytes, size_t count, size_t most_depth);

/// The same byte by byte, to be compared with it.
size_t cll_json_skip_portable(
    cll_json_place *place, const uint8_t *bytes, size_t count, size_t most_depth);

#ifdef __cplusplus
}
#endif

#endif
