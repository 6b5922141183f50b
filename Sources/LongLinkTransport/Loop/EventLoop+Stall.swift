// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension EventLoop {
  /// A time in which work that ran on a loop kept it from everything else.
  public struct Stall: Equatable, Sendable {
    /// The loop's name.
    public let loop: String
    /// How long it was kept busy.
    public let duration: Duration
    /// The message type of the handler that took most of it.
    ///
    /// Nil where no handler of a request did, and where that is not known: several began in that
    /// time, and the loop had not stalled before. From its first stall on a loop times handlers.
    public let messageType: MessageType?
  }

  /// Which handlers ran in a turn. They are timed only on a loop that has stalled before: looking
  /// at the clock for each would be paid for by all.
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

    /// The type to blame for a stall; from now on handlers are timed.
    mutating func stalled(for duration: Int64) -> MessageType? {
      defer { isTiming = true }
      return isTiming ? (longest > duration / 2 ? slowest : nil) : count == 1 ? current : nil
    }
  }

  /// Tells that the handler of a request begins.
  @inline(__always)
  package func handlerBegins(_ type: MessageType) {
    handlerTimes.begins(type, at: driver.now)
  }

  /// Tells that a handler has returned or waits, if one has begun.
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
