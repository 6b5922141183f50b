// SPDX-License-Identifier: Apache-2.0

extension Violation {
  /// The rule, and what is known about the offending frame, such as
  /// `typeNotAllowed: response to request 7 has type 6, not 5`.
  public var description: String {
    guard let subject = subject ?? (value == nil ? nil : "frame") else { return rule.rawValue }
    return "\(rule.rawValue): \(subject)\(fault)"
  }

  /// The offending frame; nil if nothing is known about it.
  private var subject: String? {
    // A wrong serial belongs to no request, and can be wider than 32 bits.
    let isSerial = rule == .serialOutOfRange
    let serial = isSerial ? value ?? self.serial.map(UInt64.init) : self.serial.map(UInt64.init)
    guard let kind else { return serial.map { "frame with serial \($0)" } }
    switch (FrameKind(rawValue: kind), serial) {
    case (.request, let serial?) where !isSerial: return "request \(serial)"
    case (.response, let serial?) where !isSerial: return "response to request \(serial)"
    case (.cancel, let serial?) where !isSerial: return "cancel of request \(serial)"
    case (let known, let serial):
      let name = known.map { "\($0)" } ?? "frame of kind 0x\(String(kind, radix: 16))"
      return name + (serial.map { " with serial \($0)" } ?? "")
    }
  }

  /// The part of the frame that is wrong, if a number shows it.
  private var fault: String {
    guard let value else { return "" }
    switch rule {
    case .tagNotAllowed: return " has tag \(value)"
    case .typeNotAllowed: return " has type \(value)\(expected.map { ", not \($0)" } ?? "")"
    case .fieldMismatch:
      let expected = expected.map { ", not 0x\(String($0, radix: 16))" } ?? ""
      return " has 0x\(String(value, radix: 16))\(expected)"
    case .lengthOverLimit, .sizeNotAllowed: return " has \(value) bytes"
    case .creditNotAllowed, .creditOverflow, .creditExceeded: return " of \(value) bytes"
    case .metadataTooLong: return " has \(value) bytes of metadata"
    case .featureNotOffered: return " has features 0x\(String(value, radix: 16))"
    case .versionNotOffered: return " has version \(value)"
    case .checksumMismatch, .frameTimeout, .unknownKind, .kindNotAgreed, .flagNotAllowed,
      .serialOutOfRange, .serialInUse, .malformedControl, .helloNotFirst, .unexpectedHello,
      .unexpectedWelcome, .fragmentMismatch, .tooManyPings, .firstFrameTimeout, .truncatedFrame,
      .delimiterMissing, .itemNotExpected, .itemAfterEnd, .itemCutOff, .refusedAfterItems:
      return ""
    }
  }
}
