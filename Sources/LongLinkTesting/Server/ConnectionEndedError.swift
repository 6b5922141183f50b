// SPDX-License-Identifier: Apache-2.0

/// The connection that something was expected on has ended, or was never there.
public struct ConnectionEndedError: Error, Hashable, Sendable, CustomStringConvertible {
  /// How it ended; nil where there was none.
  public let ending: ConnectionEnding?

  /// What happened, in words.
  public var description: String {
    guard let ending else { return "there is no such connection" }
    return "the connection ended before: \(ending.reason)"
  }
}
