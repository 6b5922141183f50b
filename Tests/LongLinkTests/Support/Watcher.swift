// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import Synchronization

/// Keeps what it hears, and checks the order of the calls about each record.
final class Watcher: Observer {
  /// What an ended exchange was, without its times.
  struct Exchange: Equatable, Sendable {
    var type: MessageType
    var ending: ExchangeEnding?
    var delivery: Delivery
    var attempts = 1
    var sent = 0
    var got = 0
  }

  struct Ended: Sendable {
    let number: UInt64
    let isShort: Bool
    let wasOpened: Bool
    let reason: CloseReason?
    let underWay: [Int]
    let principal: String?
  }

  @TaskLocal static var context = "none"

  private struct State {
    var open: [ObjectIdentifier: String] = [:]
    var ended: [ExchangeRecord.Direction: [Exchange]] = [:]
    var links: [Ended] = []
    var openLinks: Set<ObjectIdentifier> = []
    var faults: [String] = []
  }

  let name: String
  private let state = Mutex(State())

  init(_ name: String) {
    self.name = name
  }

  var ended: [Exchange] { state.withLock { $0.ended[.outbound] ?? [] } }
  var handled: [Exchange] { state.withLock { $0.ended[.inbound] ?? [] } }
  var links: [Ended] { state.withLock { $0.links } }
  var openCount: Int { state.withLock { $0.open.count + $0.openLinks.count } }
  var faults: [String] { state.withLock { $0.faults } }

  private func began(_ exchange: ExchangeRecord) {
    state.withLock { state in
      if state.open.updateValue("began", forKey: ObjectIdentifier(exchange)) != nil {
        state.faults.append("began twice")
      }
    }
  }

  func begins(_ exchange: ExchangeRecord, metadata: inout [String: String]) {
    began(exchange)
    exchange.attach(Watcher.context)
    metadata["context"] = Watcher.context
  }

  func arrived(_ exchange: ExchangeRecord, metadata: [String: String]) {
    began(exchange)
    exchange.attach(metadata["context"] ?? "nothing")
  }

  func handedOver(_ exchange: ExchangeRecord) {
    state.withLock { state in
      if state.open.updateValue("handed over", forKey: ObjectIdentifier(exchange)) == nil {
        state.faults.append("handed over outside of its exchange")
      }
    }
  }

  func ended(_ exchange: ExchangeRecord) {
    state.withLock { state in
      let last = state.open.removeValue(forKey: ObjectIdentifier(exchange))
      if last == nil { state.faults.append("ended outside of its exchange") }
      if (last == "handed over") != (exchange.handedOver != nil) {
        state.faults.append("handed over unheard")
      }
      let times = [exchange.began, exchange.handedOver, exchange.ended].compactMap { $0 }
      if times != times.sorted() { state.faults.append("times out of order") }
      if exchange.attempts > 0, exchange.link == nil || exchange.serial == 0 {
        state.faults.append("no link")
      }
      state.ended[exchange.direction, default: []].append(
        Exchange(
          type: exchange.type, ending: exchange.ending, delivery: exchange.delivery,
          attempts: exchange.attempts, sent: exchange.requestBytes, got: exchange.responseBytes))
    }
  }

  func withScope(
    of exchange: ExchangeRecord, _ handler: () throws -> AnyBody
  ) throws -> AnyBody {
    try Watcher.$context.withValue(context(of: exchange)) { try handler() }
  }

  func withScope(
    of exchange: ExchangeRecord, _ handler: () async throws -> AnyBody
  ) async throws -> AnyBody {
    try await Watcher.$context.withValue(context(of: exchange)) { try await handler() }
  }

  private func context(of exchange: ExchangeRecord) -> String {
    "\(exchange.attachment(of: String.self) ?? "none") by \(name)"
  }

  func began(_ link: LinkRecord) {
    state.withLock { _ = $0.openLinks.insert(ObjectIdentifier(link)) }
  }

  func opened(_ link: LinkRecord) {
    state.withLock { state in
      if link.opened == nil || !state.openLinks.contains(ObjectIdentifier(link)) {
        state.faults.append("opened outside of its link")
      }
    }
  }

  func ended(_ link: LinkRecord) {
    state.withLock { state in
      if state.openLinks.remove(ObjectIdentifier(link)) == nil {
        state.faults.append("ended outside of its link")
      }
      state.links.append(
        Ended(
          number: link.id, isShort: link.isShort, wasOpened: link.opened != nil,
          reason: link.reason, underWay: [link.underWay.outbound, link.underWay.inbound],
          principal: link.principal?.name))
    }
  }
}
