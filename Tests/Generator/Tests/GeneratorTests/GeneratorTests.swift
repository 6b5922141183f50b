// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@Suite struct GeneratorTests {
  @Test func `a method without a message type is named with file and line`() throws {
    let said = try Protoc.findings(
      Protoc.imported + "message A {}\nservice S {\n  rpc Ask(A) returns (A);\n}\n")
    #expect(said.contains("bad.proto:5:3: error: S.Ask has no message type"))
  }

  @Test func `two methods of one message type are both named`() throws {
    let said = try Protoc.findings(
      Protoc.imported
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
    let said = try Protoc.findings(
      Protoc.imported
        + """
        message A { option (longlink.push_type) = 16777216; }
        message B { option (longlink.push_type) = 16777215; }
        service S { rpc Ask(A) returns (A) { option (longlink.message_type) = 4294967295; } }
        """)
    #expect(said.contains("bad.proto:3:1: error: A: 16777216 needs more than 24 bits"))
    #expect(said.contains("bad.proto:5:13: error: S.Ask: 4294967295 needs more than 24 bits"))
    #expect(!said.contains("B:"))
  }

  @Test func `the message types of uploads are left to them`() throws {
    let said = try Protoc.findings(
      Protoc.imported
        + """
        message A { option (longlink.push_type) = 12; }
        service S {
          rpc Before(A) returns (A) { option (longlink.message_type) = 11; }
          rpc First(A) returns (A) { option (longlink.message_type) = 12; }
          rpc Last(A) returns (A) { option (longlink.message_type) = 16; }
          rpc After(A) returns (A) { option (longlink.message_type) = 17; }
        }
        """)
    for (line, name) in [(6, "First"), (7, "Last")] {
      let text = "S.\(name): the message types 12 to 16 are those of uploads"
      #expect(said.contains("bad.proto:\(line):3: error: \(text)"), "\(said)")
    }
    #expect(!said.contains("S.Before") && !said.contains("S.After") && !said.contains("push"))
  }

  @Test func `a method runs once if it is no stream and may not run again`() throws {
    let said = try Protoc.findings(
      Protoc.imported
        + """
        message A {}
        service S {
          rpc Down(A) returns (stream A) {
            option (longlink.message_type) = 1;
            option (longlink.runs_once) = true;
          }
          rpc Up(stream A) returns (A) {
            option (longlink.message_type) = 2;
            option (longlink.runs_once) = true;
          }
          rpc Again(A) returns (A) {
            option (longlink.message_type) = 3;
            option (longlink.runs_once) = true;
            option idempotency_level = IDEMPOTENT;
          }
          rpc Free(stream A) returns (A) {
            option (longlink.message_type) = 4;
            option (longlink.runs_once) = false;
          }
        }
        """)
    for (line, name) in [(5, "Down"), (9, "Up")] {
      #expect(
        said.contains("bad.proto:\(line):3: error: S.\(name): streams do not run once"), "\(said)")
    }
    #expect(
      said.contains("bad.proto:13:3: error: S.Again: a method either runs once or may run again"),
      "\(said)")
    #expect(!said.contains("S.Free"))
  }

  @Test func `options say whether the requests of a method may run again`() throws {
    let protoc = try Protoc([
      "s.proto": Protoc.imported
        + """
        message A {}
        service S {
          rpc Once(A) returns (A) {
            option (longlink.message_type) = 1;
            option (longlink.runs_once) = true;
          }
          rpc Again(A) returns (A) {
            option (longlink.message_type) = 2;
            option idempotency_level = IDEMPOTENT;
          }
          rpc Read(A) returns (A) {
            option (longlink.message_type) = 3;
            option idempotency_level = NO_SIDE_EFFECTS;
          }
          rpc Plain(A) returns (A) {
            option (longlink.message_type) = 4;
            option (longlink.runs_once) = false;
          }
        }
        """
    ])
    defer { protoc.remove() }
    let (status, said) = try protoc.run("Messages=Api,C=CApi", ["s.proto"])
    #expect(status == 0, "\(said)")
    let messages = try protoc.output("Api/s.longlink.swift")
    for method in [
      "(1, \"Once\", of: \"S\", options: .init(retry: .once))",
      "(2, \"Again\", of: \"S\", options: .init(retry: .idempotent))",
      "(3, \"Read\", of: \"S\", isReadOnly: true)", "(4, \"Plain\", of: \"S\")",
    ] {
      #expect(messages.contains("::RPCMethod\(method)\n"), "\(messages)")
    }
  }

  @Test func `two pushes of one type are both named`() throws {
    let said = try Protoc.findings(
      Protoc.imported
        + """
        message A { option (longlink.push_type) = 1; }
        message B { option (longlink.push_type) = 1; }
        """)
    #expect(said.contains("bad.proto:4:1: error: B has the push type 1 of A (bad.proto:3:1)"))
  }

  @Test func `an editor finds the places of errors, and options are named as in the command`()
    throws
  {
    let text = "import \"other.proto\";\nmessage A {\n  Other other = 1;\n}\n"
    let protoc = try Protoc(["Protos/bad.proto": text, "Protos/other.proto": "message Other {}\n"])
    defer { protoc.remove() }
    let folder = protoc.folder.path
    let (status, said) = try protoc.run(
      "FrontEnd=command,ProtoPath=\(folder)/None,ProtoPath=\(folder)/Protos,Messages=M,C=C",
      ["--proto_path=Protos", "bad.proto"])
    #expect(status != 0)
    #expect(
      said.contains(
        "\(folder)/Protos/bad.proto:4:3: error: other.proto is not generated: name it too, or add "
          + "--import other.proto:MODULE"))
  }

  @Test func `methods with streams take and return writers and sequences`() throws {
    let protoc = try Protoc([
      "good.proto": Protoc.imported
        + """
        message A {}
        message B {}
        service S {
          rpc One(A) returns (B) { option (longlink.message_type) = 1; }
          rpc Down(A) returns (stream B) { option (longlink.message_type) = 2; }
          rpc Up(stream A) returns (B) { option (longlink.message_type) = 3; }
          rpc Both(stream A) returns (stream B) { option (longlink.message_type) = 4; }
          // It takes none of the names that are made for a method without streams.
          rpc SubmitUp(A) returns (B) { option (longlink.message_type) = 5; }
        }
        """
    ])
    defer { protoc.remove() }
    let (status, said) = try protoc.run("", ["good.proto"])
    #expect(status == 0, "\(said)")
    func expect(_ file: String, _ parts: [String]) throws {
      let text = try protoc.output(file)
      for part in parts { #expect(text.contains(part), "\(part)") }
    }
    try expect(
      "M/good.longlink.swift",
      [
        "LongLinkProtobufC::RPCMethod<M::A, M::B> {",
        "RPCMethod<M::A, LongLinkProtobufC::Streamed<M::B>> {",
        "LongLinkProtobufC::RPCMethod(2, \"Down\", of: \"S\")",
        "RPCMethod<LongLinkProtobufC::Streamed<M::A>, M::B> {",
        "RPCMethod<LongLinkProtobufC::Streamed<M::A>, LongLinkProtobufC::Streamed<M::B>> {",
      ])
    try expect(
      "M/good.client.swift",
      [
        "-> LongLink::ItemStream<M::B> {", ") async throws -> M::B {",
        "resuming: @escaping @Sendable (M::B?) -> M::A,", "-> LongLink::ResumingStream<M::B> {",
        "onItem: @escaping @Sendable (M::B) -> (),", "func downBlocking(",
        "sender.sendItems(M::SMethods.up, options: options, work)",
        "LongLink::Items<M::B>, LongLink::ItemWriter<M::A>",
      ])
    try expect(
      "M/good.server.swift",
      [
        "_ request: M::A, writer: LongLinkServer::ItemWriter<M::B>,",
        "_ items: LongLinkServer::Items<M::A>, context: LongLinkServer::InboundRequest",
        "M::SMethods.both, on: placement, itemTimeout: itemTimeout,",
        "requires: rule, fileID: fileID, line: line",
      ])
    let simulated = try protoc.output("T/good.simulated.swift")
    #expect(simulated.contains("func onDown(_ actions:") && simulated.contains("waitForDown("))
    #expect(simulated.contains("func onUp(_ actions:") && simulated.contains("-> [M::A] {"))
    #expect(simulated.contains("func upItems() ") && !simulated.contains("upRequests("))
  }

  @Test func `a message of a file that is not generated is refused, unless its module is given`()
    throws
  {
    let others = ["other.proto": "package other;\nmessage Other {}\n"]
    let text = "import \"other.proto\";\nmessage A {\n  other.Other other = 1;\n}\n"
    let said = try Protoc.findings(text, others: others)
    #expect(said.contains("bad.proto:4:3: error: other.proto is not generated"))
    let protoc = try Protoc(others.merging(["good.proto": text]) { $1 })
    defer { protoc.remove() }
    let (status, words) = try protoc.run(
      "Messages=M,C=C,Import=other.proto:Others", ["good.proto"])
    #expect(status == 0, "\(words)")
    let swift = try protoc.output("M/good.longlink.swift")
    #expect(swift.contains("public import Others"))
    #expect(swift.contains("public var other: Others::Other? = nil"))
    #expect(
      !FileManager.default.fileExists(
        atPath: protoc.folder.appending(path: "out/C/other.pb-c.c").path))
  }

  @Test func `options that make no sense are refused`() throws {
    for (options, reason) in [
      ("Messages=M", "C=FOLDER is required"), ("Client=M,C=C", "Messages=FOLDER is required"),
      ("FrontEnd=command,Client=M", "--messages FOLDER is required"),
      ("Messages=M,C=M", "C=FOLDER needs a separate folder"),
      ("Messages=../M,C=C", "Messages=../M: the folder has to be below the output folder"),
      ("Messages=M,C=C,Colour=red", "unknown option Colour"),
      ("Messages=M,C=C,Visibility=open", "Visibility=open: choose public, package"),
      ("Messages=M,Runtime=SwiftProtobuf,Prefix=X", "Prefix=X: SwiftProtobuf only supports"),
    ] {
      #expect(
        try Protoc.findings("message A {}\n", options: options).contains(reason), "\(options)")
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
      "sub/s.proto": Protoc.imported
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
    #expect(messages.contains("package nonisolated struct XA: Swift.Hashable, Swift.Sendable {"))
    #expect(!messages.contains("import LongLink\n"))
    let client = try protoc.output("Sources/Asking/sub_s.client.swift")
    #expect(client.contains("package import Api\npackage import LongLink\n"))
    #expect(client.contains("  /// Said.\n"))
    #expect(client.contains("_ request: Api::XA"))
    let server = try protoc.output("Sources/Answering/sub_s.server.swift")
    #expect(
      server.contains("/// Documented.\npackage nonisolated protocol SService: Swift.Sendable"))
    #expect(server.contains("package import LongLinkServer\n"))
    let simulated = try protoc.output("Tests/ApiTests/sub_s.simulated.swift")
    #expect(simulated.contains("package import LongLinkTesting\n"))
    #expect(try protoc.output("Sources/CApi/include/sub/s.pb-c.h").contains("sub__a__init"))
  }
}
