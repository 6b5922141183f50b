// SPDX-License-Identifier: Apache-2.0

/// Counters of the short links of one way, since the client was made.
struct ShortLinkCounters {
  var begun: UInt64 = 0
  var failed: UInt64 = 0
  var requests: UInt64 = 0
  var unanswered: UInt64 = 0
}
