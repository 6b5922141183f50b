// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
@_spi(Loop) import LongLinkTransport
import Synchronization

/// An accepted connection, and the limits for which it counts until it ends.
struct Admission: Sendable {
  let id: UInt64
  /// The address of the connection's client: the peer, or the client that a proxy has named.
  var address: SocketAddress?
  /// The group of addresses whose limits the connection counts for; nil if it has no such limits.
  fileprivate(set) var group: SocketAddress.Group?
  /// When the connection was accepted.
  let accepted: LinkInstant
}

extension ServerShared {
  /// Admits a new connection that a lane will own, or throws why it is rejected.
  func admit(
    _ address: SocketAddress?, at now: LinkInstant, to lane: LoopBound<ServerLane>,
    isShort: Bool = false, asking onAccept: (@Sendable (SocketAddress?) -> Bool)?
  ) throws(ConnectionRejection) -> Admission {
    let group = try judge(address, at: now, isShort: isShort, asking: onAccept)
    return try enter(address, group, at: now, to: lane)
  }

  /// Admits a connection of a proxy. Call `name` once the proxy has named the client.
  func admit(
    proxy address: SocketAddress, at now: LinkInstant, to lane: LoopBound<ServerLane>
  ) throws(ConnectionRejection) -> Admission {
    if let objection = limits.objection(toProxy: address) { throw reject(objection) }
    return try enter(address, nil, at: now, to: lane, isNamed: false)
  }

  /// Admits the client that a proxy has named; if `client` is nil, the proxy's own connection.
  func name(
    _ client: SocketAddress?, of admission: inout Admission, at now: LinkInstant,
    asking onAccept: (@Sendable (SocketAddress?) -> Bool)?
  ) throws(ConnectionRejection) {
    guard let client else {
      guard onAccept?(admission.address) ?? true else { throw reject(.notWanted) }
      state.withLock { $0.accepted += 1 }
      return
    }
    let group = try judge(client, at: now, isShort: false, asking: onAccept)
    let isFull = state.withLock { state in
      if let group {
        if state.connectionsOf[group, default: 0] >= state.maxConnectionsPerAddress { return true }
        state.connectionsOf[group, default: 0] += 1
      }
      state.accepted += 1
      return false
    }
    if isFull { throw reject(.tooManyOfAddress) }
    admission.address = client
    admission.group = group
  }

  /// Checks an address and its rate, and returns the group of its limits; nil if it is not limited.
  private func judge(
    _ address: SocketAddress?, at now: LinkInstant, isShort: Bool,
    asking onAccept: (@Sendable (SocketAddress?) -> Bool)?
  ) throws(ConnectionRejection) -> SocketAddress.Group? {
    let limits = limits
    if let objection = limits.objection(to: address) { throw reject(objection) }
    let group = limits.group(of: address)
    if let group {
      let isInTime = state.withLock { state in
        isShort ? state.shortRates.take(group, at: now) : state.rates.take(group, at: now)
      }
      if !isInTime { throw reject(isShort ? .shortLinksTooFast : .tooFast) }
    }
    guard onAccept?(address) ?? true else { throw reject(.notWanted) }
    return group
  }

  /// Counts a connection among all connections, among those of its address, and among those that
  /// are not open yet.
  private func enter(
    _ address: SocketAddress?, _ group: SocketAddress.Group?, at now: LinkInstant,
    to lane: LoopBound<ServerLane>, isNamed: Bool = true
  ) throws(ConnectionRejection) -> Admission {
    typealias Entry = (admission: Admission, evicted: (id: UInt64, owner: LoopBound<ServerLane>)?)
    let result = state.withLock { state -> Result<Entry, ConnectionRejection> in
      if let group, state.connectionsOf[group, default: 0] >= state.maxConnectionsPerAddress {
        return .failure(.tooManyOfAddress)
      }
      // A connection that makes room still counts until it has ended.
      var evicted: (id: UInt64, owner: LoopBound<ServerLane>)?
      let isFull = state.connections - state.leaving.count >= state.maxConnections
      if isFull || state.handshakes.isFull {
        evicted = state.handshakes.evict()
        guard evicted != nil || !isFull else { return .failure(.tooManyConnections) }
      }
      if let evicted {
        state.leaving.insert(evicted.id)
        state.evicted += 1
      }
      state.connections += 1
      if let group { state.connectionsOf[group, default: 0] += 1 }
      if isNamed { state.accepted += 1 }
      state.nextID += 1
      state.handshakes.enter(state.nextID, lane)
      let admission = Admission(id: state.nextID, address: address, group: group, accepted: now)
      return .success((admission, evicted))
    }
    switch result {
    case .success(let (admission, evicted)):
      if let (id, lane) = evicted { lane.loop.execute { lane.value.evictHandshake(id) } }
      return admission
    case .failure(let objection):
      throw reject(objection)
    }
  }

  /// Counts a rejection, and returns it.
  func reject(_ objection: ConnectionRejection) -> ConnectionRejection {
    state.withLock { $0.rejected[objection, default: 0] += 1 }
    return objection
  }

  /// Frees the place for a connection's handshake, because the connection is open.
  func connectionOpened(_ admission: Admission) {
    state.withLock { state in _ = state.handshakes.leave(admission.id) }
  }

  /// Gives the renewal of a connection's credential a place until the server has decided about it.
  /// False if no place is free, or if the address exceeds its rate of connections, which counts
  /// renewals too.
  func beginRenewal(of admission: Admission, at now: LinkInstant) -> Bool {
    state.withLock { state in
      guard state.renewals < state.maxRenewals else { return false }
      if let group = admission.group, !state.rates.take(group, at: now) { return false }
      state.renewals += 1
      return true
    }
  }

  /// Frees the place of a renewal.
  func endRenewal() {
    state.withLock { $0.renewals -= 1 }
  }

  /// Whether a connection had to make room for another before its lane got it.
  func isLeaving(_ admission: Admission) -> Bool {
    state.withLock { $0.leaving.contains(admission.id) }
  }

  /// Lets a connection stay that had to make room, but has opened in the meantime.
  func spare(_ admission: Admission) {
    state.withLock { state in
      if state.leaving.remove(admission.id) != nil { state.evicted -= 1 }
    }
  }

  /// Frees the places of a connection that has ended.
  func connectionEnded(_ admission: Admission) {
    state.withLock { state in
      state.connections -= 1
      if !state.handshakes.leave(admission.id) { state.leaving.remove(admission.id) }
      guard let group = admission.group, let count = state.connectionsOf[group] else { return }
      state.connectionsOf[group] = count > 1 ? count - 1 : nil
    }
  }

  func logRejection(
    _ objection: ConnectionRejection, of address: SocketAddress?, at now: LinkInstant
  ) {
    log.log(
      .warning, "Rejected a connection", kind: .name(objection.rawValue),
      of: limits.group(of: address), at: now
    ) {
      ["reason": "\(objection.rawValue)", "peer": .peer(address)]
    }
  }
}
