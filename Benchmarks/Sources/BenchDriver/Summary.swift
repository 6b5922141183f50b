// SPDX-License-Identifier: Apache-2.0

import BenchSupport
import Foundation

/// Medians over rounds, and ratios to the floor of the same round.
package struct Summary: Codable {
  package struct Spread: Codable, Equatable {
    package let median: Double
    package let least: Double
    package let most: Double

    package init(_ values: [Double]) {
      let sorted = values.sorted()
      let middle = sorted.count / 2
      median =
        sorted.isEmpty
        ? .nan
        : sorted.count.isMultiple(of: 2)
          ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
      least = sorted.first ?? .nan
      most = sorted.last ?? .nan
    }
  }

  package let subject: String
  package let work: Work
  package let placement: Placement
  /// Requests per second.
  package let rate: Spread
  /// In nanoseconds.
  package let p50: Spread
  package let p99: Spread
  package let p999: Spread
  /// The floor's p50 is 1.
  package let timeRatio: Spread
  /// The floor's p99 is 1.
  package let tailRatio: Spread
  /// The floor's requests per second are 1.
  package let rateRatio: Spread
  /// The CPU time of both processes per request, in microseconds. Unknown values are nil.
  package let cpu: Spread?
  package let clientAllocations: Double?
  package let serverAllocations: Double?
  package let clientCalls: Double?
  package let serverCalls: Double?
  /// In bytes.
  package let clientMemory: UInt64?
  package let serverMemory: UInt64?

  /// - Parameter floor: The floor's runs at the same work and placement.
  package init?(_ runs: [Run], floor: [Run]) {
    guard let first = runs.first else { return nil }
    subject = first.subject
    work = first.work
    placement = first.placement
    rate = Spread(runs.map(\.rate))
    p50 = Spread(runs.map { Double($0.client.p50) })
    p99 = Spread(runs.map { Double($0.client.p99) })
    p999 = Spread(runs.map { Double($0.client.p999) })
    let pairs = runs.compactMap { run in
      floor.first { $0.round == run.round }.map { (run, $0) }
    }
    timeRatio = Spread(pairs.map { Double($0.client.p50) / Double($1.client.p50) })
    tailRatio = Spread(pairs.map { Double($0.client.p99) / Double($1.client.p99) })
    rateRatio = Spread(pairs.map { $0.rate / $1.rate })
    // Subjects without a server's report have only the client's times.
    let told = runs.filter { $0.server != nil }
    func median(_ value: (Run) -> Double) -> Double? {
      told.isEmpty ? nil : Spread(told.map(value)).median
    }
    cpu = told.isEmpty ? nil : Spread(told.map { $0.cpu! })
    clientAllocations = median { Double($0.client.allocations) / Double($0.client.requests) }
    serverAllocations = median { Double($0.server!.allocations) / Double($0.server!.requests) }
    clientCalls = median { Double($0.client.systemCalls) / Double($0.client.requests) }
    serverCalls = median { Double($0.server!.systemCalls) / Double($0.server!.requests) }
    clientMemory = told.map(\.client.peakMemory).max()
    serverMemory = told.compactMap(\.server?.peakMemory).max()
  }
}

extension Summary {
  /// The ratio that matters at its work: of the p50 of one request at a time, of the p99 of requests
  /// beside a stream, else of the rate.
  var ratio: Spread {
    switch work.shape {
    case .single: timeRatio
    case .beside: tailRatio
    case .many, .wide, .down, .up: rateRatio
    }
  }
}

extension Work {
  /// What the ratio compares.
  var figure: String {
    switch shape {
    case .single: "p50"
    case .beside: "p99"
    case .many, .wide: "req/s"
    case .down, .up: "items/s"
    }
  }
}
