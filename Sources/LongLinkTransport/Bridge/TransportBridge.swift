// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import Synchronization

/// What moves the bytes of a `BridgedTransport`, on threads of its own: an HTTP library, for
/// example.
///
/// The transport's loop calls these functions. They must not block, and do their work elsewhere.
package protocol TransportCarrier: AnyObject, Sendable {
  /// Output waits, or has ended. Called once until the next `TransportBridge.takeOutput`.
  func outputWaits()
  /// There is room again, after `TransportBridge.deliver` returned false.
  func inputHasRoom()
  /// The loop has closed the transport, and reads no more. What it wrote before is still to be
  /// sent, unless it was a reset. This is the last call.
  func transportClosed(isReset: Bool)
}

/// The side of a `BridgedTransport` that other threads use: it takes the bytes that come, and gives
/// those that are to be sent.
///
/// About `capacity` bytes wait in each direction, and as many again may be on their way.
package final class TransportBridge: Sendable {
  struct State: Sendable {
    var isConnected: Bool
    var input: [UInt8] = []
    var hasInputEnded = false
    var failure: SocketError?
    var failureText: String?
    var retryAfter: Int64?
    var securityFailure: SecurityFailure?
    /// Whether `deliver` has returned false, and `inputHasRoom` is due.
    var isCarrierPaused = false
    /// Whether a call of `wake` is on its way to the loop.
    var isWaking = false
    var wake: (@Sendable () -> Void)?
    var output: [UInt8] = []
    var hasOutputEnded = false
    /// Whether `outputWaits` was called since the last `takeOutput`.
    var isOutputAnnounced = false
    var isOutputFull = false
    var isClosed = false

    /// Drops the output that was not taken; the output then never ends in good order.
    mutating func dropOutput() {
      output = []
      hasOutputEnded = false
    }
  }

  /// The bytes that wait in each direction before the other side has to wait.
  package static let capacity = 65_536

  let state: Mutex<State>

  /// Makes a bridge without a transport; see `BridgedTransport.init`.
  package init(isConnected: Bool) {
    state = Mutex(State(isConnected: isConnected))
  }

  /// Whether nothing waits to be sent.
  package var hasNoOutput: Bool { state.withLock(of: self) { $0.output.isEmpty } }

  /// Whether the loop has closed the transport.
  package var isClosed: Bool { state.withLock(of: self) { $0.isClosed } }

  /// Lets the transport write. Has no effect after a failure.
  package func connected() {
    change { state in
      guard !state.isConnected, state.failure == nil else { return false }
      state.isConnected = true
      return true
    }
  }

  /// Adds bytes for the loop to read. Returns false if the carrier should read no more until
  /// `inputHasRoom`. Bytes for a closed transport are dropped.
  package func deliver(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var hasRoom = true
    change { state in
      guard !state.isClosed, state.failure == nil, !state.hasInputEnded else { return false }
      unsafe state.input.append(contentsOf: bytes)
      state.isCarrierPaused = state.input.count >= TransportBridge.capacity
      hasRoom = !state.isCarrierPaused
      return true
    }
    return hasRoom
  }

  /// Ends the input: after the delivered bytes nothing follows.
  package func endInput() {
    change { state in
      guard !state.hasInputEnded else { return false }
      state.hasInputEnded = true
      return true
    }
  }

  /// Breaks the transport: reading throws `error` after the delivered bytes, and writing at once.
  /// The first failure counts. `text` says more of it than an error number can, for people,
  /// `retryAfter` is the wait that the peer asked for, in nanoseconds, and `security` is set if the
  /// carrier's own security has failed.
  package func fail(
    _ error: SocketError, text: String? = nil, retryAfter: Int64? = nil,
    security: SecurityFailure? = nil
  ) {
    change { state in
      guard state.failure == nil else { return false }
      state.failure = error
      state.failureText = text
      state.retryAfter = retryAfter
      state.securityFailure = security
      state.dropOutput()
      return true
    }
  }

  /// Takes the bytes that wait to be sent. `hasEnded` is true if they are the last, in good order;
  /// it stays false if the transport is closed before it has shut down writing.
  package func takeOutput() -> (bytes: [UInt8], hasEnded: Bool) {
    var taken: (bytes: [UInt8], hasEnded: Bool) = ([], false)
    change { state in
      swap(&taken.bytes, &state.output)
      taken.hasEnded = state.hasOutputEnded
      state.isOutputAnnounced = false
      defer { state.isOutputFull = false }
      return state.isOutputFull
    }
    return taken
  }

  /// Changes the state, and calls the loop if `body` returns true and it was not called yet.
  private func change(_ body: (inout State) -> Bool) {
    let wake = state.withLock(of: self) { state -> (@Sendable () -> Void)? in
      guard body(&state), !state.isClosed, !state.isWaking, let wake = state.wake else {
        return nil
      }
      state.isWaking = true
      return wake
    }
    wake?()
  }
}
