// SPDX-License-Identifier: Apache-2.0

/// A protocol violation by the peer, which closes the connection.
public struct Violation: Error, Hashable, Sendable, CustomStringConvertible {
  /// The rules of the protocol, named as in the test vectors.
  package enum Rule: String, CaseIterable, Hashable, Sendable {
    /// The checksum of a frame did not match: the frame was damaged, or its sender is wrong.
    case checksumMismatch
    /// A body, or the sum of a message's fragments, exceeds the limit.
    case lengthOverLimit
    /// A frame was not complete within the timeout after its first byte.
    case frameTimeout
    /// A frame kind that version 1 does not know.
    case unknownKind
    /// A frame kind of a feature that was not negotiated.
    case kindNotAgreed
    /// A `metadata` or `more` flag that is not allowed here.
    case flagNotAllowed
    /// In the native protocol, a tag that the kind does not allow.
    case tagNotAllowed
    /// In a dialect, a type that the frame cannot have, or that does not match its request.
    case typeNotAllowed
    /// A body length that the kind does not allow.
    case sizeNotAllowed
    /// A serial that the kind or the sender cannot use.
    case serialOutOfRange
    /// A request with the serial of another request that is still running.
    case serialInUse
    /// A metadata block that is longer than the body that contains it.
    case metadataTooLong
    /// A control body or metadata block that cannot be decoded.
    case malformedControl
    /// A hello after another frame.
    case helloNotFirst
    /// A hello from a server, or a second one.
    case unexpectedHello
    /// A welcome from a client, a second one, or one without a hello.
    case unexpectedWelcome
    /// A welcome with a feature that the client did not offer.
    case featureNotOffered
    /// A welcome with a version above the offered one.
    case versionNotOffered
    /// A fragment that does not continue the fragments before it.
    case fragmentMismatch
    /// More than 100 pings in 10 seconds.
    case tooManyPings
    /// No frame arrived in time on a new connection.
    case firstFrameTimeout
    /// The stream ended in the middle of a frame.
    case truncatedFrame
    /// An item or end on a stream that has none in that direction; or an item, end or credit before
    /// the last frame of its request.
    case itemNotExpected
    /// An item or end after the end of the items.
    case itemAfterEnd
    /// An end, or a response with code 200, in the middle of an item of its sender.
    case itemCutOff
    /// Credit of an invalid size, or for a direction without items.
    case creditNotAllowed
    /// A grant that raises the credit above 2,147,483,647 bytes.
    case creditOverflow
    /// An item that costs more than the credit.
    case creditExceeded
    /// A response with the refused mark after an item or credit from its sender.
    case refusedAfterItems
    /// In a dialect, a constant, version or repeated type has the wrong value.
    case fieldMismatch
    /// In a dialect, a required delimiter is missing.
    case delimiterMissing
  }

  /// The rule that was broken.
  package let rule: Rule
  /// The kind byte of the offending frame; nil if it is not known.
  public let kind: UInt8?
  /// The serial of the offending frame; nil if it is not known.
  public let serial: UInt32?
  /// The number that broke the rule, such as a length, a tag or a type; nil if no number did.
  public let value: UInt64?
  /// The number that was expected instead of `value`; nil if there is not exactly one.
  public let expected: UInt64?

  /// The name of the rule, such as `lengthOverLimit`, which is stable across versions.
  public var token: String { rule.rawValue }

  package init(
    _ rule: Rule, kind: UInt8? = nil, serial: UInt32? = nil, value: UInt64? = nil,
    expected: UInt64? = nil
  ) {
    self.rule = rule
    self.kind = kind
    self.serial = serial
    self.value = value
    self.expected = expected
  }

  /// Makes a violation by a frame. It is not inlined, because it has many call sites and rarely
  /// runs.
  @inline(never)
  package init(_ rule: Rule, _ head: FrameHead, value: UInt64? = nil) {
    self.init(rule, kind: head.kind.rawValue, serial: head.serial, value: value)
  }

  /// The code of the goaway that reports this violation to the peer.
  package var goawayCode: ResponseCode {
    switch rule {
    case .frameTimeout, .firstFrameTimeout: .deadlinePassed
    case .lengthOverLimit: .tooLarge
    case .tooManyPings: .overloaded
    default: .malformed
    }
  }
}
