// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// Several clients, or connections of one, on the same upload.
@Suite struct FencingTests {
  private func begin(
    _ stage: StoreStage, _ id: String, at offset: UInt64, generation: UInt64 = 1
  ) throws(UploadFailure) -> Append {
    try stage.store.beginAppend(
      AppendRequest(id: id, generation: generation, offset: offset), of: "a")
  }

  @Test func `behind a takeover no byte of the older generation is written`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    let old = try begin(stage, id, at: 0)
    try old.write([[1, 2, 3]])
    let status = try stage.status(id, takesOver: true)
    // What came in front of it is kept, and durable.
    #expect(status.generation == 2 && status.offset == 3)
    let late = UploadFailure.conflict(offset: 3, generation: 2)
    #expect(old.fencing == late)
    #expect(throws: late) { try old.write([[9]]) }
    #expect(throws: late) { try old.end(now: stage.now) }
    #expect(throws: late) { try begin(stage, id, at: 3, generation: 1) }
    #expect(stage.directory.file(".unfinished/\(id)/files/a") == [1, 2, 3])
    try stage.append([4], to: id, at: 3, generation: 2)
    #expect(throws: UploadFailure.conflict(offset: 4, generation: 2)) { try old.write([[9]]) }
    #expect(throws: UploadFailure.conflict(offset: 4, generation: 2)) {
      try stage.finish(id, [1, 2, 3, 4], generation: 1)
    }
    try stage.finish(id, [1, 2, 3, 4], generation: 2)
    #expect(stage.directory.file("\(id)/a") == [1, 2, 3, 4])
    #expect(stage.store.counters.takeovers == 1)
  }

  @Test func `a generation holds over a restart`() throws {
    var stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    #expect(try stage.status(id, takesOver: true).generation == 2)
    try stage.restart()
    #expect(try stage.status(id).generation == 2)
    #expect(throws: UploadFailure.conflict(offset: 0, generation: 2)) {
      try stage.append([1], to: id, at: 0, generation: 1)
    }
    // Nor is a generation taken that was never given.
    #expect(throws: UploadFailure.conflict(offset: 0, generation: 2)) {
      try stage.append([1], to: id, at: 0, generation: 3)
    }
  }

  @Test func `a wrong offset is answered with the right one, and changes nothing`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    try stage.append([1, 2, 3], to: id, at: 0)
    for offset: UInt64 in [0, 2, 4, .max] {
      #expect(throws: UploadFailure.conflict(offset: 3, generation: 1)) {
        try stage.append([9], to: id, at: offset)
      }
    }
    #expect(stage.directory.file(".unfinished/\(id)/files/a") == [1, 2, 3])
  }

  @Test func `an upload has one append at a time`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    let first = try begin(stage, id, at: 0)
    #expect(throws: UploadFailure.conflict(offset: 0, generation: 1)) {
      try begin(stage, id, at: 0)
    }
    try first.write([[1]])
    #expect(throws: UploadFailure.conflict(offset: 0, generation: 1)) {
      try stage.finish(id, [1])
    }
    #expect(try first.end(now: stage.now) == 1)
    #expect(try begin(stage, id, at: 1).end(now: stage.now) == 1)
  }

  @Test func `two clients in turns never mix their bytes`() throws {
    let stage = try StoreStage()
    let all = StoreStage.bytes(1_000)
    let id = try stage.create([StoreStage.file("a", 600), StoreStage.file("b", 400)]).id
    var late: [Append] = []
    while true {
      let status = try stage.status(id, takesOver: true)
      for append in late { #expect(throws: UploadFailure.self) { try append.write([[0xFF]]) } }
      guard status.offset < 1_000 else { break }
      let start = Int(status.offset)
      let append = try begin(stage, id, at: status.offset, generation: status.generation)
      try append.write([Array(all[start..<min(1_000, start + 77)])])
      late.append(append)
      stage.store.quotas.removeAppend(of: "a")
    }
    #expect(late.count == 13)
    try stage.finish(id, all, generation: 15)
    #expect(stage.directory.file("\(id)/a") == Array(all[..<600]))
  }

  @Test func `a takeover stops a finish that has not ended`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    try stage.append([1], to: id, at: 0)
    let request = FinishRequest(
      id: id, generation: 1, size: 1, sha256: [UInt8](repeating: 0, count: 32))
    guard case .hashing(let finishing) = try stage.store.beginFinish(request, of: "a") else {
      Issue.record("the finish has not begun")
      return
    }
    #expect(throws: UploadFailure.conflict(offset: 1, generation: 1)) {
      try stage.append([2], to: id, at: 1)
    }
    #expect(throws: UploadFailure.conflict(offset: 1, generation: 1)) {
      try stage.store.abort(AbortRequest(id: id), of: "a")
    }
    #expect(try stage.status(id, takesOver: true).generation == 2)
    let taken = UploadFailure.conflict(offset: 1, generation: 2)
    #expect(throws: taken) { try finishing.hashMore() }
    #expect(throws: taken) { try stage.store.endFinish(finishing, now: stage.now) }
    try stage.append([2], to: id, at: 1, generation: 2)
    try stage.finish(id, [1, 2], generation: 2)
  }

  @Test func `a finish that was taken over and then fails leaves the next one alone`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    try stage.append([1], to: id, at: 0)
    func begin(_ generation: UInt64, _ bytes: [UInt8]) throws -> Finishing {
      let request = FinishRequest(
        id: id, generation: generation, size: 1, sha256: SHA256Digest.hash(of: bytes))
      guard case .hashing(let finishing) = try stage.store.beginFinish(request, of: "a") else {
        throw UploadFailure.unknown
      }
      return finishing
    }
    let first = try begin(1, [2])
    #expect(try !first.hashMore() && !first.isIntact())
    #expect(try stage.status(id, takesOver: true).generation == 2)
    let second = try begin(2, [1])
    #expect(try !second.hashMore() && second.isIntact())
    // The application refuses the first, and then it is found to have another hash.
    first.refuse()
    let taken = UploadFailure.conflict(offset: 1, generation: 2)
    #expect(throws: taken) { try stage.store.endFinish(first, now: stage.now) }
    #expect(try !second.completeMore())
    #expect(try stage.store.endFinish(second, now: stage.now).isFirst)
    #expect(stage.directory.file("\(id)/a") == [1])
  }

  @Test func `a finish that was refused does not end the next one of its generation`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", 0)]).id
    let request = FinishRequest(
      id: id, generation: 1, size: 0, sha256: SHA256Digest.hash(of: []))
    func begin() throws -> Finishing {
      guard case .hashing(let finishing) = try stage.store.beginFinish(request, of: "a") else {
        throw UploadFailure.unknown
      }
      return finishing
    }
    let first = try begin()
    first.refuse()
    let second = try begin()
    first.refuse()
    #expect(throws: UploadFailure.conflict(offset: 0, generation: 1)) { try first.completeMore() }
    #expect(try !second.completeMore())
    #expect(try stage.store.endFinish(second, now: stage.now).isFirst)
  }

  @Test(arguments: [true, false])
  func `a finish with a wrong hash removes no upload that has passed to others`(
    byTakeover: Bool
  ) async throws {
    let directory = UploadDirectory()
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger.logLevel = .critical
    let server = try LongLinkServer(configuration)
    let receiver = try server.routeUploads(in: directory.path, fileThreads: 1)
    try await server.start()
    let client = try LongLinkClient(ClientConfiguration(servers: [server.endpoint]))
    func append(_ bytes: [UInt8], at offset: UInt64, generation: UInt64 = 1) async throws {
      let message = AppendRequest(id: id, generation: generation, offset: offset)
      _ = try await client.sendItems(UploadMethods.append, message) { try await $0.write(bytes) }
    }
    func finish(_ bytes: [UInt8], generation: UInt64 = 1) async throws -> FinishResponse {
      let hash = SHA256Digest.hash(of: bytes)
      return try await client.request(
        UploadMethods.finish,
        FinishRequest(id: id, generation: generation, size: UInt64(bytes.count), sha256: hash))
    }
    let id = try await client.request(
      UploadMethods.create, CreateRequest(parts: [StoreStage.file("a", nil)])
    ).id
    try await append([1], at: 0)
    let (store, threads) = (receiver.store, receiver.threads)
    let upload = try #require(store.upload(id))
    // On one thread, its turns alternate with those of the finish: each comes when the next of the
    // finish waits, which are to begin it, to hash, and to end it.
    let turns = Atomic(0)
    let hasEnded = Atomic(false)
    defer { hasEnded.store(true, ordering: .relaxed) }
    threads.start(of: "other", on: client.loop) {
      while threads.waiting == 0, !hasEnded.load(ordering: .relaxed) { sched_yield() }
      guard turns.add(1, ordering: .relaxed).newValue == 3 else { return true }
      #expect(upload.factsNow.phase == .finishing)
      if byTakeover {
        #expect(throws: Never.self) {
          try upload.takeOver(now: receiver.now, lifetime: store.lifetime)
        }
      } else {
        store.suspend(now: receiver.now)
        #expect(throws: Never.self) { try store.resume(now: receiver.now) }
      }
      return false
    }
    let error = await #expect(throws: LongLinkError.self) { try await finish([2]) }
    #expect(error?.response == (byTakeover ? .uploadConflict : .unknownUpload))
    let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
    #expect(status.offset == 1 && status.generation == (byTakeover ? 2 : 1))
    try await append([2], at: 1, generation: status.generation)
    #expect(try await finish([1, 2], generation: status.generation).names == ["a"])
    #expect(directory.file("\(id)/a") == [1, 2])
    await client.close()
    await server.shutDown(within: .zero)
  }

  @Test func `an abort stops the append that runs`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    let append = try begin(stage, id, at: 0)
    try append.write([[1]])
    try stage.store.abort(AbortRequest(id: id), of: "a")
    #expect(append.fencing == .unknown)
    #expect(throws: UploadFailure.unknown) { try append.write([[2]]) }
    #expect(throws: UploadFailure.unknown) { try append.end(now: stage.now) }
    #expect(stage.directory.names(".unfinished") == [])
    #expect(stage.store.counters.unfinishedBytes == 0)
  }

  @Test func `a takeover that an abort has overtaken gives back no bytes again`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    try begin(stage, id, at: 0).write([[1]])
    let upload = try #require(stage.store.upload(id))
    try stage.store.abort(AbortRequest(id: id), of: "a")
    #expect(throws: UploadFailure.unknown) {
      try upload.takeOver(now: stage.now, lifetime: stage.store.lifetime)
    }
    #expect(stage.store.counters.unfinishedBytes == 0)
  }

  @Test func `only one store uses a directory`() throws {
    let stage = try StoreStage()
    #expect { try UploadStore(in: stage.directory.path, UploadLimits(), now: 0) } throws: {
      ($0 as? FileError)?.errno == FileError.inUse
    }
    let id = try stage.create([StoreStage.file("a", nil)]).id
    let append = try begin(stage, id, at: 0)
    try append.write([[1]])
    stage.store.suspend(now: stage.now)
    #expect(throws: UploadFailure.unknown) { try append.write([[2]]) }
    expect(.tooMany("")) { try stage.create([StoreStage.file("a", nil)]) }
    do {
      let other = try StoreStage(in: stage.directory)
      #expect(try other.status(id).offset == 1)
    }
    try stage.store.resume(now: stage.now)
    try stage.append([2], to: id, at: 1)
    #expect(stage.store.counters.unfinishedBytes == 2)
  }
}
