// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The properties of a transport that secures another one, or whose bytes another event system
/// carries. All of them are optional.
package protocol TransportLayer: AnyObject {
  /// What the transport knows of its failure or end that an error number cannot say, for people,
  /// such as a status of HTTP; nil for nothing.
  var failureText: String? { get }
  /// How long the peer, or what answered in its place, asked this side to wait before the next
  /// attempt, in nanoseconds; nil if it did not.
  var retryAfter: Int64? { get }
  /// Who the peer is and how the transport is secured; nil before that is known.
  var security: ConnectionSecurity? { get }
  /// Why the transport could not be secured, or is no longer secure; nil for any other failure. It
  /// is kept after `close`.
  var securityFailure: SecurityFailure? { get }
  /// Whether the transport below is connected, and the handshake of the security is not complete.
  var isHandshaking: Bool { get }
  /// Whether an `end` was read that the peer did not protect, so that anyone on the path can have
  /// caused it.
  var isCutOff: Bool { get }
  /// Whether the last read returned `wouldBlock` although it took bytes from the transport below:
  /// they are only a part of what this transport can return.
  var hasReadPart: Bool { get }
  /// The bytes that the layer holds in memory.
  var heldBytes: Int { get }
  /// Frees memory that the layer keeps only to be fast. Called when the transport idles or memory
  /// is short.
  func releaseStorage()
}

extension TransportLayer {
  package var failureText: String? { nil }
  package var retryAfter: Int64? { nil }
  package var security: ConnectionSecurity? { nil }
  package var securityFailure: SecurityFailure? { nil }
  package var isHandshaking: Bool { false }
  package var isCutOff: Bool { false }
  package var hasReadPart: Bool { false }
  package var heldBytes: Int { 0 }
  package func releaseStorage() {}
}
