import Foundation
import Testing

/// Runs protoc with the plug-in; the variable names it, since it is built by another package.
struct Protoc {
  static let plugin = ProcessInfo.processInfo.environment["PROTOC_GEN_LONGLINK"]

  let folder: URL

  /// Writes .proto files into a new folder.
  init(_ files: [String: String]) throws {
    folder = FileManager.default.temporaryDirectory
      .appending(path: "longlink-\(UInt64.random(in: 0 ... .max))")
    try FileManager.default.createDirectory(
      at: folder.appending(path: "out"), withIntermediateDirectories: true)
    for (name, text) in files {
      let file = folder.appending(path: name)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try "syntax = \"proto3\";\n\(text)".write(to: file, atomically: true, encoding: .utf8)
    }
  }

  /// What protoc said, and its status.
  func run(_ options: String, _ files: [String]) throws -> (status: Int32, text: String) {
    let options = options.isEmpty ? "Messages=M,C=C,Client=M,Server=M,Simulated=T" : options
    let protocols = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Protocols")
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.currentDirectoryURL = folder
    process.arguments =
      [
        "protoc", "--plugin=protoc-gen-longlink=\(Protoc.plugin ?? "")", "--longlink_out=out",
        "--longlink_opt=\(options)", "--proto_path=.", "--proto_path=\(protocols.path)",
      ] + files
    let pipe = Pipe()
    process.standardError = pipe
    try process.run()
    let text = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: text, as: UTF8.self))
  }

  func output(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: "out/\(name)"), encoding: .utf8)
  }

  func remove() {
    try? FileManager.default.removeItem(at: folder)
  }
}

@Suite(.enabled(if: Protoc.plugin != nil, "make check-generator says where the plug-in is"))
struct GeneratorTests {
  /// What is said about one file.
  private func findings(
    _ text: String, options: String = "", others: [String: String] = [:]
  ) throws -> String {
    let protoc = try Protoc(others.merging(["bad.proto": text]) { $1 })
    defer { protoc.remove() }
    let (status, said) = try protoc.run(options, ["bad.proto"])
    #expect(status != 0, "it was generated")
    return said
  }

  private let imported = "import \"longlink/options.proto\";\n"

  @Test func `a method without a message type is named with file and line`() throws {
    let said = try findings(
      imported + "message A {}\nservice S {\n  rpc Ask(A) returns (A);\n}\n")
    #expect(said.contains("bad.proto:5:3: error: S.Ask has no message type"))
  }

