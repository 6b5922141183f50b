// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import Synchronization

/// Watches the records of one client or server: each has to begin and end once, in order.
final class RecordWatch: Observer {
  struct Seen {
    var begun = 0
    var ended = 0
    /// The numbers of own requests that ended with 200, and of the peer's requests that handlers
    /// got.
    var succeeded: UInt64 = 0
    var handled: UInt64 = 0
    var faults: Set<String> = []
  }

  /// Whether requests can have tickets: then one that was not sent can be part of an earlier one,
  /// and a handler can be called for a request that has ended.
  let hasTickets: Bool
  private let seen = Mutex(Seen())

  init(hasTickets: Bool) {
    self.hasTickets = hasTickets
  }

  var result: Seen { seen.withLock { $0 } }

  func begins(_ exchange: ExchangeRecord, metadata: inout [String: String]) {
    seen.withLock { $0.begun += 1 }
  }

  func arrived(_ exchange: ExchangeRecord, metadata: [String: String]) {
    seen.withLock { $0.begun += 1 }
  }

  func handedOver(_ exchange: ExchangeRecord) {
    seen.withLock { seen in
      if exchange.ended != nil { seen.faults.insert("an ended exchange was handed over") }
      if exchange.link == nil { seen.faults.insert("an exchange was handed over without a link") }
      if exchange.direction == .inbound { seen.handled += 1 }
    }
  }

  func ended(_ exchange: ExchangeRecord) {
    seen.withLock { seen in
      seen.ended += 1
      let times = [exchange.began, exchange.handedOver, exchange.ended].compactMap { $0 }
      if times != times.sorted() { seen.faults.insert("the times of an exchange are out of order") }
      if exchange.direction == .outbound, exchange.ending == .answered(.ok) { seen.succeeded += 1 }
      let isRun = exchange.delivery == .answered || exchange.delivery == .sent
      // A ticket's earlier request may have run.
      if isRun, exchange.attempts == 0, !hasTickets {
        seen.faults.insert("what was never sent may have run")
      }
    }
  }

  func began(_ link: LinkRecord) {
    seen.withLock { $0.begun += 1 }
  }

  func ended(_ link: LinkRecord) {
    seen.withLock { $0.ended += 1 }
  }
}

extension Oracle {
  /// Checks the records of a closed client or server against its counters, if it has a
  /// `RecordWatch`.
  func check(
    _ observers: Observers?, _ requests: RequestCounters, _ connections: ConnectionCounters,
    of name: String
  ) {
    for case let watch as RecordWatch in observers?.all ?? [] {
      let seen = watch.result
      for fault in seen.faults.sorted() { found(.countersAgree, "\(name): \(fault)") }
      if seen.begun != seen.ended {
        found(.nothingLeft, "\(name): \(seen.begun) records began, and \(seen.ended) ended")
      }
      if seen.succeeded != requests.succeeded {
        found(
          .countersAgree,
          "\(name): \(seen.succeeded) successes were recorded, of \(requests.succeeded)")
      }
      if seen.handled != connections.handled,
        !watch.hasTickets || seen.handled > connections.handled
      {
        found(
          .countersAgree,
          "\(name): \(seen.handled) requests of the peer were recorded, of \(connections.handled)")
      }
    }
  }
}
