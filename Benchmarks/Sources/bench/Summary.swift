import BenchSupport
import Foundation

/// Medians over rounds, and ratios to the floor of the same round.
struct Summary: Codable {
  struct Spread: Codable, Equatable {
    let median: Double
    let least: Double
    let most: Double

    init(_ values: [Double]) {
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

  let subject: String
  let work: Work
  let placement: Placement
  /// Requests per second.
  let rate: Spread
  /// In nanoseconds.
  let p50: Spread
  let p99: Spread
  let p999: Spread
  /// The floor's p50 is 1.
  let timeRatio: Spread
  /// The floor's requests per second are 1.
  let rateRatio: Spread
  /// What both processes used per request, in microseconds; nil where it is not known, as below.
  let cpu: Spread?
  let clientAllocations: Double?
  let serverAllocations: Double?
  let clientCalls: Double?
  let serverCalls: Double?
  /// In bytes.
  let clientMemory: UInt64?
  let serverMemory: UInt64?

  /// - Parameter floor: The floor's runs at the same work and placement.
  init?(_ runs: [Run], floor: [Run]) {
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
    rateRatio = Spread(pairs.map { $0.rate / $1.rate })
    // Who tells nothing of its server tells nothing of its client but times.
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
