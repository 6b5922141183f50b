// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

/// Short texts for people, by the codes of errors, in one language.
///
/// An application makes its own table to speak another language, or changes texts of this one.
public struct ErrorTexts: Sendable {
  /// The language, as a BCP 47 tag such as `en` or `zh-Hans`; `ApplicationError`s are asked for it.
  public var language: String
  /// The texts of single codes.
  public var texts: [CallErrorCode: String]
  /// Makes the text of a code that has none in `texts`.
  public var other: @Sendable (CallErrorCode) -> String
  /// Makes the text that is shown where the request may have run, from the text of its code.
  ///
  /// It places both parts as the language wants them. A call that the caller cancelled gets the
  /// plain text.
  public var mayHaveRun: @Sendable (String) -> String

  /// Makes a table; without `mayHaveRun` nothing is said of requests that may have run.
  public init(
    language: String, texts: [CallErrorCode: String],
    other: @escaping @Sendable (CallErrorCode) -> String,
    mayHaveRun: @escaping @Sendable (String) -> String = { $0 }
  ) {
    self.language = language
    self.texts = texts
    self.other = other
    self.mayHaveRun = mayHaveRun
  }

  /// The text for a failure. `own` is what the application's error says, where it says anything.
  public func text(for code: CallErrorCode, delivery: Delivery, own: String? = nil) -> String {
    let text = own ?? texts[code] ?? other(code)
    return delivery == .sent && code != .cancelled ? mayHaveRun(text) : text
  }

  /// The texts in English.
  public static let english = ErrorTexts(
    language: "en",
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
      .unsupported: "The server has no way to do this.",
      CallErrorCode(.malformed): "The server could not understand the request.",
      CallErrorCode(.unauthenticated): "Sign in first.",
      CallErrorCode(.forbidden): "This is not allowed.",
      CallErrorCode(.unknownType): "The server does not know how to do this.",
      CallErrorCode(.deadlinePassed): "The server ran out of time.",
      CallErrorCode(.conflict): "This was done before in another way.",
      CallErrorCode(ResponseCode.tooLarge): "This is more than the server accepts.",
      CallErrorCode(ResponseCode.overloaded): "The server is busy. Try again in a moment.",
      CallErrorCode(ResponseCode.cancelled): "Cancelled.",
      CallErrorCode(.failed): "Something went wrong on the server.",
      CallErrorCode(.draining): "The server is restarting. Try again in a moment.",
    ],
    other: { "Something went wrong (error \($0))." },
    mayHaveRun: { "\($0) It is not known whether it was done." })
}
