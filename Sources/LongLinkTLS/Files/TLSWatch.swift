// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// The timer of one server that looks at the files of its certificates.
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
  /// The running server; several may share certificates and a loop.
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

/// The keys of tickets that a process makes for itself.
struct TLSRotation: Sendable {
  private var previous: [UInt8]?
  private var current: [UInt8] = []
  /// Known before it is used, as keys that several processes share have to be.
  private var next: [UInt8] = []
  /// When the keys are replaced next; nil before a server has started.
  private var due: LinkInstant?

  mutating func begin() {
    current = TLSTicketKeys.random()
    next = TLSTicketKeys.random()
  }

  /// The keys, the one that makes tickets first.
  var keys: [[UInt8]] { [current, next] + (previous.map { [$0] } ?? []) }

  /// Replaces the keys if it is time, and returns whether it was.
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
