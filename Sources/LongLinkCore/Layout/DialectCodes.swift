extension FrameDialect {
  /// A code that says that a request failed.
  public struct ErrorCode: Hashable, Sendable {
    /// The number on the wire.
    public let code: UInt32
    /// A short name, such as `unknownType`.
    public let name: String
    /// What it means, for people.
    public let text: String
    /// The code that stands for it in the library; nil for that with the same number.
    public let native: ResponseCode?

    /// Makes an entry of a table of codes; it is checked when a dialect is made of it.
    public init(_ code: UInt32, _ name: String, _ text: String = "", native: ResponseCode? = nil) {
      self.code = code
      self.name = name
      self.text = text
      self.native = native
    }

    /// Number, name and meaning in one line.
    package var summary: String {
      let title = name.isEmpty ? "\(code)" : "\(code) \(name)"
      return text.isEmpty ? title : "\(title): \(text)"
    }

    var meaning: ResponseCode { native ?? ResponseCode(rawValue: code) }
  }

  /// What the codes of responses mean.
  public struct Codes: Hashable, Sendable {
    /// The codes of success; the first is sent, also in frames that are no responses.
    public let success: [UInt32]
    /// The code that is sent for a failure that no other code says.
    public let failure: UInt32
    /// The codes of errors, with their meanings. Any other code is an error without a name.
    public let errors: [ErrorCode]

    /// Makes a table of codes; it is checked when a dialect is made of it.
    public init(success: [UInt32], failure: UInt32, errors: [ErrorCode] = []) {
      self.success = success
      self.failure = failure
      self.errors = errors
    }

    /// The entry for a code of the wire; nil for one that is no listed error.
    public func error(_ code: UInt32) -> ErrorCode? {
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
