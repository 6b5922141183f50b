// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport

/// The clients of one process.
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

  /// How many are connected, going by what was said after `time`.
  func connected(since time: ContinuousClock.Instant) -> Int {
    latest.value(since: time)?.connected ?? 0
  }

  /// Throws where it has ended by itself.
  func check() throws {
    if !child.isRunning { throw ChildFailure("clients \(index) ended by themselves") }
  }
}
