// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport

/// How many connections each address may still open: a token bucket for each IPv4 address and each
/// IPv6 network of 64 bits.
///
/// The number of buckets is bounded, whoever has how many addresses. There are two generations: if
/// the younger one is full, it becomes the older one, whose buckets are forgotten. A bucket that is
/// used moves to the younger one, so the stalest go first. To be forgotten is to have a full bucket
/// again, so an attacker gains nothing that fresh addresses do not give it.
struct AddressRates {
  /// The most buckets of a generation; both together take about 1 MiB.
  static let mostOfGeneration = 8_192

  private let rate: TokenBucket.Rate
  private var young: [SocketAddress.Group: TokenBucket] = [:]
  private var old: [SocketAddress.Group: TokenBucket] = [:]

  init(_ rate: TokenBucket.Rate) {
    self.rate = rate
  }

  /// The number of buckets.
  var count: Int { young.count + old.count }

  /// Takes a token of a group; false if it has none.
  mutating func take(_ group: SocketAddress.Group, at now: LinkInstant) -> Bool {
    var bucket = young[group] ?? old.removeValue(forKey: group) ?? TokenBucket(at: now)
    let isTaken = bucket.take(of: rate, at: now)
    if young[group] == nil, young.count >= AddressRates.mostOfGeneration {
      old = young
      young = [:]
    }
    young[group] = bucket
    return isTaken
  }
}
