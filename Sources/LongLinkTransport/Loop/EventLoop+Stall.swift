// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension EventLoop {
  /// A turn in which work blocked a loop for too long.
  public struct Stall: Equatable, Sendable {
    /// The loop's name.
    public let loop: String
    /// How long the loop was blocked.
    public let duration: Duration
    /// The message type of the handler that took most of the time.
    ///
    /// Nil if no request handler did, or if that is not known: several handlers began in that turn,
    /// and the loop had not stalled before. A loop times its handlers only after its first stall.
    public let messageType: MessageType?
  }

  /// Records that the handler of a request begins.
  @inline(__always)
  package func handlerBegins(_ type: MessageType) {
    stallWatch.begins(type, at: driver.now)
  }

  /// Records that the current handler, if any, has returned or was suspended.
  @inline(__always)
  package func handlerPauses() {
    if stallWatch.isTiming { stallWatch.pauses(at: driver.now) }
  }

  func reportStall() {
    guard configuration.onStall != nil, let stall = stallWatch.turnEnds(at: driver.now) else {
      return
    }
    configuration.onStall?(
      Stall(loop: name, duration: .nanoseconds(stall.duration), messageType: stall.type))
  }
}
