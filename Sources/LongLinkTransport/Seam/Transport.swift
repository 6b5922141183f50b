// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The operations that a transport is ready for.
package struct Readiness: OptionSet, Hashable, Sendable {
  package let rawValue: UInt8

  @inlinable package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// Bytes, an end of transport, an error or, on a listener, a connection is available.
  package static let read = Readiness(rawValue: 1)
  /// Bytes can be written without waiting, or a connect has completed.
  package static let write = Readiness(rawValue: 2)
}

// `OptionSet`'s versions are not specialised in other modules. These run per turn of a connection.
extension Readiness {
  @inlinable package static var none: Readiness { Readiness(rawValue: 0) }

  @inlinable package func contains(_ other: Readiness) -> Bool {
    rawValue & other.rawValue == other.rawValue
  }

  @inlinable package func union(_ other: Readiness) -> Readiness {
    Readiness(rawValue: rawValue | other.rawValue)
  }

  @inlinable package func intersection(_ other: Readiness) -> Readiness {
    Readiness(rawValue: rawValue & other.rawValue)
  }
}

/// An observer that is notified on its loop when a transport or listener is ready.
///
/// The loop keeps a strong reference to the handler from `attach` until `close`.
package protocol TransportHandler: AnyObject {
  /// `token` is the value passed to `attach`; it distinguishes a transport from its successor.
  func transportReady(_ readiness: Readiness, token: UInt64)
}

/// The result of a read.
package enum ReadOutcome: Equatable, Sendable {
  /// At least one byte was appended to the span.
  case bytes(Int)
  /// Nothing is available yet; wait for readiness.
  case wouldBlock
  /// The peer has shut down its side: nothing more will arrive.
  case end
}

/// A connected, or connecting, transport of bytes; used only on the loop it was made on.
///
/// Readiness is level-triggered: it is delivered in each turn while it lasts and is of interest.
/// Dropping the last reference closes the transport. After `close` or `reset` no readiness is
/// delivered, and every other call is a programming error.
package protocol Transport: AnyObject {
  /// The address of this side, once connected.
  var localAddress: SocketAddress? { get }
  /// The address of the peer, or the one being connected to.
  var peerAddress: SocketAddress? { get }

  /// Starts the delivery of readiness. A second call replaces the handler and the token.
  func attach(_ handler: any TransportHandler, token: UInt64)
  /// Sets which readiness is delivered. Setting the same interest again has no effect.
  func setInterest(_ interest: Readiness)
  /// Call it after write readiness on a connecting transport: returns true once it is connected.
  ///
  /// Throws the reason if the connect has failed.
  func finishConnecting() throws(SocketError) -> Bool
  /// Appends available bytes to `buffer`, at most its free capacity, in one system call.
  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome
  /// Writes a prefix of `bytes` in one system call and returns its length; 0 if it would block.
  func write(_ bytes: RawSpan) throws(SocketError) -> Int
  /// What the transport knows of its failure or end that an error number cannot say, for people,
  /// such as a status of HTTP; nil for nothing.
  var failureText: String? { get }
  /// How long the peer, or what answered in its place, asked this side to wait before the next
  /// attempt, in nanoseconds; nil if it did not.
  var retryAfter: Int64? { get }
  /// Who the peer is and how the transport is secured; nil before that is known, and for a plain
  /// transport.
  var security: ConnectionSecurity? { get }
  /// Why the transport could not be secured, or is no longer secure; nil for any other failure. It
  /// is kept after `close`.
  var securityFailure: SecurityFailure? { get }
  /// Whether the transport below is connected, and the handshake of the security is not complete.
  /// Never of a plain transport.
  var isHandshaking: Bool { get }
  /// Whether an `end` was read that the peer did not protect, so that anyone on the path can have
  /// caused it. False for a plain transport.
  var isCutOff: Bool { get }
  /// Whether the last read, which would block, has taken bytes of the transport below that are not
  /// yet enough for one of its own. Never of a plain transport.
  var hasReadPart: Bool { get }
  /// The bytes that the transport holds in memory, for its transform or the carrier of a bridge;
  /// nil for a transport that has neither.
  var heldBytes: Int? { get }
  /// Frees what the transport's transform keeps to be fast: the transport idles, or memory is
  /// short.
  func releaseStorage()
  /// The number of written bytes that the peer's system has not acknowledged; 0 if not known.
  var unacknowledgedBytes: Int { get }
  /// Whether a read would find bytes; false if not known.
  var hasUnreadBytes: Bool { get }
  /// Sends the end of transport after the written bytes. Reading continues.
  func shutDownWriting()
  /// Closes; the kernel still delivers the written bytes, if the peer accepts them.
  func close()
  /// Closes at once with a reset: written bytes that were not yet delivered are dropped.
  func reset()
}

extension Transport {
  package var failureText: String? { nil }
  package var retryAfter: Int64? { nil }
  package var security: ConnectionSecurity? { nil }
  package var securityFailure: SecurityFailure? { nil }
  package var isHandshaking: Bool { false }
  package var isCutOff: Bool { false }
  package var hasReadPart: Bool { false }
  package var heldBytes: Int? { nil }
  package func releaseStorage() {}
}
