// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
@testable import LongLinkServer
import LongLinkTesting
import Testing

/// The clients that a server knows, and those that it waits for.
@Suite struct ServerClientsTests {
  private let simulation = Simulation(seed: 1)
  private let clients = ServerClients(mostHandedOver: 1_000)

  private func peer(_ id: UInt64) -> Peer { Peer(id: id, address: nil, on: simulation.mainLoop) }

  /// Lets a client connect and leave, and returns it with the number of its absence.
  private func absent(_ id: UInt64, principal: String? = nil, hasID: Bool = true) throws -> (
    client: ServerClient, since: UInt64
  ) {
    let peer = peer(id)
    let clientID = hasID ? ClientID(id, id) : nil
    let client = try #require(clients.join(peer, clientID, principal: principal, after: 0)).client
    client.leave(peer)
    return (client, try #require(client.ended()))
  }

  @Test func `a hundred thousand identities leave nothing but those that are waited for`() throws {
    for id in 1...100_000 as ClosedRange<UInt64> {
      let (client, since) = try absent(id)
      let isAwaited = clients.awaits(client, since: since, most: 100)
      #expect(isAwaited == (id <= 100))
      if !isAwaited { #expect(clients.forget(client, since: since)) }
    }
    #expect(clients.counts.clients == 100)
  }

  @Test func `a client that came back, or could not be recognised, takes no place`() throws {
    let (client, since) = try absent(1)
    // It comes back on another loop before the first has asked for the place.
    let again = try #require(clients.join(peer(2), ClientID(1, 1), principal: nil, after: 0))
    #expect(again.client === client && !again.isNew)
    #expect(!clients.awaits(client, since: since, most: 1))
    #expect(!clients.forget(client, since: since))
    let (nameless, absence) = try absent(3, principal: "ann", hasID: false)
    #expect(!clients.awaits(nameless, since: absence, most: 1))
    #expect(clients.forget(nameless, since: absence) && clients.peers(of: "ann").isEmpty)
    // The place is free, and is given back by a client that returns.
    for id in 4...6 as ClosedRange<UInt64> {
      let (other, away) = try absent(id)
      #expect(clients.awaits(other, since: away, most: 1))
      _ = clients.join(peer(id + 10), ClientID(id, id), principal: nil, after: 0)
    }
  }

  @Test func `a client that comes back to another loop does not get a broadcast again`() throws {
    let peers = (1...3).map { peer(UInt64($0)) }
    let client = try #require(
      clients.join(peers[0], ClientID(1, 1), principal: "ann", after: 0)
    ).client
    clients.broadcast { _ in for _ in 0..<2 { clients.broadcastHandedOver() } }
    #expect(client.claims(1, for: peers[0]))
    clients.broadcastEnded()
    client.leave(peers[0])
    #expect(clients.forget(client, since: try #require(client.ended())))
    // The other loop has not begun it.
    let again = try #require(clients.join(peers[1], ClientID(1, 1), principal: "ann", after: 0))
    #expect(again.isNew && !again.client.claims(1, for: peers[1]))
    #expect(again.client.claims(2, for: peers[1]))
    let other = try #require(clients.join(peers[2], ClientID(1, 1), principal: "bob", after: 0))
    #expect(other.client.claims(1, for: peers[2]))
  }

  @Test func `what clients had got is forgotten with the broadcast, and bounded meanwhile`() throws
  {
    clients.broadcast { _ in clients.broadcastHandedOver() }
    for id in 1...3_000 as ClosedRange<UInt64> {
      let (client, since) = try absent(id)
      #expect(clients.forget(client, since: since))
      #expect(clients.departedCount <= ServerClients.mostDeparted)
    }
    #expect(clients.departedCount > 0)
    clients.broadcastEnded()
    let (client, since) = try absent(1)
    #expect(clients.forget(client, since: since) && clients.departedCount == 0)
  }

  @Test func `a thousand connections of one identity leave four open`() throws {
    var told: [Peer] = []
    for id in 1...1_000 as ClosedRange<UInt64> {
      let joined = try #require(clients.join(peer(id), ClientID(7, 7), principal: nil, after: 0))
      // Each is told once, and at most three are pinged.
      #expect(joined.older.leaving.count == (id > 4 ? 1 : 0) && joined.older.staying.count <= 3)
      told += joined.older.leaving
      #expect(joined.client.open.count == min(4, Int(id)))
    }
    #expect(told.map(\.connectionID) == Array(1...996))
  }
}
