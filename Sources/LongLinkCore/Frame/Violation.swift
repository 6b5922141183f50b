// SPDX-License-Identifier: Apache-2.0

/// A rule of the wire that the peer broke; each closes the connection.
public struct Violation: Error, Hashable, Sendable, CustomStringConvertible {
  /// The rules, by the names that the vectors use.
  public enum Rule: String, CaseIterable, Hashable, Sendable {
    /// The checksum of a frame did not match: it was damaged on its way, or its sender is wrong.
    case checksumMismatch
    /// A body, or the sum of a message's fragments, is longer than was allowed.
    case lengthOverLimit
    /// A frame was not complete in time after its first byte.
    case frameTimeout
    /// A frame kind that version 1 does not know.
    case unknownKind
    /// A frame kind of a feature that both sides did not agree to use.
    case kindNotAgreed
    /// A metadata or more flag where none is allowed.
    case flagNotAllowed
    /// In the native protocol, a tag that the kind does not allow.
    case tagNotAllowed
    /// In a dialect, a type that the frame cannot have, or one that does not fit its request.
    case typeNotAllowed
    /// A body length that the kind does not allow.
    case sizeNotAllowed
    /// A serial that the kind, or its sender, may not use.
    case serialOutOfRange
    /// A request with the serial of one that is still running.
    case serialInUse
    /// A metadata block that is longer than the body that holds it.
    case metadataTooLong
    /// A control body or metadata block that cannot be decoded.
    case malformedControl
    /// A hello after another frame.
    case helloNotFirst
    /// A hello from a server, or a second one.
    case unexpectedHello
    /// A welcome from a client, a second one, or one that nobody asked for.
    case unexpectedWelcome
    /// A welcome that agrees to a feature that was not offered.
    case featureNotOffered
    /// A welcome with a version above the one that was offered.
    case versionNotOffered
    /// A fragment that does not continue what came before it.
    case fragmentMismatch
    /// More than 100 pings in 10 seconds.
    case tooManyPings
    /// No frame came in time on a new connection.
    case firstFrameTimeout
    /// The stream ended in the middle of a frame.
    case truncatedFrame
    /// In a dialect, a constant, version or repeated type is not what it has to be.
    case fieldMismatch
    /// In a dialect, a delimiter does not stand where the frame has to have one.
    case delimiterMissing

    /// The rules that dialects have and the native layout does not.
    package static let ofDialects: Set<Rule> = [
      .typeNotAllowed, .fieldMismatch, .delimiterMissing,
    ]
  }

  /// The rule that was broken.
  public let rule: Rule
  /// The kind byte of the frame at fault; nil where none is known.
  public let kind: UInt8?
  /// The serial of the frame at fault; nil where none is known.
  public let serial: UInt32?
  /// The number that broke the rule (a length, a tag, a type), where there is one.
  public let value: UInt64?
  /// The number that had to stand in its place, where only one was right.
  public let expected: UInt64?

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

  /// Not inlined, since it is made in many places and seldom.
  @inline(never)
  package init(_ rule: Rule, _ head: FrameHead, value: UInt64? = nil) {
    self.init(rule, kind: head.kind.rawValue, serial: head.serial, value: value)
  }

  /// The code that the goaway carries which tells the peer.
  package var goawayCode: ResponseCode {
    switch rule {
    case .frameTimeout, .firstFrameTimeout: .deadlinePassed
    case .lengthOverLimit: .tooLarge
    case .tooManyPings: .overloaded
    default: .malformed
    }
  }
}
