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
    var turnsTooLong: UInt64 = 0
    var maxConnections: Int
    var maxConnectionsPerAddress: Int
    var maxRenewals: Int
    var limits: AddressLimits
    /// What has replaced the limits of the configuration; nil if nothing has.
    var change: ServerLimitChange?
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
    let settings = configuration.connectionSettings
    state.withLock { state in
      state.change = ServerLimitChange(
        number: (state.change?.number ?? 0) + 1, configuration: configuration, settings: settings)
      state.maxConnections = configuration.limits.maxConnections
      state.maxConnectionsPerAddress = configuration.addresses.maxConnections
      state.maxRenewals = configuration.limits.maxHandshakes
      state.limits = AddressLimits(configuration)
      state.handshakes.limit = configuration.limits.maxHandshakes
      state.rates.rate = rates.connections
      state.shortRates.rate = rates.shortLinks
    }
  }

  /// The last change of limits; nil if it is the one with this number, or there is none.
  func change(after number: UInt64) -> ServerLimitChange? {
    state.withLock { $0.change.flatMap { $0.number == number ? nil : $0 } }
  }

  func acceptFailed() {
    state.withLock { $0.acceptFailures += 1 }
  }

  /// Counts a turn in which work blocked one of the server's own loops.
  func turnTookTooLong() {
    state.withLock { $0.turnsTooLong += 1 }
  }

  /// Whether a new connection would be rejected, because no other one makes room for it.
  var isFull: Bool {
    state.withLock {
      $0.connections - $0.leaving.count >= $0.maxConnections && $0.handshakes.count == 0
    }
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
      counters.turnsTooLong = state.turnsTooLong
    }
  }
}

extension Logger.MetadataValue {
  /// A peer's address as log metadata; without an address, a text that says so.
  static func peer(_ address: SocketAddress?) -> Logger.MetadataValue {
    "\(address.map(String.init(describing:)) ?? "unknown")"
  }
}

/// Limits for new connections that replace those of a server's configuration while it runs.
struct ServerLimitChange: Sendable {
  /// The number of the change, from 1 on.
  let number: UInt64
  let configuration: ServerConfiguration
  let settings: ConnectionSettings
}
