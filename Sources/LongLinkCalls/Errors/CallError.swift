// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// An error that an application defines for its own response codes, from 1000 on.
///
/// Two services may use the same codes: each has its own list of errors (``CallService/errors``).
public protocol ApplicationError: Error {
  /// Makes the error of a response's code and body; nil if the type does not define this code.
  ///
  /// The bytes come from the network: check them. It may be called on any thread.
  init?(code: ResponseCode, body: [UInt8])
  /// Returns the text for people, in the language of `ErrorTexts.language`.
  ///
  /// Nil, the default, means the text of `ErrorTexts` for the code.
  func text(in language: String) -> String?
}

extension ApplicationError {
  /// Returns nil: `ErrorTexts` has the text.
  public func text(in language: String) -> String? { nil }
}

/// The error of a call: a code for programs, a text for people, and the underlying error.
public struct CallError: Error, Sendable {
  /// The code for programs.
  public let code: CallErrorCode
  /// The text for people.
  public let text: String
  /// The application's own error, if one of its types defines the response's code.
  public let application: (any ApplicationError)?
  /// The underlying error, with all details.
  public let link: LongLinkError

  /// What may have happened to the request: whether a retry is safe.
  public var delivery: Delivery { link.delivery }

  /// Makes the error of a call from its underlying error.
  public init(
    _ link: LongLinkError, texts: ErrorTexts = .english,
    applicationErrors: [any ApplicationError.Type] = []
  ) {
    self.link = link
    code = CallErrorCode(link)
    var application: (any ApplicationError)?
    if let response = link.response, response.isApplication {
      for type in applicationErrors where application == nil {
        application = type.init(code: response, body: link.body)
      }
    }
    self.application = application
    text = texts.text(
      for: code, delivery: link.delivery, own: application?.text(in: texts.language))
  }
}

extension CallError: CancellableError {
  package var wasCancelled: Bool { link.wasCancelled }
}

extension CallError: CustomStringConvertible {
  /// The code, the text, and the underlying error.
  public var description: String { "\(code): \(text) [\(link)]" }
}
