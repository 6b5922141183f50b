// SPDX-License-Identifier: Apache-2.0

#if SQLite
import Foundation
import LongLinkDemoMessages
import Testing

/// `serve --once FILE`, whose answers outlive its process.
@Suite(.timeLimit(.minutes(15))) struct OnceFileTests {
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

  @Test func `a signal ends a server that waits for a locked file`() async throws {
    try await OnceStage.run { stage in
      let file = stage.path("answers.sqlite")
      let first = try await RunningServer("--once", file)
      first.tool.send(SIGTERM)
      #expect(await first.tool.finish().code == 0)
      let lock = try FileLock(file)
      let refused = try await Tool.run("serve", "--port", "0", "--once", file)
      #expect(refused.code == 1)
      #expect(refused.errors.contains("the file is locked"), "\(refused.errors)")

      let second = try Tool(["serve", "--port", "0", "--once", file])
      while second.isRunning, !second.hasOpened(file) { try Task.checkCancellation() }
      second.send(SIGTERM)
      let finished = await second.finish()
      #expect(finished.code == nil && finished.output.isEmpty, "\(finished.errors)")
      lock.release()
    }
  }

  @Test func `a server whose file is locked ends within ten seconds after a signal`()
    async throws
  {
    try await OnceStage.run { stage in
      let file = stage.path("answers.sqlite")
      let server = try await RunningServer("--once", file)
      let call = try Tool(stage.arguments(server.port, delay: 2_000))
      try await server.untilRunning(call)
      // SQLite's lock of who writes.
      let lock = try FileLock("\(file)-shm", at: 120, count: 1)
      let start = ContinuousClock.now
      server.tool.send(SIGTERM)
      let finished = await server.tool.finish()
      // Real time is the subject: with all waits one after the other, it would be 12 s or more.
      #expect(ContinuousClock.now - start < .seconds(11.5))
      #expect(finished.code == 1 && finished.errors.contains("locked"), "\(finished.errors)")
      // Its answer was sent without the record.
      #expect(await call.finish().code == 0)
      lock.release()
    }
  }

  @Test func `a file in a folder that is not there is refused`() async throws {
    let server = try await Tool.run("serve", "--port", "0", "--once", "/no/such/folder/file")
    #expect(server.code == 1)
    #expect(server.errors.contains("The folder has to exist"), "\(server.errors)")
  }
}

/// A lock on bytes of a file, as SQLite has them; it is this process's.
private final class FileLock {
  private let file: FileHandle

  /// Locks bytes against all other processes, all of the file by default.
  init(_ path: String, at offset: Int = 0, count: Int = 0) throws {
    file = try FileHandle(forUpdating: URL(filePath: path))
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = off_t(offset)
    lock.l_len = off_t(count)
    try #require(unsafe fcntl(file.fileDescriptor, F_SETLK, &lock) == 0)
  }

  /// Ends the lock, which otherwise ends with the object.
  func release() { try? file.close() }
}

extension Tool {
  /// Whether the process has a file open.
  fileprivate func hasOpened(_ path: String) -> Bool {
    let folder = "/proc/\(id)/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.contains {
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")) == path
    }
  }
}
#endif
