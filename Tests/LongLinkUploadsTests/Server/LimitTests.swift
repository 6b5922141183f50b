// SPDX-License-Identifier: Apache-2.0

import LongLinkUploadMessages
import Testing

@testable import LongLinkUploadsServer

/// Clients that want more than they may have.
@Suite struct LimitTests {
  private func limits(_ change: (inout UploadLimits) -> Void) -> UploadLimits {
    var limits = UploadLimits()
    change(&limits)
    return limits
  }

  private static let file = [StoreStage.file("a", nil)]

  @Test func `a client has at most 16 unfinished uploads`() throws {
    var stage = try StoreStage()
    var ids: [String] = []
    for _ in 0..<16 { ids.append(try stage.create(Self.file).id) }
    expect(.tooMany("")) { try stage.create(Self.file) }
    #expect(stage.directory.names(".unfinished").count == 16)
    _ = try stage.create(Self.file, of: "b")
    try stage.restart()
    expect(.tooMany("")) { try stage.create(Self.file) }
    try stage.store.abort(AbortRequest(id: ids[0]), of: "a")
    try stage.append([1], to: ids[1], at: 0)
    try stage.finish(ids[1], [1])
    _ = try (stage.create(Self.file), stage.create(Self.file))
    expect(.tooMany("")) { try stage.create(Self.file) }
    #expect(stage.store.counters.unfinished == 17)
  }

  @Test func `all clients together have a number of uploads`() throws {
    let stage = try StoreStage(limits { $0.maxUploads = 3 })
    for client in ["a", "b", "c"] { _ = try stage.create(Self.file, of: client) }
    expect(.tooMany("")) { try stage.create(Self.file, of: "d") }
  }

  @Test func `the requests of all unfinished uploads have a size together`() throws {
    let stage = try StoreStage()
    let type = String(repeating: "n", count: 1_000)
    let parts = (0..<240).map { _ in Part(field: "f", fileName: "a", contentType: type, size: 0) }
    // Each has some 243 kB, and all may have 32 MiB.
    var count = 0
    while count < 1_000, (try? stage.create(parts, of: "\(count)")) != nil { count += 1 }
    #expect((130...140).contains(count))
    expect(.tooMany("")) { try stage.create(parts, of: "x") }
  }

  @Test func `an append has at most so many bytes, and what is below is kept`() throws {
    let stage = try StoreStage(limits { $0.maxAppendBytes = 10 })
    let upload = try stage.create(Self.file)
    #expect(upload.mostAppend == 10)
    expect(.tooLarge("")) { try stage.append(StoreStage.bytes(11), to: upload.id, at: 0) }
    #expect(try stage.status(upload.id).offset == 10)
    try stage.append(StoreStage.bytes(10), to: upload.id, at: 10)
    let append = try stage.store.beginAppend(
      AppendRequest(id: upload.id, generation: 1, offset: 20), of: "a")
    expect(.tooLarge("")) { try append.write([[1], [], StoreStage.bytes(9), [2]]) }
    #expect(try append.end(now: stage.now) == 30)
  }

  @Test func `no byte is written behind the parts`() throws {
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", 3), StoreStage.file("b", 2)]).id
    expect(.tooLarge("")) { try stage.append(StoreStage.bytes(6), to: id, at: 0) }
    #expect(try stage.status(id).offset == 5)
    expect(.tooLarge("")) { try stage.append([1], to: id, at: 5) }
    try stage.finish(id, StoreStage.bytes(5))
  }

  @Test func `an upload has at most so many bytes, told or not`() throws {
    let stage = try StoreStage(limits { $0.maxUploadBytes = 100 })
    expect(.tooLarge("")) { try stage.create([StoreStage.file("a", 101)]) }
    expect(.tooLarge("")) {
      try stage.create([StoreStage.file("a", 60), StoreStage.file("b", 41)])
    }
    let large = Part(field: "f", fileName: "a", size: .max)
    expect(.tooLarge("")) { try stage.create([large, large]) }
    let id = try stage.create([StoreStage.file("a", 60), StoreStage.file("b", nil)]).id
    expect(.tooLarge("")) { try stage.append(StoreStage.bytes(101), to: id, at: 0) }
    #expect(try stage.status(id).offset == 100)
    try stage.finish(id, StoreStage.bytes(100))
  }

