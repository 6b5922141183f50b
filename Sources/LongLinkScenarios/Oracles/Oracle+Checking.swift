// SPDX-License-Identifier: Apache-2.0

package import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

extension Oracle {
  /// Compares the queues of each client and server with their bounds.
  ///
  /// Call it now and then from a task of the simulation. It waits for paused processes.
  package func sample() async {
    for watched in box.value.withLock({ $0.clients }) {
      let counters = await watched.client.counters()
      let configuration = watched.client.configuration
      // Retried requests are put back into the queue even if it is full.
      let most = configuration.limits.maxWaiting + Int(counters.requests.retried)
      if counters.requestsWaiting > most {
        found(
          .queuesBounded,
          "\(watched.name) has \(counters.requestsWaiting) requests waiting, of at most \(most)")
      }
    }
    for watched in box.value.withLock({ $0.servers }) where !watched.isLost {
      let counters = await watched.server.counters()
      let configuration = watched.server.configuration
      let most = configuration.limits.maxInFlight * max(counters.openConnections, 1)
      if counters.requestsRunning > most {
        found(
          .queuesBounded,
          "\(watched.name) runs \(counters.requestsRunning) requests, of at most \(most)")
      }
    }
  }

  /// Returns the longest time that a client may take to reconnect after all faults have stopped.
  ///
  /// It covers detecting a dead link, the failure of an attempt in progress, and the two longest
  /// delays, each with a look-up and a connect. `hint` is the longest time for which a draining
  /// server may have asked the client to stay away.
  package static func recoveryTime(
    of configuration: ClientConfiguration, hint: Duration = .zero
  ) -> Duration {
    let detection = configuration.heartbeat.interval + configuration.heartbeat.timeout
    let attempts = configuration.timeouts.connect * 2
    let delays = PacingModel.longestDelay(configuration.reconnect) * 2
    return detection + attempts + delays + hint + .seconds(5)
  }

  /// Waits until a client is connected and gets a pong; adds a finding if that takes longer than
  /// `limit`.
  package func expectRecovery(of client: LongLinkClient, within limit: Duration) async {
    let start = simulation.now
    let end = start.advanced(by: limit)
    while simulation.now < end {
      if case .connected = client.state, (try? await client.ping()) != nil { return }
      guard (try? await simulation.sleep(for: .milliseconds(100))) != nil else { return }
    }
    found(
      .recovers,
      "\(name(of: client)) is not connected \(limit) after the faults stopped: \(client.state)")
  }

  private func name(of client: LongLinkClient) -> String {
    box.value.withLock { $0.clients.first { $0.client === client }?.name } ?? "a client"
  }

  /// Checks the whole run after all clients and servers are closed, and returns all findings.
  ///
  /// Call it once. It stops watching clients and servers.
  package func finish() async -> [OracleFinding] {
    let now = simulation.now
    box.value.withLock { state in
      state.links.checkAll(at: now)
      state.findings += state.links.broken.map { OracleFinding($0.promise, at: $0.time, $0.detail) }
      state.findings += state.credit.broken.map {
        OracleFinding($0.promise, at: $0.time, $0.detail)
      }
      // Servers that end the connections of principals use the code for expired credentials, too.
      if !state.endsPrincipals {
        state.findings += state.credit.credentials.broken.map {
          OracleFinding(.renewedInPlace, at: $0.time, $0.detail)
        }
      }
      for model in state.pacing { state.findings += model.broken }
    }
    for (promise, detail) in requests.broken { found(promise, detail) }
    for (promise, detail) in items.broken { found(promise, detail) }
    for (promise, detail) in once.broken { found(promise, detail) }
    checkDeadlines()
    checkLeftovers()
    await checkCounters()
    // This breaks reference cycles: handlers of clients and servers may hold the oracle's owner.
    box.value.withLock { ($0.clients, $0.servers) = ([], []) }
    return findings
  }

  private func checkDeadlines() {
    let pauses = box.value.withLock { $0.links.pauses }
    for (key, asked, ended) in requests.late + once.late {
      // A frozen process cannot end requests.
      guard !pauses.contains(where: { $0.from <= ended && asked <= $0.to }) else { continue }
      found(
        .deadlinesKept,
        "request \(key), made at \(asked), ended only at \(ended)")
    }
  }

  private func checkLeftovers() {
    for stream in simulation.openStreams { found(.nothingLeft, "a stream is open: \(stream)") }
    for listener in simulation.openListeners { found(.nothingLeft, "\(listener) is listened on") }
    for timer in simulation.pendingTimers { found(.nothingLeft, "a timer is set: \(timer)") }
  }

