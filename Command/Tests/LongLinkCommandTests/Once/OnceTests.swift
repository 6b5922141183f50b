// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import LongLinkProtobufC
import Testing

/// Requests that run once: `serve --once`, and `call --once`.
@Suite(.timeLimit(.minutes(15))) struct OnceTests {
  @Test func `each request runs, and a repetition with its ticket does not`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer("--once", "memory")
      for runs in 1...2 as ClosedRange<UInt64> {
        let record = try OnceRecord(await stage.call(server))
        #expect(try record.runs == runs)
        #expect(record.code == 200 && !record.replayed)
      }
      let first = try OnceRecord(await stage.call(server, key: "t", stage.ticket))
      #expect(try first.runs == 1 && !first.replayed)
      let again = try OnceRecord(await stage.call(server, key: "t", stage.ticket))
      #expect(try again.runs == 1 && again.replayed)
      let attributes = try FileManager.default.attributesOfItem(atPath: stage.path("ticket"))
      #expect(attributes[.posixPermissions] as? Int == 0o600)

      let other = try await stage.call(server, key: "another", stage.ticket)
      #expect(other.code == 5)
      #expect(try OnceRecord(other).code == 409)
    }
  }

  @Test func `several requests at once have a key each`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer("--once", "memory")
      let call = try await stage.call(server, ["--count", "20", "--in-flight", "5"])
      #expect(call.code == 0 && call.lines.count == 20)
      #expect(!call.text.contains(#""replayed":true"#))
      #expect(try OnceRecord(await stage.call(server)).runs == 21)
    }
  }

  @Test func `a request whose connection is cut gets the answer of its one run`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer("--once", "memory")
      let relay = try CountingRelay()
      var (key, isReplayed) = ("", false)
      // On a busy machine a request may be over before anybody looks.
      while !isReplayed {
        try Task.checkCancellation()
        key += "k"
        relay.open(to: server.port)
        let call = try Tool(stage.arguments(relay.port, key: key, delay: 1_000))
        try await server.untilRunning(call)
        relay.cut()
        relay.open(to: server.port)
        let finished = await call.finish()
        #expect(finished.code == 0, "\(finished.errors)")
        let record = try OnceRecord(finished)
        #expect(try record.runs == 1)
        isReplayed = record.replayed
      }
      #expect(try OnceRecord(await stage.call(server, key: key)).runs == 2)
    }
  }

  @Test func `without a store nothing is sent, and the text says why`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer()
      for options in [[], stage.ticket] {
        let call = try await stage.call(server, options)
        #expect(call.code == 1)
        #expect(try OnceRecord(call).delivery == "notSent")
        #expect(call.errors.contains("it needs a store (--once)"), "\(call.errors)")
      }
      #expect(!FileManager.default.fileExists(atPath: stage.path("ticket")))
      #expect(try await server.stats().requestsReceived == 1)
    }
  }

  @Test func `another client cannot use a ticket`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer("--once", "memory")
      #expect(try await stage.call(server, stage.ticket).code == 0)
      let body = try OnceRequest(key: Array("k".utf8)).hex
      let call = try await server.call(
        "10", "--hex", body, "--once", "--ticket", stage.path("ticket"), "--identity",
        stage.path("another"))
      #expect(call.code == 5)
      #expect(call.errors.contains("the request is of another store, retention or user"))
      #expect(call.errors.contains("delivery: sent"))
    }
  }

  @Test func `a file that has no ticket is refused, and stays`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer("--once", "memory")
      let file = URL(filePath: stage.path("ticket"))
      try Data("mine".utf8).write(to: file)
      for (mode, reason) in [(0o600, "it has no ticket"), (0o644, "others may read or write it")] {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        let call = try await stage.call(server, stage.ticket)
        #expect(call.code == 64 && call.errors.contains(reason), "\(call.errors)")
      }
      #expect(try Data(contentsOf: file) == Data("mine".utf8))
    }
  }

  @Test func `a ticket of a memory that is gone does not run again`() async throws {
    try await OnceStage.run { stage in
      let first = try await RunningServer("--once", "memory")
      #expect(try await stage.call(first, stage.ticket).code == 0)
      first.tool.send(SIGKILL)
      _ = await first.tool.finish()
      // Nobody listens: the earlier call may have run nevertheless.
      let nobody = try await stage.call(first, stage.ticket)
      #expect(nobody.code == 3)
      #expect(try OnceRecord(nobody).delivery == "sent")
      let second = try await RunningServer("--once", "memory", "--port", first.port)
      let call = try await stage.call(second, stage.ticket)
      #expect(call.code == 5)
      let record = try OnceRecord(call)
      #expect(record.code == 412 && record.delivery == "sent")
      #expect(try OnceRecord(await stage.call(second)).runs == 1)
    }
  }

  @Test func `after the retention a ticket is refused`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer("--once", "memory", "--once-retention", "3")
      var call = try await stage.call(server, stage.ticket)
      #expect(call.code == 0)
      while call.code == 0 {
        try Task.checkCancellation()
        call = try await stage.call(server, stage.ticket)
      }
      #expect(call.code == 5)
      let record = try OnceRecord(call)
      #expect(record.code == 412 && record.delivery == "sent")
      #expect(try OnceRecord(await stage.call(server)).runs == 2)
    }
  }

  @Test func `what became of requests is in the statistics, and the handlers that run on`()
    async throws
  {
    try await OnceStage.run { stage in
      let server = try await RunningServer("--once", "memory")
      for _ in 0..<2 { #expect(try await stage.call(server, stage.ticket).code == 0) }
      var stats = try await server.stats()
      #expect(stats.onceRequests == ["run": 1, "replayed": 1])
      #expect(stats.onceRecords == 1 && stats.onceBytes > 100 && stats.onceDetached == 0)

      let call = try Tool(stage.arguments(server.port, delay: 60_000))
      try await server.untilRunning(call)
      call.send(SIGKILL)
      while stats.onceDetached == 0 {
        try Task.checkCancellation()
        stats = try await server.stats()
      }
      #expect(stats.onceDetached == 1 && stats.onceRequests["run"] == 2)
    }
  }

  @Test func `a key of more than 255 bytes is answered with 400`() async throws {
    try await OnceStage.run { stage in
      let server = try await RunningServer()
      for (count, code) in [(255, 0), (256, 5)] as [(Int, Int32)] {
        let body = try OnceRequest(key: [UInt8](repeating: 7, count: count)).hex
        #expect(try await server.call("10", "--hex", body).code == code)
      }
    }
  }
}
