// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
@testable import LongLinkServer
import LongLinkTesting
import Testing

/// Which connection of a client gets a broadcast, where its loops have come to different ones.
@Suite struct BroadcastClaimTests {
  private let simulation = Simulation(seed: 1)
  private let client = ServerClient(
    id: 1, nil, principal: "ann", ServerClient.Shared(mostHandedOver: 1_000))

  private func peer(_ id: UInt64) -> Peer { Peer(id: id, address: nil, on: simulation.mainLoop) }

  @Test func `what a newer connection has sent is not sent again, and all else is`() {
    let (old, new) = (peer(1), peer(2))
    _ = client.join(old, since: 0, onLoop: 0)
    // The first has begun, and waits on the old connection's loop.
    _ = client.join(new, since: 1, onLoop: 0)
    #expect(client.claims(2, for: new) && !client.claims(1, for: new))
    client.leave(new)
    #expect(client.claims(1, for: old))
    #expect(!client.claims(2, for: old))
    #expect(client.claims(3, for: old) && !client.claims(3, for: old))
  }

  @Test func `what was sent before a client moved and came back is not sent again`() {
    let peers = (1...3).map { peer($0) }
    _ = client.join(peers[0], since: 0, onLoop: 0)
    #expect(client.claims(1, for: peers[0]))
    _ = client.join(peers[1], since: 1, onLoop: 1)
    client.leave(peers[0])
    client.leave(peers[1])
    // The first has not begun on the third connection's loop.
    _ = client.join(peers[2], since: 1, onLoop: 0)
    #expect(!client.claims(1, for: peers[2]))
    #expect(client.claims(2, for: peers[2]))
  }

  @Test func `what was sent before a move is known when that connection has ended`() {
    let peers = (1...3).map { peer($0) }
    _ = client.join(peers[0], since: 0, onLoop: 0)
    #expect(client.claims(1, for: peers[0]))
    _ = client.join(peers[1], since: 1, onLoop: 1)
    client.leave(peers[0])
    #expect(client.ended() == nil)
    client.leave(peers[1])
    #expect(client.ended() == 1)
    // The first has not begun on the third connection's loop.
    _ = client.join(peers[2], since: 1, onLoop: 0)
    #expect(!client.claims(1, for: peers[2]) && client.claims(2, for: peers[2]))
  }

  @Test func `what a connection sent that has ended is known to the older one, which goes on`() {
    let peers = (1...3).map { peer($0) }
    _ = client.join(peers[0], since: 0, onLoop: 0)
    _ = client.join(peers[1], since: 1, onLoop: 0)
    #expect(client.claims(2, for: peers[1]))
    client.leave(peers[1])
    #expect(client.ended() == nil)
    #expect(client.claims(1, for: peers[0]) && !client.claims(2, for: peers[0]))
    client.leave(peers[0])
    #expect(client.ended() == 1)
    _ = client.join(peers[2], since: 2, onLoop: 0)
    #expect(!client.claims(2, for: peers[2]) && client.claims(3, for: peers[2]))
  }

  @Test func `a connection that is told to leave gets none, and still ends with its client`() {
    let peers = (1...5).map { peer($0) }
    for peer in peers.dropLast() { #expect(client.join(peer, since: 0, onLoop: 0).leaving.isEmpty) }
    let older = client.join(peers[4], since: 0, onLoop: 0)
    #expect(older.leaving == [peers[0]] && older.leaving[0] === peers[0])
    #expect(older.staying.count == 3 && client.open.count == 4 && client.connected.count == 5)
    #expect(!client.claims(1, for: peers[0]) && client.claims(1, for: peers[4]))
    for peer in peers.dropFirst() { client.leave(peer) }
    #expect((1...4).allSatisfy { _ in client.ended() == nil })
    #expect(client.current == nil && client.connected.count == 1)
    client.leave(peers[0])
    let absence = client.ended()
    #expect(absence != nil && client.connected.isEmpty)
    #expect(client.isAway(since: absence!) && client.isGone(since: absence!))
    #expect(!client.isGone(since: absence!))
  }

  @Test func `in each order of events one connection claims a broadcast, and none twice`() throws {
    for seed in 1...1_000 as ClosedRange<UInt64> {
      var world = ClaimWorld(seed: seed, on: simulation.mainLoop)
      while try world.step() {}
      for broadcast in 1...world.begun {
        let claims = world.claims[broadcast, default: []]
        #expect(claims.count <= 1, "seed \(seed): \(broadcast) by \(claims)")
        guard let due = world.due[broadcast] else { continue }
        #expect(claims == [due], "seed \(seed): \(broadcast) by \(claims), not \(due)")
      }
    }
  }
}

/// One client whose connections open and end on two loops, while broadcasts come to both loops: all
/// in a random order.
private struct ClaimWorld {
  private struct Connection {
    let peer: Peer
    let loop: Int
    let client: ServerClient
  }