  @Test func `the bytes of a client, and of all, are bounded, and come free again`() throws {
    var stage = try StoreStage(
      limits {
        $0.maxClientBytes = 100 + 2 * StoreStage.fileCost
        $0.maxBytes = 150 + 3 * StoreStage.fileCost
      })
    let first = try stage.create(Self.file).id
    let second = try stage.create(Self.file).id
    try stage.append(StoreStage.bytes(60), to: first, at: 0)
    expect(.noSpace("")) { try stage.append(StoreStage.bytes(60), to: second, at: 0) }
    #expect(try stage.status(second).offset == 40)
    let third = try stage.create(Self.file, of: "b").id
    expect(.noSpace("")) { try stage.append(StoreStage.bytes(60), to: third, at: 0, of: "b") }
    #expect(try stage.status(third).offset == 50)
    #expect(stage.store.counters.unfinishedBytes == 150)
    try stage.restart(stage.store.limits)
    expect(.noSpace("")) { try stage.append([1], to: third, at: 50, of: "b") }
    try stage.finish(first, StoreStage.bytes(60))
    _ = try stage.create(Self.file)
    expect(.noSpace("")) { try stage.create(Self.file, of: "b") }
    try stage.append(StoreStage.bytes(50), to: third, at: 50, of: "b")
    expect(.noSpace("")) { try stage.append(StoreStage.bytes(11), to: second, at: 40) }
    try stage.store.abort(AbortRequest(id: third), of: "a")
    try stage.append([1], to: second, at: 50)
    #expect(stage.store.counters.unfinishedBytes == 51)
  }

  @Test func `a client has 4 appends at once, and all together have a number`() throws {
    let stage = try StoreStage(limits { $0.maxAppends = 5 })
    func begin(_ principal: String) throws -> Append {
      let id = try stage.create(Self.file, of: principal).id
      return try stage.store.beginAppend(
        AppendRequest(id: id, generation: 1, offset: 0), of: principal)
    }
    for _ in 0..<4 { _ = try begin("a") }
    expect(.tooMany("")) { try begin("a") }
    _ = try begin("b")
    expect(.tooMany("")) { try begin("b") }
    #expect(stage.store.counters.appendsRunning == 5)
    stage.store.quotas.removeAppend(of: "a")
    _ = try begin("a")
  }

  @Test func `a client has 32 other requests at once`() throws {
    let quotas = Quotas(UploadLimits())
    for _ in 0..<32 { try quotas.addRequest(of: "a") }
    expect(.tooMany("")) { try quotas.addRequest(of: "a") }
    try quotas.addRequest(of: "b")
    quotas.removeRequest(of: "a")
    try quotas.addRequest(of: "a")
    expect(.tooMany("")) { try quotas.addRequest(of: "a") }
  }

