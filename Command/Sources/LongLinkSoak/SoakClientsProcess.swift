// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport

/// A process with clients.
final class SoakClientsProcess: Sendable {
  let index: Int
  let ledger: String
  let child: ChildProcess
  private let latest = Latest<SoakReport>()

  init(index: Int, ledger: String, arguments: [String]) throws {
    self.index = index
    self.ledger = ledger
    child = try ChildProcess(["clients", "--ledger", ledger] + arguments)
    Task { [child, latest] in
      for await line in child.lines {
        if let report = try? JSONDecoder().decode(SoakReport.self, from: Data(line.utf8)) {
          latest.set(report)
        }
      }
    }
  }

  var report: SoakReport { latest.value ?? SoakReport() }

  /// The number of connected clients in the last report after `time`; 0 without one.
  func connected(since time: ContinuousClock.Instant) -> Int {
    latest.value(since: time)?.connected ?? 0
  }

  /// Throws if the process has ended unexpectedly.
  func check() throws {
    if !child.isRunning { throw ChildFailure("clients \(index) ended unexpectedly") }
  }
}
