// SPDX-License-Identifier: Apache-2.0

#if SQLite
import Foundation
import GRDB
import LongLinkCLibrary
import LongLinkCore
import LongLinkOnceSQLite
import LongLinkOnceStore
import Testing

/// What a store in a file keeps when its process, or the machine, ends.
@Suite struct RestartTests {
  @Test func `a process that is killed leaves answers, and runs whose end is unknown`()
    async throws
  {
    try await StoreStage.run { stage in
      let path = stage.path
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
        let store = try SQLiteOnceStore(path: path)
        let status = try await store.status()
        for key in 0..<20 as Range<UInt8> {
          let token = OnceToken(
            scope: OnceScope(principal: "ann"), type: 7, key: [key], number: Int64(key))
          let fingerprint = try #require(OnceFingerprint(bytes: [UInt8](repeating: 7, count: 32)))
          _ = try await store.begin(
            OnceAttempt(
              token: token, fingerprint: fingerprint, keyTime: status.time, retention: 60_000,
              storeName: status.name))
          if key < 10 {
            _ = try await store.complete(token, with: OnceAnswer(code: .ok, body: [key]))
          }
        }
        kill(getpid(), SIGKILL)
      }
      let store = try SQLiteOnceStore(path: path)
      #expect(store.recordCount == 20)
      for key in 0..<20 as Range<UInt8> {
        let token = OnceToken(scope: StoreStage.scope, type: 7, key: [key], number: 100)
        let wanted: OnceFinding =
          key < 10 ? .answered(OnceAnswer(code: .ok, body: [key])) : .unknown
        #expect(try await store.begin(token) == wanted)
      }
      try await store.close()
    }
  }

  @Test func `a store that is closed keeps its records and its name when the machine restarts`()
    async throws
  {
    try await StoreStage.run { stage in
      let first = try stage.open()
      let token = stage.token("k")
      _ = try await first.begin(token)
      _ = try await first.complete(token, with: answer)
      let before = try await first.status()
      try await first.close()
      stage.boot("second")
      let next = try stage.open()
      let after = try await next.status()
      #expect(after.name == before.name)
      #expect(after.time > before.time)
      #expect(try await next.begin(stage.token("k")) == .answered(answer))
    }
  }

  @Test func `a store takes a new name when records may be lost with the machine`() async throws {
    try await StoreStage.run { stage in
      let first = try stage.open()
      _ = try await first.begin(stage.token("k"))
      let name = try await first.status().name
      try stage.copy(to: "killed")
      let next = try stage.open("killed")
      #expect(try await next.status().name == name, "the machine runs on")
      stage.boot("second")
      try stage.copy(to: "cut off")
      let last = try stage.open("cut off")
      #expect(try await last.status().name != name)
      #expect(try await last.begin(stage.token("k")) == .unknown, "what is there is kept")
    }
  }

  @Test func `a store that waits for the disk keeps its name`() async throws {
    try await StoreStage.run { stage in
      let first = try stage.open(durability: .machine)
      #expect(try await first.number("PRAGMA synchronous") == 2)
      let name = try await first.status().name
      stage.boot("second")
      try stage.copy(to: "cut off")
      let next = try stage.open("cut off")
      #expect(try await next.number("PRAGMA synchronous") == 1)
      #expect(try await next.status().name == name)
      // It did not wait for the disk this time.
      stage.boot("third")
      try stage.copy("cut off", to: "cut off again")
      #expect(try await stage.open("cut off again").status().name != name)
    }
  }

  @Test func `a system that does not number its runs may have lost records each time`()
    async throws
  {
    try await StoreStage.run { stage in
      stage.boot(nil)
      let name = try await stage.open().status().name
      try stage.copy(to: "killed")
      let next = try stage.open("killed")
      let other = try await next.status().name
      #expect(other != name)
      try await next.close()
      #expect(try await stage.open("killed").status().name == other)
    }
  }

  @Test func `a store is renewed after a backup, and keeps the new name`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      let run = stage.token("k")
      _ = try await store.begin(run)
      _ = try await store.complete(run, with: answer)
      let old = try await store.status()
      try await store.renew()
      let new = try await store.status()
      #expect(new.name != old.name)
      let attempt = OnceAttempt(
        token: stage.token("k"), fingerprint: StoreStage.fingerprint, keyTime: old.time,
        retention: 60_000, storeName: old.name)
      #expect(try await store.begin(attempt) == .otherName)
      #expect(try await store.begin(stage.token("k")) == .answered(answer))
      try await store.close()
      #expect(try await stage.open().status().name == new.name)
    }
  }

  @Test func `the clock never goes back, whatever the system's clock does`() async throws {
    try await StoreStage.run { stage in
      var last: Int64 = 0
      var name = "store"
      for (number, wall) in [1_000_000, 900_000, 1, 1_000_001].enumerated() {
        stage.setWallTime(Int64(wall))
        let store = try stage.open(name)
        for _ in 0..<5 {
          let time = try await store.status().time
          #expect(time > last)
          #expect(time >= wall && time < 1_030_000, "it is as little ahead as it can be")
          last = time
          stage.pass(700)
        }
        // Half of the stores are closed, the others are killed.
        if number % 2 == 0 {
          try await store.close()
        } else {
          try stage.copy(name, to: "store\(number)")
          name = "store\(number)"
        }
      }
    }
  }
}
#endif
