// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// A directory for uploads, which is removed with this object.
final class UploadDirectory: Sendable {
  let path: String

  init() {
    // In memory where that is possible: tests flush a thousand times.
    let memory = "/dev/shm/"
    let isWritable = FileManager.default.isWritableFile(atPath: memory)
    let parent = isWritable ? memory : NSTemporaryDirectory()
    path = parent + "longlink-uploads-\(UInt64.random(in: 0 ... .max))"
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The bytes of a file; nil if there is none.
  func file(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: "\(path)/\(name)").map(Array.init)
  }

  /// The names in a folder, sorted.
  func names(_ folder: String = "") -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: "\(path)/\(folder)")) ?? []).sorted()
  }

  /// The permissions of an entry.
  func mode(_ name: String) -> Int? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
    return (attributes?[.posixPermissions] as? NSNumber)?.intValue
  }

  /// Replaces a file.
  func write(_ bytes: [UInt8], to name: String) {
    _ = FileManager.default.createFile(atPath: "\(path)/\(name)", contents: Data(bytes))
  }

  /// Makes a symbolic link.
  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: "\(path)/\(name)", withDestinationPath: target)
  }
}

/// A store with a client that speaks to it directly.
struct StoreStage {
  let directory: UploadDirectory
  var store: UploadStore
  var now: UInt64 = 1_000_000_000

  init(
    in directory: UploadDirectory = UploadDirectory(), _ limits: UploadLimits = UploadLimits(),
    probe: FileProbe? = nil
  ) throws {
    self.directory = directory
    store = try UploadStore(in: directory.path, limits, now: now, probe: probe)
  }

  /// What an upload of one file takes besides its bytes: for the file, its folder and the fields.
  static let fileCost: UInt64 = 3 * 4_096

  /// A new ID.
  static func id() -> String {
    (0..<16).map { _ in UInt8.random(in: 0...255) }.hexadecimal
  }

  /// Creates an upload.
  func create(
    _ parts: [Part], key: String = "", of principal: String = "a"
  ) throws(UploadFailure) -> CreateResponse {
    try store.create(
      CreateRequest(parts: parts, key: key), id: Self.id(), of: principal, now: now)
  }

  /// Appends bytes, and returns the offset behind them.
  @discardableResult
  func append(
    _ bytes: [UInt8], to id: String, at offset: UInt64, generation: UInt64 = 1,
    of principal: String = "a"
  ) throws(UploadFailure) -> UInt64 {
    let append = try store.beginAppend(
      AppendRequest(id: id, generation: generation, offset: offset), of: principal)
    defer { store.quotas.removeAppend(of: principal) }
    do throws(UploadFailure) {
      try append.write([bytes])
    } catch {
      _ = try? append.end(now: now)
      throw error
    }
    return try append.end(now: now)
  }

  /// Finishes an upload.
  @discardableResult
  func finish(
    _ id: String, _ bytes: [UInt8], generation: UInt64 = 1, of principal: String = "a"
  ) throws(UploadFailure) -> [String] {
    let request = FinishRequest(
      id: id, generation: generation, size: UInt64(bytes.count),
      sha256: SHA256Digest.hash(of: bytes))
    switch try store.beginFinish(request, of: principal) {
    case .done(let response): return response.names
    case .committed(let upload): return try store.settle(upload, now: now).response.names
    case .hashing(let finishing):
      while try finishing.hashMore() {}
      if try finishing.isIntact() { while try finishing.completeMore() {} }
      return try store.endFinish(finishing, now: now).response.names
    }
  }

  /// Removes what has expired, in as many turns as it takes; returns when something expires next.
  func expire() -> UInt64? {
    while true {
      let next = store.expire(now: now)
      if next != now { return next }
    }
  }

  /// Asks for the status of an upload.
  func status(
    _ id: String, takesOver: Bool = false, of principal: String = "a"
  ) throws(UploadFailure) -> StatusResponse {
    try store.status(StatusRequest(id: id, takesOver: takesOver), of: principal, now: now)
  }

  /// A file of so many bytes.
  static func file(_ name: String, _ size: Int?, field: String = "f") -> Part {
    Part(field: field, fileName: name, size: size.map(UInt64.init))
  }

  /// A field with a value of so many bytes.
  static func field(_ name: String, _ size: Int?) -> Part {
    Part(field: name, size: size.map(UInt64.init))
  }

  /// Bytes that differ from place to place.
  static func bytes(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 167 &+ ($0 >> 8)) }
  }
}

extension Append {
  /// Writes pieces, each in as many turns as it takes.
  func write(_ pieces: [[UInt8]]) throws(UploadFailure) {
    for piece in pieces {
      var rest = piece[...]
      while !rest.isEmpty { rest = rest.dropFirst(try write(rest)) }
    }
  }
}

extension StoreStage {
  /// Makes another store on the same directory. The old one is dropped without a word, as by a
  /// crash of its process.
  mutating func restart(_ limits: UploadLimits = UploadLimits(), probe: FileProbe? = nil) throws {
    store.unfinished.unlock()
    store = try UploadStore(in: directory.path, limits, now: now, probe: probe)
  }
}

/// Expects a failure of a kind, whatever its text and its error number.
func expect<Value>(
  _ kind: UploadFailure, at location: SourceLocation = #_sourceLocation, _ call: () throws -> Value
) {
  do {
    _ = try call()
    Issue.record("nothing has failed", sourceLocation: location)
  } catch {
    let isSame: Bool =
      switch (error as? UploadFailure, kind) {
      case (.malformed?, .malformed), (.tooLarge?, .tooLarge), (.mismatch?, .mismatch),
        (.tooMany?, .tooMany), (.noSpace?, .noSpace), (.failed?, .failed), (.damaged?, .damaged):
        true
      case (let failure?, let kind): failure == kind
      case (nil, _): false
      }
    #expect(isSame, "\(error)", sourceLocation: location)
  }
}
