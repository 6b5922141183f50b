// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Testing

@testable import LongLinkSoak

/// The relay between the clients and the servers of a soak.
@Suite(.timeLimit(.minutes(15))) struct RelayTests {
  private static let frame = ScriptedConnection.frame(
    kind: 0, tag: 7, serial: 50, body: [UInt8](repeating: 9, count: 300_000))

  /// Runs a body with a relay to a peer of plain bytes, and a client of the relay.
  private static func run(
    _ script: @escaping @Sendable (ScriptedConnection) -> Void,
    _ body: (EventLoop, LoopBound<Relay>, ScriptedConnection) async throws -> Void
  ) async throws {
    let peer = try ScriptedPeer(script)
    let target = SocketAddress.ipv4(127, 0, 0, 1, port: try #require(UInt16(peer.port)))
    let loop = try EventLoop(name: "relay")
    let relay = try await loop.run {
      Result { LoopBound(try Relay(to: target, on: loop), on: loop) }
    }.get()
    let port = try #require(await loop.run { relay.value.port })
    let client = try RawClient(port: "\(port)").connection
    try await body(loop, relay, client)
    close(client.descriptor)
    await loop.run { relay.value.close() }
    await onThread { loop.shutDown() }
  }

  @Test func `all bytes arrive in both directions, and so does the end`() async throws {
    try await RelayTests.run { connection in
      connection.read()
      connection.write(RelayTests.frame)
    } _: { _, _, client in
      let kinds = await onThread {
        client.write(RelayTests.frame)
        return [client.read(), client.read()]
      }
      #expect(kinds == [0, nil])
    }
  }

  @Test func `a relay that holds forwards nothing until it is released`() async throws {
    let arrived = Latest<Bool>()
    try await RelayTests.run { connection in
      // The first frame shows that the connection is made.
      connection.read()
      connection.write(RelayTests.frame)
      connection.read()
      arrived.set(true)
      connection.write(RelayTests.frame)
    } _: { loop, relay, client in
      let first = await onThread {
        client.write(RelayTests.frame)
        return client.read()
      }
      #expect(first == 0)
      await loop.run { relay.value.hold() }
      await onThread { client.write(ScriptedConnection.frame(kind: 0, tag: 7, serial: 51)) }
      try await loop.sleep(for: .milliseconds(200))
      #expect(arrived.value == nil)
      await loop.run { relay.value.release() }
      #expect(await onThread { client.read() } == 0)
      #expect(arrived.value == true)
    }
  }

  @Test func `a cut ends the connection on both sides`() async throws {
    let ended = Latest<Bool>()
    try await RelayTests.run { connection in
      connection.read()
      connection.write(RelayTests.frame)
      connection.readToEnd()
      ended.set(true)
    } _: { loop, relay, client in
      await onThread {
        client.write(RelayTests.frame)
        client.read()
      }
      await loop.run { relay.value.cut() }
      #expect(await onThread { client.read() } == nil)
      while ended.value == nil { try await loop.sleep(for: .milliseconds(5)) }
    }
  }
}
