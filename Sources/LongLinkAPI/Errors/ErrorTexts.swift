internal import LongLinkConnection
public import LongLinkCore

/// Short texts for people, by the codes of errors: a table that an application replaces to speak
/// another language, or to say more of its own.
public struct ErrorTexts: Sendable {
  /// The texts of single codes.
  public var texts: [ErrorCode: String]
  /// What is said where there is no text for a code.
  public var other: String
  /// What is said besides, when the request may have run; empty for nothing.
  public var mayHaveRun: String

  /// Makes a table.
  public init(texts: [ErrorCode: String], other: String, mayHaveRun: String = "") {
    self.texts = texts
    self.other = other
    self.mayHaveRun = mayHaveRun
  }

  /// The text for a failure.
  public func text(for code: ErrorCode, delivery: Delivery) -> String {
    let text = texts[code] ?? other
    guard delivery == .sent, code != .cancelled, !mayHaveRun.isEmpty else { return text }
    return "\(text) \(mayHaveRun)"
  }

  /// The texts in English.
  public static let english = ErrorTexts(
    texts: [
      .notConnected: "There is no connection. Try again later.",
      .connectFailed: "The server cannot be reached. Check the network and try again.",
      .connectionLost: "The connection was lost.",
      .deadlineExceeded: "The server took too long to answer.",
      .cancelled: "Cancelled.",
      .corrupted: "What arrived was damaged on its way.",
      .protocolViolation: "This program and the server do not understand each other.",
      .tooLarge: "This is more than the server accepts.",
      .encodingFailed: "This cannot be sent.",
      .decodingFailed: "The server's answer could not be understood.",
      .overloaded: "Too much is under way at once. Try again in a moment.",
      .closed: "The connection was closed.",
      .invalidConfiguration: "This program is not configured correctly.",
      ErrorCode(.malformed): "The server could not understand the request.",
      ErrorCode(.unauthenticated): "Sign in first.",
      ErrorCode(.forbidden): "This is not allowed.",
      ErrorCode(.unknownType): "The server does not know how to do this.",
      ErrorCode(.deadlinePassed): "The server ran out of time.",
      ErrorCode(.conflict): "This was done before in another way.",
      ErrorCode(ResponseCode.tooLarge): "This is more than the server accepts.",
      ErrorCode(ResponseCode.overloaded): "The server is busy. Try again in a moment.",
      ErrorCode(ResponseCode.cancelled): "Cancelled.",
      ErrorCode(.failed): "Something went wrong on the server.",
      ErrorCode(.draining): "The server is restarting. Try again in a moment.",
    ],
    other: "Something went wrong.",
    mayHaveRun: "It is not known whether it was done.")
}
