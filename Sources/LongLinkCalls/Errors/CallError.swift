// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// An error that an application has defined for its own response codes, from 1000 on.
///
/// Two services may use the same codes: each names its own errors (``CallService/errors``).
public protocol ApplicationError: Error {
  /// Makes the error of a code and the body that came with it; nil where the code is not one of
  /// these. The bytes come from the network. May be called on any thread.
  init?(code: ResponseCode, body: [UInt8])
  /// What people are told, in the language of the table of texts (`ErrorTexts.language`).
  ///
  /// Nil, the default, leaves it to the table: to its text for the code, if it has one.
  func text(in language: String) -> String?
}

extension ApplicationError {
  /// Nothing: the table of texts says it.
  public func text(in language: String) -> String? { nil }
}

/// Why a call failed: a number for programs, a text for people, and all that the link knows.
public struct CallError: Error, Sendable {
  /// The number by which programs know the failure.
  public let code: CallErrorCode
  /// What people are told.
  public let text: String
  /// The application's own error, for a code from 1000 on that one of its types knows.
  public let application: (any ApplicationError)?
  /// All that the link knows of it.
  public let link: LongLinkError

  /// What may have happened to the request: whether a retry is safe.
  public var delivery: Delivery { link.delivery }

  /// Makes the error of a failure of the link.
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

extension CallError: CustomStringConvertible {
  /// The number, the text, and what the link says.
  public var description: String { "\(code): \(text) [\(link)]" }
}
