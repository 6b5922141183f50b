// SPDX-License-Identifier: Apache-2.0

/// Why a request is refused before it reaches a handler.
package enum Refusal: Equatable, Sendable {
  case draining
  case tooManyRequests
  case tooManyBytes
  /// The first credit for its items exceeds the limit of all windows.
  case tooMuchCredit
  case tooLarge
  case stalled
  /// On a short link, this side lacks a feature that the client has named.
  case missingFeature
  /// The request is to run once, and no store keeps the client's keys.
  case unkept
  /// The request is to run once, and has no valid key, no time, or items.
  case malformedOnce

  package var code: ResponseCode {
    switch self {
    case .draining: .draining
    case .tooManyRequests, .tooManyBytes, .tooMuchCredit: .overloaded
    case .tooLarge: .tooLarge
    case .stalled: .deadlinePassed
    case .missingFeature, .unkept, .malformedOnce: .malformed
    }
  }

  /// What the peer is told, in ASCII.
  package func detail(_ settings: ConnectionSettings) -> String {
    switch self {
    case .draining: "going away"
    case .tooManyRequests: "more than \(settings.maxInFlight) concurrent requests"
    case .tooManyBytes: "the requests hold more than \(settings.maxRequestBytes) bytes"
    case .tooMuchCredit: "the windows of all streams exceed \(settings.windows.total) bytes"
    case .tooLarge: "the body is larger than \(settings.maxBody) bytes"
    case .stalled: "the next fragment has not come in time"
    case .missingFeature: "this server lacks a feature that the hello names"
    case .unkept: "no request runs once here: the keys of this client are not kept"
    case .malformedOnce:
      "a request that runs once needs a key of 1 to 255 bytes and a time, and carries no items"
    }
  }
}
