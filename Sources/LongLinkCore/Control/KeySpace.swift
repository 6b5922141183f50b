// SPDX-License-Identifier: Apache-2.0

/// The 16 bytes that name where a client's keys are kept: the store, its retention and the client.
package struct KeySpace: Hashable, Sendable {
  /// The number of bytes.
  package static let size = 16
  /// No key space: stated by a client that does not know its own yet.
  package static let none = KeySpace(0, 0)

  let high: UInt64
  let low: UInt64

  /// Makes a key space from its halves.
  package init(_ high: UInt64, _ low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Makes a key space from 16 bytes, such as the first of a hash; nil for any other number.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == KeySpace.size else { return nil }
    let halves = bytes.enumerated().reduce(into: (UInt64(0), UInt64(0))) { halves, byte in
      if byte.offset < 8 {
        halves.0 = halves.0 << 8 | UInt64(byte.element)
      } else {
        halves.1 = halves.1 << 8 | UInt64(byte.element)
      }
    }
    self.init(halves.0, halves.1)
  }

  /// The bytes as they are sent.
  package var bytes: [UInt8] {
    unsafe withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { unsafe [UInt8]($0) }
  }
}

extension ProtobufReader {
  /// Reads a field of type `bytes` that is a key space; nil if it is empty.
  mutating func keySpace() throws(BodyError) -> KeySpace? {
    let range = try bytesInPlace()
    if range.isEmpty { return nil }
    guard range.count == KeySpace.size else {
      throw BodyError(
        .malformed, at: range.lowerBound, detail: "a key_space of \(range.count) bytes")
    }
    return keySpace(at: range.lowerBound)
  }

  /// Returns the 16 bytes at a position that `bytesInPlace` has found.
  func keySpace(at position: Int) -> KeySpace {
    // Both halves are inside the body.
    func half(_ offset: Int) -> UInt64 {
      let start = unsafe UnsafeRawPointer(body + position + offset)
      return unsafe UInt64(bigEndian: start.loadUnaligned(as: UInt64.self))
    }
    return KeySpace(half(0), half(8))
  }
}

/// The terms that a server has told a client whose requests under a key run once there.
package struct OnceTerms: Equatable, Sendable {
  package let space: KeySpace
  /// For how long the store keeps an answer, in milliseconds; at least 1.
  package let retention: UInt32
  /// The store's clock when the terms were stated, in milliseconds; never 0.
  package let time: UInt64
  /// When a client has read them.
  private let readAt: LinkInstant

  /// Makes terms. A retention or time of 0 counts as 1.
  package init(
    space: KeySpace, retention: UInt32, time: UInt64,
    readAt: LinkInstant = LinkInstant(nanoseconds: 0)
  ) {
    precondition(space != .none, "16 zero bytes are no space")
    self.space = space
    self.retention = max(retention, 1)
    self.time = max(time, 1)
    self.readAt = readAt
  }

  /// The store's clock at an instant, as a client counts on from what it has read.
  package func time(at now: LinkInstant) -> UInt64 {
    time &+ UInt64(max(0, now - readAt) / 1_000_000)
  }

  /// The terms that a welcome states; nil if it states none.
  ///
  /// Throws unless a welcome with the feature *once* states all of them, and any other none.
  init?(_ welcome: Welcome, readAt now: LinkInstant) throws(Violation) {
    let states = welcome.keySpace != nil || welcome.keyRetention != 0 || welcome.keyTime != 0
    guard states || Features(rawValue: welcome.features).contains(.once) else { return nil }
    guard Features(rawValue: welcome.features).contains(.once),
      let space = welcome.keySpace, space != .none,
      welcome.keyRetention > 0, welcome.keyTime > 0
    else { throw Violation(.malformedControl, kind: FrameKind.welcome.rawValue) }
    self.init(
      space: space, retention: welcome.keyRetention, time: welcome.keyTime, readAt: now)
  }
}
