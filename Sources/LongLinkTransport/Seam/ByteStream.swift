// SPDX-License-Identifier: Apache-2.0

/// What a stream can be ready for.
package struct Readiness: OptionSet, Hashable, Sendable {
  package let rawValue: UInt8

  @inlinable package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// Bytes, an end, an error or, on a listener, a connection can be had without waiting.
  package static let read = Readiness(rawValue: 1)
  /// Bytes can be written without waiting, or a connect has come to its end.
  package static let write = Readiness(rawValue: 2)
}

// The protocol's own are not specialised in other modules, and run for each turn of a connection.
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

/// Told, on its loop, that a stream or listener is ready.
///
/// The loop keeps a strong reference to the handler from `attach` until `close`.
package protocol StreamHandler: AnyObject {
  /// `token` is the value that was given to `attach`: it tells a stream from its successor.
  func streamReady(_ readiness: Readiness, token: UInt64)
}

/// What came of a read.
package enum ReadOutcome: Equatable, Sendable {
  /// At least one byte was appended to the span.
  case bytes(Int)
  /// Nothing is there yet; readiness will tell when.
  case wouldBlock
  /// The peer has shut down its side: nothing more will come.
  case end
}

/// One connected, or connecting, stream of bytes; used only on the loop it was made on.
///
/// Readiness is level-triggered: it is delivered again each turn while it lasts and is of interest.
/// Dropping the last reference closes the stream. After `close` or `reset` no readiness is
/// delivered, and every other call is a programming error.
package protocol ByteStream: AnyObject {
  /// The address of this side, once connected.
  var localAddress: SocketAddress? { get }
  /// The address of the peer, or the one being connected to.
  var peerAddress: SocketAddress? { get }

  /// Starts the delivery of readiness. A second call replaces the handler and the token.
  func attach(_ handler: any StreamHandler, token: UInt64)
  /// Says what to be told of. Nothing changes where it equals the interest before.
  func setInterest(_ interest: Readiness)
  /// After write readiness on a connecting stream: true once connected, false while under way.
  ///
  /// Throws the reason when the connect has failed.
  func finishConnecting() throws(SocketError) -> Bool
  /// Appends what is there to `buffer`, at most its free capacity, in one system call.
  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome
  /// Writes a prefix of `bytes` in one system call and returns its length; 0 when it would block.
  func write(_ bytes: RawSpan) throws(SocketError) -> Int
  /// Bytes that were written and that the peer's system has not acknowledged; 0 where that cannot
  /// be told.
  var unacknowledgedBytes: Int { get }
  /// Whether a read would find bytes; false where that cannot be told.
  var hasUnreadBytes: Bool { get }
  /// Sends the end of stream after what was written. Reading goes on.
  func shutDownWriting()
  /// Closes; the kernel goes on to deliver what was written, if the peer takes it.
  func close()
  /// Closes at once with a reset: what was written and not yet delivered is dropped.
  func reset()
}
