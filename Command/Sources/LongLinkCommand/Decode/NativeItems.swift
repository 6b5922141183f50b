// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// The exchanges in which one side has sent items, ends or credit: they determine what it can still
/// send there. What only the other side's frames show is not judged.
struct NativeItems {
  private struct Exchange {
    /// Whether items of this side follow its request; nil if that is unknown.
    var mayHaveItems: Bool?
    /// Whether this side asked for items of the other one, and so may grant credit; nil if unknown.
    var mayGrant: Bool?
    /// Whether an item, an end or credit has been sent.
    var hasBegun = false
    /// The number of fragments of the unfinished item.
    var fragments = 0
    var hasEnded = false
  }

  private var exchanges: [UInt32: Exchange] = [:]

  /// Notes a request of this side that has been sent to its end, with its metadata; nil if that is
  /// not known. Returns the rule that these break, if any.
  mutating func asked(_ serial: UInt32, _ metadata: [UInt8]?) -> Violation.Rule? {
    // A block that cannot be decoded says nothing. The span does not outlive the call.
    let received = metadata.flatMap { try? unsafe ReceivedMetadata(block: $0.span.bytes) }
    exchanges[serial] = Exchange(
      mayHaveItems: received?.items, mayGrant: received.map { $0.credit != nil })
    return Int(received?.credit ?? 0) > Wire.mostCredit ? .creditNotAllowed : nil
  }

  /// Notes the first frame of a response of this side. Returns the rule that it breaks, if any.
  mutating func answered(_ serial: UInt32, tag: UInt32) -> Violation.Rule? {
    guard let exchange = exchanges.removeValue(forKey: serial) else { return nil }
    if tag & Wire.refusedBit != 0 { return exchange.hasBegun ? .refusedAfterItems : nil }
    let isCutOff = tag & Wire.codeMask == ResponseCode.ok.rawValue && exchange.fragments > 0
    return isCutOff ? .itemCutOff : nil
  }

  mutating func cancelled(_ serial: UInt32) {
    exchanges[serial] = nil
  }

  /// Notes an item and sets its fragment number. Returns the rule that it breaks, if any.
  mutating func item(_ head: FrameHead, into frame: inout DecodedFrame) -> Violation.Rule? {
    var exchange = exchange(head.serial)
    if let problem = problem(in: exchange) { return problem }
    let hasMore = head.flags.contains(.more)
    if hasMore, head.length == 0 { return .sizeNotAllowed }
    if hasMore || exchange.fragments > 0 { frame.fragment = exchange.fragments + 1 }
    exchange.fragments = hasMore ? exchange.fragments + 1 : 0
    exchanges[head.serial] = exchange
    return nil
  }

  /// Notes an end. Returns the rule that it breaks, if any.
  mutating func end(_ serial: UInt32) -> Violation.Rule? {
    var exchange = exchange(serial)
    if let problem = problem(in: exchange) { return problem }
    if exchange.fragments > 0 { return .itemCutOff }
    exchange.hasEnded = true
    exchanges[serial] = exchange
    return nil
  }

  /// Notes credit. Returns the rule that it breaks, if any.
  mutating func credit(
    _ serial: UInt32, _ body: ArraySlice<UInt8>, into frame: inout DecodedFrame
  ) -> Violation.Rule? {
    let bytes = body.reduce(0) { $0 << 8 | UInt32($1) }
    frame.credit = bytes
    guard (1...Wire.mostCredit).contains(Int(bytes)) else { return .creditNotAllowed }
    let exchange = exchange(serial)
    if exchange.mayGrant == false { return .creditNotAllowed }
    exchanges[serial] = exchange
    return nil
  }

  private func exchange(_ serial: UInt32) -> Exchange {
    var exchange = exchanges[serial] ?? Exchange()
    exchange.hasBegun = true
    return exchange
  }

  private func problem(in exchange: Exchange) -> Violation.Rule? {
    if exchange.mayHaveItems == false { return .itemNotExpected }
    return exchange.hasEnded ? .itemAfterEnd : nil
  }
}
