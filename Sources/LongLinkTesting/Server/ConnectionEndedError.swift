// SPDX-License-Identifier: Apache-2.0

/// An expected message did not arrive, because its connection ended or never existed.
package struct ConnectionEndedError: Error, Hashable, Sendable, CustomStringConvertible {
  /// How the connection ended; nil if it never existed.
  package let ending: ConnectionEnding?

  /// A readable description.
  package var description: String {
    guard let ending else { return "there is no such connection" }
    return "the connection ended first: \(ending.reason)"
  }
}
