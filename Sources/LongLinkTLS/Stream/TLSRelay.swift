// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// Passes events of the loop and of the transport below on to a TLS transport, without keeping that
/// alive.
///
/// The loop keeps the relay while the transport below is attached. Without the relay, the loop
/// would keep a transport that its link has dropped.
final class TLSRelay: TransportHandler, TurnHandler, TimerHandler {
  weak var transport: TLSTransport?
  /// The transport, kept alive while it is closed and still has to end the transport below.
  var lingering: TLSTransport?

  func transportReady(_ readiness: Readiness, token: UInt64) {
    transport?.belowReady(readiness)
  }

  func turnEnds(token: UInt64) {
    transport?.turnEnds()
  }

  func timerFired(token: UInt64) {
    transport?.lingeredTooLong()
  }
}
