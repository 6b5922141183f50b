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

  /// The handlers that ran in a turn. They are timed only on a loop that has stalled before,
  /// because reading the clock has a cost for every request.
  struct HandlerTimes {
    private(set) var isTiming = false
    private var count = 0
    private var current: MessageType?
    private var began = LinkInstant.distantPast
    private var slowest: MessageType?
    private var longest: Int64 = 0

    @inline(__always)
    mutating func turnBegins() {
      guard count > 0 else { return }
      count = 0
      current = nil
      slowest = nil
      longest = 0
    }

    @inline(__always)
    mutating func begins(_ type: MessageType, at now: @autoclosure () -> LinkInstant) {
      count += 1
      current = type
      if isTiming { began = now() }
    }

    mutating func pauses(at now: LinkInstant) {
      guard let current else { return }
      if now - began > longest {
        longest = now - began
        slowest = current
      }
      self.current = nil
    }

    /// Returns the type that caused a stall, and starts to time handlers.
    mutating func stalled(for duration: Int64) -> MessageType? {
      defer { isTiming = true }
      return isTiming ? (longest > duration / 2 ? slowest : nil) : count == 1 ? current : nil
    }
  }

  /// Notes that the handler of a request begins.
  @inline(__always)
  package func handlerBegins(_ type: MessageType) {
    handlerTimes.begins(type, at: driver.now)
  }

  /// Notes that the current handler, if any, has returned or was suspended.
  @inline(__always)
  package func handlerPauses() {
    if handlerTimes.isTiming { handlerTimes.pauses(at: driver.now) }
  }

  func reportStall() {
    guard let busySince else { return }
    let duration = driver.now - busySince
    guard duration > stallThreshold else { return }
    configuration.onStall?(
      Stall(
        loop: name, duration: .nanoseconds(duration),
        messageType: handlerTimes.stalled(for: duration)))
  }
}
