// SPDX-License-Identifier: Apache-2.0

import LongLinkUploadMessages
import Testing

@testable import LongLinkUploadsServer

/// The store without a network.
@Suite struct StoreTests {
  @Test func `a finished upload is a folder with its files and its fields`() throws {
    let stage = try StoreStage()
    let value = Array("blue \"ink\"".utf8)
    let photo = StoreStage.bytes(100_000)
    let parts = [
      StoreStage.field("colour", value.count), StoreStage.file("photo.jpg", photo.count),
      StoreStage.field("tag", 1), StoreStage.file("empty", 0), StoreStage.field("tag", 2),
      StoreStage.file("notes.txt", nil),
    ]
    let upload = try stage.create(parts)
    #expect(upload.generation == 1 && upload.offset == 0 && upload.mostAppend == 8 << 20)
    #expect(UploadStore.isID(upload.id))
    let all = value + photo + Array("xyz".utf8) + StoreStage.bytes(3_000, seed: 9)
    var offset: UInt64 = 0
    while offset < UInt64(all.count) {
      let piece = Array(all[Int(offset)..<min(all.count, Int(offset) + 7_777)])
      offset = try stage.append(piece, to: upload.id, at: offset)
    }
    let names = try stage.finish(upload.id, all)
    #expect(names == ["", "photo.jpg", "", "empty", "", "notes.txt"])
    let directory = stage.directory
    #expect(
      directory.names(upload.id) == ["empty", "fields.json", "notes.txt", "photo.jpg"])
    #expect(directory.file("\(upload.id)/photo.jpg") == photo)
    #expect(directory.file("\(upload.id)/empty") == [])
    #expect(directory.file("\(upload.id)/notes.txt") == StoreStage.bytes(3_000, seed: 9))
    let fields = String(decoding: directory.file("\(upload.id)/fields.json") ?? [], as: UTF8.self)
    #expect(fields == #"{"colour":"blue \"ink\"","tag":["x","yz"]}"# + "\n")
    #expect(directory.names(".unfinished") == [])
    for folder in [upload.id, ".unfinished", ".finished"] {
      #expect(directory.mode(folder) == 0o700, "\(folder)")
    }
    for name in directory.names(upload.id) {
      #expect(directory.mode("\(upload.id)/\(name)") == 0o600, "\(name)")
    }
    #expect(stage.store.counters.unfinishedBytes == 0 && stage.store.counters.unfinished == 0)
  }

  @Test func `a finish is answered again, also after a restart`() throws {
    var stage = try StoreStage()
    let upload = try stage.create([StoreStage.file("a", 3)], key: "k")
    try stage.append([1, 2, 3], to: upload.id, at: 0)
    #expect(try stage.finish(upload.id, [1, 2, 3]) == ["a"])
    for _ in 0..<2 {
      #expect(try stage.finish(upload.id, [1, 2, 3]) == ["a"])
      expect(.mismatch("")) { try stage.finish(upload.id, [1, 2, 4]) }
      let status = try stage.status(upload.id, takesOver: true)
      #expect(status.state == .finished && status.offset == 3)
      #expect(throws: UploadFailure.conflict(offset: 3, generation: 1)) {
        try stage.append([4], to: upload.id, at: 3)
      }
      #expect(throws: UploadFailure.conflict(offset: 3, generation: 1)) {
        try stage.store.abort(AbortRequest(id: upload.id), of: "a")
      }
      let again = try stage.create([StoreStage.file("a", 3)], key: "k")
      #expect(again.id == upload.id && again.offset == 3)
      try stage.restart()
    }
  }

  @Test func `another hash removes the upload, and another size does not`() throws {
    let stage = try StoreStage()
    let upload = try stage.create([StoreStage.file("a", 3)])
    try stage.append([1, 2], to: upload.id, at: 0)
    expect(.mismatch("")) { try stage.finish(upload.id, [1, 2]) }
    expect(.mismatch("")) { try stage.finish(upload.id, [1, 2, 3]) }
    try stage.append([3], to: upload.id, at: 2)
    expect(.mismatch("")) { try stage.finish(upload.id, [1, 2, 4]) }
    #expect(throws: UploadFailure.unknown) { try stage.status(upload.id) }
    #expect(stage.directory.names() == [".finished", ".unfinished"])
    #expect(stage.directory.names(".unfinished") == [])
    #expect(stage.store.counters.mismatched == 1 && stage.store.counters.unfinished == 0)
  }

  @Test func `the same key gives the same upload to the same client`() throws {
    var stage = try StoreStage()
    let parts = [StoreStage.file("a", 3)]
    let upload = try stage.create(parts, key: "k")
    try stage.append([1], to: upload.id, at: 0)
    for _ in 0..<2 {
      let again = try stage.create(parts, key: "k")
      #expect(again.id == upload.id && again.offset == 1 && again.generation == 1)
      #expect(throws: UploadFailure.conflict(offset: 0, generation: 0)) {
        try stage.create([StoreStage.file("a", 4)], key: "k")
      }
      try stage.restart()
    }
    let other = try stage.create(parts, key: "k", of: "b")
    #expect(other.id != upload.id && other.offset == 0)
    try stage.store.abort(AbortRequest(id: upload.id), of: "a")
    #expect(try stage.create(parts, key: "k").id != upload.id)
    let keyless = try (stage.create(parts).id, stage.create(parts).id)
    #expect(keyless.0 != keyless.1)
  }

  @Test func `an upload goes on after a restart, also twice`() throws {
    var stage = try StoreStage()
    let bytes = StoreStage.bytes(50_000)
    let parts = [StoreStage.file("a", 20_000), StoreStage.file("b", nil)]
    let upload = try stage.create(parts)
    try stage.append(Array(bytes[..<15_000]), to: upload.id, at: 0)
    try stage.restart()
    #expect(try stage.status(upload.id).offset == 15_000)
    try stage.append(Array(bytes[15_000..<30_000]), to: upload.id, at: 15_000)
    try stage.restart()
    try stage.append(Array(bytes[30_000...]), to: upload.id, at: 30_000)
    try stage.finish(upload.id, bytes)
    #expect(stage.directory.file("\(upload.id)/a") == Array(bytes[..<20_000]))
    #expect(stage.directory.file("\(upload.id)/b") == Array(bytes[20_000...]))
    #expect(stage.store.counters.restored == 1)
  }

  @Test func `bytes that no append has ended are no part of the offset`() throws {
    var stage = try StoreStage()
    let upload = try stage.create([StoreStage.file("a", nil)])
    try stage.append([1, 2], to: upload.id, at: 0)
    let append = try stage.store.beginAppend(
      AppendRequest(id: upload.id, generation: 1, offset: 2), of: "a")
    try append.write([[8, 9]])
    #expect(stage.directory.file(".unfinished/\(upload.id)/files/a") == [1, 2, 8, 9])
    #expect(try stage.status(upload.id).offset == 2)
    try stage.restart()
    #expect(try stage.status(upload.id).offset == 2)
    #expect(stage.store.counters.unfinishedBytes == 2)
    // What is left of them does not stay behind a shorter append.
    try stage.append([3], to: upload.id, at: 2)
    try stage.finish(upload.id, [1, 2, 3])
    #expect(stage.directory.file("\(upload.id)/a") == [1, 2, 3])
  }

  @Test func `an abort removes everything`() throws {
    let stage = try StoreStage()
    let upload = try stage.create([StoreStage.file("a", 3), StoreStage.field("b", 3)])
    try stage.append([1, 2, 3, 4], to: upload.id, at: 0)
    try stage.store.abort(AbortRequest(id: upload.id), of: "a")
    #expect(throws: UploadFailure.unknown) { try stage.status(upload.id) }
    #expect(throws: UploadFailure.unknown) {
      try stage.store.abort(AbortRequest(id: upload.id), of: "a")
    }
    #expect(throws: UploadFailure.unknown) { try stage.append([5], to: upload.id, at: 4) }
    #expect(throws: UploadFailure.unknown) { try stage.finish(upload.id, [1, 2, 3, 4]) }
    #expect(stage.directory.names(".unfinished") == [])
    #expect(stage.store.counters.unfinishedBytes == 0)
  }

  @Test func `an upload expires a lifetime behind its last append`() throws {
    var stage = try StoreStage()
    let day: UInt64 = 86_400_000
    let upload = try stage.create([StoreStage.file("a", 3)])
    #expect(upload.expiresInMs == day)
    stage.now += day - 1
    try stage.append([1], to: upload.id, at: 0)
    #expect(try stage.status(upload.id).expiresInMs == day)
    stage.now += day - 1
    #expect(stage.expire() == stage.now + 1_000)
    #expect(try stage.status(upload.id).expiresInMs == 1)
    stage.now += 1
    #expect(stage.expire() == nil)
    #expect(throws: UploadFailure.unknown) { try stage.status(upload.id) }
    #expect(stage.directory.names(".unfinished") == [])
    #expect(stage.store.counters.expired == 1)
  }

  @Test func `a start removes what has expired, and forgets what was finished long ago`() throws {
    var stage = try StoreStage()
    let old = try stage.create([StoreStage.file("a", 3)])
    let done = try stage.create([StoreStage.file("a", 1)])
    try stage.append([1], to: done.id, at: 0)
    try stage.finish(done.id, [1])
    stage.now += 86_400_000
    try stage.restart()
    #expect(throws: UploadFailure.unknown) { try stage.status(old.id) }
    #expect(throws: UploadFailure.unknown) { try stage.status(done.id) }
    #expect(stage.directory.names(".unfinished") == [])
    #expect(stage.directory.names(".finished") == [])
    #expect(stage.directory.file("\(done.id)/a") == [1])
  }
}
