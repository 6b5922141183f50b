// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkCore
import LongLinkTransport

extension CallCore: ClientWatcher {
  /// Registers the pushes that invalidate the responses of a type by a policy.
  ///
  /// Earlier responses may have missed such a push, so they are neither used nor shared.
  func register(_ policy: CachePolicy, of type: MessageType) {
    for push in policy.invalidatedBy where invalidations[push]?.contains(type) != true {
      invalidations[push, default: []].append(type)
      dependents.insert(type)
      forgetAnswers(of: type)
    }
  }

  func generation(of type: MessageType) -> Generation {
    Generation(
      ofType: generations[type] ?? 0,
      ofLink: dependents.contains(type) ? linkGeneration : 0,
      ofAll: wholeGeneration)
  }

  /// Whether the response of an exchange is as current as that of a new one.
  func isCurrent(_ exchange: SharedRequest) -> Bool {
    !exchange.isInvalidated && exchange.generation == generation(of: exchange.plan.type)
  }

  /// Invalidates the responses of one type, including those in flight.
  func invalidate(_ type: MessageType) {
    counters.invalidations += 1
    forgetAnswers(of: type)
  }

  private func forgetAnswers(of type: MessageType) {
    generations[type, default: 0] += 1
    cache.removeAll(of: type)
  }

  /// Invalidates the response to one call, including those in flight.
  func invalidate(_ key: CallKey) {
    counters.invalidations += 1
    cache.remove(key)
    // There may be several exchanges, for calls that do not share or have different terms.
    for exchange in exchanges.values where exchange.plan.key == key {
      exchange.isInvalidated = true
    }
  }

  func invalidateAll() {
    wholeGeneration += 1
    counters.invalidations += 1
    cache.removeAll()
  }

  func received(_ push: Push) -> Bool {
    let types = invalidations[push.type] ?? []
    for type in types { invalidate(type) }
    let event = CallEvent(isPush: true, type: push.type, result: .success(push.body))
    let isTaken = events.publish(event, for: push.type)
    return isTaken || !types.isEmpty
  }

  func serversSwitched() {
    invalidateAll()
  }

  func connectionChanged(to state: ConnectionState) {
    if wasConnected, !state.isMigrating {
      // A push may have been lost with the old connection.
      linkGeneration += 1
      cache.removeDependent()
    } else if !wasConnected, state.isConnected {
      // Pushes could not invalidate responses that came over short links meanwhile.
      cache.removeDependent()
    }
    wasConnected = state.isConnected
    if state == .closed {
      closeCarried()
      cache.removeAll()
      events.close()
    }
  }
}

extension ConnectionState {
  fileprivate var isMigrating: Bool {
    if case .migrating = self { true } else { false }
  }
}
