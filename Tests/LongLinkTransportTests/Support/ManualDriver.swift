// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Synchronization

@testable import LongLinkTransport

/// A world without sockets, whose time jumps to whatever is waited for.
final class ManualDriver: LoopDriver {
  private(set) var now = LinkInstant(nanoseconds: 1_000_000_000)
  /// What each wait was told.
  private(set) var deadlines: [LinkInstant?] = []
  let wakes = Atomic(0)
  /// Runs in each wait, as readiness handlers do.
  var onWait: (() -> Void)?

  func advance(by duration: Duration) {
    now = now.advanced(by: duration)
  }

  var unixNanoseconds: Int64 { now.nanoseconds }

  func wait(until deadline: LinkInstant?) {
    deadlines.append(deadline)
    if let deadline, deadline > now { now = deadline }
    onWait?()
  }

  func wake() {
    wakes.add(1, ordering: .relaxed)
  }

  func connect(
    to address: SocketAddress,
    options: SocketOptions
  ) throws(SocketError) -> any Transport {
    throw SocketError(operation: "connect", errno: 0, address: address)
  }

  func listen(
    on address: SocketAddress,
    options: SocketOptions
  ) throws(SocketError) -> any TransportListener {
    throw SocketError(operation: "listen", errno: 0, address: address)
  }

  func resolve(
    host: String,
    port: UInt16,
    for owner: LookUpOwner,
    completion: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  ) {}

  func withdrawLookUps(of owner: LookUpOwner) {}

  /// Runs where the loop lets others run; there are none where it is nil.
  var onLettingOthersRun: (() -> Void)?

  func letOthersRun() -> Bool {
    onLettingOthersRun?()
    return onLettingOthersRun != nil
  }

  var preemptions: Int? { 0 }

  func nextRandom() -> UInt64 { 0 }

  func close() {}
}

/// Writes down, in order, what a loop called.
final class Journal: TimerHandler, TurnHandler {
  private(set) var entries: [String] = []
  var onTimer: ((UInt64) -> Void)?
  var onTurnEnd: ((UInt64) -> Void)?

  func note(_ entry: String) {
    entries.append(entry)
  }

  func timerFired(token: UInt64) {
    note("timer \(token)")
    onTimer?(token)
  }

  func turnEnds(token: UInt64) {
    note("end \(token)")
    onTurnEnd?(token)
  }
}
