// SPDX-License-Identifier: Apache-2.0

/// The totals of a client that its connections cannot count themselves.
struct ClientTotals {
  var connects: UInt64 = 0
  var failedAttempts: UInt64 = 0
  var abandonedAttempts: UInt64 = 0
  var trialsPassed: UInt64 = 0
  var trialsFailed: UInt64 = 0
  var linksExpired: UInt64 = 0
  var alternativesIgnored: UInt64 = 0
}
