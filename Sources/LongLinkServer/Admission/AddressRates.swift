// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport

/// How many connections each address may still open: a token bucket for each IPv4 address and each
/// IPv6 network of 64 bits.
///
/// The number of buckets is bounded, however many addresses a client has. There are two
/// generations: when the younger one is full, it becomes the older one, whose buckets are
/// forgotten. A bucket that is used moves to the younger one, so the stalest go first. A forgotten
/// bucket counts as full, so an attacker gains nothing that fresh addresses would not also give.
struct AddressRates {
  /// The most buckets in a generation. Both generations together take about 1 MiB.
  static let mostOfGeneration = 8_192

  var rate: TokenBucket.Rate
  private var young: [SocketAddress.Group: TokenBucket] = [:]
  private var old: [SocketAddress.Group: TokenBucket] = [:]

  init(_ rate: TokenBucket.Rate) {
    self.rate = rate
  }

  /// The number of buckets in both generations.
  var count: Int { young.count + old.count }

  /// Takes a token from the bucket of a group; false if the bucket is empty.
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
