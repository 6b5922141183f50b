// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

// How facts reach the machine, and what follows. Code that has learned something tells it with
// `tell` or, if something is to be done before its effects, with `note` and then `settle`.

extension ClientCore: TimerHandler {
  enum Timer: UInt64 {
    case machine = 1
    case closing
  }

  /// Tells the machine a fact, and does what follows from it. `named` are the servers that a goaway
  /// has named.
  func tell(_ fact: ClientMachine.Fact, naming named: [Endpoint] = []) {
    let first = machine.link.alternativesNamed
    note(fact)
    servers.take(named, numbered: first..<machine.link.alternativesNamed)
    settle()
  }

  /// Tells the machine a fact; `settle` has to follow.
  func note(_ fact: ClientMachine.Fact) { machine.handle(fact, at: loop.now, bits: bits) }

  /// Performs the machine's effects, opens short links for requests that wait, publishes the state,
  /// sets the timer, and completes what has waited for that.
  func settle() {
    // An effect may fail at once and re-enter; the outer call continues with the rest.
    guard !isSettling else { return }
    isSettling = true
    while let effect = nextEffect() { perform(effect) }
    isSettling = false
    connector.withdrawLookUp()
    publishState()
    arm()
    completeSuspension()
    // What a link had not written ends with the link.
    finishClosingIfDone()
    completeClosing()
  }

  private func nextEffect() -> ClientMachine.Effect? {
    var effect = machine.nextEffect()
    if effect == nil, machine.ways.carriesRequests {
      machine.want(requests.readyCount)
      effect = machine.nextEffect()
    }
    requests.hasShortLinks = machine.ways.carriesRequests
    return effect
  }

  private func arm() {
    let deadline = machine.deadline
    guard deadline != armedFor else { return }
    if let timer { loop.cancel(timer) }
    timer = nil
    armedFor = deadline
    guard deadline != .distantFuture else { return }
    timer = loop.schedule(at: deadline, self, token: Timer.machine.rawValue)
  }

  func timerFired(token: UInt64) {
    switch Timer(rawValue: token) {
    case .machine:
      timer = nil
      armedFor = .distantFuture
      for connection in connections {
        if connection.link.isReached { note(.long(.reached(connection.link.id))) }
        if connection.isHeard { note(.long(.heard(connection.link.id))) }
      }
      machine.handle(.elapsed, at: loop.driver.now, bits: bits)
      settle()
    case .closing: closingElapsed()
    case nil: break
    }
  }
}

// MARK: - The machine's effects

extension ClientCore {
  private func perform(_ effect: ClientMachine.Effect) {
    switch effect {
    case .long(let effect): perform(effect)
    case .short(let effect): perform(effect)
    }
  }

  private func perform(_ effect: LinkMachine.Effect) {
    switch effect {
    case .resolve(let target, let round): connector.begin(round, with: servers[target])
    case .connect(let id, let address): connector.connect(id, to: address)
    case .prepare(let id): connection(id)?.prepare()
    case .abandon(let id, let reason): connection(id)?.abandon(reason)
    case .use(let id): use(id)
    case .retire(let id): connection(id)?.retire()
    case .expire(let id): connection(id)?.expire()
    case .probe(let id): connection(id)?.link.probe()
    case .proven(let id): connection(id)?.proven()
    case .renew(let id): connection(id)?.renew()
    case .roundFailed:
      // Callers that are about to be resumed may read the state. If another round follows at once,
      // its state is shown when it begins.
      if case .waiting = machine.state { publishState() }
      connector.roundFailed()
    case .wait(let wait):
      notifyObserver(
        .waiting(
          failures: wait.failures, window: .nanoseconds(wait.window),
          delay: .nanoseconds(wait.delay), wait.cause))
    }
  }

  private func perform(_ effect: WayMachine.Effect) {
    switch effect {
    case .open(let id, let way): shortLinks?.open(id, way)
    case .abandon(let id): shortLinks?.abandon(id)
    case .allFailed: shortLinks?.allFailed()
    case .ping(let id): _ = connection(id)?.link.ping()
    case .passed(let id): connection(id)?.passed()
    }
  }

  private func connection(_ id: UInt32) -> ClientConnection? {
    connections.first { $0.link.id == id }
  }

  /// Sends new requests over a connection.
  private func use(_ id: UInt32) {
    guard let connection = connection(id) else { return }
    connection.use()
    // Publish the state before requests and `connect()` callers resume.
    publishState()
    requests.opened(connection.link)
    pushes.pump(over: connection.link)
    resumeConnectWaiters(.success(()))
  }
}

// MARK: - The state

extension ClientCore {
  /// Publishes the machine's state as the client's `ConnectionState`.
  private func publishState() {
    let state = machine.state
    // Compare machine states, because the remaining time of `waiting` differs at each call.
    guard state != shownState else { return }
    shownState = state
    switch state {
    case .idle: show(.idle)
    case .connecting: show(.connecting(connector.server))
    case .connected(let id): show(.connected(connection(id)?.link.peer))
    case .migrating(let id, _):
      show(.migrating(connection(id)?.link.peer, to: connector.server))
    case .waiting(let until): show(.waiting(.nanoseconds(max(0, until - loop.now))))
    case .short(let way): show(.short(shortLinks?.name(of: way) ?? ""))
    case .notAccepted(let code): show(.notAccepted(code))
    case .suspended: show(.suspended)
    // When the last link has ended.
    case .closed: break
    }
  }

  /// Tells the watchers and then the subscribers of a state.
  func show(_ state: ConnectionState) {
    guard state != states.state else { return }
    watchers.connectionChanged(to: state)
    states.set(state)
  }
}
