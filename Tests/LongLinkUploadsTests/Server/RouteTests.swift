// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// The routes of a real server, in a simulated network.
@Suite struct RouteTests {
  @Test func `an upload goes over the network, and its end is told`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      let all = StoreStage.bytes(300_000)
      let upload = try await client.request(
        UploadMethods.create, CreateRequest(parts: [StoreStage.file("a.bin", all.count)])
      )
      var offset: UInt64 = 0
      while offset < UInt64(all.count) {
        let piece = all[Int(offset)..<min(all.count, Int(offset) + 90_000)]
        offset = try await stage.append(Array(piece), to: upload.id, at: offset, of: client)
      }
      #expect(offset == UInt64(all.count))
      let reply = try await stage.finish(upload.id, all, of: client)
      #expect(reply.names == ["a.bin"])
      #expect(stage.directory.file("\(upload.id)/a.bin") == all)
      let finished = FinishedUpload(id: upload.id, files: ["a.bin"], byteCount: 300_000)
      #expect(stage.finished.list.withLock { $0 } == [finished])
      let counters = stage.receiver.counters
      #expect(counters.created == 1 && counters.finished == 1 && counters.appends == 4)
      #expect(counters.bytesWritten == 300_000 && counters.appendsRunning == 0)
      // Asked again it is answered again, and not told again.
      #expect(try await stage.finish(upload.id, all, of: client).names == ["a.bin"])
      #expect(stage.finished.list.withLock { $0.count } == 1)
    }
  }

  @Test func `a rule for uploads holds for each of their requests`() async throws {
    try await RouteStage.run(requires: .authenticated) { stage in
      let client = try stage.client()
      let id = String(repeating: "0", count: 32)
      let calls: [@Sendable () async throws -> Void] = [
        { _ = try await stage.create(of: client) },
        { _ = try await client.request(UploadMethods.status, StatusRequest(id: id)) },
        { try await stage.append([1], to: id, at: 0, of: client) },
        { _ = try await stage.finish(id, [1], of: client) },
        { _ = try await client.request(UploadMethods.abort, AbortRequest(id: id)) },
      ]
      for (index, call) in calls.enumerated() {
        do {
          try await call()
          Issue.record("request \(index) was not refused")
        } catch let error as LongLinkError {
          #expect(error.response == .forbidden && error.delivery == .refused, "\(index)")
        }
      }
      #expect(await stage.server.counters().connections.refusedAccess == 5)
      #expect(stage.receiver.counters.created == 0)
    }
  }

  @Test func `a lost connection keeps what has come`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let other = try stage.client()
      let sending = stage.simulation.spawn {
        try await client.sendItems(
          UploadMethods.append, AppendRequest(id: id, generation: 1, offset: 0)
        ) { writer in
          for _ in 0..<10 { try await writer.write([UInt8](repeating: 1, count: 1_000)) }
          // All of it has arrived before the connection ends.
          try await stage.simulation.sleep(for: .seconds(1))
          await client.close()
        }
      }
      await #expect(throws: (any Error).self) { try await sending.value }
      try await stage.simulation.sleep(for: .seconds(1))
      let status = try await other.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset == 10_000 && status.generation == 1)
      #expect(stage.receiver.counters.appendsCut == 1)
      #expect(stage.receiver.counters.appendsRunning == 0)
    }
  }

  @Test func `a takeover stops a client that says nothing more`() async throws {
    try await RouteStage.run { stage in
      let (old, new) = (try stage.client(), try stage.client())
      let id = try await stage.create(of: old)
      let stopped = stage.simulation.spawn { () -> LongLinkError? in
        do {
          _ = try await old.sendItems(
            UploadMethods.append, AppendRequest(id: id, generation: 1, offset: 0)
          ) { writer in
            try await writer.write([1, 2, 3])
            try await stage.simulation.sleep(for: .seconds(50))
            try await writer.write([9])
          }
          return nil
        } catch let error as LongLinkError {
          return error
        }
      }
      try await stage.simulation.sleep(for: .seconds(1))
      let status = try await new.request(
        UploadMethods.status, StatusRequest(id: id, takesOver: true)
      )
      #expect(status.offset == 3 && status.generation == 2)
      // It does not wait for the older append to send or to end.
      try await stage.simulation.sleep(for: .seconds(1))
      #expect(stage.receiver.counters.appendsRunning == 0)
      #expect(try await stage.append([4], to: id, at: 3, generation: 2, of: new) == 4)
      let error = try #require(try await stopped.value)
      #expect(error.response == .uploadConflict)
      let conflict = try AppendConflict(decodingBytes: error.body)
      #expect(conflict == AppendConflict(offset: 3, generation: 2))
      _ = try await stage.finish(id, [1, 2, 3, 4], generation: 2, of: new)
      #expect(stage.directory.file("\(id)/a") == [1, 2, 3, 4])
    }
  }

  @Test func `each failure has its code`() async throws {
    try await RouteStage.run({ $0.maxAppendBytes = 1_000 }) { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      func code(_ call: () async throws -> some Any) async -> ResponseCode? {
        do {
          _ = try await call()
          return nil
        } catch {
          return (error as? LongLinkError)?.response
        }
      }
      #expect(await code { try await stage.append([1], to: "x", at: 0, of: client) } == 404)
      #expect(await code { try await stage.append([1], to: id, at: 5, of: client) } == 409)
      let large = [UInt8](repeating: 0, count: 2_000)
      #expect(await code { try await stage.append(large, to: id, at: 0, of: client) } == 413)
      let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset == 1_000 && status.mostAppend == 1_000)
      #expect(await code { try await stage.finish(id, [1], of: client) } == 422)
      let short = FinishRequest(id: id, generation: 1, size: 1_000, sha256: [1])
      #expect(await code { try await client.request(UploadMethods.finish, short) } == 400)
      let empty = CreateRequest()
      #expect(await code { try await client.request(UploadMethods.create, empty) } == 400)
      let many = (0..<1_001).map { StoreStage.file("\($0)", 0) }
      #expect(
        await code { try await client.request(UploadMethods.create, CreateRequest(parts: many)) }
          == 413)
      _ = try await client.request(UploadMethods.abort, AbortRequest(id: id))
      let abort = AbortRequest(id: id)
      #expect(await code { try await client.request(UploadMethods.abort, abort) } == 404)
      for _ in 0..<16 { _ = try await stage.create(of: client) }
      #expect(await code { try await stage.create(of: client) } == 429)
      let counters = stage.receiver.counters
      #expect(counters.conflicts == 1 && counters.tooLarge == 2 && counters.tooMany == 1)
      #expect(counters.aborted == 1 && counters.unfinished == 16)
    }
  }

  @Test func `a full disk is answered with 507, and what is there is kept`() async throws {
    try await RouteStage.run({ $0.maxClientBytes = 5 + StoreStage.fileCost }) { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let error = await #expect(throws: LongLinkError.self) {
        try await stage.append([1, 2, 3, 4, 5, 6], to: id, at: 0, of: client)
      }
      #expect(error?.response == .noSpace && error?.delivery == .answered)
      let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset == 5)
      #expect(stage.receiver.counters.noSpace == 1)
    }
  }

  @Test func `a fifth append of a client is turned away at once`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      var ids: [String] = []
      for _ in 0..<5 { ids.append(try await stage.create(of: client)) }
      let waiting = ids.prefix(4).map { id in
        stage.simulation.spawn {
          try await client.sendItems(
            UploadMethods.append, AppendRequest(id: id, generation: 1, offset: 0)
          ) { _ in try await stage.simulation.sleep(for: .seconds(10)) }
        }
      }
      try await stage.simulation.sleep(for: .seconds(1))
      #expect(stage.receiver.counters.appendsRunning == 4)
      let error = await #expect(throws: LongLinkError.self) {
        try await stage.append([1], to: ids[4], at: 0, of: client)
      }
      #expect(error?.response == .overloaded && error?.delivery == .answered)
      for task in waiting { _ = try await task.value }
      #expect(try await stage.append([1], to: ids[4], at: 0, of: client) == 1)
    }
  }

  @Test func `an append that stands still ends, and its bytes stay`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let start = stage.simulation.now
      let error = await #expect(throws: LongLinkError.self) {
        _ = try await client.sendItems(
          UploadMethods.append, AppendRequest(id: id, generation: 1, offset: 0)
        ) { writer in
          try await writer.write([1])
          try await stage.simulation.sleep(for: .seconds(600))
          try await writer.write([2])
        }
      }
      #expect(error?.response == .deadlinePassed)
      #expect(stage.simulation.now - start >= 60_000_000_000)
      let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset == 1)
    }
  }

  @Test func `uploads expire by the loop's clock, with nobody asking`() async throws {
    try await RouteStage.run({ $0.lifetime = .seconds(3_600) }) { stage in
      let client = try stage.client()
      let first = try await stage.create(of: client)
      try await stage.simulation.sleep(for: .seconds(1_800))
      _ = try await stage.create(of: client)
      try await stage.append([1], to: first, at: 0, of: client)
      try await stage.simulation.sleep(for: .seconds(3_590))
      #expect(stage.directory.names(".unfinished").count == 2)
      try await stage.simulation.sleep(for: .seconds(20))
      #expect(stage.directory.names(".unfinished").count == 0)
      #expect(stage.receiver.counters.expired == 2)
    }
  }

  @Test func `items of any size are the bytes in their order`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let sizes = [0, 1, 70_000, 3, 0, 300_000, 262_144, 17]
      let all = StoreStage.bytes(sizes.reduce(0, +))
      let response = try await client.sendItems(
        UploadMethods.append, AppendRequest(id: id, generation: 1, offset: 0)
      ) { writer in
        var rest = all[...]
        for size in sizes {
          try await writer.write(Array(rest.prefix(size)))
          rest = rest.dropFirst(size)
        }
      }
      #expect(try AppendResponse(decodingBytes: response).offset == UInt64(all.count))
      _ = try await stage.finish(id, all, of: client)
      #expect(stage.directory.file("\(id)/a") == all)
    }
  }
}
