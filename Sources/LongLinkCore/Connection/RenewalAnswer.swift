// SPDX-License-Identifier: Apache-2.0

/// A server's answer to a client that has sent its next credential.
package struct RenewalAnswer: Equatable, Sendable {
  /// Whether the server accepts the credential; other codes than 200, 401 and 403 decide nothing.
  package let code: ResponseCode
  package let reason: String
  package let credential: [UInt8]
}
