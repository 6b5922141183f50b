// SPDX-License-Identifier: Apache-2.0

/// The state of a request.
public enum RequestState: String, Hashable, Sendable {
  /// The request waits for a connection, for room on it, or for a retry.
  case created
  /// The request is being written.
  case sending
  /// The request was written, and the response has not come.
  case waiting
  /// The request has ended.
  case completed
}
