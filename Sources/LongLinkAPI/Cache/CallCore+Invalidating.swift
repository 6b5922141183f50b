import LongLink
import LongLinkConnection
import LongLinkCore
import LongLinkTransport

extension CallCore: ClientWatcher {
  func register(_ policy: CachePolicy, of type: MessageType) {
    for push in policy.invalidatedBy where invalidations[push]?.contains(type) != true {
      invalidations[push, default: []].append(type)
    }
  }

  func generation(of plan: CallPlan) -> Generation {
    Generation(
      ofType: generations[plan.type] ?? 0,
      ofLink: plan.cache?.invalidatedBy.isEmpty == false ? linkGeneration : 0,
      ofAll: wholeGeneration)
  }

  /// Whether the answer of an exchange is as good as one to a question asked now.
  func isCurrent(_ exchange: Exchange) -> Bool {
    exchange.generation == generation(of: exchange.plan)
  }

  /// Forgets the answers of one type, and does not keep those on their way.
  func invalidate(_ type: MessageType) {
    generations[type, default: 0] += 1
    counters.invalidations += 1
    cache.removeAll(of: type)
  }

  /// Forgets the answer to one call, and nothing on its way is kept or shared.
  func invalidate(_ key: CallKey) {
    counters.invalidations += 1
    cache.remove(key)
    guard let id = exchangeOfKey.removeValue(forKey: key) else { return }
    exchanges[id]?.cache = nil
  }

  func invalidateAll() {
    wholeGeneration += 1
    counters.invalidations += 1
    cache.removeAll()
  }

  func received(_ push: Push) -> Bool {
    let types = invalidations[push.type] ?? []
    for type in types { invalidate(type) }
    let event = APIEvent(source: .push, type: push.type, result: .success(push.body))
    let isTaken = events.publish(event, for: push.type)
    return isTaken || !types.isEmpty
  }

  func serversSwitched() {
    invalidateAll()
  }

  func connectionChanged(to state: ConnectionState) {
    if wasConnected, !state.isMigrating {
      // A push may have been lost, or may have gone to a connection that is no more.
      linkGeneration += 1
      cache.removeDependent()
    }
    wasConnected = state.isConnected
    for poller in pollers { poller.connectionChanged(to: state) }
    if state == .closed {
      pollers = []
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
