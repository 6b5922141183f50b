// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// A polling fallback that was set up; it goes on until it is stopped or the client is closed.
///
/// It may be used from any thread. Letting go of it changes nothing.
public final class PollingFallback: Sendable {
  private let core: LoopBound<CallCore>
  private let poller: LoopBound<PollingCore>
  private let loop: EventLoop

  init(_ poller: PollingCore, _ core: LoopBound<CallCore>, on loop: EventLoop) {
    self.core = core
    self.poller = LoopBound(poller, on: loop)
    self.loop = loop
  }

  func start() {
    loop.runOnLoop { [core, poller] in
      guard core.value.client.state != .closed else { return }
      core.value.pollers.append(poller.value)
      poller.value.connectionChanged(to: core.value.client.state)
    }
  }

  /// Begins no more rounds, and cancels the one that is under way.
  public func stop() {
    loop.runOnLoop { [core, poller] in
      core.value.pollers.removeAll { $0 === poller.value }
      poller.value.stop()
    }
  }

  /// Whether the connection has been down for so long that rounds are made.
  public var isPolling: Bool {
    get async { await loop.run { [poller] in poller.value.isPolling } }
  }

  /// What it has done so far.
  public func counters() async -> PollingCounters {
    await loop.run { [poller] in poller.value.counters }
  }
}

extension CallClient {
  /// Has the application poll while the connection is down for longer than a bound.
  ///
  /// `poll` runs in a task on the client's loop, which it must not block: first when the connection
  /// has been down for `policy.after`, then again and again, one round at a time. The task is
  /// cancelled when the connection is back. An idle, suspended or closed client is not down.
  /// Throws `invalidConfiguration`, naming the field, when the policy cannot work.
  @discardableResult
  public func whileDown(
    _ policy: PollingPolicy = PollingPolicy(),
    poll: @escaping @Sendable (PollingRound) async -> Void
  ) throws(LongLinkError) -> PollingFallback {
    try policy.validate()
    let fallback = PollingFallback(
      PollingCore(policy, on: client.loop, poll), core, on: client.loop)
    fallback.start()
    return fallback
  }
}
