// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// A handle on a polling fallback, which runs until it is stopped or the client is closed.
///
/// It may be used from any thread. Releasing it does not stop the polling.
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

  /// Begins no more rounds, and cancels the current one.
  public func stop() {
    loop.runOnLoop { [core, poller] in
      core.value.pollers.removeAll { $0 === poller.value }
      poller.value.stop()
    }
  }

  /// Whether the connection has been down for long enough that rounds have begun.
  public var isPolling: Bool {
    get async { await loop.run { [poller] in poller.value.isPolling } }
  }

  /// Returns a snapshot of the fallback's counters.
  public func counters() async -> PollingCounters {
    await loop.run { [poller] in poller.value.counters }
  }
}

extension CallClient {
  /// Calls `poll` repeatedly while the connection is down.
  ///
  /// `poll` runs in a task on the client's loop, which it must not block: first when the connection
  /// has been down for `policy.after`, then after each `policy.interval`, one round at a time. No
  /// round begins while there is a connection. The outage ends, and the task is cancelled, when a
  /// connection has proved itself: it has answered a request, or lived through a heartbeat
  /// interval. An idle, suspended or closed client does not count as down. Throws
  /// `invalidConfiguration`, with the field's name, if the policy is invalid.
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
