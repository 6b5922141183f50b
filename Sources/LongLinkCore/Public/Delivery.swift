// SPDX-License-Identifier: Apache-2.0

/// What may have happened to a request that failed.
///
/// Only ``notSent`` and ``refused`` prove that the peer's handler did not run, whatever the error
/// code. For a request that was retried, it covers all attempts.
public enum Delivery: String, Hashable, Sendable, CaseIterable {
  /// No byte of the request was passed to the network: it did not run. A retry is safe.
  case notSent
  /// Some or all of it was sent, and its handler has not responded: it may have run, or may still
  /// run.
  case sent
  /// It arrived, and the peer reported that its handler was not called. A retry is safe.
  case refused
  /// It arrived, its handler ran, and this is the handler's response.
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
