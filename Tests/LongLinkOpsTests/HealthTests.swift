// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkServer
import LongLinkTestSupport
import Testing

@testable import LongLinkOps

/// What the port says of the server's health, also when nothing else answers.
@Suite struct HealthTests {
  private func routes(_ server: LongLinkServer) {
    server.route(RPCMethod<[UInt8], [UInt8]>(60, "Block")) { body, _ in
      Blocking.hold(body)
      return body
    }
    server.route(RPCMethod<[UInt8], [UInt8]>(61, "BlockInTask")) { body, _ async in
      Blocking.hold(body)
      return body
    }
  }

  @Test func `a server that works is live and ready`() async throws {
    try await OpsStage.run(server: { $0.loops = 2 }) { stage in
      let live = try await stage.request("/livez")
      let health: Health = try live.json()
      #expect(live.status == 200 && health.live == true)
      #expect(health.loops?.map(\.loop) == [0, 1])
      for loop in health.loops ?? [] {
        #expect(loop.live && loop.ranMsAgo < 1_000 && loop.blockedBy == nil)
      }
      // The member is there, and null.
      #expect(live.body.contains("\"blocked_by\":null"))
      let ready = try await stage.request("/readyz")
      #expect(ready.status == 200)
      #expect(ready.body == "{\"ready\":true,\"reasons\":[]}\n")
    }
  }

  @Test(arguments: [60, 61] as [MessageType], ["Block", "BlockInTask"])
  func `a loop that hangs is told, and who holds it`(
    type: MessageType, name: String
  ) async throws {
    guard (type == 60) == (name == "Block") else { return }
    try await OpsStage.run(routes: routes) { stage in
      let client = try await stage.client()
      _ = try await client.request(OpsStage.echo, [1])
      let before = try #require(
        try await stage.metric(
          "rpc_server_call_duration_seconds_count"
            + "{rpc_system_name=\"longlink\",rpc_method=\"Echo\"}"))
      let blocking = Blocking.begin()
      let held = Task { try await client.request(type, blocking.body) }
      await blocking.untilHeld()

      let live = try await stage.request("/livez")
      let health: Health = try live.json()
      #expect(live.status == 503 && health.live == false)
      #expect(health.loops?.first?.live == false)
      #expect(health.loops?.first?.blockedBy == name)
      let ready = try await stage.request("/readyz")
      #expect(ready.status == 503)
      #expect(try ready.json(as: Health.self).reasons == ["loops"])
      // All other pages answer too, with what is known.
      let page: ConnectionPage = try await stage.json("/connections")
      #expect(page.incomplete == [0] && page.connections.isEmpty)
      let metrics = try await stage.request("/metrics")
      #expect(metrics.metric("longlink_loop_live{loop=\"0\"}") == 0)
      #expect(
        metrics.metric(
          "rpc_server_call_duration_seconds_count"
            + "{rpc_system_name=\"longlink\",rpc_method=\"Echo\"}") == before)
      for path in ["/", "/exchanges"] { #expect(try await stage.request(path).status == 200) }
      let close = try await stage.send("POST", "/connections/1/close")
      #expect(close.status == 503 && close.body.contains("\"incomplete\":[0]"))
      #expect(close.body.contains("nothing was done, and will not be"))

      blocking.release()
      _ = try await held.value
      // What was asked in vain is not done later.
      _ = try await client.request(OpsStage.echo, [2])
      try await until { try await stage.request("/livez").status == 200 }
      let row: ConnectionPage.Row = try await stage.json("/connections/1")
      #expect(row.state == "open")
    }
  }

  @Test func `a command is not begun once nobody waits for it, and it is known if it was`() {
    let late = LoopCommand<Int>()
    #expect(late.run { nil } == nil)
    if case .notDone = late.end() {} else { Issue.record("another loop had it") }
    #expect(late.run { 1 } == nil)
    let done = LoopCommand<Int>()
    #expect(done.run { 1 } == 1)
    if case .done(1) = done.end() {} else { Issue.record("it was done") }
    let begun = LoopCommand<Int>()
    _ = begun.run {
      if case .begun = begun.end() {} else { Issue.record("it runs") }
      return 1
    }
  }

  @Test func `the port answers while all threads of Swift's tasks hang`() async throws {
    try await OpsStage.run { stage in
      let peer = try await RawPeer.connect(to: stage.port)
      let blocks = (0..<64).map { _ in Blocking.begin() }
      let tasks = blocks.map { block in Task.detached { Blocking.hold(block.body) } }
      // While they hang no task goes on, so that a thread of its own asks the port.
      let text = await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          let end = Date(timeIntervalSinceNow: 60)
          func wait(_ isSo: () -> Bool) {
            while !isSo(), Date() < end { Thread.sleep(forTimeInterval: 0.002) }
          }
          let cores = ProcessInfo.processInfo.activeProcessorCount
          wait { blocks.count(where: \.isHeld) >= cores }
          peer.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
          wait { peer.heard.value.isClosed }
          let text = peer.heard.value.text
          for block in blocks { block.release() }
          continuation.resume(returning: text)
        }
      }
      #expect(PortReply(text)?.status == 200)
      for task in tasks { await task.value }
    }
  }

  @Test func `readiness tells why not`() async throws {
    try await OpsStage.run(
      server: { $0.limits.maxConnections = 1 }, starts: false
    ) { stage in
      func reasons() async throws -> [String]? {
        try await stage.request("/readyz").json(as: Health.self).reasons
      }
      let starting = try await stage.request("/readyz")
      #expect(starting.status == 503)
      #expect(try await reasons() == ["starting"])
      #expect(try await stage.request("/livez").status == 200)
      try await stage.server.start()
      #expect(try await reasons() == [])
      let client = try await stage.client()
      #expect(try await reasons() == ["limit"])
      let hanging = Task { try? await client.request(OpsStage.hang, []) }
      try await until { try await stage.metric("longlink_requests_running") == 1 }
      let end = Task { await stage.server.shutDown(within: .seconds(600)) }
      try await until { try await reasons()?.contains("draining") == true }
      #expect(try await stage.request("/readyz").status == 503)
      #expect(try await stage.request("/livez").status == 200)
      // The port stays until the last connection has ended, and not longer.
      let port = try await RawPeer.connect(to: stage.port)
      hanging.cancel()
      await port.hearsEnd()
      await end.value
      await #expect(throws: (any Error).self) { try await RawPeer.connect(to: stage.port) }
    }
  }

  @Test func `a port starts once, and says what it cannot do`() async throws {
    try await OpsStage.run { stage in
      await #expect(throws: LongLinkError.self) { try await stage.operations.start() }
      #expect(stage.operations.address?.port == UInt16(stage.port))
      let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
      var configuration = stage.operations.configuration
      configuration.port = stage.port
      let other = try OperationsPort(for: server, configuration)
      let error = await #expect(throws: LongLinkError.self) { try await other.start() }
      #expect(error?.code == .connectFailed)
      #expect(error?.systemError != nil)
    }
  }
}
#endif
