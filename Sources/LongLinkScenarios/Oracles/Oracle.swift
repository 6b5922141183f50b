// SPDX-License-Identifier: Apache-2.0

package import LongLink
internal import LongLinkDriver
internal import LongLinkCore
package import LongLinkServer
package import LongLinkTesting
package import LongLinkTransport
internal import Synchronization

/// Watches clients and servers in a simulation, and reports broken promises.
///
/// Make the oracle first, and let it watch each client and server before they connect. Record
/// requests in ``requests``, and call ``finish()`` after everything is closed:
///
/// ```swift
/// let oracle = Oracle(simulation)
/// oracle.watch(server, named: "server")
/// oracle.watch(client, named: "client")
/// oracle.requests.asked(1)
/// oracle.requests.ended(1, await ask(client))
/// await client.close()
/// await server.shutDown()
/// let findings = await oracle.finish()
/// ```
///
/// Record the items of streams in ``items``. The oracle's evidence is the bytes on the network, the
/// records of callers and handlers, and the counters. It computes the expected bounds itself,
/// independently of the code under test. It cannot read encrypted bytes: pass securities through
/// ``watching(_:)-(ClientSecurity)`` and ``watching(_:)-(ServerSecurity)``. Make one oracle for a
/// simulation, and keep a reference: it watches until it is released. Any thread may use it.
package final class Oracle: Sendable {
  struct WatchedClient {
    let name: String
    let client: LongLinkClient
    let machine: SimulatedMachine
    /// Attempts to connect whose links in the simulation are not known yet.
    var attempts: [(id: UInt32, address: SocketAddress)] = []
    /// The rules that the client found its servers to break.
    var violations: [Violation.Rule] = []
    /// The numbers of links in the simulation, by the client's attempt.
    var links: [UInt32: Int] = [:]
  }

  struct WatchedServer {
    let name: String
    let server: LongLinkServer
    let machines: [SimulatedMachine]
    /// Whether the server's process has crashed, so that its counters are ignored.
    var isLost = false
  }

  struct State {
    var links = LinkWatch()
    var credit = CreditWatch()
    /// The credentials that were renewed on their connections.
    var renewals = 0
    /// Whether servers may have ended connections of a principal, with the code of expired
    /// credentials.
    var endsPrincipals = false
    /// Whether the network has damaged bytes.
    var isDamaged = false
    var pacing: [PacingModel] = []
    var clients: [WatchedClient] = []
    var servers: [WatchedServer] = []
    var findings: [OracleFinding] = []
    var recorder: TimelineRecorder?
    /// The addresses and numbers of short links, which have no heartbeat and no credit.
    var shortAddresses: Set<SocketAddress> = []
    var shortLinks: Set<Int> = []
    /// The numbers of the secured links, whose plain bytes the oracle gets separately.
    var securedLinks: Set<Int> = []

    /// Whether an entry is about a short link.
    mutating func isShort(_ entry: Trace.Entry) -> Bool {
      guard !shortAddresses.isEmpty, entry.link > 0 else { return false }
      if entry.kind == .connecting, let address = entry.address, shortAddresses.contains(address) {
        shortLinks.insert(entry.link)
      }
      return shortLinks.contains(entry.link)
    }
  }

  /// The record of requests.
  package let requests: RequestLedger
  /// The record of the items of streams.
  package let items: ItemLedger
  /// The record of requests that run once.
  let once: OnceLedger
  /// The watched simulation.
  package let simulation: Simulation
  /// The oracle's state. Observers hold it weakly: it holds clients, whose loops hold the
  /// observers.
  let box: Box<Mutex<State>>

  /// Starts watching the network of a simulation.
  package convenience init(_ simulation: Simulation) {
    self.init(simulation, recorder: nil)
  }

  init(_ simulation: Simulation, recorder: TimelineRecorder?) {
    self.simulation = simulation
    let now = { @Sendable [networkState = simulation.networkState] in networkState.now }
    requests = RequestLedger(now: now)
    items = ItemLedger(now: now)
    once = OnceLedger(now: now)
    box = Box(Mutex(State(recorder: recorder)))
    simulation.observe { [weak box] entry, bytes in
      box?.value.withLock { $0.observed(entry, bytes) }
    }
  }

  /// Watches a client on a loop of the simulation. Call it before the client connects.
  package func watch(_ client: LongLinkClient, named name: String) {
    let machine = simulation.machine(of: client.loop)
    let index = box.value.withLock { state in
      let configuration = client.configuration
      state.links.watch(
        LinkWatch.Owner(
          name: name, heartbeat: configuration.heartbeat,
          handshake: configuration.timeouts.connect),
        on: machine.index)
      state.clients.append(WatchedClient(name: name, client: client, machine: machine))
      state.pacing.append(PacingModel(name: name, configuration: configuration))
      state.recorder?.named(machine.index, name, isClient: true)
      return state.clients.count - 1
    }
    client.observeLinks { [weak box, networkState = simulation.networkState] local, event in
      let now = networkState.now
      box?.value.withLock { $0.heard(event, from: index, local: local, at: now) }
    }
  }

  /// Leaves connections to an address out of the promises about links: they are short links, which
  /// have neither a heartbeat nor credit. Call it before there are any.
  package func leaveOut(linksTo address: SocketAddress) {
    box.value.withLock { _ = $0.shortAddresses.insert(address) }
  }

  /// Watches a server on its loops. Call it before the server starts.
  package func watch(_ server: LongLinkServer, on loops: [EventLoop], named name: String) {
    let machines = loops.map { simulation.machine(of: $0) }
    box.value.withLock { state in
      let configuration = server.configuration
      for machine in machines {
        state.links.watch(
          LinkWatch.Owner(
            name: name, heartbeat: configuration.heartbeat,
            handshake: configuration.timeouts.firstFrame,
            authenticates: configuration.identity.authenticate != nil),
          on: machine.index)
        state.recorder?.named(machine.index, name, isClient: false)
      }
      state.servers.append(WatchedServer(name: name, server: server, machines: machines))
    }
  }

  /// Records that a server's process has crashed. Its counters are no longer compared.
  package func lost(_ server: LongLinkServer) {
    box.value.withLock { state in
      for index in state.servers.indices where state.servers[index].server === server {
        state.servers[index].isLost = true
      }
    }
  }

  /// Records that servers may end the connections of principals, with the code of expired
  /// credentials.
  func endsPrincipals() { box.value.withLock { $0.endsPrincipals = true } }

  /// The broken promises found so far.
  package var findings: [OracleFinding] { box.value.withLock { $0.findings } }

  /// Adds a broken promise that the test has found.
  package func found(_ promise: OraclePromise, _ detail: String) {
    let finding = OracleFinding(promise, at: simulation.now, detail)
    box.value.withLock { $0.findings.append(finding) }
  }

  /// Adds a note to the timeline, if one is drawn.
  func note(_ text: String) {
    let now = simulation.now
    box.value.withLock { $0.recorder?.note(text, at: now) }
  }
}
