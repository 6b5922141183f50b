// SPDX-License-Identifier: Apache-2.0

/// What may have happened to a request that failed.
///
/// Only ``notSent`` and ``refused`` prove that the peer's handler did not run, whatever the code
/// says. Of a request that was sent several times it tells of all sendings together.
public enum Delivery: String, Hashable, Sendable, CaseIterable {
  /// No byte of the request was handed to the network: it did not run. Sending it again is safe.
  case notSent
  /// Some or all of it left and nothing came back: it may have run, or may yet run.
  case sent
  /// It arrived, and the peer says that its handler was not called. Sending it again is safe.
  case refused
  /// It arrived, its handler ran, and this is what it answered.
  case answered

  /// Whether the request certainly did not run.
  public var isSafeToRetry: Bool { self == .notSent || self == .refused }
}

extension Delivery {
  /// What may have happened to a request that was sent several times, this being the last.
  package func after(_ past: Delivery) -> Delivery {
    switch (self, past) {
    case (.answered, _), (_, .answered): .answered
    case (.sent, _), (_, .sent): .sent
    case (.refused, _), (_, .refused): .refused
    case (.notSent, .notSent): .notSent
    }
  }
}
