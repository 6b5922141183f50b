// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import Foundation
internal import LongLinkTransport

/// What a store asks the machine; tests answer in its place.
package struct StoreMachine: Sendable {
  /// What tells one run of the machine from another; nil if the system does not say.
  package var bootID: String?
  /// The system's time in ms since 1970, which may be set at any moment.
  package var wallTime: @Sendable () -> Int64
  /// A time in ms that never goes back while the machine runs, and goes on while it sleeps.
  package var uptime: @Sendable () -> Int64

  package init(
    bootID: String?, wallTime: @escaping @Sendable () -> Int64,
    uptime: @escaping @Sendable () -> Int64
  ) {
    self.bootID = bootID
    self.wallTime = wallTime
    self.uptime = uptime
  }

  /// The machine that this process runs on.
  package static var own: StoreMachine {
    let start = ContinuousClock.now
    return StoreMachine(
      bootID: readBootID(),
      wallTime: { Int64(Date().timeIntervalSince1970 * 1_000) },
      uptime: {
        let passed = start.duration(to: .now).components
        return passed.seconds * 1_000 + passed.attoseconds / 1_000_000_000_000_000
      })
  }

  /// Linux has one; without one, the machine counts as started anew each time.
  private static func readBootID() -> String? {
    guard
      let bytes = try? OpenFile.read("/proc/sys/kernel/random/boot_id").read(64, at: 0)
    else { return nil }
    let text = String(decoding: bytes, as: UTF8.self).filter { $0.isHexDigit || $0 == "-" }
    return text.isEmpty ? nil : text
  }
}

/// The clock of a store that is open: it began at a time, and counts on by the machine's uptime.
struct StoreClock: Sendable {
  let start: Int64
  private let startUptime: Int64
  private let uptime: @Sendable () -> Int64

  /// How far ahead of the present the time in the file is, in ms. No process shows a time beyond
  /// the one in the file, so that the next one can begin there. That one may begin so much too
  /// late after a process that was killed.
  static let lead: Int64 = 1_000

  init(start: Int64, on machine: StoreMachine) {
    self.start = start
    startUptime = machine.uptime()
    uptime = machine.uptime
  }

  var now: Int64 { start + max(0, uptime() - startUptime) }
}
#endif
