// SPDX-License-Identifier: Apache-2.0

#if SQLite
import Foundation
import GRDB
import LongLinkOnceSQLite
import LongLinkOnceStore
import Testing

/// Which files a store opens, and what it says about the others.
@Suite struct OpeningTests {
  private static func code(_ body: () throws -> Void) -> SQLiteOnceError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? SQLiteOnceError)?.code
    }
  }

  private static func mode(_ path: String) throws -> Int? {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return attributes[.posixPermissions] as? Int
  }

  @Test func `the files are their owner's alone`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      _ = try await store.begin(stage.token("k"))
      for suffix in ["", "-wal", "-shm", ".lock"] {
        #expect(try Self.mode(stage.path + suffix) == 0o600, "\(suffix)")
      }
      #expect(try await store.number("PRAGMA synchronous") == 1)
      #expect(try await store.number("SELECT count(*) FROM longlink_once_records") == 1)
      try await store.close()
      let left = try FileManager.default.contentsOfDirectory(atPath: stage.folder.path)
      #expect(left.sorted() == ["store", "store.lock"])
    }
  }

  @Test func `a second store of one file is refused, by whatever path`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      do throws(SQLiteOnceError) {
        _ = try SQLiteOnceStore(path: stage.path)
        Issue.record("it was opened twice")
      } catch {
        #expect(error.code == .inUse)
        #expect("\(error)".contains(stage.path))
        #expect("\(error)".contains("Stop the other process"))
      }
      try FileManager.default.createSymbolicLink(
        atPath: stage.path("link"), withDestinationPath: stage.path)
      #expect(Self.code { _ = try stage.open("link") } == .inUse)
      try FileManager.default.linkItem(atPath: stage.path, toPath: stage.path("name"))
      #expect(Self.code { _ = try stage.open("name") } == .notPrivate)
      try FileManager.default.removeItem(atPath: stage.path("name"))
      let path: String = stage.path
      await #expect(processExitsWith: .success) { [path = path as String] in
        do throws(SQLiteOnceError) {
          _ = try SQLiteOnceStore(path: path)
          Issue.record("two processes have it")
        } catch {
          #expect(error.code == .inUse)
        }
      }
      // The first one was not disturbed.
      #expect(try await store.begin(stage.token("k")) == .run(number: 1))
      try await store.close()
      let next = try stage.open()
      #expect(try await next.begin(stage.token("k")) == .unknown)
    }
  }

  @Test(arguments: ["", "-wal", "-shm", ".lock"])
  func `files that others may read are refused`(suffix: String) async throws {
    try await StoreStage.run { stage in
      try await stage.open().close()
      let path = stage.path + suffix
      if !FileManager.default.fileExists(atPath: path) {
        #expect(FileManager.default.createFile(atPath: path, contents: Data()))
      }
      try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
      do throws(SQLiteOnceError) {
        _ = try stage.open()
        Issue.record("it was opened")
      } catch {
        #expect(error.code == .notPrivate)
        #expect(error.path == path)
      }
    }
  }

  @Test func `what is no file, or cannot be made, is refused`() async throws {
    try await StoreStage.run { stage in
      try FileManager.default.createDirectory(
        atPath: stage.path("folder"), withIntermediateDirectories: false)
      #expect(Self.code { _ = try stage.open("folder") } == .notPrivate)
      #expect(Self.code { _ = try stage.open("none/store") } == .failed)
      // Special to SQLite, and a name like any other here.
      let names = [":memory:", "file:store?mode=memory"]
      for name in names {
        let store = try stage.open(name)
        #expect(FileManager.default.fileExists(atPath: stage.path(name)))
        try await store.close()
      }
    }
  }

  @Test func `a damaged file is refused`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      for key in 0..<500 {
        let run = stage.token("a key of the client's \(key)")
        _ = try await store.begin(run)
        _ = try await store.complete(run, with: answer)
      }
      try await store.close()
      let whole = try Data(contentsOf: URL(fileURLWithPath: stage.path))
      let damages: [(String, (inout Data) -> Void)] = [
        ("another file", { $0 = Data(repeating: UInt8(ascii: "x"), count: 8_192) }),
        ("cut off", { $0 = $0.prefix(8_192) }),
        ("overwritten", { $0.replaceSubrange(16_384..<32_768, with: Data(count: 16_384)) }),
      ]
      for (name, damage) in damages {
        var bytes = whole
        damage(&bytes)
        let path = stage.path(name)
        #expect(
          FileManager.default.createFile(
            atPath: path, contents: bytes, attributes: [.posixPermissions: 0o600]))
        do throws(SQLiteOnceError) {
          _ = try stage.open(name)
          Issue.record("\(name): it was opened")
        } catch {
          #expect(error.code == .damaged, "\(name): \(error)")
          #expect("\(error)".contains("backup"))
        }
      }
    }
  }

  @Test func `records of a newer version are refused`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      try await store.run("UPDATE longlink_once_store SET version = 2")
      try await store.close()
      do throws(SQLiteOnceError) {
        _ = try stage.open()
        Issue.record("it was opened")
      } catch {
        #expect(error.code == .newerVersion)
        #expect("\(error)".contains("version 2"))
      }
    }
  }

  @Test func `a closed store refuses calls, and can be closed again`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      let status = try await store.status()
      try await store.close()
      try await store.close()
      let attempt = OnceAttempt(
        token: stage.token("k"), fingerprint: StoreStage.fingerprint, keyTime: status.time,
        retention: 60_000, storeName: status.name)
      await #expect { try await store.begin(attempt) } throws: {
        ($0 as? SQLiteOnceError)?.code == .closed
      }
      await #expect { try await store.status() } throws: {
        ($0 as? SQLiteOnceError)?.code == .closed
      }
    }
  }
}
#endif
