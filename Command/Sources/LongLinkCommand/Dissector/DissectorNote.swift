// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// An expert note of a dissector.
struct DissectorNote {
  let name: String
  let text: String
  let group: String
  let severity: String

  init(_ name: String, _ text: String, group: String = "SEQUENCE", severity: String) {
    self.name = name
    self.text = text
    self.group = group
    self.severity = severity
  }

  static let further = [
    DissectorNote("lateReply", "This request has been answered before", severity: "WARN"),
    DissectorNote("answerToCancelled", "This request was cancelled before", severity: "NOTE"),
    DissectorNote("cancelOfNothing", "There is no running request to cancel", severity: "NOTE"),
    DissectorNote("unsolicitedPong", "No ping was seen for this pong", severity: "WARN"),
    DissectorNote("ignoredKind", "Receivers ignore this kind", severity: "NOTE"),
    DissectorNote("failed", "The request failed", group: "RESPONSE_CODE", severity: "NOTE"),
    DissectorNote(
      "skipped", "After a broken rule, no frame can be recognized here", group: "PROTOCOL",
      severity: "WARN"),
    DissectorNote(
      "notReassembled", "The rest of this frame is in other segments, and they are not joined",
      group: "REASSEMBLE", severity: "WARN"),
  ]

  /// The text that is shown for a broken rule; nil if a capture cannot show that it is broken.
  static func text(of rule: Violation.Rule) -> String? {
    switch rule {
    case .checksumMismatch: "The checksum is wrong"
    case .lengthOverLimit: "The length is over the limit"
    case .unknownKind: "This kind is unknown"
    case .kindNotAgreed: "This kind was not negotiated"
    case .flagNotAllowed: "A flag that is not allowed here"
    case .tagNotAllowed: "A tag that is not allowed here"
    case .typeNotAllowed: "A type that is not allowed here"
    case .sizeNotAllowed: "A size that is not allowed here"
    case .serialOutOfRange: "A serial that is not allowed here"
    case .serialInUse: "A request with this serial is under way"
    case .metadataTooLong: "The metadata is longer than the body"
    case .malformedControl: "This message cannot be decoded"
    case .helloNotFirst: "A hello after another frame"
    case .unexpectedHello: "A second hello, or one from a server"
    case .unexpectedWelcome: "A welcome that was not asked for"
    case .fragmentMismatch: "This fragment does not continue what came before"
    case .truncatedFrame: "The stream ends within a frame"
    case .fieldMismatch: "This field has another value than it must have"
    case .delimiterMissing: "The delimiter is missing"
    case .featureNotOffered: "A feature that the hello did not name"
    case .versionNotOffered: "A version above the hello's"
    case .tooManyPings: "Too many pings in a short time"
    case .itemNotExpected: "The request did not ask for this item, end or credit"
    case .itemAfterEnd: "The items have ended before"
    case .itemCutOff: "An item is not complete"
    case .creditNotAllowed: "Credit that is not allowed here"
    case .creditOverflow: "More credit than a side may have"
    case .creditExceeded: "An item beyond the credit"
    case .refusedAfterItems: "A refusal after items or credit"
    case .frameTimeout, .firstFrameTimeout: nil
    }
  }
}