  @Test func `an append that is turned away takes no place`() throws {
    let stage = try StoreStage()
    let id = try stage.create(Self.file).id
    for _ in 0..<10 {
      #expect(throws: UploadFailure.conflict(offset: 0, generation: 1)) {
        try stage.append([1], to: id, at: 7)
      }
    }
    #expect(stage.store.counters.appendsRunning == 0)
  }

  @Test func `parts, their names and the key are bounded`() throws {
    let stage = try StoreStage()
    let long = String(repeating: "ä", count: 513)
    expect(.malformed("")) { try stage.create([]) }
    expect(.malformed("")) { try stage.create(Self.file + Self.file) }
    expect(.malformed("")) {
      try stage.create(Self.file.map { Part(fileName: $0.fileName, size: 1) }, key: long)
    }
    _ = try stage.create((0..<1_000).map { StoreStage.file("\($0)", 1) })
    expect(.tooLarge("")) { try stage.create((0..<1_001).map { StoreStage.file("\($0)", 1) }) }
    expect(.tooLarge("")) { try stage.create([Part(field: long, fileName: "a")]) }
    expect(.tooLarge("")) { try stage.create([Part(field: "f", fileName: long)]) }
    expect(.tooLarge("")) {
      try stage.create([Part(field: "f", fileName: "a", contentType: long)])
    }
    let kilobyte = String(repeating: "n", count: 1_000)
    expect(.tooLarge("")) {
      try stage.create((0..<270).map { StoreStage.file("\(kilobyte)\($0)", 1) })
    }
    #expect(stage.directory.names(".unfinished").count == 1)
  }

  @Test func `the values of fields are bounded, told or not`() throws {
    let stage = try StoreStage()
    expect(.tooLarge("")) { try stage.create([StoreStage.field("a", 65_537)]) }
    expect(.tooLarge("")) {
      try stage.create((0..<17).map { StoreStage.field("\($0)", 65_536) })
    }
    let one = try stage.create([StoreStage.file("f", 5), StoreStage.field("a", nil)]).id
    expect(.tooLarge("")) { try stage.append(StoreStage.bytes(70_000), to: one, at: 0) }
    #expect(try stage.status(one).offset == 65_541)
    let parts = (0..<16).map { StoreStage.field("\($0)", 65_536) } + [StoreStage.field("x", nil)]
    let two = try stage.create(parts).id
    expect(.tooLarge("")) { try stage.append(StoreStage.bytes((1 << 20) + 1), to: two, at: 0) }
    #expect(try stage.status(two).offset == 1 << 20)
  }

  @Test func `finished uploads of a client are remembered up to a number`() throws {
    var stage = try StoreStage()
    var ids: [String] = []
    for index in 0..<260 {
      stage.now += 1
      let id = try stage.create([StoreStage.file("a", 0)], key: "\(index)").id
      try stage.finish(id, [])
      ids.append(id)
    }
    #expect(stage.directory.names(".finished").count == 256)
    for id in ids.prefix(4) { #expect(throws: UploadFailure.unknown) { try stage.status(id) } }
    #expect(try stage.status(ids[4]).state == .finished)
    #expect(stage.directory.file("\(ids[0])/a") == [])
    #expect(try stage.create([StoreStage.file("a", 0)], key: "0").id != ids[0])
    #expect(stage.store.counters.remembered == 256)
  }

  @Test func `limits out of their ranges are named`() {
    #expect(UploadLimits().objection == nil)
    let wrong: [(String, (inout UploadLimits) -> Void)] = [
      ("maxClientUploads", { $0.maxClientUploads = 0 }), ("maxUploads", { $0.maxUploads = 0 }),
      ("maxClientAppends", { $0.maxClientAppends = 0 }), ("maxAppends", { $0.maxAppends = -1 }),
      ("maxAppendBytes", { $0.maxAppendBytes = 0 }), ("maxParts", { $0.maxParts = 0 }),
      ("maxUploadBytes", { $0.maxUploadBytes = .max }), ("lifetime", { $0.lifetime = .zero }),
      ("lifetime", { $0.lifetime = .seconds(1 << 32) }),
      ("itemTimeout", { $0.itemTimeout = .zero }), ("minAppendRate", { $0.minAppendRate = -1 }),
      ("maxClientFinishedFiles", { $0.maxClientFinishedFiles = 1_001 }),
      ("maxFinishedFiles", { $0.maxFinishedFiles = 99_999 }),
      ("maxClientFinishedBytes", { $0.maxClientFinishedBytes = 4 << 30 }),
      ("maxFinishedBytes", { $0.maxFinishedBytes = 1 << 30 }), ("maxParts", { $0.maxParts = .max }),
    ]
    for (field, change) in wrong { #expect(limits(change).objection?.field == field) }
  }
}
