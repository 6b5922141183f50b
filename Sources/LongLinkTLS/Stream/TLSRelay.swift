// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// Passes events of the loop and of the stream below on to a stream, which it does not keep.
///
/// The loop keeps it while the stream below is attached. Without it, the loop would keep a stream
/// that everybody else has dropped.
final class TLSRelay: StreamHandler, TurnHandler, TimerHandler {
  weak var stream: TLSStream?
  /// The stream, while it is closed and still has to end the stream below.
  var lingering: TLSStream?

  func streamReady(_ readiness: Readiness, token: UInt64) {
    stream?.belowReady(readiness)
  }

  func turnEnds(token: UInt64) {
    stream?.turnEnds()
  }

  func timerFired(token: UInt64) {
    stream?.lingeredTooLong()
  }
}
