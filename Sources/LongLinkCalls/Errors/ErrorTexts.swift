// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

/// A table of short texts for people, by error code, in one language.
///
/// For another language, make your own table, or change the texts of the English one.
public struct ErrorTexts: Sendable {
  /// The language, as a BCP 47 tag such as `en` or `zh-Hans`. `ApplicationError.text(in:)` gets it.
  public var language: String
  /// The texts by code.
  public var texts: [CallErrorCode: String]
  /// Makes the text of a code that has none in `texts`.
  public var other: @Sendable (CallErrorCode) -> String
  /// Makes the text for a request that may have run, from the text of its code.
  ///
  /// It is a function so that each language can combine the two parts in its own way. It is not
  /// called for calls that their callers cancelled.
  public var mayHaveRun: @Sendable (String) -> String

  /// Makes a table. By default, `mayHaveRun` adds nothing.
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

  /// Returns the text for a failure: `own` if the application's error has a text, else that of the
  /// code. If the request may have run (`delivery` is `sent`) and was not cancelled, it goes
  /// through `mayHaveRun`.
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
      .corrupted: "The data was damaged in transit.",
      .protocolViolation: "This program and the server are not compatible.",
      .tooLarge: "This is larger than the server accepts.",
      .encodingFailed: "This cannot be sent.",
      .decodingFailed: "The server's response could not be understood.",
      .overloaded: "Too many requests at once. Try again in a moment.",
      .closed: "The connection was closed.",
      .invalidConfiguration: "This program is not configured correctly.",
      .unsupported: "The server does not support this.",
      .streamEnded: "The transfer has already ended.",
      .securityFailed: "The connection to the server is not secure.",
      .notAccepted: "Sign in again: the server does not accept this sign-in.",
      .intercepted: "This cannot be done now.",
      CallErrorCode(.malformed): "The server could not understand the request.",
      CallErrorCode(.unauthenticated): "Sign in first.",
      CallErrorCode(.forbidden): "This is not allowed.",
      CallErrorCode(.unknownType): "The server does not know how to do this.",
      CallErrorCode(.deadlinePassed): "The server ran out of time.",
      CallErrorCode(.conflict): "This conflicts with an earlier request.",
      CallErrorCode(ResponseCode.tooLarge): "This is larger than the server accepts.",
      CallErrorCode(ResponseCode.overloaded): "The server is busy. Try again in a moment.",
      CallErrorCode(ResponseCode.cancelled): "Cancelled.",
      CallErrorCode(.failed): "Something went wrong on the server.",
      CallErrorCode(.draining): "The server is restarting. Try again in a moment.",
    ],
    other: { "Something went wrong (error \($0))." },
    mayHaveRun: { "\($0) It is not known whether it was done." })
}
