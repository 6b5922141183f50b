// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCommandSupport
import LongLinkCore

/// Prints results: JSON as they come, bodies in the order of the requests.
struct CallPrinter {
  private let asJSON: Bool
  private let separates: Bool
  /// Results that arrived before those of earlier requests.
  private var early: [Int: CallResult] = [:]
  private var next = 0
  private var failure: (index: Int, error: LongLinkError)?

  /// `separates` puts a newline after each body.
  init(asJSON: Bool, separates: Bool) {
    self.asJSON = asJSON
    self.separates = separates
  }

  /// The error of the first failed request, in the order of sending.
  var firstFailure: LongLinkError? { failure?.error }

  mutating func take(_ result: CallResult) throws {
    if let error = result.error, result.index < failure?.index ?? .max {
      failure = (result.index, error)
    }
    if asJSON {
      if let error = result.error { Output.error("\(error)") }
      try result.printJSON()
      return
    }
    early[result.index] = result
    while let result = early.removeValue(forKey: next) {
      next += 1
      try show(result)
    }
  }

  /// Reports requests that were never made because there was no connection.
  mutating func notConnected(_ error: LongLinkError, requests: Int) throws {
    failure = (0, error)
    Output.error("\(error)")
    guard asJSON else { return }
    let result = CallResult(
      index: 0, serial: nil, outcome: .failure(error), isReplayed: false, duration: .zero)
    for _ in 0..<requests { try result.printJSON() }
  }

  private func show(_ result: CallResult) throws {
    switch result.outcome {
    case .success(let body):
      var printer = BodyPrinter()
      try printer.write(separates ? body + [UInt8(ascii: "\n")] : body)
      try printer.finish()
    case .failure(let error):
      Output.error(CallPrinter.describe(error))
    }
  }

  /// The error, and the beginning of the body of an application's own response if that is text. It
  /// is a peer's: escaped and cut. With `--json` the body is whole, on standard output.
  static func describe(_ error: LongLinkError) -> String {
    guard error.detail.isEmpty, !error.body.isEmpty,
      String(validating: error.body, as: UTF8.self) != nil
    else { return "\(error)" }
    return "\(error) (\(PeerText(utf8: error.body)))"
  }
}
