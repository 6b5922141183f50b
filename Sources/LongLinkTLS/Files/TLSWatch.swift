// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// A timer for one server, which has its `TLSServer` look at the files of certificates.
final class TLSWatch: TimerHandler {
  /// The interval between two looks at the files, in nanoseconds.
  static let interval: Int64 = 10_000_000_000

  /// A running server.
  struct Entry: Sendable {
    let user: ObjectIdentifier
    let watch: LoopBound<TLSWatch>
    let loop: EventLoop
    let log: SecurityLog
    let replaced: @Sendable () -> Void
  }

  private let server: TLSServer
  /// The running server. Several may share a `TLSServer` and a loop.
  private let user: ObjectIdentifier
  private let loop: EventLoop
  private var timer = LoopTimer.none
  private var isRunning = false

  init(_ server: TLSServer, of user: ObjectIdentifier, on loop: EventLoop) {
    self.server = server
    self.user = user
    self.loop = loop
  }

  func start() {
    isRunning = true
    server.tick(for: user)
    schedule()
  }

  func stop() {
    isRunning = false
    loop.cancel(timer)
  }

  private func schedule() {
    timer = loop.schedule(at: loop.driver.now + TLSWatch.interval, self, token: 0)
  }

  func timerFired(token: UInt64) {
    guard isRunning else { return }
    server.tick(for: user)
    schedule()
  }
}

/// The ticket keys that a process makes for itself, and replaces at intervals.
struct TLSRotation: Sendable {
  private var previous: [UInt8]?
  private var current: [UInt8] = []
  /// Accepted one interval before it encrypts, like the keys that several processes share.
  private var next: [UInt8] = []
  /// When the keys are replaced next; nil before a server has started.
  private var due: LinkInstant?

  mutating func begin() {
    current = TLSTicketKeys.random()
    next = TLSTicketKeys.random()
  }

  /// The keys; the first encrypts new tickets, all of them decrypt.
  var keys: [[UInt8]] { [current, next] + (previous.map { [$0] } ?? []) }

  /// Replaces the keys if `interval`, in nanoseconds, has passed; returns whether it has.
  mutating func advance(to now: LinkInstant, every interval: Int64) -> Bool {
    guard let due else {
      self.due = now + interval
      return false
    }
    guard now >= due else { return false }
    self.due = now + interval
    (previous, current, next) = (current, next, TLSTicketKeys.random())
    return true
  }
}
