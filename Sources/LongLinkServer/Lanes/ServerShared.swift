// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Synchronization

/// The state that all loops of a server share. `Admission.swift` has the functions that change it.
final class ServerShared: Sendable {
  struct State {
    var connections = 0
    var nextID: UInt64 = 0
    var accepted: UInt64 = 0
    var rejected: [ConnectionRejection: UInt64] = [:]
    var acceptFailures: UInt64 = 0
    var pushesDenied: UInt64 = 0
    /// The number of connections for each group of addresses that is limited.
    var connectionsOf: [SocketAddress.Group: Int] = [:]
    /// The rates at which each address may open connections, and short links.
    var rates: AddressRates
    var shortRates: AddressRates
    /// The number of renewals of credentials about which the server has not decided yet.
    var renewals = 0
    /// The connections that are not open yet.
    var handshakes: HandshakePlaces<LoopBound<ServerLane>>
    /// The connections that were told to make room for others, until they have ended.
    var leaving: Set<UInt64> = []
    var evicted: UInt64 = 0
    var maxConnections: Int
    var maxConnectionsPerAddress: Int
    var maxRenewals: Int
    var limits: AddressLimits
  }

  let state: Mutex<State>
  let clients: ServerClients
  var limits: AddressLimits { state.withLock { $0.limits } }
  /// The log for lines that clients can cause; rate-limited for all connections together.
  let log: PeerLog
  /// The memory budget of all connections.
  let memory: MemoryBudget

  init(_ configuration: ServerConfiguration) {
    log = PeerLog(configuration.logger)
    clients = ServerClients(mostHandedOver: configuration.limits.waterMarks.high)
    memory = MemoryBudget(limit: configuration.limits.memoryLimit)
    let rates = configuration.addressRates
    let places = HandshakePlaces<LoopBound<ServerLane>>(limit: configuration.limits.maxHandshakes)
    state = Mutex(
      State(
        rates: AddressRates(rates.connections), shortRates: AddressRates(rates.shortLinks),
        handshakes: places, maxConnections: configuration.limits.maxConnections,
        maxConnectionsPerAddress: configuration.addresses.maxConnections,
        maxRenewals: configuration.limits.maxHandshakes, limits: AddressLimits(configuration)))
  }

  /// Replaces the limits of new connections. Connections beyond them stay.
  func change(to configuration: ServerConfiguration) {
    let rates = configuration.addressRates
    state.withLock { state in
      state.maxConnections = configuration.limits.maxConnections
      state.maxConnectionsPerAddress = configuration.addresses.maxConnections
      state.maxRenewals = configuration.limits.maxHandshakes
      state.limits = AddressLimits(configuration)
      state.handshakes.limit = configuration.limits.maxHandshakes
      state.rates.rate = rates.connections
      state.shortRates.rate = rates.shortLinks
    }
  }

  func acceptFailed() {
    state.withLock { $0.acceptFailures += 1 }
  }

  /// Counts a push that its access rule does not allow.
  func deniedPush() {
    state.withLock { $0.pushesDenied += 1 }
  }

  func fill(_ counters: inout ServerCounters) {
    counters.bytesHeld = memory.held
    (counters.clients, counters.pushesLost) = clients.counts
    state.withLock { state in
      counters.openConnections = state.connections
      counters.handshakes = state.handshakes.count
      counters.handshakesEvicted = state.evicted
      counters.connectionsAccepted = state.accepted
      counters.rejections = Dictionary(
        uniqueKeysWithValues: state.rejected.map { ($0.key.rawValue, $0.value) })
      counters.acceptFailures = state.acceptFailures
      counters.pushesDenied = state.pushesDenied
    }
  }
}

extension Logger.MetadataValue {
  /// A peer's address as log metadata; without an address, a text that says so.
  static func peer(_ address: SocketAddress?) -> Logger.MetadataValue {
    "\(address.map(String.init(describing:)) ?? "unknown")"
  }
}
