// SPDX-License-Identifier: Apache-2.0

/// What a server has agreed to of requests that run once.
extension Agreement {
  /// Why a request is refused by what it states about running once: no store, or malformed; nil if
  /// it states nothing, or may run.
  func refusal(byOnceOf request: ReceivedMetadata) -> Refusal? {
    guard request.keySpace != nil else { return nil }
    guard once != nil else { return .unkept }
    let isValid =
      (1...Wire.onceKeyLimit).contains(request.key?.count ?? 0) && request.keyTime > 0
      && request.credit == nil && !request.items
    return isValid ? nil : .malformedOnce
  }

  /// Throws if a response that is about an earlier request has the refused mark.
  func validateReplay(_ response: Arrival) throws(Violation) {
    guard response.isRefused, response.kind == .response, once != nil else { return }
    throw Violation(
      .tagNotAllowed, kind: FrameKind.response.rawValue, serial: response.serial,
      value: UInt64(response.tag))
  }
}
