// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Every failure says what may have happened.
@Suite struct FailureTests {
  @Test(arguments: TestEnvironment.allCases)
  func `no server`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve()
      let address = server.addresses[0]
      let client = try stage.client(of: server)
      await server.shutDown()
      let error = try await failure { try await client.connect() }
      #expect(error.code == .connectFailed)
      #expect(error.delivery == .notSent)
      #expect(error.systemError == (environment == .unix ? ENOENT : ECONNREFUSED))
      #expect(error.peer == address)
      let second = try await failure {
        try await client.request(
          .echo, [1], options: RequestOptions(waitsForConnection: false))
      }
      #expect(second.code == .notConnected || second.code == .connectFailed)
      #expect(second.delivery == .notSent)
      #expect(await client.counters().failedAttempts >= 1)
    }
  }

  @Test func `a name without addresses`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(to: [.host("nowhere.example", port: 80)])
      let error = try await failure { try await client.connect() }
      #expect(error.code == .connectFailed)
      #expect(error.description.contains("nowhere.example"))
    }
  }

  @Test func `a server that never answers the connect`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.connects = .ignored
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)]) {
        $0.timeouts.connect = .seconds(4)
      }
      let error = try await failure { try await client.connect() }
      #expect(error.code == .connectFailed)
      #expect(error.peer == .ipv4(10, 0, 0, 1, port: 80))
      #expect(error.closeReason == .handshakeTimeout)
      let seconds = Double(simulation.now.nanoseconds) / 1e9
      #expect(seconds >= 4 && seconds < 4.01)
      #expect(await client.counters().failedAttempts == 2)
    }
  }

  @Test func `a peer that accepts and says nothing`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) { $0.timeouts.connect = .seconds(4) }
      let waiting = stage.spawn { try await failure { try await client.connect() } }
      try await stage.until { !simulation.network.links.isEmpty }
      simulation.network.links[0].silence(.toClient)
      let error = try await waiting.value
      #expect(error.code == .connectFailed)
      #expect(error.peer == server.addresses[0])
    }
  }

  @Test func `a request that chose not to wait fails with its connect`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.connects = .refused
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)]) {
        $0.waitsForConnection = false
      }
      let first = try await failure { try await client.request(.echo, [1]) }
      #expect(first.code == .connectFailed)
      #expect(first.systemError == ECONNREFUSED)
      #expect(first.peer == .ipv4(10, 0, 0, 1, port: 80))
      #expect(first.delivery == .notSent)
      let now = simulation.now
      let second = try await failure { try await client.request(.echo, [1]) }
      #expect(second.code == .notConnected)
      #expect(second.systemError == ECONNREFUSED)
      #expect(second.delivery == .notSent)
      #expect(simulation.now == now)
      #expect(await client.counters().requests.failedLocally == 2)
    }
  }

  @Test func `a connection that is lost with a request sent`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      try await client.connect()
      let task = client.submit(.hang, [1])
      try await simulation.sleep(for: .milliseconds(100))
      simulation.network.loseAllLinks()
      let error = try await failure { try await task.value }
      #expect(error.code == .connectionLost)
      #expect(error.delivery == .sent)
      #expect(error.systemError == ECONNRESET)
      #expect(error.closeReason == .transport(ECONNRESET))
      #expect(error.peer == server.addresses[0])
    }
  }

  @Test func `a connection that is lost with a request unsent`() async throws {
    try await Stage.simulate { stage, simulation in
      let received = Tally<[UInt8]>()
      let server = try await stage.serve { server in
        server.route(.echo) { request in
          received.add(request.body)
          return request.body
        }
      }
      let client = try stage.client(of: server)
      try await client.connect()
      // In one turn: the request is queued, and the link is gone before the turn's end.
      let (waits, fails) = await client.loop.run {
        defer { simulation.network.loseAllLinks() }
        return (
          client.submit(.echo, [1]),
          client.submit(.echo, [2], options: RequestOptions(waitsForConnection: false))
        )
      }
      let error = try await failure { try await fails.value }
      #expect(error.code == .connectionLost)
      #expect(error.delivery == .notSent)
      #expect(try await waits.value == [1])
      #expect(received.elements == [[1]])
      #expect(await client.counters().requests.retried == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a server that stops with a request sent`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { stage, server, client in
      let task = client.submit(.hang, [1])
      try await stage.until { await server.counters().requestsRunning == 1 }
      await server.shutDown(within: .zero)
      let error = try await failure { try await task.value }
      #expect(error.code == .connectionLost)
      #expect(error.delivery == .sent)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a handler that rejects`(_ environment: TestEnvironment) async throws {
    try await Stage.serving(in: environment) { server in
      server.routeBasics()
      server.route(4) { _ in throw Rejection(.forbidden, "not you") }
      server.route(5) { _ in
        throw Rejection(.overloaded, "later", retryAfter: .milliseconds(1_500))
      }
      server.route(6) { request in
        await Task.yield()
        throw Rejection(8_388_607, body: [])
      }
      server.route(7) { _ in throw Rejection(.ok, "fine") }
    } _: { _, _, client in
      let own = try await failure { try await client.request(.fail, [1]) }
      #expect(own.code == .rejected && own.delivery == .answered)
      #expect(own.response == 1_234 && own.body == [9, 8, 7])
      let text = try await failure { try await client.request(4, [1]) }
      #expect(text.response == .forbidden && text.delivery == .answered)
      #expect(text.detail == "not you")
      let hint = try await failure { try await client.request(5, [1]) }
      #expect(hint.response == .overloaded && hint.delivery == .answered)
      #expect(hint.retryAfter == .milliseconds(1_500))
      let last = try await failure { try await client.request(6, [1]) }
      #expect(last.response == 8_388_607 && last.body == [] && last.delivery == .answered)
      let none = try await failure { try await client.request(7, [1]) }
      #expect(none.response == .failed && none.delivery == .answered)
      #expect(await client.counters().requests.rejected == 5)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a handler's own error is not revealed`(_ environment: TestEnvironment) async throws {
    struct Secret: Error {
      let password = "hunter2"
    }
    try await Stage.serving(in: environment) { server in
      server.route(4) { _ in throw Secret() }
      server.route(5) { _ in
        await Task.yield()
        throw Secret()
      }
    } _: { _, server, client in
      for type: MessageType in [4, 5] {
        let error = try await failure { try await client.request(type, [1]) }
        #expect(error.response == .failed)
        #expect(error.delivery == .answered)
        #expect(!error.description.contains("hunter2"))
        #expect(!error.description.contains("Secret"))
      }
      #expect(await server.counters().connections.handlersFailed == 2)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a type without a handler is refused`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, server, client in
      let error = try await failure { try await client.request(99, [1]) }
      #expect(error.code == .rejected)
      #expect(error.response == .unknownType)
      #expect(error.delivery == .refused)
      #expect(error.delivery.isSafeToRetry)
      #expect(await server.counters().connections.refused == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a body that the server does not accept is not sent`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.pair(in: environment, server: { $0.limits.maxBody = 1_000 }) {
      _, server, client in
      let error = try await failure {
        try await client.request(.echo, [UInt8](repeating: 1, count: 1_001))
      }
      #expect(error.code == .tooLarge)
      #expect(error.delivery == .notSent)
      let body = [UInt8](repeating: 1, count: 900)
      #expect(try await client.request(.echo, body) == body)
      #expect(await server.counters().connections.requestsReceived == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `an answer that the client does not accept fails at the server`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.serving(in: environment) { server in
      server.route(.echo) { _ in [UInt8](repeating: 1, count: 1_001) }
    } client: {
      $0.limits.maxBody = 1_000
    } _: { _, _, client in
      let error = try await failure { try await client.request(.echo, [1]) }
      #expect(error.response == .failed)
      #expect(error.delivery == .answered)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `requests over the waiting limit are refused`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) {
      $0.limits.maxWaiting = 2
      $0.timeouts.request = .seconds(1_000)
    } server: {
      $0.limits.maxInFlight = 1
    } _: { _, _, client in
      try await client.connect()
      let tasks = await client.loop.run { (0..<4).map { _ in client.submit(.hang, [1]) } }
      let error = try await failure { try await tasks[3].value }
      #expect(error.code == .overloaded)
      #expect(error.delivery == .notSent)
      #expect(await client.counters().requestsOpen == 3)
    }
  }
}