  private func checkCounters() async {
    var (sent, received, handled): (UInt64, UInt64, UInt64) = (0, 0, 0)
    var (succeeded, expired, items): (UInt64, UInt64, Int64) = (0, 0, 0)
    let (clients, servers) = box.value.withLock { ($0.clients, $0.servers) }
    for watched in clients {
      let counters = await watched.client.counters()
      if counters.requestsOpen > 0 {
        found(.nothingLeft, "\(watched.name) has \(counters.requestsOpen) requests open")
      }
      check(counters.requests, of: watched.name)
      check(
        watched.client.configuration.observers, counters.requests, counters.connections,
        of: watched.name)
      checkRules(watched.violations, foundBy: watched.name)
      sent += counters.connections.requestsSent
      received += counters.connections.requestsReceived
      handled += counters.connections.handled - counters.connections.handlersSkipped
      succeeded += counters.requests.succeeded
      items += counters.connections.itemsUnderWay
    }
    for watched in servers where !watched.isLost {
      let counters = await watched.server.counters()
      if counters.openConnections > 0 {
        found(.nothingLeft, "\(watched.name) has \(counters.openConnections) peers open")
      }
      if counters.requestsRunning > 0 {
        found(.nothingLeft, "\(watched.name) runs \(counters.requestsRunning) requests")
      }
      if counters.bytesHeld != 0 {
        found(.nothingLeft, "\(watched.name) counts \(counters.bytesHeld) bytes as held")
      }
      check(counters.requests, of: watched.name)
      check(
        watched.server.configuration.observers, counters.requests, counters.connections,
        of: watched.name)
      checkRules(
        counters.violations.keys.compactMap(Violation.Rule.init(rawValue:)), foundBy: watched.name)
      expired += counters.credentialsExpired
      sent += counters.connections.requestsSent
      received += counters.connections.requestsReceived
      handled += counters.connections.handled - counters.connections.handlersSkipped
      succeeded += counters.requests.succeeded
      items += counters.connections.itemsUnderWay
    }
    // The counters of a crashed process are lost.
    guard !servers.contains(where: \.isLost) else { return }
    if received > sent {
      found(.countersAgree, "\(received) requests arrived, of \(sent) that were sent")
    }
    if expired == 0 { checkRenewals() }
    if items < 0 { found(.countersAgree, "\(-items) more items arrived than were sent") }
    if handled != runCount {
      found(.countersAgree, "\(handled) handlers were counted, and \(runCount) ran")
    }
    // The caller of a stream may have given it up when it succeeded.
    let reported = UInt64(requests.succeededCount + once.succeededCount)
    if succeeded < reported || succeeded > reported + UInt64(requests.unseenCount) {
      found(.countersAgree, "\(succeeded) successes were counted, and \(reported) were reported")
    }
  }

  /// The number of times that handlers ran.
  private var runCount: UInt64 { UInt64(requests.runCount + once.runCount) }

  /// Checks that no request ended because its credential had expired: on the servers, none had.
  private func checkRenewals() {
    let (ended, isExcused) = (requests.expiredCount, box.value.withLock { $0.endsPrincipals })
    guard ended > 0, !isExcused else { return }
    found(.renewedInPlace, "\(ended) requests ended, and no credential had expired")
  }

  /// Checks that no side found a peer that broke a rule, unless the network damaged bytes.
  private func checkRules(_ rules: [Violation.Rule], foundBy name: String) {
    guard !box.value.withLock({ $0.isDamaged }) else { return }
    // A network that is slow, or cut off, is no side's fault.
    let excused: Set<Violation.Rule> = [.truncatedFrame, .frameTimeout, .firstFrameTimeout]
    for rule in rules.filter({ !excused.contains($0) }).map({ "\($0)" }).sorted() {
      found(.rulesKept, "\(name) found that its peer broke a rule: \(rule)")
    }
  }

  private func check(_ counters: RequestCounters, of name: String) {
    let ended =
      counters.succeeded + counters.rejected + counters.cancelled + counters.expired
      + counters.lost + counters.failedLocally
    guard ended != counters.submitted else { return }
    found(.countersAgree, "\(name): \(counters.submitted) requests were made, \(ended) ended")
  }
}

extension ConnectionCounters {
  /// The items that this side sent less those it received; in total, the items that have not
  /// arrived.
  fileprivate var itemsUnderWay: Int64 { Int64(itemsSent) - Int64(itemsReceived) }
}
