// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension FrameDialect {
  /// What the codes of responses mean.
  public struct Codes: Hashable, Sendable {
    /// The codes of success; the first is sent, also in frames that are no responses.
    public let success: [UInt32]
    /// The code that is sent for a failure that no other code says.
    public let failure: UInt32
    /// The codes of errors, with their meanings. Any other code is an error without a name.
    public let errors: [DialectErrorCode]

    /// Makes a table of codes; it is checked when a dialect is made of it.
    public init(success: [UInt32], failure: UInt32, errors: [DialectErrorCode] = []) {
      self.success = success
      self.failure = failure
      self.errors = errors
    }

    /// The entry for a code of the wire; nil for one that is no listed error.
    public func error(_ code: UInt32) -> DialectErrorCode? {
      errors.first { $0.code == code }
    }

    /// The library's code for one of the wire.
    package func native(of code: UInt32) -> ResponseCode {
      if success.contains(code) { return .ok }
      if let entry = error(code) { return entry.meaning }
      let isPlain = code <= Wire.codeMask && code != ResponseCode.ok.rawValue
      return isPlain ? ResponseCode(rawValue: code) : .failed
    }

    /// The wire's code for one of the library, where codes go up to `largest`.
    package func wire(of code: ResponseCode, largest: UInt32) -> UInt32 {
      if code == .ok { return success[0] }
      // Of several that mean the same, the one for failures of no other kind goes first.
      if code == native(of: failure) { return failure }
      if let entry = errors.first(where: { $0.meaning == code }) { return entry.code }
      let isFree = !success.contains(code.rawValue) && error(code.rawValue) == nil
      return isFree && code.rawValue <= largest ? code.rawValue : failure
    }
  }
}
