// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

extension LinkMachine {
  /// A machine for servers with these priorities.
  static func make(
    _ priorities: [Int] = [0], _ policy: ReconnectPolicy = ReconnectPolicy(),
    connectTimeout: Int64 = 1_000_000_000, change: (inout ReconnectPolicy) -> Void = { _ in }
  ) -> LinkMachine {
    var policy = policy
    change(&policy)
    return LinkMachine(
      servers: priorities.map { ServerList.Entry(priority: $0, weight: 1) },
      settings: LinkMachine.Settings(
        reconnect: policy, connectTimeout: connectTimeout, lingering: 10_000_000_000))
  }

  /// The effects that wait, without word of the pauses.
  mutating func take() -> [Effect] {
    var effects: [Effect] = []
    while let effect = nextEffect() {
      if case .wait = effect { continue }
      effects.append(effect)
    }
    return effects
  }

  /// The last pause that the machine has told of; all other effects are let go.
  mutating func takeWait() -> LinkWait? {
    var last: LinkWait?
    while let effect = nextEffect() {
      if case .wait(let wait) = effect { last = wait }
    }
    return last
  }

  /// Ends the round that has begun: with a link, whose number is returned, or without one.
  @discardableResult
  mutating func finishRound(
    up: Bool, at milliseconds: Int64, bits: () -> UInt64 = { .max }
  ) -> AttemptID {
    resolved(round: round, addresses: up ? 1 : 0, at: .ms(milliseconds), bits: bits)
    var attempt: AttemptID = 0
    for effect in take() {
      if case .connect(let id, _) = effect { attempt = id }
    }
    if up {
      established(attempt, provenAfter: 30_000_000_000, at: .ms(milliseconds), bits: bits)
      _ = take()
    }
    return attempt
  }

  /// A machine whose link is up, and perhaps has worked; its number is 1.
  static func up(
    _ priorities: [Int] = [0], works: Bool = true,
    change: (inout ReconnectPolicy) -> Void = { _ in }
  ) -> LinkMachine {
    var machine = make(priorities, change: change)
    machine.start(at: .ms(0)) { .max }
    machine.finishRound(up: true, at: 0)
    if works { machine.worked(1) }
    _ = machine.take()
    return machine
  }
}
