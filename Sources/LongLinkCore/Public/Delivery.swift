// SPDX-License-Identifier: Apache-2.0

/// What may have happened to a request that failed.
///
/// Only ``notSent`` and ``refused`` prove that the peer's handler did not run, whatever the error
/// code. The delivery of a request that was retried covers all attempts.
public enum Delivery: String, Hashable, Sendable, CaseIterable {
  /// No byte of the request was passed to the network: it did not run. A retry is safe.
  case notSent
  /// Some or all of the request was sent, and its handler has not responded: the request may have
  /// run, or may still run.
  case sent
  /// The request arrived, and the peer reported that its handler was not called. A retry is safe.
  case refused
  /// The request arrived, its handler ran, and the error is the handler's response. In a dialect,
  /// every response with an error counts as one.
  case answered

  /// Whether the request certainly did not run.
  public var isSafeToRetry: Bool { self == .notSent || self == .refused }
}

extension Delivery {
  /// Combines this delivery, of the last attempt, with that of the attempts before it.
  package func after(_ past: Delivery) -> Delivery {
    switch (self, past) {
    case (.answered, _), (_, .answered): .answered
    case (.sent, _), (_, .sent): .sent
    case (.refused, _), (_, .refused): .refused
    case (.notSent, .notSent): .notSent
    }
  }
}