  @Test func `two methods of one message type are both named`() throws {
    let said = try findings(
      imported
        + """
        message A {}
        service S { rpc Ask(A) returns (A) { option (longlink.message_type) = 7; } }
        service T {
          rpc Tell(A) returns (A) { option (longlink.message_type) = 7; }
        }
        """)
    #expect(
      said.contains("bad.proto:6:3: error: T.Tell has the message type 7 of S.Ask (bad.proto:4:13)")
    )
  }

  @Test func `types of more than 24 bits are named`() throws {
    let said = try findings(
      imported
        + """
        message A { option (longlink.push_type) = 16777216; }
        message B { option (longlink.push_type) = 16777215; }
        service S { rpc Ask(A) returns (A) { option (longlink.message_type) = 4294967295; } }
        """)
    #expect(said.contains("bad.proto:3:1: error: A: 16777216 needs more than 24 bits"))
    #expect(said.contains("bad.proto:5:13: error: S.Ask: 4294967295 needs more than 24 bits"))
    #expect(!said.contains("B:"))
  }

  @Test func `two pushes of one type are both named`() throws {
    let said = try findings(
      imported
        + """
        message A { option (longlink.push_type) = 1; }
        message B { option (longlink.push_type) = 1; }
        """)
    #expect(said.contains("bad.proto:4:1: error: B has the push type 1 of A (bad.proto:3:1)"))
  }

  @Test func `names that clash in Swift or C are named`() throws {
    let said = try findings(
      imported
        + """
        message EchoClient {}
        message HTTPBox {}
        message Httpbox {}
        message LongLinkClient {}
        service Echo { rpc Ask(HTTPBox) returns (HTTPBox) { option (longlink.message_type) = 1; } }
        service EchoService {}
        service Two {
          rpc Say(HTTPBox) returns (HTTPBox) { option (longlink.message_type) = 2; }
          rpc say(HTTPBox) returns (HTTPBox) { option (longlink.message_type) = 3; }
        }
        """)
    #expect(said.contains("bad.proto:7:1: error: the name EchoClient is taken at bad.proto:3:1"))
    #expect(said.contains("bad.proto:5:1: error: the name httpbox__init is taken"))
    #expect(said.contains("bad.proto:6:1: error: the name LongLinkClient is used by the generated"))
    #expect(said.contains("bad.proto:8:1: error: the name EchoTypes is taken at bad.proto:7:1"))
    #expect(said.contains("bad.proto:11:3: error: the name say is taken by Two.Say"))
  }

  @Test func `properties that clash are named`() throws {
    let said = try findings(
      """
      message A {
        oneof fine { uint32 first = 1; }
        uint32 FINE = 2;
        oneof two_words { uint32 second = 3; }
        uint32 twoWords = 4;
        A next = 5;
        uint32 next_storage = 6;
      }
      """)
    #expect(said.contains("bad.proto:6:3: error: the name twoWords is taken by A.two_words"))
    #expect(said.contains("bad.proto:8:3: error: the name nextStorage is taken by A.next"))
    #expect(!said.contains("first"))
  }

  @Test func `streams are refused`() throws {
    let said = try findings(
      imported
        + """
        message A {}
        service S {
          rpc Up(stream A) returns (A) { option (longlink.message_type) = 1; }
          rpc Down(A) returns (stream A) { option (longlink.message_type) = 2; }
        }
        """)
    #expect(said.contains("bad.proto:5:3: error: streams are not supported: S.Up"))
    #expect(said.contains("bad.proto:6:3: error: streams are not supported: S.Down"))
  }

  @Test func `a message of a file that is not generated is refused, unless its module is told`()
    throws
  {
    let others = ["other.proto": "package other;\nmessage Other {}\n"]
    let text = "import \"other.proto\";\nmessage A {\n  other.Other other = 1;\n}\n"
    let said = try findings(text, others: others)
    #expect(said.contains("bad.proto:4:3: error: other.proto is not generated"))
    let protoc = try Protoc(others.merging(["good.proto": text]) { $1 })
    defer { protoc.remove() }
    let (status, words) = try protoc.run(
      "Messages=M,C=C,Import=other.proto:Others", ["good.proto"])
    #expect(status == 0, "\(words)")
    let swift = try protoc.output("M/good.longlink.swift")
    #expect(swift.contains("public import Others"))
    #expect(swift.contains("public var other: Others.Other? = nil"))
    #expect(
      !FileManager.default.fileExists(
        atPath: protoc.folder.appending(path: "out/C/other.pb-c.c").path))
  }

  @Test func `options that make no sense are refused`() throws {
    for (options, reason) in [
      ("Messages=M", "Messages needs C=FOLDER"), ("Client=M,C=C", "need Messages=FOLDER"),
      ("Messages=M,C=M", "C needs a folder of its own"), ("Messages=../M,C=C", "stands below"),
      ("Messages=M,C=C,Colour=red", "there is no option Colour"),
      ("Messages=M,C=C,Visibility=open", "Visibility is public, package or internal"),
    ] {
      #expect(try findings("message A {}\n", options: options).contains(reason), "\(options)")
    }
  }

  @Test func `proto2 is refused`() throws {
    let protoc = try Protoc([:])
    defer { protoc.remove() }
    try "syntax = \"proto2\";\nmessage A { optional int32 a = 1; }\n".write(
      to: protoc.folder.appending(path: "old.proto"), atomically: true, encoding: .utf8)
    let (status, said) = try protoc.run("", ["old.proto"])
    #expect(status != 0 && said.contains("old.proto:1:1: error: only proto3 is supported"))
  }

  @Test func `each part goes to its module, and imports what it needs`() throws {
    let protoc = try Protoc([
      "sub/s.proto": imported
        + """
        package sub;
        option swift_prefix = "X";
        message A {}
        // Documented.
        service S {
          // Said.
          rpc Ask(A) returns (A) { option (longlink.message_type) = 1; }
        }
        """
    ])
    defer { protoc.remove() }
    let (status, said) = try protoc.run(
      "Messages=Sources/Api,C=Sources/CApi,Client=Sources/Asking,Server=Sources/Answering,"
        + "Simulated=Tests/ApiTests,Visibility=package",
      ["sub/s.proto"])
    #expect(status == 0, "\(said)")
    let messages = try protoc.output("Sources/Api/sub_s.longlink.swift")
    #expect(messages.contains("internal import CApi\npackage import LongLinkProtobufC\n"))
    #expect(messages.contains("package nonisolated struct XA: Hashable, Sendable {"))
    #expect(!messages.contains("import LongLink\n"))
    let client = try protoc.output("Sources/Asking/sub_s.client.swift")
    #expect(client.contains("package import Api\npackage import LongLink\n"))
    #expect(client.contains("  /// Said.\n"))
    #expect(client.contains("_ request: Api.XA"))
    let server = try protoc.output("Sources/Answering/sub_s.server.swift")
    #expect(server.contains("/// Documented.\npackage nonisolated protocol SService: Sendable {"))
    #expect(server.contains("package import LongLinkServer\n"))
    let simulated = try protoc.output("Tests/ApiTests/sub_s.simulated.swift")
    #expect(simulated.contains("package import LongLinkTesting\n"))
    #expect(try protoc.output("Sources/CApi/include/sub/s.pb-c.h").contains("sub__a__init"))
  }
}
