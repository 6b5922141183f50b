// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Testing

/// A credential is sent encrypted, or to the client's own machine, unless more is allowed.
@Suite struct UnencryptedCredentialTests {
  /// A server that notes the lengths of the credentials that reach it.
  private static func serve(
    _ stage: Stage, at host: String = "10.0.0.1", _ seen: Tally<Int>
  ) async throws -> LongLinkServer {
    try await stage.serve(
      at: .host(host, port: 0),
      configure: {
        $0.identity.authenticate = { request in
          seen.add(request.credential?.count ?? -1)
          return .anonymous
        }
      })
  }

  @Test func `it is not sent in the clear unless that is allowed`() async throws {
    try await Stage.simulate { stage, _ in
      let seen = Tally<Int>()
      let server = try await Self.serve(stage, seen)
      let client = try stage.client(of: server) { $0.identity.credential = { [1, 2, 3] } }
      let error = try await failure { try await client.connect() }
      #expect(error.detail.contains("without encryption"), "\(error)")
      #expect(seen.elements == [])
    }
    try await Stage.run(.loopback) { stage in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { request in
          #expect(request.credential == [1, 2, 3])
          return .anonymous
        }
      })
      let client = try stage.client(of: server) { $0.identity.credential = { [1, 2, 3] } }
      try await client.expectEcho([1])
    }
  }

  @Test func `a name whose first address is local does not let it out in the clear`() async throws {
    try await Stage.simulate { stage, simulation in
      let seen = Tally<Int>()
      let server = try await Self.serve(stage, seen)
      let far = server.addresses[0]
      simulation.network.host("server.test", addresses: [.ipv4(127, 0, 0, 1, port: 0), far])
      let endpoint = Endpoint.host("server.test", port: try #require(far.port))
      let client = try stage.client(to: [endpoint]) { $0.identity.credential = { [1, 2, 3] } }
      let error = try await failure { try await client.connect() }
      #expect(error.detail.contains("without encryption"), "\(error)")
      #expect(seen.elements == [])
    }
  }

  @Test(arguments: [true, false])
  func `nor to the server that follows another one`(isNamed: Bool) async throws {
    try await Stage.simulate { stage, _ in
      let (near, far) = (Tally<Int>(), Tally<Int>())
      let first = try await Self.serve(stage, at: "127.0.0.1", near)
      let second = try await Self.serve(stage, at: "10.0.0.2", far)
      let client = try stage.client(
        to: isNamed ? first.endpoints : first.endpoints + second.endpoints
      ) {
        $0.identity.credential = { [1, 2, 3] }
      }
      let tried = Tally<Endpoint>()
      client.observeLinks { _, event in
        if case .attempt(_, _, let server, _, _) = event { tried.add(server) }
      }
      try await client.expectEcho([1])
      #expect(near.elements == [3])
      // The client goes on to the second one: it is in its list, or the first one names it.
      await first.shutDown(alternatives: isNamed ? second.endpoints : [])
      try await stage.until { tried.elements.contains(second.endpoints[0]) }
      let options = RequestOptions(timeout: .seconds(30))
      _ = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(await second.counters().connectionsAccepted == 0)
      #expect(far.elements == [])
    }
  }

  @Test func `nor over a short link that others can read`() async throws {
    try await Stage.simulate { stage, _ in
      let seen = Tally<Int>()
      let server = try await Self.serve(stage, at: "10.0.0.1", seen)
      let gateway = try await stage.gateway(for: server)
      for isAllowed in [false, true] {
        let client = try stage.client(to: []) {
          $0 = ClientConfiguration(ways: [Way(short: OpenOpener(to: gateway.address))])
          $0.logger.logLevel = .critical
          $0.waitsForConnection = false
          $0.identity.credential = { [1, 2, 3] }
          $0.identity.sendsCredentialUnencrypted = isAllowed
        }
        if isAllowed {
          try await client.expectEcho([1])
        } else {
          let error = try await failure { try await client.request(.echo, [1]) }
          #expect(error.code == .connectFailed, "\(error)")
          #expect(error.detail.contains("without encryption: use https"), "\(error)")
          #expect(await server.counters().shortLinks == 0)
        }
      }
      #expect(seen.elements == [3])
    }
  }
}

/// Opens short links whose bytes others on the path can read.
private struct OpenOpener: ShortLinkOpener {
  private let base: SimulatedShortLinkOpener
  let isConfidential = false
  var name: String { base.name }

  init(to address: SocketAddress) { base = SimulatedShortLinkOpener(to: address) }

  func open(on loop: EventLoop) throws(SocketError) -> any Transport { try base.open(on: loop) }
}
