// SPDX-License-Identifier: Apache-2.0

#if SQLite
import Foundation
import LongLinkDemoMessages
import Testing

/// `serve --once FILE`, whose answers outlive its process.
@Suite(.timeLimit(.minutes(2))) struct OnceFileTests {
  @Test func `a repetition gets its answer from the next process`() async throws {
    try await OnceStage.run { stage in
      let file = stage.path("answers.sqlite")
      let first = try await RunningServer("--once", file)
      #expect(try await stage.call(first, stage.ticket).code == 0)
      first.tool.send(SIGKILL)
      _ = await first.tool.finish()

      let second = try await RunningServer("--once", file, "--port", first.port)
      let record = try OnceRecord(await stage.call(second, stage.ticket))
      #expect(try record.runs == 1 && record.replayed && record.code == 200)
      // In that process it is the first run.
      #expect(try OnceRecord(await stage.call(second)).runs == 1)
      second.tool.send(SIGTERM)
      #expect(await second.tool.finish().code == 0)
      #expect(!FileManager.default.fileExists(atPath: "\(file)-wal"))
    }
  }

  @Test func `a request that ran when the server was killed is answered with 410`() async throws {
    try await OnceStage.run { stage in
      let file = stage.path("answers.sqlite")
      let first = try await RunningServer("--once", file)
      let call = try Tool(stage.arguments(first.port, delay: 60_000, stage.ticket))
      try await first.untilRunning(call)
      first.tool.send(SIGKILL)
      _ = await first.tool.finish()
      let second = try await RunningServer("--once", file, "--port", first.port)
      let again = try await stage.call(second, delay: 60_000, stage.ticket)
      for finished in [await call.finish(), again] {
        #expect(finished.code == 5)
        let record = try OnceRecord(finished)
        #expect(record.code == 410 && record.replayed)
        #expect(record.delivery == "sent")
      }
      #expect(try OnceRecord(await stage.call(second)).runs == 1)
    }
  }

  @Test func `a file that another process has is refused, with the reason`() async throws {
    try await OnceStage.run { stage in
      let file = stage.path("answers.sqlite")
      let first = try await RunningServer("--once", file)
      let second = try await Tool.run("serve", "--port", "0", "--once", file)
      #expect(second.code == 1)
      #expect(second.output.isEmpty)
      #expect(second.errors.contains("another store has the file open"), "\(second.errors)")
      #expect(try await stage.call(first).code == 0)
    }
  }

  @Test func `what ran after a backup does not run again once the backup is put back`()
    async throws
  {
    try await OnceStage.run { stage in
      let file = stage.path("answers.sqlite")
      let first = try await RunningServer("--once", file)
      #expect(try await stage.call(first, key: "before").code == 0)
      first.tool.send(SIGTERM)
      #expect(await first.tool.finish().code == 0)
      let copy = stage.path("copy.sqlite")
      try FileManager.default.copyItem(atPath: file, toPath: copy)

      let second = try await RunningServer("--once", file, "--port", first.port)
      #expect(try await stage.call(second, stage.ticket).code == 0)
      second.tool.send(SIGTERM)
      #expect(await second.tool.finish().code == 0)
      try FileManager.default.removeItem(atPath: file)
      try FileManager.default.moveItem(atPath: copy, toPath: file)

      let third = try await RunningServer("--once", file, "--once-restored", "--port", first.port)
      let call = try await stage.call(third, stage.ticket)
      #expect(call.code == 5)
      let record = try OnceRecord(call)
      #expect(record.code == 412 && record.delivery == "sent")
      // In that process nothing has run before.
      #expect(try OnceRecord(await stage.call(third)).runs == 1)
      third.tool.send(SIGTERM)
      let finished = await third.tool.finish()
      #expect(finished.code == 0)
      #expect(finished.errors.contains("\(file) has a new name"), "\(finished.errors)")
    }
  }

  @Test func `a file in a folder that is not there is refused`() async throws {
    let server = try await Tool.run("serve", "--port", "0", "--once", "/no/such/folder/file")
    #expect(server.code == 1)
    #expect(server.errors.contains("The folder has to exist"), "\(server.errors)")
  }
}
#endif
