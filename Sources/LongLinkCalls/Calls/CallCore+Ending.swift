// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport

extension CallCore: TimerHandler {
  /// Sets a timer for a caller whose deadline is earlier than that of its exchange.
  func watchDeadline(of id: UInt64, on exchange: SharedRequest) {
    guard let caller = callers[id], caller.timer == nil, caller.deadline < exchange.deadline
    else { return }
    callers[id]?.timer = loop.schedule(at: caller.deadline, self, token: id)
  }

  func timerFired(token: UInt64) {
    callers[token]?.timer = nil
    leave(token, code: .deadlineExceeded)
  }

  func remove(_ id: UInt64) -> Caller? {
    guard let caller = callers.removeValue(forKey: id) else { return nil }
    if let timer = caller.timer { loop.cancel(timer) }
    return caller
  }

  func forget(_ id: UInt64, _ key: CallKey?) {
    if let key, exchangeOfKey[key] == id { exchangeOfKey[key] = nil }
  }

  /// Handles the outcome of an exchange; the only place that completes its calls.
  func ended(_ id: UInt64, _ outcome: Outcome) {
    guard let exchange = exchanges.removeValue(forKey: id) else { return }
    forget(id, exchange.plan.key)
    var outcome = outcome.mapError {
      $0.after(exchange.past).covering(exchange.options.ticket)
    }
    if exchange.isClosed {
      outcome = outcome.mapError { $0.code == .cancelled ? $0.with(.closed) : $0 }
    }
    if let leaver = exchange.leaver {
      outcome = outcome.mapError { $0.code == .cancelled ? $0.with(leaver.code) : $0 }
      keep(outcome, of: exchange)
      leaver.completion(outcome)
      return
    }
    var told = exchange.callers
    if case .failure(let error) = outcome, error.code == .deadlineExceeded {
      // Callers that joined later may have later deadlines: they get another exchange.
      let others = told.filter { callers[$0].map { $0.deadline > loop.now } ?? false }
      if !others.isEmpty {
        told.removeAll { others.contains($0) }
        relaunch(exchange, for: others, after: error.delivery)
      }
    }
    keep(outcome, of: exchange)
    if !(told.isEmpty && !exchange.isRefresh) { publish(outcome, of: exchange) }
    for caller in told { remove(caller)?.completion(outcome) }
  }

  /// Cancels an exchange because the client was closed.
  func close(_ exchange: SharedRequest) {
    exchange.isClosed = true
    exchange.isInvalidated = true
    exchange.task?.cancel()
  }

  /// When the client is closed, cancels the exchanges that do not end with its link: those of
  /// carriers, and those with interceptors.
  func closeCarried() {
    for id in exchanges.keys.sorted() {
      guard let exchange = exchanges[id], !endsWithLink(exchange.plan) else { continue }
      close(exchange)
    }
  }

  private func relaunch(_ exchange: SharedRequest, for others: [UInt64], after past: Delivery) {
    let deadline = others.compactMap { callers[$0]?.deadline }.max() ?? exchange.deadline
    launch(
      exchange.plan, until: deadline, isRefresh: exchange.isRefresh, callers: others,
      cache: exchange.cache, past: past, ticket: exchange.options.ticket
    ) { id in
      for other in others {
        guard let caller = callers[other] else { continue }
        callers[other] = Caller(
          exchange: id, deadline: caller.deadline, completion: caller.completion,
          timer: caller.timer)
      }
    }
  }

  private func keep(_ outcome: Outcome, of exchange: SharedRequest) {
    guard case .success(let body) = outcome, let policy = exchange.cache,
      let key = exchange.plan.key, isCurrent(exchange)
    else { return }
    cache.store(
      body, for: key, policy, dependsOnPushes: dependents.contains(key.type), at: loop.now)
  }

  private func publish(_ outcome: Outcome, of exchange: SharedRequest) {
    let type = exchange.plan.type
    events.publish(CallEvent(isPush: false, type: type, result: outcome), for: type)
  }
}