  private enum Event: CaseIterable {
    case begin, turn, open, leave, end
  }

  private static let broadcasts: UInt64 = 4
  private static let connections: UInt64 = 6

  private let loop: EventLoop
  private let clients = ServerClients(mostHandedOver: 1_000)
  private var generator: SeededGenerator
  /// The broadcasts that wait on each loop, and the last one that has begun there.
  private var waiting: [[UInt64]] = [[], []]
  private var last: [UInt64] = [0, 0]
  private var made: UInt64 = 0
  private var open: [Connection] = []
  private var ending: [Connection] = []
  /// The number of broadcasts that have begun.
  private(set) var begun: UInt64 = 0
  /// The connections that have claimed each broadcast.
  private(set) var claims: [UInt64: [UInt64]] = [:]
  /// The newest connection when each broadcast began, unless it left before its turn.
  private(set) var due: [UInt64: UInt64] = [:]

  init(seed: UInt64, on loop: EventLoop) {
    self.loop = loop
    generator = SeededGenerator(seed: seed)
  }

  /// Lets something happen; returns false if nothing is left to happen.
  mutating func step() throws -> Bool {
    for event in Event.allCases.shuffled(using: &generator) {
      switch event {
      case .begin where begun < ClaimWorld.broadcasts:
        begin()
      case .turn where waiting.contains { !$0.isEmpty }:
        turn(of: waiting.indices.filter { !waiting[$0].isEmpty }.randomElement(using: &generator)!)
      case .open where made < ClaimWorld.connections && open.count < ServerClient.mostConnections:
        try connect()
      case .leave where !open.isEmpty:
        leave(open.remove(at: .random(in: open.indices, using: &generator)))
      case .end where !ending.isEmpty:
        end(ending.remove(at: .random(in: ending.indices, using: &generator)))
      default:
        continue
      }
      return true
    }
    return false
  }

  private mutating func begin() {
    clients.broadcast { number in
      begun = number
      due[number] = open.last?.peer.connectionID
      for loop in waiting.indices {
        clients.broadcastHandedOver()
        waiting[loop].append(number)
      }
    }
  }

  private mutating func turn(of loop: Int) {
    let number = waiting[loop].removeFirst()
    last[loop] = number
    for connection in open.shuffled(using: &generator) where connection.loop == loop {
      if connection.client.claims(number, for: connection.peer) {
        claims[number, default: []].append(connection.peer.connectionID)
      }
    }
    clients.broadcastEnded()
  }

  private mutating func connect() throws {
    made += 1
    let peer = Peer(id: made, address: nil, on: loop)
    let loop = Int.random(in: 0...1, using: &generator)
    let joined = try #require(
      clients.join(peer, ClientID(1, 1), principal: "ann", after: last[loop]))
    open.append(Connection(peer: peer, loop: loop, client: joined.client))
  }

  private mutating func leave(_ connection: Connection) {
    connection.client.leave(connection.peer)
    for number in waiting[connection.loop] where due[number] == connection.peer.connectionID {
      due[number] = nil
    }
    ending.append(connection)
  }

  private func end(_ connection: Connection) {
    guard let absence = connection.client.ended() else { return }
    _ = clients.forget(connection.client, since: absence)
  }
}
