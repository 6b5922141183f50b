// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLinkCore
import LongLinkDriver
import LongLinkTransport
import Testing

@testable import LongLinkOps

/// Which recordings are written, and which files make room for them.
@Suite struct RecordingDirectoryTests {
  private let folder = RecordingFolder()

  /// Writes a file of some bytes, and returns its name.
  @discardableResult
  private func write(
    _ cause: String, bytes: Int = 10, files: Int = 3, most: Int = 1_000
  ) throws -> String {
    var rest = bytes
    let directory = RecordingDirectory(path: folder.path, mostFiles: files, mostBytes: most)
    let entry = try directory.write(cause) {
      let size = min(rest, 7)
      rest -= size
      return size == 0 ? nil : [UInt8](repeating: 1, count: size)
    }
    #expect(entry.bytes == bytes)
    #expect(try folder.read(entry.name).count == bytes)
    return entry.name
  }

  @Test func `the oldest files make room, those of operators last`() throws {
    let first = try write("operator")
    let others = try ["frameTimeout", "unknownKind", "unknownKind"].map { try write($0) }
    #expect(folder.names == [first, others[1], others[2]])
    let second = try write("operator")
    let third = try write("operator")
    #expect(folder.names == [first, second, third])
    // If there is nothing else, the oldest one of operators goes.
    let last = try write("frameTimeout")
    #expect(folder.names == [second, third, last])
    let newest = try write("unknownKind")
    #expect(folder.names == [second, third, newest])
  }

  @Test func `all files together have a bound`() throws {
    let first = try write("operator", bytes: 300)
    try write("frameTimeout", bytes: 300)
    let third = try write("unknownKind", bytes: 400)
    let fourth = try write("frameTimeout", bytes: 200)
    #expect(folder.names == [first, third, fourth])
    let fifth = try write("frameTimeout", bytes: 700)
    #expect(folder.names == [first, fifth])
    let whole = try write("unknownKind", bytes: 1_000)
    #expect(folder.names == [whole])
    // A file that would not fit makes no room, and leaves nothing behind.
    #expect(throws: FileError.self) { try write("unknownKind", bytes: 1_001) }
    #expect(folder.all == [whole])
  }

  @Test func `other files are left alone, and links are not followed`() throws {
    let manager = FileManager.default
    let time = "20200101T000000.000000Z"
    // An older file of another name, a folder, and a link to a file elsewhere.
    let elsewhere = RecordingFolder()
    try elsewhere.write("target", [1, 2, 3])
    let others = [
      "longlink-\(time)-operator.pcapng.gz", "longlink-\(time).pcapng", "notes.pcapng",
      "longlink-\(time)-a b.pcapng", "longlink-x-operator.pcapng",
    ]
    for name in others { try folder.write(name, [1]) }
    let inner = "longlink-\(time)-unknownKind.pcapng"
    try manager.createDirectory(
      atPath: folder.path + "/" + inner, withIntermediateDirectories: true)
    let link = "longlink-\(time)-frameTimeout.pcapng"
    for name in [link, ".longlink-recording.part"] {
      try manager.createSymbolicLink(
        atPath: folder.path + "/" + name, withDestinationPath: elsewhere.path + "/target")
    }
    try write("operator", files: 1)
    let last = try write("operator", files: 1)
    #expect(folder.all == (others + [inner, link, last]).sorted())
    #expect(try elsewhere.read("target") == [1, 2, 3])
  }

  @Test func `names have the time in UTC, and sort by it`() {
    let name = RecordingName("unknownKind", at: 1_795_811_460_123_456)
    #expect(name.text == "longlink-20261127T203100.123456Z-unknownKind.pcapng")
    #expect(RecordingName(name.text) == name)
    #expect(name < RecordingName("frameTimeout", at: 1_795_811_460_123_457))
    #expect(name < RecordingName("operator", at: 0))
  }

  @Test func `each cause has one recording in a minute`() {
    var gate = RecordingGate()
    func at(_ seconds: Double) -> LinkInstant {
      LinkInstant(nanoseconds: Int64(seconds * 1_000_000_000))
    }
    func record(_ cause: String, at time: Double) -> Bool {
      guard gate.begins(cause, at: at(time)) else { return false }
      gate.ends(cause, isWritten: true)
      return true
    }
    #expect(record("unknownKind", at: 1))
    #expect(!record("unknownKind", at: 60.9))
    #expect(record("frameTimeout", at: 60.9))
    #expect(record("unknownKind", at: 61))
    // One at a time is written, and who had to wait is not counted as served.
    #expect(gate.beginsForOperator() && !gate.beginsForOperator())
    #expect(!record("frameTimeout", at: 200))
    gate.ends("operator", isWritten: false)
    #expect(record("frameTimeout", at: 201))
    #expect(gate.counts.written == ["unknownKind": 2, "frameTimeout": 2])
    #expect(gate.counts.skipped == 2 && gate.counts.failed == 1)
  }

  @Test func `a configuration out of range is refused with the field's name`() throws {
    func fault(_ change: (inout OperationsConfiguration) -> Void) -> String {
      var configuration = OperationsConfiguration()
      change(&configuration)
      do throws(LongLinkError) {
        try configuration.validate()
        return ""
      } catch {
        return "\(error)"
      }
    }
    for count in [0, 10_001] {
      #expect(fault { $0.recordingsCount = count }.contains("recordingsCount"))
    }
    for bytes in [65_535, 1 << 41] {
      #expect(fault { $0.recordingsBytes = bytes }.contains("recordingsBytes"))
    }
    for directory in ["", "a\0b"] {
      #expect(fault { $0.recordingsDirectory = directory }.contains("recordingsDirectory"))
    }
    for reason in ["violation", "operator", "unknownKind"] {
      #expect(fault { $0.recordingReasons = [reason] }.contains("recordingReasons"))
    }
    #expect(
      fault {
        $0.recordingsCount = 10_000
        $0.recordingsBytes = 1 << 40
        $0.recordingReasons = ["first_frame", "heartbeat"]
      } == "")
  }
}

/// A folder for the files of one test, which is made with the first of them.
final class RecordingFolder: Sendable {
  let path = FileManager.default.temporaryDirectory
    .appending(path: "longlink-recordings-\(UUID().uuidString)").path

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The names of all files, sorted.
  var all: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  /// The names of recordings, sorted.
  var names: [String] { all.filter { RecordingName($0) != nil } }

  func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: path + "/" + name)))
  }

  func write(_ name: String, _ bytes: [UInt8]) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(filePath: path + "/" + name))
  }

  /// The permissions of a file; with an empty name, of the folder.
  func mode(of name: String) -> Int? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path + "/" + name)
    return attributes?[.posixPermissions] as? Int
  }
}
#endif
