// SPDX-License-Identifier: Apache-2.0

import LongLink
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
}
