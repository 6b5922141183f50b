// SPDX-License-Identifier: Apache-2.0

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
  /// Facts that the bytes do not tell, such as the security; nil for a plain transport. It does not
  /// change.
  var layer: (any TransportLayer)? { get }
  /// The number of written bytes that the peer's system has not acknowledged; 0 if not known.
  var unacknowledgedBytes: Int { get }
  /// The round-trip time to the peer in nanoseconds, as the system estimates it; nil if not known.
  var roundTrip: Int64? { get }
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
  package var layer: (any TransportLayer)? { nil }
  package var roundTrip: Int64? { nil }
}
