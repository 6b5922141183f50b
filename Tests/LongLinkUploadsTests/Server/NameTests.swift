// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// Names that a client sends, and what somebody else puts into the directory.
@Suite struct NameTests {
  private static let names = [
    ("photo.jpg", "photo.jpg"), ("/etc/passwd", "passwd"), ("..\\..\\boot.ini", "boot.ini"),
    ("a/", "file"), (".", "file"), ("..", "file"), ("a/..", "file"), ("x\u{0}y", "x_y"),
    ("a\nb\u{7F}\u{1B}[2J", "a_b__[2J"), ("\u{202E}gpj.exe", "_gpj.exe"), ("a\u{2028}b", "a_b"),
    ("Füße 足.txt", "Füße 足.txt"), ("a/\u{301}b", "\u{301}b"), (".hidden", ".hidden"),
    ("...", "..."), (" ", " "),
  ]

  // Not arguments, because those are printed as they are.
  @Test func `a name is its last component, made safe`() {
    for (sent, kept) in Self.names {
      var names = SafeNames()
      #expect(names.name(for: sent) == kept)
    }
  }

  @Test func `repeated names get a number in front of the extension`() {
    var names = SafeNames(reserved: ["fields.json"])
    let sent = ["a.txt", "b/a.txt", "a-2.txt", "a.txt", "fields.json", "b", "b", "e\u{301}", "é"]
    #expect(
      sent.map { names.name(for: $0) } == [
        "a.txt", "a-2.txt", "a-2-2.txt", "a-3.txt", "fields-2.json", "b", "b-2", "é", "é-2",
      ])
  }

  @Test func `names that a file system may take for the same are told apart by a number`() {
    for (first, second, kept) in [
      ("a.txt", "A.TXT", "A-2.TXT"), ("STRASSE", "straße", "straße-2"), ("é", "E\u{301}", "É-2"),
      ("straße.txt", "straẞe.txt", "straẞe-2.txt"), ("strasse", "straẞe", "straẞe-2"),
      ("σ", "ς", "ς-2"), ("s", "ſ", "ſ-2"), ("K", "\u{212A}", "\u{212A}-2"),
      ("a.", "a", "a-2"), ("ab", "a\u{200D}b", "a\u{200D}b-2"), ("a\u{FE0F}", "A", "A-2"),
    ] {
      var names = SafeNames()
      #expect(names.name(for: first) == first)
      #expect(names.name(for: second) == kept)
    }
    var names = SafeNames(reserved: ["fields.json"])
    #expect(names.name(for: "FIELDS.JSON") == "FIELDS-2.JSON")
    #expect(names.name(for: "fields-2.json") == "fields-2-2.json")
    #expect(names.name(for: "\u{FB01}elds.json") == "\u{FB01}elds-3.json")
  }

  @Test func `files that differ in case alone, and fields in normal form alone, are both kept`()
    throws
  {
    let stage = try StoreStage()
    let parts = [
      StoreStage.file("a.txt", 1), StoreStage.file("A.txt", 1), StoreStage.file("Fields.json", 1),
      StoreStage.field("\u{E9}", 1), StoreStage.field("e\u{301}", 1),
      StoreStage.field("e\u{301}", 1),
    ]
    let id = try stage.create(parts).id
    try stage.append(Array("123xyz".utf8), to: id, at: 0)
    #expect(
      try stage.finish(id, Array("123xyz".utf8)).prefix(3) == ["a.txt", "A-2.txt", "Fields-2.json"])
    let fields = "{\"e\u{301}\":[\"y\",\"z\"],\"\u{E9}\":\"x\"}\n"
    #expect(stage.directory.file("\(id)/fields.json") == Array(fields.utf8))
  }

  @Test func `an upload whose finish was not committed can be finished with more bytes`() throws {
    let fails = Mutex(false)
    let stage = try StoreStage { step throws(FileError) in
      guard step.path.hasSuffix("/state"), fails.withLock({ $0 }) else { return }
      throw FileError("do", step.path, errno: ENOSPC)
    }
    let id = try stage.create([StoreStage.file("a", 1), StoreStage.field("f", nil)]).id
    try stage.append(Array("1xy".utf8), to: id, at: 0)
    fails.withLock { $0 = true }
    expect(.noSpace("")) { try stage.finish(id, Array("1xy".utf8)) }
    // The file with the fields is there.
    #expect(stage.directory.names(".unfinished/\(id)/files") == ["a", "fields.json"])
    fails.withLock { $0 = false }
    try stage.append(Array("z".utf8), to: id, at: 3)
    try stage.finish(id, Array("1xyz".utf8))
    #expect(stage.directory.file("\(id)/fields.json") == Array("{\"f\":\"xyz\"}\n".utf8))
  }

  @Test func `long names are cut between characters, and keep their extension`() {
    var names = SafeNames()
    let long = String(repeating: "ä", count: 200) + ".tar.gz"
    let kept = (0..<12).map { _ in names.name(for: long) }
    #expect(Set(kept).count == 12)
    #expect(kept.allSatisfy { $0.utf8.count <= 255 && $0.hasSuffix(".gz") })
    #expect(kept[0].utf8.count >= 254 && kept[11].hasSuffix("-12.gz"))
    let point = "." + String(repeating: "x", count: 400)
    #expect(names.name(for: point).utf8.count == 255)
    #expect(names.name(for: "a" + point).utf8.count == 255)
  }

  @Test func `a thousand equal names take no long time`() {
    var names = SafeNames()
    let kept = (0..<1_000).map { _ in names.name(for: "a") }
    #expect(kept.last == "a-1000" && Set(kept).count == 1_000)
  }

  @Test func `names that differ only where they are cut take no long search`() {
    var names = SafeNames()
    let common = String(repeating: "x", count: 252)
    let sent = (0..<475).map { common + "\(100 + $0)" }
    let kept = (sent + sent).map { names.name(for: $0) }
    #expect(Set(kept).count == 950 && kept.allSatisfy { $0.utf8.count == 255 })
    // One for each that was used before.
    #expect(names.tried == 475)
  }

  @Test func `no link in the directory is followed`() throws {
    let outside = UploadDirectory()
    outside.write([7], to: "secret")
    let directory = UploadDirectory()
    try directory.link(".unfinished", to: outside.path)
    #expect(throws: FileError.self) { try StoreStage(in: directory) }
    #expect(outside.names() == ["secret"])
    try FileManager.default.removeItem(atPath: directory.path + "/.unfinished")

    let stage = try StoreStage(in: directory)
    let id = try stage.create([StoreStage.file("a", 1), StoreStage.file("b", 1)]).id
    try directory.link(".unfinished/\(id)/files/a", to: outside.path + "/secret")
    expect(.failed(FileError("", "", errno: EEXIST))) {
      try stage.append([1, 2], to: id, at: 0)
    }
    // What is in the way of an append is removed by the next one, and not what it points to.
    try stage.append([1], to: id, at: 0)
    try directory.link(".unfinished/\(id)/files/b", to: outside.path + "/new")
    expect(.failed(FileError("", "", errno: EEXIST))) { try stage.append([2], to: id, at: 1) }
    try stage.append([2], to: id, at: 1)
    try directory.link(".unfinished/\(id)/files/fields.json", to: outside.path + "/fields")
    try directory.link(id, to: outside.path)
    expect(.failed(FileError("", "", errno: ENOTDIR))) { try stage.finish(id, [1, 2]) }
    try FileManager.default.removeItem(atPath: directory.path + "/" + id)
    #expect(try stage.finish(id, [1, 2]) == ["a", "b"])
    #expect(directory.file("\(id)/b") == [2])
    // Replaced, as the link that it was.
    #expect(directory.file("\(id)/fields.json") == Array("{}\n".utf8))
    #expect(outside.names() == ["secret"] && outside.file("secret") == [7])
  }

  @Test func `a file that a link has replaced is not written through it`() throws {
    let outside = UploadDirectory()
    outside.write([7, 7, 7], to: "secret")
    let stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", 3)]).id
    try stage.append([1], to: id, at: 0)
    let path = "\(stage.directory.path)/.unfinished/\(id)/files/a"
    try FileManager.default.removeItem(atPath: path)
    try stage.directory.link(".unfinished/\(id)/files/a", to: outside.path + "/secret")
    expect(.failed(FileError("", "", errno: ELOOP))) { try stage.append([2], to: id, at: 1) }
    #expect(outside.file("secret") == [7, 7, 7])
  }

  @Test func `a start leaves alone what is not its own`() throws {
    let outside = UploadDirectory()
    outside.write([7], to: "upload")
    let directory = UploadDirectory()
    for folder in [".unfinished", ".finished", "mine", ".unfinished/notes"] {
      try FileManager.default.createDirectory(
        atPath: "\(directory.path)/\(folder)", withIntermediateDirectories: false)
    }
    directory.write([1], to: "mine/file")
    directory.write([2], to: ".finished/\(StoreStage.id())")
    try directory.link(".unfinished/\(StoreStage.id())", to: outside.path)
    let stage = try StoreStage(in: directory)
    #expect(stage.store.counters.unreadable == 3)
    #expect(directory.file("mine/file") == [1] && outside.file("upload") == [7])
    #expect(directory.names(".unfinished").count == 2)
  }

  @Test func `an ID that names something else is unknown`() throws {
    let stage = try StoreStage()
    stage.directory.write([1], to: "x")
    for id in ["", "..", "../x", ".unfinished", "x", String(repeating: "0", count: 32)] {
      #expect(throws: UploadFailure.unknown) { try stage.status(id) }
      #expect(throws: UploadFailure.unknown) {
        try stage.store.abort(AbortRequest(id: id), of: "a")
      }
      #expect(throws: UploadFailure.unknown) { try stage.append([1], to: id, at: 0) }
      #expect(throws: UploadFailure.unknown) { try stage.finish(id, []) }
    }
    #expect(stage.directory.file("x") == [1])
  }
}
