// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension FrameDialect {
  /// The meanings of response codes.
  public struct Codes: Hashable, Sendable {
    /// The codes that mean success; at least one. This side sends the first one, also in the code
    /// field of frames that are not responses.
    public let success: [UInt32]
    /// The code that is sent for a failure without a more specific code; none of `success`.
    public let failure: UInt32
    /// The codes of errors, with their meanings. Any other code is an error without a name.
    public let errors: [DialectErrorCode]

    /// Makes a table of codes; it is checked when a dialect is made from it.
    public init(success: [UInt32], failure: UInt32, errors: [DialectErrorCode] = []) {
      self.success = success
      self.failure = failure
      self.errors = errors
    }

    /// Returns the entry for a code on the wire; nil if it is not listed as an error.
    public func error(_ code: UInt32) -> DialectErrorCode? {
      errors.first { $0.code == code }
    }

    /// The library's code for a code on the wire.
    package func native(of code: UInt32) -> ResponseCode {
      if success.contains(code) { return .ok }
      if let entry = error(code) { return entry.meaning }
      guard let plain = ResponseCode(rawValue: code), plain != .ok else { return .failed }
      return plain
    }

    /// The code on the wire, at most `largest`, for a code of the library.
    package func wire(of code: ResponseCode, largest: UInt32) -> UInt32 {
      if code == .ok { return success[0] }
      // If several codes have this meaning, prefer the one for general failures.
      if code == native(of: failure) { return failure }
      if let entry = errors.first(where: { $0.meaning == code }) { return entry.code }
      let isFree = !success.contains(code.rawValue) && error(code.rawValue) == nil
      return isFree && code.rawValue <= largest ? code.rawValue : failure
    }
  }
}
