// SPDX-License-Identifier: Apache-2.0

/// What an attempt of a request that runs once says of it.
package struct OnceStatement: Equatable, Sendable {
  package let key: OnceKey
  package let space: KeySpace
  package let time: UInt64

  package init(key: OnceKey, space: KeySpace, time: UInt64) {
    self.key = key
    self.space = space
    self.time = time
  }
}

/// What a request that runs once has stated, over all of its attempts.
///
/// Until an attempt may have run, each attempt states what holds on its own link. From then on, all
/// state the same: where something else holds, the server refuses them.
package struct OnceState: Equatable, Sendable {
  /// What becomes of an attempt.
  package enum Attempt: Equatable, Sendable {
    case states(OnceStatement)
    /// The server keeps no records for this client.
    case notKept
  }

  /// How often a request takes over what a refusal says of its space and time.
  package static let mostTakeovers = 3

  package let key: OnceKey
  /// Where and when the key was first used; nil before that.
  package private(set) var space: KeySpace?
  package private(set) var time: UInt64 = 0
  /// Whether the application has kept the space and time.
  private var isKept: Bool
  private var takeovers = 0

  package init(_ key: OnceKey) {
    self.key = key
    isKept = false
  }

  /// Makes the state of a request whose key, space and time the application has kept.
  package init(kept statement: OnceStatement) {
    key = statement.key
    space = statement.space
    time = statement.time
    isKept = true
  }

  /// Returns the space and time for the application to keep; nil if there are none yet. They do not
  /// change any more: what the application sends after its restart must not run elsewhere.
  package mutating func keep() -> (space: KeySpace, time: UInt64)? {
    guard let space else { return nil }
    isKept = true
    return (space, time)
  }

  /// Whether the space and time are not to change any more.
  ///
  /// A request that may have run, and has only stated that it knows no space, has not run.
  private func isSettled(_ mayHaveRun: Bool) -> Bool { isKept || mayHaveRun && space != nil }

  /// Decides what an attempt over a link states. `terms` are those of the link; those of a short
  /// link, which waits for none, are the last that the client knows.
  ///
  /// A request that names another space than they do is sent all the same: a server that shares its
  /// store with others may not have heard of a new name yet, and looks before it refuses.
  package mutating func attempt(
    under terms: OnceTerms?, isShort: Bool, mayHaveRun: Bool, at now: LinkInstant
  ) -> Attempt {
    guard isSettled(mayHaveRun), let space else {
      guard let terms else {
        // The refusal says what holds.
        return isShort ? .states(OnceStatement(key: key, space: .none, time: 1)) : .notKept
      }
      (self.space, time) = (terms.space, terms.time(at: now))
      return .states(OnceStatement(key: key, space: terms.space, time: time))
    }
    guard isShort || terms != nil else { return .notKept }
    return .states(OnceStatement(key: key, space: space, time: time))
  }

  /// Whether the request is sent again after a server has refused its space or time.
  package mutating func takesOver(mayHaveRun: Bool) -> Bool {
    guard !isSettled(mayHaveRun), takeovers < OnceState.mostTakeovers else { return false }
    takeovers += 1
    return true
  }
}

extension RequestTable {
  /// What earlier attempts of a request may have done.
  package func past(of id: RequestID) -> Delivery {
    guard let slot = entries.slot(of: id.serial), entries[slot: slot].number == id.number
    else { return .notSent }
    return entries[slot: slot].past
  }
}

/// The requests of one side that run once, and have no tickets, by their serials.
package struct OnceRequests: ~Copyable {
  private var states = SerialTable<OnceState>()

  package init() {}

  package mutating func begin(_ serial: UInt32, _ key: OnceKey) {
    states.insert(OnceState(key), for: serial)
  }

  /// Changes the state of a request that has begun and not ended.
  package mutating func change<Result>(
    _ serial: UInt32, _ body: (inout OnceState) -> Result
  ) -> Result? {
    guard let slot = states.slot(of: serial) else { return nil }
    return body(&states[slot: slot])
  }

  /// Notes that a request has another serial.
  package mutating func renumber(_ serial: UInt32, to next: UInt32) {
    guard let state = states.remove(serial) else { return }
    states.insert(state, for: next)
  }

  package mutating func end(_ serial: UInt32) { _ = states.remove(serial) }

  /// Frees memory while no request runs.
  package mutating func releaseStorage() { states.removeAll() }
}
